// SPDX-License-Identifier: GPL-2.0
/*
 * shim_reasons DEVICE [COUNT]
 *
 * Makes RC queue pairs: one as programs do, one with a CQ as large as the device has, and
 * one that cannot send. With COUNT, as many processes make one each as programs do.
 * Prints a line for each of them, its number and the reason why the verbs shim cannot
 * govern it, then "ready", and sleeps until it is killed.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#include "verbs.h"

static struct ibv_context *context;
static struct ibv_pd *pd;

static void open_named(const char *name)
{
	context = open_device(name);
	pd = make_pd(context);
}

static void show_qp(int cqe, unsigned int sends, const char *reason)
{
	struct ibv_qp *qp = make_qp(pd, make_cq(context, cqe), sends);

	printf("%u %s\n", qp->qp_num, reason);
	fflush(stdout);
}

/* They go with this process. */
static void make_processes(const char *name, int num)
{
	int i;

	for (i = 0; i < num; i++) {
		switch (fork()) {
		case -1:
			err(1, "fork");
		case 0:
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			open_named(name);
			show_qp(1, 1, "any");
			pause();
		}
	}
}

int main(int argc, char **argv)
{
	struct ibv_device_attr attr;

	if (argc < 2 || argc > 3)
		errx(2, "usage: shim_reasons DEVICE [COUNT]");
	if (argc == 3) {
		make_processes(argv[1], atoi(argv[2]));
	} else {
		open_named(argv[1]);
		if (ibv_query_device(context, &attr))
			err(1, "device");
		show_qp(1, 1, "none");
		show_qp(attr.max_cqe, 1, "no-cq-room");
		show_qp(1, 0, "shim-limit");
	}
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
