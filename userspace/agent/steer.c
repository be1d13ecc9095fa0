// SPDX-License-Identifier: GPL-2.0
/*
 * Steers the SafeUtil of a device: measures with its peers while there is a latency
 * flow, asks the controller, and lends the module what that says.
 *
 * Owns the timer that paces both. Without latency flows it fires just often enough to
 * renew the lease, and nothing is measured. What the module says of the device is
 * asked for anew several times a second and when it tells of a change; nothing else is
 * remembered of it, so an agent that is started again goes on where it is: with the SafeUtil,
 * the chunks and the target of the one before, as long as the lease of that holds. Runs in the
 * thread of the agent.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/chunk.h"
#include "exchange.h"
#include "minmax.h"
#include "peer.h"
#include "steer.h"

/* How often the module is asked, and the controller, while there are latency flows */
#define ASK_NS (100 * MS)
#define STEP_NS (10 * MS)
/*
 * From one reference message to the next, and how often the module is asked, while there is no
 * bulk. So few cost the 99th percentile of a latency flow nothing that sends 4,000 in a second.
 */
#define CALM_NS (25 * MS)
/* For so long it waits to read lists of the module for reference messages that are out. */
#define LIST_NS (10 * MS)
/* How long it takes to connect. It has no peer only when that is over. */
#define CONNECT_NS SEC

enum {
	/* Readings without bulk that are remembered: of ten seconds */
	ALONE = 100,
};

/**
 * struct loan - what is lent, and told with it
 * @util: SafeUtil, bytes per second
 * @chunk: size of chunks, bytes, or RDMA_ISOLATE_AUTO
 * @peer_latency: groups of latency flows of other hosts that the device answers
 * @state: what the agent finds
 * @current99: what it has measured, ns
 */
struct loan {
	uint64_t util;
	uint32_t chunk;
	uint32_t peer_latency;
	uint32_t state;
	uint64_t current99;
};

/**
 * struct steer - a device
 * @nl: requests to the module
 * @conf: how to steer
 * @dev: how to steer this one
 * @tick: paces everything
 * @due_ns: when it should fire
 * @late: how late it does, which is what a sample has too much, about
 * @seed: of the jitter
 * @peers: whom it measures with
 * @num_peers: how many
 * @exchange: what the agents of these, and others, are told and tell
 * @exchange_ns: when that is due
 * @safe_util: the last answer of the controller, or the operator's, bytes per second
 * @opened_ns: since when there is this
 * @known: the module has told of the device
 * @may_steer: the module manages the device, and lets an agent steer it
 * @target99: the operator's, or RDMA_ISOLATE_AUTO
 * @alone: 99th percentiles that were seen while nothing else was sent
 * @own_util: the operator's
 * @own_chunk: the operator's, or RDMA_ISOLATE_AUTO
 * @auto_chunk: what auto would be, bytes
 * @chunk: what the operator's is on this device, bytes; 0 as long as that is not known
 * @groups: L, B and T
 * @bulk: B or T is not 0
 * @send_ns: when to send the next reference message
 * @ask_ns: when to ask the module next
 * @asked_ns: when the module was asked last
 * @step_ns: when to ask the controller next
 * @aimd: parameters of the controller
 * @state: what the controller remembers
 * @lent: what was lent last
 * @told: state that was logged last
 * @lent_ns: when something was lent last, 0 for never
 * @agent: process whose lease was found
 * @refused: process that was in the way when nothing could be lent, 0 for nobody
 * @pause_ns: until the next try after one that was refused, 0 if it was not
 * @refused_ns: when the next try is
 */
