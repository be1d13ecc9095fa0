// SPDX-License-Identifier: GPL-2.0
/*
 * posts_around DEVICE around|told|plain|idle
 *
 * Has a queue pair that is connected to itself, until SIGTERM. With "around" and "told" it takes
 * part in the device as the verbs shim does, and WRITEs. It tells of nothing that it posts
 * before SIGUSR1 comes (around), or of everything (told). Or it takes no part, and WRITEs (plain),
 * or not (idle).
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

static bool is_pending(int sig)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, sig);
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

static void write_and_tell(struct share *s, const struct ibv_mr *mr)
{
	s->u->path[RISO_USER_TX].posted += LENGTH + PACKETS * s->k->header;
	write_once(s, mr);
	s->u->path[RISO_USER_TX].done = s->u->path[RISO_USER_TX].posted;
}

int main(int argc, char **argv)
{
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	bool tells, takes_part;
	struct ibv_mr *mr;
	struct share s;
	sigset_t set;

	if (argc != 3)
		errx(2, "usage: posts_around DEVICE around|told|plain|idle");
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	share_init(argv[1]);
	s = share_open_qp();
	share_connect_qp(&s);
	tells = !strcmp(argv[2], "told");
	takes_part = tells || !strcmp(argv[2], "around");
	if (takes_part)
		share_take_part(&s);
	mr = ibv_reg_mr(s.pd, data, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!mr || ibv_modify_qp(s.qp, &attr, IBV_QP_ACCESS_FLAGS))
		err(1, "memory");
	while (!is_pending(SIGTERM)) {
		usleep(PAUSE_US);
		if (tells || (takes_part && is_pending(SIGUSR1)))
			write_and_tell(&s, mr);
		else if (strcmp(argv[2], "idle"))
			write_once(&s, mr);
	}
	ibv_dereg_mr(mr);
	if (takes_part)
		share_leave(&s);
	else
		share_close_qp(&s);
}
