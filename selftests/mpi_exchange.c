// SPDX-License-Identifier: GPL-2.0
/*
 * mpi_exchange ROUNDS FILE
 *
 * Two ranks of MPI. Each round both send the other 8 MB at once, and compare every byte of
 * what they receive; the even rounds have one message, the odd ones eight of 1 MB. They stay
 * until there is FILE. Rank 0 says how many rounds there were.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <mpi.h>

#define LENGTH (8 << 20)
#define PARTS 8

static unsigned char sent[LENGTH], received[LENGTH];

/* What @rank sends in @round, at @i */
static unsigned char content(int rank, int round, int i)
{
	unsigned int x = (i + 1) * 2654435761U ^ (round * 2 + rank) * 40503U;

	return x >> 16 ^ x >> 8;
}

static void exchange(int rank, int round)
{
	int parts = round % 2 ? PARTS : 1, length = LENGTH / parts;
	MPI_Request requests[2 * PARTS];
	int i;

	for (i = 0; i < LENGTH; i++) {
		sent[i] = content(rank, round, i);
		received[i] = ~content(!rank, round, i);
	}
	for (i = 0; i < parts; i++) {
		MPI_Irecv(received + i * length, length, MPI_BYTE, !rank, i,
			  MPI_COMM_WORLD, &requests[2 * i]);
		MPI_Isend(sent + i * length, length, MPI_BYTE, !rank, i,
			  MPI_COMM_WORLD, &requests[2 * i + 1]);
	}
	MPI_Waitall(2 * parts, requests, MPI_STATUSES_IGNORE);
	for (i = 0; i < LENGTH; i++)
		if (received[i] != content(!rank, round, i))
			errx(1, "rank %d, round %d: other data at %d", rank, round, i);
}

int main(int argc, char **argv)
{
	int rank, size, rounds, i;

	if (argc != 3)
		errx(2, "usage: mpi_exchange ROUNDS FILE");
	rounds = atoi(argv[1]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size != 2)
		errx(2, "there are %d ranks, not 2", size);
	for (i = 0; i < rounds; i++)
		exchange(rank, i);
	while (access(argv[2], F_OK))
		usleep(100000);
	MPI_Finalize();
	if (!rank)
		printf("%d rounds\n", rounds);
	return 0;
}