struct steer {
	struct nl *nl;
	const struct conf *conf;
	const struct conf_dev *dev;
	struct source tick;
	uint64_t due_ns;
	struct percentile late;
	uint32_t seed;
	struct peer peers[CONF_PEERS_MAX];
	unsigned int num_peers;
	struct exchange *exchange;
	uint64_t exchange_ns;
	uint64_t safe_util;
	uint64_t opened_ns;
	bool known;
	bool may_steer;
	uint32_t target99;
	struct percentile alone;
	uint64_t own_util;
	uint32_t own_chunk;
	uint32_t auto_chunk;
	uint32_t chunk;
	uint32_t groups[3];
	bool bulk;
	uint64_t send_ns;
	uint64_t ask_ns;
	uint64_t asked_ns;
	uint64_t step_ns;
	struct aimd_params aimd;
	struct aimd_state state;
	struct loan lent;
	uint32_t told;
	uint64_t lent_ns;
	uint32_t agent;
	uint32_t refused;
	uint64_t pause_ns;
	uint64_t refused_ns;
};

/* --- what the module says --- */

static void on_dev(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
		   void *data)
{
	const struct name_set *set = &name_set_dev;
	struct steer *st = data;

	(void)nlh;
	st->may_steer = nl_number(attrs, RDMA_ISOLATE_A_DEV_STATE, set) == RISO_DEV_ENABLE &&
			nl_number(attrs, RDMA_ISOLATE_A_DEV_CTRL, set) == RISO_CTRL_AUTO;
	st->aimd.max_rate = nl_number(attrs, RDMA_ISOLATE_A_DEV_MAX_RATE, set);
	st->own_util = nl_number(attrs, RDMA_ISOLATE_A_DEV_SAFE_UTIL, set);
	st->own_chunk = nl_number(attrs, RDMA_ISOLATE_A_DEV_CHUNK_BYTES, set);
	st->auto_chunk = riso_chunk_auto(nl_number(attrs, RDMA_ISOLATE_A_DEV_BELIEVED_RATE, set));
	st->aimd.choose_chunk = st->own_chunk == RDMA_ISOLATE_AUTO &&
				st->aimd.law == AIMD_LAW_DEFAULT;
	st->target99 = nl_number(attrs, RDMA_ISOLATE_A_DEV_TARGET99_NS, set);
	if (!st->known)
		aimd_init(&st->state, &st->aimd);
	st->known = true;
}

/* What was measured beside bulk says nothing of a device without it. */
static void forget_bulk(struct steer *st)
{
	unsigned int i;

	for (i = 0; i < st->num_peers; i++)
		peer_forget(&st->peers[i]);
}

static void note_bulk(struct steer *st)
{
	bool bulk = st->groups[RISO_CLASS_THROUGHPUT] || st->groups[RISO_CLASS_BANDWIDTH];

	if (st->bulk && !bulk)
		forget_bulk(st);
	if (!st->bulk && bulk)
		st->send_ns = 0;
	st->bulk = bulk;
}

/* Another agent before this one has lent that: go on from there. */
static void take_over(struct steer *st, uint64_t safe_util, uint64_t target99, uint32_t chunk)
{
	if (!st->aimd.choose_chunk || chunk == st->auto_chunk)
		chunk = 0;
	aimd_resume(&st->state, safe_util, chunk);
	/* It may never be without bulk from now on. */
	if (st->target99 == RDMA_ISOLATE_AUTO && target99 && !percentile_count(&st->alone))
		percentile_add(&st->alone, target99 / AIMD_TARGET_TIMES);
}

static void on_budget(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
		      void *data)
{
	const struct name_set *set = &name_set_budget;
	uint32_t chunk = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES, set);
	struct steer *st = data;

	(void)nlh;
	st->agent = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_AGENT_PID, set);
	if (st->agent != st->refused)
		st->refused = 0;
	/* It has run out, or the operator has set something. */
	if (!st->agent)
		st->lent_ns = 0;
	else if (!st->lent_ns)
		take_over(st, nl_number(attrs, RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, set),
			  nl_number(attrs, RDMA_ISOLATE_A_BUDGET_TARGET99_NS, set), chunk);
	if (!st->agent || (st->lent_ns && st->lent.chunk == st->own_chunk))
		st->chunk = chunk;
	st->groups[RISO_CLASS_LATENCY] =
		nl_number(attrs, RDMA_ISOLATE_A_BUDGET_LATENCY_GROUPS, set);
	st->groups[RISO_CLASS_THROUGHPUT] =
		nl_number(attrs, RDMA_ISOLATE_A_BUDGET_THROUGHPUT_GROUPS, set);
	st->groups[RISO_CLASS_BANDWIDTH] =
		nl_number(attrs, RDMA_ISOLATE_A_BUDGET_BANDWIDTH_GROUPS, set);
	note_bulk(st);
}

