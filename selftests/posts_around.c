// SPDX-License-Identifier: GPL-2.0
/*
 * posts_around DEVICE post|tell|idle
 *
 * Takes part in a device as the verbs shim does, with a queue pair that is connected to
 * itself. Then it WRITEs until SIGTERM, and says nothing of that in its page (post) or
 * everything (tell), or it WRITEs nothing (idle).
 */
#include <err.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "share.h"

enum {
	LENGTH = 65536,
	/* The path MTU is 1024. */
	PACKETS = LENGTH / 1024,
	PAUSE_US = 5000,
};

static char data[LENGTH];

static bool is_told_to_stop(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, SIGTERM);
}

static void write_once(const struct share *s, const struct ibv_mr *mr)
{
	struct ibv_sge sge = { .addr = (uintptr_t)data, .length = LENGTH, .lkey = mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)data, .rkey = mr->rkey },
	};
	struct ibv_wc wc = { 0 };
	int n;

	if (ibv_post_send(s->qp, &wr, &bad))
		err(1, "post");
	do {
		n = ibv_poll_cq(s->cq, 1, &wc);
	} while (!n);
	if (n < 0 || wc.status)
		errx(1, "status %d", wc.status);
}

int main(int argc, char **argv)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_mr *mr;
	struct share s;
	sigset_t set;
	bool tells;

	if (argc != 3)
		errx(2, "usage: posts_around DEVICE post|tell|idle");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	share_init(argv[1]);
	s = share_join();
	mr = ibv_reg_mr(s.pd, data, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr || ibv_modify_qp(s.qp, &attr, IBV_QP_ACCESS_FLAGS))
		err(1, "memory");
	tells = !strcmp(argv[2], "tell");
	while (!is_told_to_stop()) {
		usleep(PAUSE_US);
		if (!strcmp(argv[2], "idle"))
			continue;
		if (tells)
			s.u->dir[RISO_USER_TX].posted +=
				LENGTH + PACKETS * s.k->header + 16;
		write_once(&s, mr);
		if (tells)
			s.u->dir[RISO_USER_TX].done = s.u->dir[RISO_USER_TX].posted;
	}
	ibv_dereg_mr(mr);
	share_leave(&s);
}
