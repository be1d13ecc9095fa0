// SPDX-License-Identifier: GPL-2.0
/*
 * Sends a pattern through SMC connections and has it sent back, each byte changed:
 *
 *	smc_copy SERVER-ADDRESS CLIENT-ADDRESS BYTES CONNECTIONS
 *
 * Both ends are in here, a process reads and one writes at the same time. Exits 0 if all
 * came back as it should, 4 if the kernel has no SMC.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <linux/smc.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "genl.h"

#ifndef AF_SMC
#define AF_SMC		43
#endif

#define PORT		7500
#define BLOCK		65536
#define FLIP		0x5a
/* a connection that hangs */
#define SECONDS		240

static unsigned char byte_at(size_t i)
{
	return i * 131 + (i >> 8) * 7 + (i >> 16);
}

static void write_all(int fd, const unsigned char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n <= 0)
			err(1, "write");
		buf += n;
		len -= n;
	}
}

/* SMC over routable RoCE is for hosts of one name alone. */
static void name_enterprise(void)
{
	struct mnl_socket *nl = netlink_open(NETLINK_GENERIC);
	unsigned int family = genl_family(nl, SMC_GENL_FAMILY_NAME);
	char eid[SMC_MAX_EID_LEN + 1], buf[256];
	struct nlmsghdr *nlh;

	if (!family)
		err(4, "no SMC");
	memset(eid, ' ', sizeof(eid));
	memcpy(eid, "RISO.SELFTEST", 13);
	eid[SMC_MAX_EID_LEN] = 0;
	nlh = genl_begin(buf, family, SMC_NETLINK_ADD_UEID, NLM_F_ACK);
	mnl_attr_put_strz(nlh, SMC_NLA_EID_TABLE_ENTRY, eid);
	if (netlink_ask(nl, nlh, NULL, NULL) < 0 && errno != EEXIST)
		err(1, "the name of the enterprise");
	mnl_socket_close(nl);
}

static int new_socket(const char *addr, int port, struct sockaddr_in *sin)
{
	int fd = socket(AF_SMC, SOCK_STREAM, 0);
	int on = 1;

	if (fd < 0)
		err(4, "socket");
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_port = htons(port);
	if (inet_pton(AF_INET, addr, &sin->sin_addr) != 1)
		errx(2, "no address: %s", addr);
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)sin, sizeof(*sin)))
		err(1, "bind");
	return fd;
}

static void serve(int listener, int connections)
{
	static unsigned char buf[BLOCK];
	ssize_t n, i;

	while (connections--) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			err(1, "accept");
		while ((n = read(fd, buf, sizeof(buf))) > 0) {
			for (i = 0; i < n; i++)
				buf[i] ^= FLIP;
			write_all(fd, buf, n);
		}
		if (n < 0)
			err(1, "server: read");
		close(fd);
	}
}

static void send_pattern(int fd, size_t bytes)
{
	static unsigned char buf[BLOCK];
	size_t at, n, i;

	for (at = 0; at < bytes; at += n) {
		n = bytes - at < BLOCK ? bytes - at : BLOCK;
		for (i = 0; i < n; i++)
			buf[i] = byte_at(at + i);
		write_all(fd, buf, n);
	}
	if (shutdown(fd, SHUT_WR))
		err(1, "shutdown");
}

static void check_pattern(int fd, size_t bytes)
{
	static unsigned char buf[BLOCK];
	size_t at = 0;
	ssize_t n, i;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (i = 0; i < n; i++, at++)
			if (buf[i] != (byte_at(at) ^ FLIP))
				errx(1, "byte %zu is %#x", at, buf[i]);
	if (n < 0)
		err(1, "client: read");
	if (at != bytes)
		errx(1, "%zu bytes of %zu came back", at, bytes);
}

static int end_of(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ?
		WEXITSTATUS(status) : 1;
}

static int run_client(const char *from, const struct sockaddr_in *to, size_t bytes)
{
	struct sockaddr_in sin;
	int fd = new_socket(from, 0, &sin);
	pid_t writer;
	int status;

	if (connect(fd, (const struct sockaddr *)to, sizeof(*to)))
		err(1, "connect");
	writer = fork();
	if (writer < 0)
		err(1, "fork");
	if (!writer) {
		alarm(SECONDS);
		send_pattern(fd, bytes);
		_exit(0);
	}
	check_pattern(fd, bytes);
	status = end_of(writer);
	close(fd);
	return status;
}

int main(int argc, char **argv)
{
	struct sockaddr_in sin;
	int listener, n, status = 0;
	pid_t server;

	if (argc != 5)
		errx(2, "usage: smc_copy SERVER-ADDRESS CLIENT-ADDRESS BYTES CONNECTIONS");
	alarm(SECONDS);
	listener = new_socket(argv[1], PORT, &sin);
	name_enterprise();
	if (listen(listener, 4))
		err(1, "listen");
	server = fork();
	if (server < 0)
		err(1, "fork");
	if (!server) {
		alarm(SECONDS);
		serve(listener, atoi(argv[4]));
		_exit(0);
	}
	for (n = 0; !status && n < atoi(argv[4]); n++)
		status = run_client(argv[2], &sin, strtoull(argv[3], NULL, 0));
	return status ? status : end_of(server);
}