static bool ask_module(struct steer *st)
{
	struct nlmsghdr *nlh;

	nlh = nl_request(st->nl, RDMA_ISOLATE_CMD_DEV_GET, false);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_DEV_DEV, st->dev->name);
	if (nl_send(st->nl, &name_set_dev, on_dev, st))
		return false;
	nlh = nl_request(st->nl, RDMA_ISOLATE_CMD_BUDGET_GET, false);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_BUDGET_DEV, st->dev->name);
	return !nl_send(st->nl, &name_set_budget, on_budget, st);
}

/* --- what was measured --- */

/* It misses the target by more, or has more to tell where neither does. */
static bool is_worse(const struct aimd_params *aimd, const struct aimd_input *a,
		     const struct aimd_input *b)
{
	uint64_t of_a = aimd_judged(aimd->law, a), of_b = aimd_judged(aimd->law, b);

	if (max_u64(of_a, of_b) > aimd->target99_ns)
		return of_a > of_b;
	return a->current99_ns > b->current99_ns;
}

/*
 * All by the worst peer: what two have measured would make a miss that neither has. @seen99 is what
 * was measured, whoever is to blame for it.
 */
static bool measured(const struct steer *st, uint64_t now, struct aimd_input *in, uint64_t *seen99)
{
	bool has, any = false;
	unsigned int i;

	for (i = 0; i < st->num_peers; i++) {
		struct aimd_input of = *in;

		has = peer_has_measured(&st->peers[i], now, &of);
		exchange_note(st->exchange, i, has ? aimd_judged(st->aimd.law, &of) : 0,
			      st->aimd.target99_ns, st->state.mode == AIMD_NOT_LOCAL);
		if (!has)
			continue;
		*seen99 = max_u64(*seen99, of.current99_ns);
		if (st->aimd.target99_ns && exchange_is_elsewhere(st->exchange, i, now))
			aimd_forgive(&of, st->aimd.target99_ns);
		if (!any || is_worse(&st->aimd, &of, in))
			*in = of;
		any = true;
	}
	return any;
}

static bool has_peer(const struct steer *st, uint64_t now)
{
	unsigned int i;

	for (i = 0; i < st->num_peers; i++)
		if (peer_is_there(&st->peers[i], now))
			return true;
	return false;
}

/* --- what follows --- */

static bool put_budget(struct steer *st, uint64_t lease_ns, const struct loan *loan)
{
	const struct name_set *set = &name_set_budget;
	struct nlmsghdr *nlh;

	nlh = nl_request(st->nl, RDMA_ISOLATE_CMD_BUDGET_SET, false);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_BUDGET_DEV, st->dev->name);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_LEASE_NS, lease_ns);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, loan->util);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_CHUNK_BYTES, loan->chunk);
	if (loan->peer_latency)
		nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_PEER_LATENCY_GROUPS,
			      loan->peer_latency);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_AGENT_PID, getpid());
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_CTRL_STATE, loan->state);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_TARGET99_NS, st->aimd.target99_ns);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_BUDGET_CURRENT99_NS, loan->current99);
	return !nl_send(st->nl, set, NULL, NULL);
}

/* A change of SafeUtil by less than 0.2 % is not worth a call. */
static bool is_lent(const struct steer *st, const struct loan *loan, uint64_t now)
{
	const struct loan *lent = &st->lent;

	return st->lent_ns && now - st->lent_ns < st->conf->lease_ns / 3 &&
	       loan->state == lent->state && loan->chunk == lent->chunk &&
	       loan->peer_latency == lent->peer_latency &&
	       loan->util > lent->util - lent->util / 512 &&
	       loan->util < lent->util + lent->util / 512;
}

