// SPDX-License-Identifier: GPL-2.0
/*
 * Lets other agents write reference messages here, and who calibrates larger ones.
 *
 * Owns the listening id, the connections that were accepted, and the memory that they
 * write to: one for each device, which all of its guests share, as nobody reads it, and a slot for
 * the records of each. An RDMA WRITE needs nothing of this program, so a connection costs no time
 * until it ends. Whoever is no agent of this version is refused; so is who comes when there are
 * too many. The log says so once a minute. All are asked for a sign of life when there
 * are too many, for one that has died without a word would keep its place.
 *
 * A listening id on an address ends with the device of it, and is made anew when that is
 * back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "loop.h"
#include "serve.h"

enum { CONNECTIONS = 256, BACKLOG = 64, REASONS = 8 };

/* Work requests to a guest: one that asks for a sign of life, and a record */
enum { SENDS = 2 };

#define AGAIN_NS SEC
#define SILENCE_NS (10 * SEC)
/* Refusals for the same reason are logged once in as long. */
#define TELL_NS (60 * SEC)

/**
 * struct memory - what the guests of a device may write
 * @list: in the list of memories
 * @mr: of the device
 * @guests: how many may
 * @bytes: nobody reads it
 */
struct memory {
	LIST_ENTRY(memory) list;
	struct ibv_mr *mr;
	unsigned int guests;
	char bytes[CM_MEMORY];
};

/**
 * struct guest - a connection
 * @list: in the list of guests
 * @user: where its events go
 * @id: the connection
 * @cq: where signs of life complete
 * @memory: what it may write
 * @talk: records to the guest and from it
 * @asked_ns: when for one that has not been seen, 0 if there is none
 */
struct guest {
	LIST_ENTRY(guest) list;
	struct cm_user user;
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct memory *memory;
	struct talk talk;
	uint64_t asked_ns;
};

static LIST_HEAD(, guest) guests = LIST_HEAD_INITIALIZER(guests);
static LIST_HEAD(, memory) memories = LIST_HEAD_INITIALIZER(memories);
static struct rdma_cm_id *listener;
static union conf_addr address;
static unsigned int num;

/* What was logged last for each reason; there are fewer reasons than these. */
static struct {
	const char *why;
	uint64_t ns;
} told[REASONS];

static struct memory *get_memory(struct ibv_pd *pd)
{
	struct memory *m;

	LIST_FOREACH(m, &memories, list)
		if (m->mr->pd == pd)
			goto found;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->mr = ibv_reg_mr(pd, m->bytes, sizeof(m->bytes),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!m->mr) {
		free(m);
		return NULL;
	}
	LIST_INSERT_HEAD(&memories, m, list);
found:
	m->guests++;
	return m;
}

static void put_memory(struct memory *m)
{
	if (--m->guests)
		return;
	LIST_REMOVE(m, list);
	ibv_dereg_mr(m->mr);
	free(m);
}

static void leave(struct guest *g)
{
	if (g->id->qp)
		rdma_destroy_qp(g->id);
	if (g->memory)
		put_memory(g->memory);
	talk_close(&g->talk);
	if (g->cq)
		ibv_destroy_cq(g->cq);
	rdma_destroy_id(g->id);
	LIST_REMOVE(g, list);
	num--;
	free(g);
}

static void on_guest(struct cm_user *user, const struct cm_event *e)
{
	struct guest *g = container_of(user, struct guest, user);

	if (e->type != RDMA_CM_EVENT_ESTABLISHED &&
	    e->type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
		leave(g);
}

/* What has completed; false if the guest is gone, which is why it has left now. */
static bool take(struct guest *g)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(g->cq, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS) {
			leave(g);
			return false;
		}
		if (wc.wr_id == TALK_WR_ID)
			talk_said(&g->talk);
		else
			g->asked_ns = 0;
	}
	return true;
}

/*
 * An RDMA WRITE of nothing, which whoever is there acknowledges. What came of the last
 * one is looked at first; not all retries have an end.
 */
static void ask(struct guest *g, uint64_t now)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
	};

	if (!take(g))
		return;
	if (g->asked_ns && now - g->asked_ns > SILENCE_NS)
		leave(g);
	else if (!g->asked_ns && !ibv_post_send(g->id->qp, &wr, &bad))
		g->asked_ns = now;
}

