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

#include "verbs.h"

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
	pd = make_pd(context);
	cq = make_cq(context, 1);
	if (!qp)
		err(1, "%s", argv[1]);
	for (i = 0; i < count; i++) {
		qp[i] = make_qp(pd, cq, 1);
		printf("%u\n", qp[i]->qp_num);
	}
	puts("ready");
	fflush(stdout);
	if (argc < 4)
		pause();
	for (i = 0; ; i = (i + 1) % count) {
		if (ibv_destroy_qp(qp[i]))
			err(1, "destroy");
		qp[i] = make_qp(pd, cq, 1);
	}
}
