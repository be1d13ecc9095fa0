// SPDX-License-Identifier: GPL-2.0
/*
 * many_qps DEVICE COUNT [churn]
 *
 * Makes that many queue pairs and prints their numbers, one a line, then "ready".
 * Then it sleeps, or with "churn" destroys and makes one after the other, until it
 * is killed.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	int i;

	if (!list)
		err(1, "devices");
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	if (!context)
		errx(1, "%s: cannot be opened", name);
	return context;
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	if (!qp)
		err(1, "queue pair");
	return qp;
}

int main(int argc, char **argv)
{
	struct ibv_context *context;
	struct ibv_qp **qp;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	int count, i;

	if (argc < 3 || argc > 4 || (argc == 4 && strcmp(argv[3], "churn")))
		errx(2, "usage: many_qps DEVICE COUNT [churn]");
	count = atoi(argv[2]);
	if (count < 1)
		errx(2, "%s: must be at least 1", argv[2]);
	qp = calloc(count, sizeof(*qp));
	context = open_device(argv[1]);
	pd = ibv_alloc_pd(context);
	cq = pd ? ibv_create_cq(context, 1, NULL, NULL, 0) : NULL;
	if (!qp || !cq)
		err(1, "%s", argv[1]);
	for (i = 0; i < count; i++) {
		qp[i] = make_qp(pd, cq);
		printf("%u\n", qp[i]->qp_num);
	}
	puts("ready");
	fflush(stdout);
	if (argc < 4)
		pause();
	for (i = 0; ; i = (i + 1) % count) {
		if (ibv_destroy_qp(qp[i]))
			err(1, "destroy");
		qp[i] = make_qp(pd, cq);
	}
}