static void lend(struct steer *st, struct loan loan, uint64_t now)
{
	uint64_t reserved = exchange_reserved(st->exchange);

	st->safe_util = loan.util;
	loan.util -= min_u64(loan.util, reserved);
	/* With nobody to share with the controller may say less. */
	loan.util = max_u64(loan.util, RDMA_ISOLATE_RATE_MIN);
	loan.peer_latency = exchange_latency(st->exchange);
	if (is_lent(st, &loan, now) || now < st->refused_ns)
		return;
	if (!put_budget(st, st->conf->lease_ns, &loan)) {
		/* What it has lent itself may be another's by now, or not. */
		if (!st->lent_ns)
			st->refused = st->agent;
		st->lent_ns = 0;
		st->pause_ns = min_u64(st->pause_ns ? 2 * st->pause_ns : STEP_NS, SEC);
		st->refused_ns = now + st->pause_ns;
		return;
	}
	st->pause_ns = 0;
	st->lent = loan;
	st->lent_ns = now;
}

/* The operator's settings, and what the agent finds */
static struct loan own_loan(const struct steer *st, uint32_t state, uint64_t current99)
{
	return (struct loan) {
		.util = st->own_util,
		.chunk = st->own_chunk,
		.state = state,
		.current99 = current99,
	};
}

static void find_target(struct steer *st, const struct aimd_input *in)
{
	if (st->target99 != RDMA_ISOLATE_AUTO) {
		st->aimd.target99_ns = st->target99;
		return;
	}
	/* Only just after asking: a group that has begun since is not among them yet. */
	if (st->asked_ns == in->now_ns && in->have_samples && in->l && !in->b && !in->t &&
	    !exchange_is_shared(st->exchange, in->now_ns))
		percentile_add(&st->alone, in->short99_ns);
	/* The median: a few late wake-ups spoil the last readings before bulk comes. */
	st->aimd.target99_ns = AIMD_TARGET_TIMES *
			       percentile_get(&st->alone, PERCENTILE_P50);
}

/* What is told: the worst that was measured, here or by who complains; else what was told last */
static uint64_t found99(const struct steer *st, const struct aimd_input *in, uint64_t seen99)
{
	if (in->current99_ns > st->aimd.target99_ns || seen99)
		return max_u64(in->current99_ns, seen99);
	return in->l && !in->have_samples ? st->lent.current99 : 0;
}

static void step(struct steer *st, uint64_t now)
{
	static const uint32_t states[] = {
		[AIMD_OPEN] = RISO_CTRL_STATE_OPEN,
		[AIMD_TRACKING] = RISO_CTRL_STATE_TRACKING,
		[AIMD_MISSED] = RISO_CTRL_STATE_MISSED,
		[AIMD_NOT_LOCAL] = RISO_CTRL_STATE_NOT_LOCAL,
		[AIMD_UNATTAINABLE] = RISO_CTRL_STATE_UNATTAINABLE,
	};
	struct aimd_input in = {
		.now_ns = now,
		.l = st->groups[RISO_CLASS_LATENCY] + exchange_latency(st->exchange),
		.b = st->groups[RISO_CLASS_BANDWIDTH],
		.t = st->groups[RISO_CLASS_THROUGHPUT],
		.chunk = st->chunk,
	};
	struct aimd_output out;
	uint64_t seen99 = 0;

	in.have_samples = measured(st, now, &in, &seen99);
	find_target(st, &in);
	if (!st->aimd.target99_ns)
		st->aimd.target99_ns = exchange_target(st->exchange);
	in.have_samples |= exchange_complain(st->exchange, st->aimd.target99_ns, &in);
	if (in.l && !exchange_latency(st->exchange) && !has_peer(st, now)) {
		if (now - st->opened_ns >= CONNECT_NS)
			lend(st, own_loan(st, RISO_CTRL_STATE_NO_PEER, 0), now);
		return;
	}
	if (!st->aimd.target99_ns) {
		lend(st, own_loan(st, RISO_CTRL_STATE_NONE, seen99), now);
		return;
	}
	out = aimd_step(&st->state, &st->aimd, &in);
	/* At the target it is missed and met in turns. */
	if (out.mode != AIMD_MISSED && states[out.mode] != st->told) {
		st->told = states[out.mode];
		log_line("%s: %s", st->dev->name, name_ctrl_state.values[st->told].name);
	}
	if (out.events & AIMD_EV_CHUNK)
		log_line("%s: chunks of %" PRIu32 " bytes serve the target better",
			 st->dev->name, out.chunk);
	lend(st, (struct loan) {
		.util = out.safe_util,
		.chunk = out.chunk ? out.chunk : st->own_chunk,
		.state = states[out.mode],
		.current99 = found99(st, &in, seen99),
	}, now);
}

