// SPDX-License-Identifier: GPL-2.0
/*
 * rdma-isolate-calibrate: measures what a device can do, for rdma-isolate.
 *
 *	rdma-isolate-calibrate DEV PEER|"" PORT|0
 *
 * It is a program of its own, which "rdma-isolate calibrate" runs, so that rdma-isolate
 * can be installed on hosts without libibverbs and librdmacm. It only measures, and
 * prints a line for each figure; what follows from them, and what is set, is the tool's.
 * Without PEER or PORT it takes those that the agent of this host has.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "measure.h"

void die(const char *fmt, ...)
{
	va_list ap;

	fputs("rdma-isolate: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

void begin(const char *what, unsigned int seconds)
{
	fprintf(stderr, "rdma-isolate: measuring %s, about %u s\n", what, seconds);
}

/* GIDs have IPv4 in IPv6. */
static bool parse_peer(const char *text, union conf_addr *to)
{
	struct in6_addr gid;

	if (inet_pton(AF_INET, text, &to->v4.sin_addr) == 1) {
		to->sa.sa_family = AF_INET;
	} else if (inet_pton(AF_INET6, text, &gid) != 1) {
		return false;
	} else if (IN6_IS_ADDR_V4MAPPED(&gid)) {
		to->sa.sa_family = AF_INET;
		memcpy(&to->v4.sin_addr, &gid.s6_addr[12], 4);
	} else {
		to->sa.sa_family = AF_INET6;
		to->v6.sin6_addr = gid;
	}
	return true;
}

static void find_peer(struct link *l, const char *peer, unsigned int port)
{
	struct conf_args args = { .file = CONF_FILE };
	const struct conf_dev *dev = NULL;
	char error[CONF_ERROR_LEN];
	struct conf conf = { };
	unsigned int i;

	if (!*peer || !port) {
		if (!conf_load(&conf, &args, error, sizeof(error)))
			die("%s", error);
		for (i = 0; i < conf.n_devs; i++)
			if (!strcmp(conf.dev[i].name, l->dev))
				dev = &conf.dev[i];
	}
	if (*peer) {
		if (!parse_peer(peer, &l->peer))
			die("peer %s is no address of IPv4 or IPv6", peer);
	} else if (dev && dev->n_peers) {
		l->peer = dev->peer[0];
	} else {
		fprintf(stderr,
			"rdma-isolate: peer is missing: the address of a host where rdma-isolated runs; %s has none for %s\n",
			CONF_FILE, l->dev);
		exit(2);
	}
	/* IPv4 and IPv6 have the port at the same place. */
	l->peer.v4.sin_port = htons(port ?: conf.port);
	inet_ntop(l->peer.sa.sa_family, l->peer.sa.sa_family == AF_INET ?
		  (void *)&l->peer.v4.sin_addr : (void *)&l->peer.v6.sin6_addr,
		  l->name, sizeof(l->name));
	conf_free(&conf);
}

int main(int argc, char **argv)
{
	struct calibrate_seen seen = { };
	struct link l = { };
	unsigned int i;

	if (argc != 4)
		die("run \"rdma-isolate calibrate\" instead");
	l.dev = argv[1];
	find_peer(&l, argv[2], atoi(argv[3]));
	link_open(&l);
	measure(&l, &seen);
	printf("peer %s\np50 %" PRIu64 "\np99 %" PRIu64 "\nrtt-min %" PRIu64 "\n", l.name,
	       seen.p50_ns, seen.p99_ns, seen.rtt_min_ns);
	printf("rate %" PRIu64 "\nops %" PRIu64 "\n", seen.rate, seen.ops);
	for (i = 0; i < seen.num; i++)
		printf("size %" PRIu64 " %" PRIu64 "\n", seen.size[i].bytes,
		       seen.size[i].rate);
	return 0;
}
