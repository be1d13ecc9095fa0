// SPDX-License-Identifier: GPL-2.0
/*
 * What two agents tell each other over a connection: a record each way.
 *
 * Owns the memory that the peer writes its record to, and that which ours is written from. Each
 * connection has its own, under a key of its own: a peer can write no other's. A record is one RDMA
 * WRITE, so it costs the other end nothing until it looks. The last one counts; whoever has
 * something new while one is out says it when that has completed.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "minmax.h"
#include "talk.h"

const char *talk_open(struct talk *t, struct ibv_pd *pd)
{
	memset(t, 0, sizeof(*t));
	/* Nobody can tell it in advance, so no record of an earlier connection is one of this. */
	if (getrandom(&t->epoch, sizeof(t->epoch), 0) != sizeof(t->epoch))
		return "no random number";
	t->slot_mr = ibv_reg_mr(pd, t->slot, sizeof(t->slot),
				IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	t->out_mr = ibv_reg_mr(pd, t->out, sizeof(t->out), 0);
	return t->slot_mr && t->out_mr ? NULL : "cannot register memory";
}

void talk_close(struct talk *t)
{
	if (t->slot_mr)
		ibv_dereg_mr(t->slot_mr);
	if (t->out_mr)
		ibv_dereg_mr(t->out_mr);
	memset(t, 0, sizeof(*t));
}

void talk_tell_place(const struct talk *t, struct talk_place *place)
{
	*place = (struct talk_place) {
		.addr = (uintptr_t)t->slot, .rkey = t->slot_mr->rkey, .epoch = t->epoch,
	};
}

void talk_learn_place(struct talk *t, const struct talk_place *place)
{
	t->peer = *place;
}

int talk_say(struct talk *t, struct ibv_qp *qp, const struct peer_record *r, const uint8_t *key,
	     uint64_t now)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)t->out, .length = sizeof(t->out),
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = TALK_WR_ID, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
	};
	struct peer_record numbered = *r;
	int err;

	if (!t->peer.rkey)
		return ENOTCONN;
	if (t->is_out)
		return EBUSY;
	numbered.epoch = t->peer.epoch;
	numbered.seq = t->said + 1;
	peer_record_write(&numbered, key, t->out);
	sge.lkey = t->out_mr->lkey;
	wr.wr.rdma.remote_addr = t->peer.addr;
	wr.wr.rdma.rkey = t->peer.rkey;
	err = ibv_post_send(qp, &wr, &bad);
	if (err)
		return err;
	t->said = numbered.seq;
	t->is_out = true;
	t->told = *r;
	t->told_ns = now;
	return 0;
}

void talk_said(struct talk *t)
{
	t->is_out = false;
}

const char *talk_hear(struct talk *t, const uint8_t *to, const uint8_t *key, uint64_t now)
{
	const char *wrong;
	bool doubted = t->doubted;

	if (peer_record_read(t->slot, key, to, t->epoch, t->heard, &t->last, &wrong)) {
		t->heard = t->last.seq;
		t->last_ns = now;
	}
	t->doubted = wrong;
	return doubted ? wrong : NULL;
}

bool talk_holds(const struct talk *t, uint64_t now)
{
	return t->last_ns && now - t->last_ns < min_u64(t->last.lease_ns, TALK_LEASE_MAX);
}