/* Up to a quarter of the period off, so that nothing else is in step with it */
static uint64_t jittered(struct steer *st, uint64_t period)
{
	st->seed = st->seed * 1103515245 + 12345;
	return period - period / 4 + period / 2 * (st->seed >> 16) / 65536;
}

/* Nobody has to be held back, and what messages take alone is known. */
static bool is_calm(const struct steer *st)
{
	return !st->bulk && !exchange_is_shared(st->exchange, now_ns()) &&
	       (st->target99 != RDMA_ISOLATE_AUTO ||
			     percentile_count(&st->alone) == ALONE);
}

static bool measures(const struct steer *st)
{
	return st->groups[RISO_CLASS_LATENCY] && st->may_steer;
}

/* Tell and hear, and see when to do so again. */
static uint64_t exchange(struct steer *st, uint64_t now)
{
	const struct exchange_view view = {
		.now_ns = now,
		.latency = st->groups[RISO_CLASS_LATENCY],
		.bulk = st->groups[RISO_CLASS_BANDWIDTH] + st->groups[RISO_CLASS_THROUGHPUT],
		.max_rate = st->aimd.max_rate,
		.safe_util = st->safe_util ? st->safe_util : st->own_util,
		.chunk = st->chunk,
	};

	return st->may_steer ? exchange_step(st->exchange, &view) : now + SEC;
}

static bool is_out(const struct steer *st)
{
	unsigned int i;

	for (i = 0; i < st->num_peers; i++)
		if (peer_is_out(&st->peers[i]))
			return true;
	return false;
}

static void send_all(struct steer *st, uint64_t now, bool calm)
{
	uint64_t period_ns = max_u64(calm ? CALM_NS : 0, st->conf->ref_period_ns);
	unsigned int i;

	for (i = 0; i < st->num_peers; i++)
		peer_send(&st->peers[i], period_ns);
	st->send_ns = now + jittered(st, period_ns);
}

static void on_tick(struct source *s)
{
	struct steer *st = container_of(s, struct steer, tick);
	uint64_t renew_ns = st->conf->lease_ns / 3;
	uint64_t now = now_ns();
	bool calm = is_calm(st);

	if (!timer_fired(s))
		return;
	percentile_add(&st->late, now - st->due_ns);
	if (now >= st->ask_ns) {
		if (!ask_module(st))
			st->may_steer = false;
		st->ask_ns = now + (calm ? CALM_NS : ASK_NS);
		st->asked_ns = now;
		st->step_ns = now;
		if (!st->may_steer)
			st->lent_ns = 0;
	}
	/* As long as another agent lends this one follows it: the module would say no. */
	if (st->may_steer && !st->refused && now >= st->step_ns) {
		step(st, now);
		st->step_ns = now + (st->conf->law == CONF_LAW_PAPER ? 0 :
				     min_u64(STEP_NS, renew_ns));
	}
	if (now >= st->exchange_ns && (!is_out(st) || now - st->exchange_ns >= LIST_NS))
		st->exchange_ns = exchange(st, now);
	/* Nothing is to be done here while it is out. */
	if (measures(st) && now >= st->send_ns)
		send_all(st, now, calm);
	st->due_ns = min_u64(now + renew_ns, max_u64(st->exchange_ns, now + MS));
	if (!measures(st))
		st->ask_ns = min_u64(st->ask_ns, now + renew_ns);
	else if (st->send_ns < st->due_ns)
		st->due_ns = st->send_ns > now ? st->send_ns : now;
	timer_set(&st->tick, st->due_ns);
}