static void ask_all(void)
{
	struct guest *g, *next;
	uint64_t now = now_ns();

	for (g = LIST_FIRST(&guests); g; g = next) {
		next = LIST_NEXT(g, list);
		ask(g, now);
	}
}

static const char *welcome(struct guest *g, const struct cm_hello *said)
{
	struct ibv_qp_init_attr attr = {
		.cap = {
			.max_send_wr = SENDS, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
	};
	struct cm_hello hello;
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.rnr_retry_count = 7,
	};
	struct talk_place place;
	const char *why;

	g->cq = ibv_create_cq(g->id->verbs, SENDS, NULL, NULL, 0);
	attr.send_cq = g->cq;
	attr.recv_cq = g->cq;
	if (!g->cq || rdma_create_qp(g->id, NULL, &attr))
		return "no queue pair for it";
	g->memory = get_memory(g->id->pd);
	if (!g->memory)
		return "no memory for it";
	why = talk_open(&g->talk, g->id->pd);
	if (why)
		return why;
	cm_place(said, &place);
	talk_learn_place(&g->talk, &place);
	talk_tell_place(&g->talk, &place);
	cm_say(&hello, (uintptr_t)g->memory->bytes, g->memory->mr->rkey, &place);
	return rdma_accept(g->id, &param) ? "cannot accept" : NULL;
}

static void tell(const char *why)
{
	uint64_t now = now_ns();
	unsigned int i = 0;

	while (i < REASONS - 1 && told[i].why && told[i].why != why)
		i++;
	if (told[i].why == why && now - told[i].ns < TELL_NS)
		return;
	log_line("a connection is refused: %s", why);
	told[i].why = why;
	told[i].ns = now;
}

static struct source again = { .fd = -1 };

static void on_listener(struct cm_user *user, const struct cm_event *e)
{
	struct guest *g = NULL;
	struct cm_hello hello;
	const char *why;

	(void)user;
	if (e->type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
		rdma_destroy_id(listener);
		listener = NULL;
		timer_set(&again, now_ns() + AGAIN_NS);
		log_line("the device that is listened at has gone");
		return;
	}
	if (e->type != RDMA_CM_EVENT_CONNECT_REQUEST)
		return;
	why = cm_wrong(e);
	if (!why && num == CONNECTIONS) {
		why = "too many connections";
		ask_all();
	}
	if (!why) {
		g = calloc(1, sizeof(*g));
		why = g ? NULL : "no memory for it";
	}
	if (g) {
		g->user.event = on_guest;
		g->id = e->id;
		g->id->context = &g->user;
		LIST_INSERT_HEAD(&guests, g, list);
		num++;
		why = welcome(g, &e->hello);
	}
	if (!why)
		return;
	tell(why);
	cm_say(&hello, 0, 0, NULL);
	rdma_reject(e->id, &hello, sizeof(hello));
	if (g)
		leave(g);
	else
		rdma_destroy_id(e->id);
}

static bool listens(void)
{
	static struct cm_user user = { .event = on_listener };

	listener = cm_id(&user);
	return listener && !rdma_bind_addr(listener, &address.sa) &&
	       !rdma_listen(listener, BACKLOG);
}

static void on_again(struct source *s)
{
	if (!timer_fired(s))
		return;
	if (listens()) {
		log_line("it is back, and listened at");
		return;
	}
	if (listener)
		rdma_destroy_id(listener);
	listener = NULL;
	timer_set(&again, now_ns() + AGAIN_NS);
}

int serve_open(const union conf_addr *addr)
{
	int err = timer_open(&again, on_again);

	address = *addr;
	if (err)
		return err;
	return listens() ? 0 : -errno;
}

void serve_talk(serve_fn fn, void *arg)
{
	struct guest *g, *next;

	for (g = LIST_FIRST(&guests); g; g = next) {
		next = LIST_NEXT(g, list);
		if (take(g))
			fn(arg, g->id, &g->talk);
	}
}

void serve_close(void)
{
	while (!LIST_EMPTY(&guests))
		leave(LIST_FIRST(&guests));
	if (listener)
		rdma_destroy_id(listener);
	timer_close(&again);
}
