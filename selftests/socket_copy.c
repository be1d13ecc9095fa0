// SPDX-License-Identifier: GPL-2.0
/*
 * socket_copy SERVER-ADDRESS CLIENT-ADDRESS PORT
 *
 * A server in one thread, a client in another: the client sends 4 MB over TCP, and the server
 * compares every byte. With librspreload.so TCP is rsockets.
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LENGTH = 4 << 20 };

static unsigned char sent[LENGTH], received[LENGTH];

/* A TCP socket that has an address */
static int bound_socket(const char *address, int port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = inet_addr(address),
	};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof(in)))
		err(1, "%s", address);
	return fd;
}

static void *serve(void *arg)
{
	int fd = accept(*(int *)arg, NULL, NULL);
	size_t done;
	ssize_t n;
	char c;

	if (fd < 0)
		err(1, "accept");
	for (done = 0; done < LENGTH; done += n) {
		n = recv(fd, received + done, LENGTH - done, 0);
		if (n <= 0)
			err(1, "recv: %zd", n);
	}
	if (send(fd, "x", 1, 0) != 1)
		err(1, "answer");
	/* The client closes first. */
	recv(fd, &c, 1, 0);
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	pthread_t server;
	int fd, listener, i;
	size_t done;
	ssize_t n;
	char c;

	if (argc != 4)
		errx(2, "usage: socket_copy SERVER-ADDRESS CLIENT-ADDRESS PORT");
	for (i = 0; i < LENGTH; i++)
		sent[i] = i * 2654435761U >> 13;
	listener = bound_socket(argv[1], atoi(argv[3]));
	if (listen(listener, 1) || pthread_create(&server, NULL, serve, &listener))
		err(1, "listen");
	fd = bound_socket(argv[2], 0);
	to.sin_port = htons(atoi(argv[3]));
	to.sin_addr.s_addr = inet_addr(argv[1]);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		err(1, "connect");
	for (done = 0; done < LENGTH; done += n) {
		n = send(fd, sent + done, LENGTH - done, 0);
		if (n <= 0)
			err(1, "send");
	}
	if (recv(fd, &c, 1, 0) != 1)
		err(1, "answer");
	for (i = 0; i < LENGTH; i++)
		if (sent[i] != received[i])
			errx(1, "other data at %d", i);
	close(fd);
	if (pthread_join(server, NULL))
		errx(1, "join");
	puts("copied");
	return 0;
}
