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
#include <string.h>
#include <sys/prctl.h>
#include <signal.h>
#include <unistd.h>

#include <infiniband/verbs.h>

static struct ibv_context *context;
static struct ibv_pd *pd;

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	if (!list)
		err(1, "devices");
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	pd = context ? ibv_alloc_pd(context) : NULL;
	if (!pd)
		err(1, "%s", name);
}

static void make_qp(int cqe, unsigned int sends, const char *reason)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = sends, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;

	attr.send_cq = ibv_create_cq(context, cqe, NULL, NULL, 0);
	attr.recv_cq = attr.send_cq;
	if (!attr.send_cq)
		err(1, "completion queue of %d", cqe);
	qp = ibv_create_qp(pd, &attr);
	if (!qp)
		err(1, "queue pair");
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
			open_device(name);
			make_qp(1, 1, "any");
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
		open_device(argv[1]);
		if (ibv_query_device(context, &attr))
			err(1, "device");
		make_qp(1, 1, "none");
		make_qp(attr.max_cqe, 1, "no-cq-room");
		make_qp(1, 0, "shim-limit");
	}
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