void steer_look(struct steer *st)
{
	st->ask_ns = 0;
	st->step_ns = 0;
	st->due_ns = now_ns();
	st->exchange_ns = min_u64(st->exchange_ns, st->due_ns);
	timer_set(&st->tick, st->due_ns);
}

const char *steer_name(const struct steer *st)
{
	return st->dev->name;
}

static void fill_times(struct metrics_times *times, const struct percentile *p)
{
	times->any = percentile_count(p);
	times->ns[0] = percentile_get(p, PERCENTILE_P50);
	times->ns[1] = percentile_get(p, PERCENTILE_P99);
	times->ns[2] = percentile_get(p, PERCENTILE_P99_9);
}

void steer_metrics(const struct steer *st, struct metrics *m)
{
	struct metrics_dev *dev = metrics_find_dev(m, st->dev->name);
	unsigned int i;

	if (dev)
		fill_times(&dev->late, &st->late);
	for (i = 0; i < st->num_peers; i++) {
		const struct peer *p = &st->peers[i];
		struct metrics_peer *peer = metrics_add_peer(m, st->dev->name);

		if (!peer)
			return;
		memcpy(peer->name, p->probe.name, sizeof(peer->name));
		peer->connected = p->probe.ready;
		peer->sent = p->probe.sent;
		peer->lost = p->probe.lost;
		fill_times(&peer->times, &p->all);
	}
}

static bool open_peer(struct steer *st, const union conf_addr *addr)
{
	struct peer *p = &st->peers[st->num_peers++];
	bool opened = peer_open(p, st->conf, st->dev->name, addr);

	exchange_add_peer(st->exchange, &p->probe);
	return opened;
}

struct steer *steer_open(struct nl *nl, const struct conf *conf, const struct conf_dev *dev)
{
	struct steer *st = calloc(1, sizeof(*st));
	unsigned int i;

	if (!st)
		return NULL;
	st->nl = nl;
	st->conf = conf;
	st->dev = dev;
	st->seed = getpid();
	aimd_defaults(&st->aimd, RDMA_ISOLATE_RATE_MAX, 1);
	st->aimd.law = conf->law == CONF_LAW_PAPER ? AIMD_LAW_PAPER : AIMD_LAW_DEFAULT;
	st->aimd.window_ns = conf_window_ns(conf);
	st->aimd.give_up = dev->unattainable == CONF_GIVE_UP;
	st->aimd.stay = dev->not_local == CONF_STAY;
	st->aimd.delta_ns = dev->delta_ns;
	st->opened_ns = now_ns();
	st->tick.fd = -1;
	if (percentile_init(&st->late, conf->short_window) ||
	    percentile_init(&st->alone, ALONE) || timer_open(&st->tick, on_tick))
		goto err;
	st->exchange = exchange_open(nl, conf, dev->name);
	if (!st->exchange)
		goto err;
	for (i = 0; i < dev->n_peers; i++)
		if (!open_peer(st, &dev->peer[i]))
			goto err;
	steer_look(st);
	return st;

err:
	steer_close(st);
	return NULL;
}

void steer_give_back(struct steer *st)
{
	const struct loan own = own_loan(st, RISO_CTRL_STATE_NONE, 0);

	if (st->lent_ns)
		put_budget(st, RDMA_ISOLATE_LEASE_MIN, &own);
}

void steer_close(struct steer *st)
{
	unsigned int i;

	for (i = 0; i < st->num_peers; i++)
		peer_close(&st->peers[i]);
	exchange_close(st->exchange);
	timer_close(&st->tick);
	percentile_free(&st->late);
	percentile_free(&st->alone);
	free(st);
}
