// SPDX-License-Identifier: GPL-2.0
/*
 * What the agents of several hosts tell each other about one device, and what follows from it.
 *
 * A connection has two ends. The one that has connected, of a peer in the settings, tells what
 * its host sends to the other, what it reads from there, and whether its messages are late. The
 * one that was connected to tells how much of that may be. So two hosts that have each other as
 * peers have two connections, each with a meaning of its own.
 *
 * Owns the limits of paths to the peers of the device, which it lends the module, and the pool of
 * what comes in. An operator's limit, one without a lease, is left alone. Of others it remembers
 * what their last records said, as long as the leases of these hold, and whom it could not help.
 *
 * Runs in the thread of the agent, when the timer of steer.c fires.
 */
#include <stdlib.h>
#include <string.h>

#include "exchange.h"
#include "hear.h"
#include "minmax.h"
#include "pool.h"
#include "survey.h"

/* How often to look, while there is bulk */
#define STEP_NS (20 * MS)
/* The module has said no. */
#define PAUSE_NS SEC
/* What holding others back did not mend is not tried again before that, nor later. */
#define EXCUSE_FIRST_NS (10 * SEC)
#define EXCUSE_LONGEST_NS (300 * SEC)
/* A decision is told, is heard, and what is measured then is: steps that may all be late by one. */
#define DELAY_NS (4 * STEP_NS)
/* Whoever says that its window is longer cannot be helped. */
#define WINDOW_MAX_NS (2 * SEC)

enum {
	/* What differs by less than a 64th is not told. */
	CHANGE_DEN = 64,
	/* What all may begin with who send nothing is no more than this part of a pool. */
	BEGIN_PART = 16,
};

/**
 * struct miss - what reference messages take
 * @current99_ns: their 99th percentile, ns; 0 for unknown
 * @target99_ns: what it should be at most
 * @not_local: the law has found that SafeUtil here does not matter
 * @window_ns: for how long one that was late is in @current99_ns
 */
struct miss {
	uint64_t current99_ns;
	uint64_t target99_ns;
	bool not_local;
	uint64_t window_ns;
};

/**
 * struct worst - the worst of all that was measured with a device
 * @miss: what that is, with @target99_ns 0 for nothing
 * @talk: whose, in this step
 */
struct worst {
	struct miss miss;
	struct talk *talk;
};

/**
 * struct limit - what was set for a direction of a path
 * @rate: bytes per second, 0 for none
 * @cut: messages are cut
 * @ns: when, 0 for never
 */
struct limit {
	uint64_t rate;
	bool cut;
	uint64_t ns;
};

/**
 * struct partner - a peer that this agent has connected to
 * @probe: the connection
 * @miss: what reference messages to it take
 * @limit: by direction, enum riso_path_dir
 * @pause_ns: not before then is a limit set
 */
struct partner {
	struct probe *probe;
	struct miss miss;
	struct limit limit[SURVEY_DIRS];
	uint64_t pause_ns;
};

/**
 * struct exchange - of a device
 * @conf: settings of the agent
 * @survey: what the module counts
 * @partner: peers, in the order of those of @survey
 * @num: how many
 * @hear: what others have told
 * @pool: of what comes in
 * @begun: @pool has a MaxRate
 * @own_latency: groups of latency flows here at the last step
 * @out: what is sent here, in whatever way, bytes per second
 * @fills: that fills what may be sent
 * @is_full: what comes in fills the pool
 * @reserved: for what callers read
 * @worst: the worst of all that was measured with this device
 * @hopeless: of whom the law has found that the pool does not matter, or NULL
 * @receives: others send here more than small messages
 * @look_ns: until then a host that is quiet need not ask the module
 */
struct exchange {
	const struct conf *conf;
	struct survey survey;
	struct partner partner[CONF_PEERS_MAX];
	unsigned int num;
	struct hear hear;
	struct pool pool;
	bool begun;
	uint32_t own_latency;
	uint64_t out;
	bool fills;
	bool is_full;
	uint64_t reserved;
	struct worst worst;
	struct talk *hopeless;
	bool receives;
	uint64_t look_ns;
};

struct exchange *exchange_open(struct nl *nl, const struct conf *conf, const char *dev)
{
	struct exchange *ex = calloc(1, sizeof(*ex));

	if (!ex)
		return NULL;
	ex->conf = conf;
	ex->survey.nl = nl;
	ex->survey.dev = dev;
	ex->hear.conf = conf;
	ex->hear.dev = dev;
	return ex;
}

void exchange_close(struct exchange *ex)
{
	if (!ex)
		return;
	survey_free(&ex->survey);
	free(ex);
}

void exchange_add_peer(struct exchange *ex, struct probe *probe)
{
	survey_address(&probe->peer.sa, ex->survey.peer[ex->num].addr);
	ex->partner[ex->num++].probe = probe;
	ex->survey.num = ex->num;
}

void exchange_note(struct exchange *ex, unsigned int peer, uint64_t current99_ns,
		   uint64_t target99_ns, bool not_local)
{
	ex->partner[peer].miss = (struct miss) {
		current99_ns, target99_ns, not_local, conf_window_ns(ex->conf),
	};
}

/* --- what is heard --- */

/* Its agent is there, and tells. */
static bool is_heard(const struct partner *p, uint64_t now)
{
	return p->probe->ready && talk_holds(&p->probe->talk, now);
}

/* True if a peer is there that could be told something. */
static bool hear_partners(struct exchange *ex, uint64_t now)
{
	bool any = false;
	unsigned int i;

	for (i = 0; i < ex->num; i++) {
		struct probe *p = ex->partner[i].probe;

		if (!p->ready)
			continue;
		hear_record(&ex->hear, p->id, &p->talk, now);
		any = true;
	}
	return any;
}

/* --- what is decided --- */

static bool is_missed(const struct miss *m)
{
	return m->current99_ns > m->target99_ns;
}

/* @a misses its target by more than @b does. */
static bool is_worse(const struct miss *a, const struct miss *b)
{
	return !b->target99_ns || (unsigned __int128)a->current99_ns * b->target99_ns >
				  (unsigned __int128)b->current99_ns * a->target99_ns;
}

static void take_worse(struct worst *w, struct talk *talk, const struct miss *m, uint64_t now)
{
	if (now < talk->excused.until_ns || !m->current99_ns || !m->target99_ns ||
	    !is_worse(m, &w->miss))
		return;
	*w = (struct worst) { .miss = *m, .talk = talk };
}

/* What all but one have measured whose messages pass this device's link */
static struct worst find_worst(const struct exchange *ex, const struct talk *but, uint64_t now)
{
	struct worst worst = { .talk = NULL };
	unsigned int i;

	for (i = 0; i < ex->num; i++)
		if (&ex->partner[i].probe->talk != but)
			take_worse(&worst, &ex->partner[i].probe->talk, &ex->partner[i].miss, now);
	for (i = 0; i < ex->hear.num; i++) {
		const struct peer_record *r = &ex->hear.caller[i].record;
		struct miss m = {
			.current99_ns = r->current99_ns, .target99_ns = r->target99_ns,
			.window_ns = min_u64(r->window_ns, WINDOW_MAX_NS),
		};

		/* It does not hold that against this host. */
		if (!r->misses)
			m.current99_ns = min_u64(m.current99_ns, m.target99_ns / 2);
		if (ex->hear.caller[i].talk != but)
			take_worse(&worst, ex->hear.caller[i].talk, &m, now);
	}
	return worst;
}

/* For twice as long as the last time, unless that was long ago */
static void excuse(struct talk_excuse *e, uint64_t now)
{
	bool again = e->span_ns && now - e->until_ns < EXCUSE_LONGEST_NS;

	e->span_ns = again ? min_u64(2 * e->span_ns, EXCUSE_LONGEST_NS) : EXCUSE_FIRST_NS;
	e->until_ns = now + e->span_ns;
}

/*
 * The law has found that the pool does not matter to whom it has looked at. Others who miss as well
 * may be helped: so for a while it does not look at that one.
 */
static void look_past(struct exchange *ex, uint64_t max_rate, uint64_t now)
{
	struct worst others = find_worst(ex, ex->hopeless, now);

	if (!is_missed(&others.miss))
		return;
	excuse(&ex->hopeless->excused, now);
	ex->worst = others;
	pool_init(&ex->pool, max_rate);
}

/* All that the device sends, and its adapter for it */
static uint64_t find_out(const struct exchange *ex, const struct exchange_view *v)
{
	uint64_t out = (unsigned __int128)ex->survey.busy.per_sec * v->max_rate / SEC;
	unsigned int i;

	for (i = 0; i < ex->hear.num; i++)
		out += ex->hear.caller[i].record.used_from;
	return out;
}

/* Who sends nothing may begin, and holds no more of a pool than is needed for that. */
static uint64_t demand(const struct exchange *ex, const struct exchange_view *v, uint64_t used,
		       bool wants)
{
	uint64_t begin = v->max_rate / BEGIN_PART / max_u64(ex->hear.num, 1);
	uint64_t demand = split_demand(used, wants, v->chunk);

	return used || wants ? demand : min_u64(demand, begin);
}

/* Its connection is, and what it has told holds. */
static bool is_there(const struct exchange *ex, const struct talk *talk)
{
	unsigned int i;

	for (i = 0; i < ex->num; i++)
		if (&ex->partner[i].probe->talk == talk)
			return true;
	return hear_has(&ex->hear, talk);
}

static uint64_t step_pool(struct exchange *ex, uint64_t max_rate, const struct pool_view *pv)
{
	uint64_t pool = pool_step(&ex->pool, max_rate, pv);

	if (ex->pool.state.mode != AIMD_NOT_LOCAL)
		ex->hopeless = NULL;
	else if (!ex->hopeless)
		ex->hopeless = ex->worst.talk;
	else if (is_there(ex, ex->hopeless))
		look_past(ex, max_rate, pv->now_ns);
	else
		pool_init(&ex->pool, max_rate);
	return pool;
}

static enum split_law split_law(const struct exchange *ex)
{
	return ex->conf->law == CONF_LAW_PAPER ? SPLIT_LAW_PAPER : SPLIT_LAW_MAXMIN;
}

/*
 * What callers send, and what is read here, comes in. It fills the pool if there is little left but
 * what those may begin with who do not wait.
 */
static void grant_incoming(struct exchange *ex, const struct exchange_view *v, uint64_t *may)
{
	struct split_sender s[CALLERS + 1];
	uint64_t read = ex->survey.read.per_sec, spare = 0;
	struct pool_view pv = {
		.now_ns = v->now_ns,
		.latency = v->latency + ex->hear.latency,
		.groups = read ? v->bulk : 0,
		.used = read,
		.current99_ns = ex->worst.miss.current99_ns,
		.target99_ns = ex->worst.miss.target99_ns,
		.window_ns = ex->worst.miss.window_ns + DELAY_NS,
	};
	unsigned int i, num = ex->hear.num;
	uint64_t pool;

	for (i = 0; i < num; i++) {
		const struct peer_record *r = &ex->hear.caller[i].record;

		/* One whose groups are not known yet may begin. */
		s[i].groups = max_u64(r->bulk_to, 1);
		s[i].demand = demand(ex, v, r->used_to, r->wants_to);
		pv.groups += r->bulk_to;
		pv.used += r->used_to;
		if (!r->wants_to && s[i].demand != SPLIT_UNBOUNDED)
			spare += s[i].demand - min_u64(s[i].demand, r->used_to);
	}
	s[num].groups = read ? max_u64(v->bulk, 1) : 0;
	s[num].demand = demand(ex, v, read, false);
	if (!ex->begun)
		pool_init(&ex->pool, v->max_rate);
	ex->begun = true;
	pv.used += min_u64(spare, v->max_rate / BEGIN_PART);
	ex->is_full = pool_is_filled(pv.used, min_u64(ex->pool.safe, v->max_rate));
	pool = step_pool(ex, v->max_rate, &pv);
	pool_grant(split_law(ex), s, num + 1, pool, pv.latency);
	for (i = 0; i < num; i++)
		may[i] = pv.latency ? max_u64(s[i].grant, RDMA_ISOLATE_RATE_MIN) :
				      RECORD_UNLIMITED;
}

/* What this host sends, and what callers read, goes out. */
static void grant_outgoing(struct exchange *ex, const struct exchange_view *v, uint64_t *may)
{
	uint64_t pool = min_u64(v->safe_util, v->max_rate);
	uint32_t latency = v->latency + ex->hear.latency;
	struct split_sender s[CALLERS + 1];
	unsigned int i, num = ex->hear.num;
	uint64_t own = ex->out;

	for (i = 0; i < num; i++) {
		const struct peer_record *r = &ex->hear.caller[i].record;

		s[i].groups = max_u64(r->bulk_from, 1);
		s[i].demand = demand(ex, v, r->used_from, r->wants_from);
		own -= min_u64(own, r->used_from);
	}
	s[num].groups = v->bulk;
	s[num].demand = demand(ex, v, own, pool_is_filled(own, pool - min_u64(pool, ex->reserved)));
	pool_grant(split_law(ex), s, num + 1, pool, latency);
	ex->reserved = 0;
	for (i = 0; i < num; i++) {
		const struct peer_record *r = &ex->hear.caller[i].record;

		may[i] = RECORD_UNLIMITED;
		if (!latency)
			continue;
		may[i] = max_u64(s[i].grant, RDMA_ISOLATE_RATE_MIN);
		/* It may use a quarter more by the next record. */
		ex->reserved += min_u64(may[i], r->used_from * SPLIT_GROW_NUM / SPLIT_GROW_DEN);
	}
}

bool exchange_is_elsewhere(const struct exchange *ex, unsigned int peer, uint64_t now)
{
	const struct partner *p = &ex->partner[peer];

	return is_heard(p, now) && p->probe->talk.last.misses && ex->survey.busy.known &&
	       !ex->fills;
}

bool exchange_is_shared(const struct exchange *ex, uint64_t now)
{
	unsigned int i;

	for (i = 0; i < ex->num; i++)
		if (is_heard(&ex->partner[i], now) && ex->partner[i].probe->talk.last.cut)
			return true;
	return ex->receives;
}

uint32_t exchange_latency(const struct exchange *ex)
{
	return ex->hear.latency;
}

uint64_t exchange_reserved(const struct exchange *ex)
{
	return ex->reserved;
}

uint64_t exchange_target(const struct exchange *ex)
{
	return ex->hear.latency ? ex->worst.miss.target99_ns : 0;
}

bool exchange_complain(const struct exchange *ex, uint64_t target99_ns, struct aimd_input *in)
{
	const struct miss *m = &ex->worst.miss;
	bool misses = ex->fills && is_missed(m);

	if (!ex->hear.latency || !m->target99_ns || (!misses && in->have_samples))
		return false;
	aimd_blame(in, misses ? (unsigned __int128)m->current99_ns * target99_ns /
				m->target99_ns : 1);
	return true;
}

/* --- what is told and set --- */

static bool differs(uint64_t a, uint64_t b)
{
	uint64_t more = max_u64(a, b), less = min_u64(a, b);

	return more - less > more / CHANGE_DEN;
}

static bool is_news(const struct peer_record *a, const struct peer_record *b)
{
	return a->latency_to != b->latency_to || a->bulk_to != b->bulk_to ||
	       a->wants_to != b->wants_to || a->wants_from != b->wants_from ||
	       a->cut != b->cut || a->misses != b->misses ||
	       differs(a->used_to, b->used_to) || differs(a->used_from, b->used_from) ||
	       differs(a->may_send, b->may_send) || differs(a->may_read, b->may_read) ||
	       (a->misses && differs(a->current99_ns, b->current99_ns));
}

/* For how long records and limits hold */
static uint64_t lease(const struct exchange *ex)
{
	return min_u64(ex->conf->lease_ns, TALK_LEASE_MAX);
}

static bool is_due(const struct exchange *ex, uint64_t since, uint64_t now)
{
	return !since || now - since >= lease(ex) / 3;
}

static bool is_worth_telling(const struct exchange *ex, const struct talk *t,
			     const struct peer_record *r, uint64_t now)
{
	return is_due(ex, t->told_ns, now) || is_news(r, &t->told);
}

/* It sends to the peer or reads from it, or may do so. */
static bool has_flows(const struct peer_record *r)
{
	return r->latency_to || r->bulk_to || r->used_to || r->used_from;
}

static void tell_partner(struct exchange *ex, unsigned int i, const struct exchange_view *v)
{
	const struct survey_peer *sp = &ex->survey.peer[i];
	struct partner *p = &ex->partner[i];
	struct peer_record r = {
		.latency_to = sp->latency,
		.bulk_to = sp->bulk,
		.latency_from = sp->latency,
		.bulk_from = sp->bulk,
		.used_to = sp->way[RISO_PATH_TX].used.per_sec,
		.used_from = sp->way[RISO_PATH_RX].used.per_sec,
		.may_send = RECORD_UNLIMITED,
		.may_read = RECORD_UNLIMITED,
		.wants_to = sp->way[RISO_PATH_TX].waiting,
		.wants_from = sp->way[RISO_PATH_RX].waiting,
		.misses = is_missed(&p->miss) && p->miss.target99_ns &&
			  (p->miss.not_local || !ex->fills),
		.window_ns = conf_window_ns(ex->conf),
		.current99_ns = p->miss.current99_ns,
		.target99_ns = p->miss.target99_ns,
		.lease_ns = lease(ex),
	};

	/* A host that is quiet tells nothing. */
	if (!has_flows(&r) && !has_flows(&p->probe->talk.told))
		return;
	memcpy(r.to, sp->addr, sizeof(r.to));
	/* What cannot be told now is the next time. */
	if (p->probe->ready && is_worth_telling(ex, &p->probe->talk, &r, v->now_ns))
		probe_say(p->probe, &r, conf_secret(ex->conf));
}

/* Somebody sends, or reads, more than small messages. */
static bool has_senders(const struct exchange *ex)
{
	unsigned int i;

	for (i = 0; i < ex->hear.num; i++)
		if (ex->hear.caller[i].record.bulk_to)
			return true;
	return ex->survey.read.per_sec;
}

static void tell_caller(struct exchange *ex, struct caller *c, const struct exchange_view *v,
			uint64_t may_send, uint64_t may_read)
{
	struct peer_record r = {
		.may_send = may_send,
		.may_read = may_read,
		.cut = (v->latency || ex->hear.latency) && ex->receives,
		.misses = ex->is_full,
		.lease_ns = lease(ex),
	};

	survey_address(rdma_get_peer_addr(c->id), r.to);
	/* As above */
	if (is_worth_telling(ex, c->talk, &r, v->now_ns))
		talk_say(c->talk, c->id->qp, &r, conf_secret(ex->conf), v->now_ns);
}

static void set_limit(struct exchange *ex, unsigned int i, unsigned int dir,
		      const struct limit *l, uint64_t now)
{
	const struct name_set *set = &name_set_path;
	struct limit *old = &ex->partner[i].limit[dir];
	struct survey_way *w = &ex->survey.peer[i].way[dir];
	struct nlmsghdr *nlh;

	/* An operator's own is not touched. */
	if (w->seen && w->stays)
		return;
	if (l->rate ? w->seen && !is_due(ex, old->ns, now) && old->cut == l->cut &&
		      !differs(old->rate, l->rate) : !w->seen)
		return;
	nlh = nl_request(ex->survey.nl, RDMA_ISOLATE_CMD_PATH_SET, false);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_PATH_DEV, ex->survey.dev);
	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_PATH_PEER, ex->partner[i].probe->name);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_PATH_DIR, dir);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_PATH_RATE, l->rate);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_PATH_CUT, l->cut);
	nl_put_number(nlh, set, RDMA_ISOLATE_A_PATH_LEASE_NS, lease(ex));
	if (nl_send(ex->survey.nl, set, NULL, NULL))
		ex->partner[i].pause_ns = now + PAUSE_NS;
	else
		*old = (struct limit) { l->rate, l->cut, now };
}

/*
 * What the peer says. A limit costs posts their short way, so there is none while the peer has no
 * latency flow to care for. Nothing for a peer without an agent that tells.
 */
static void set_limits(struct exchange *ex, unsigned int i, const struct exchange_view *v)
{
	const struct partner *p = &ex->partner[i];
	const uint64_t may[SURVEY_DIRS] = {
		[RISO_PATH_TX] = p->probe->talk.last.may_send,
		[RISO_PATH_RX] = p->probe->talk.last.may_read,
	};
	unsigned int dir;

	if (!is_heard(p, v->now_ns))
		return;
	for (dir = 0; dir < SURVEY_DIRS && v->now_ns >= p->pause_ns; dir++) {
		struct limit l = { 0 };

		if (may[dir] != RECORD_UNLIMITED) {
			l.rate = max_u64(min_u64(may[dir], v->max_rate), RDMA_ISOLATE_RATE_MIN);
			l.cut = p->probe->talk.last.cut;
		}
		set_limit(ex, i, dir, &l, v->now_ns);
	}
}

/* What was told last is that there are flows: it has to be told when they end. */
static bool has_told(const struct exchange *ex)
{
	unsigned int i;

	for (i = 0; i < ex->num; i++)
		if (ex->partner[i].probe->ready && has_flows(&ex->partner[i].probe->talk.told))
			return true;
	return false;
}

/* Somebody has something to say that does not wait. */
static bool is_busy(const struct exchange *ex, const struct exchange_view *v)
{
	return has_senders(ex) || (ex->num && v->bulk) ||
	       (v->latency && exchange_is_shared(ex, v->now_ns));
}

static void decide(struct exchange *ex, const struct exchange_view *v)
{
	uint64_t may_send[CALLERS], may_read[CALLERS];
	unsigned int i;

	ex->worst = find_worst(ex, NULL, v->now_ns);
	ex->out = find_out(ex, v);
	ex->fills = pool_is_filled(ex->out, min_u64(v->safe_util, v->max_rate));
	ex->receives = has_senders(ex);
	grant_incoming(ex, v, may_send);
	grant_outgoing(ex, v, may_read);
	for (i = 0; i < ex->num; i++) {
		set_limits(ex, i, v);
		tell_partner(ex, i, v);
	}
	for (i = 0; i < ex->hear.num; i++)
		tell_caller(ex, &ex->hear.caller[i], v, may_send[i], may_read[i]);
}

/* Whoever sends here may begin to send bulk, or his peers may. */
static bool has_to_listen(const struct exchange *ex, const struct exchange_view *v)
{
	return ex->hear.num && (v->latency || ex->hear.latency);
}

uint64_t exchange_step(struct exchange *ex, const struct exchange_view *v)
{
	uint64_t renew_ns = v->now_ns + lease(ex) / 3;
	bool any = hear_partners(ex, v->now_ns);
	bool busy;

	hear_callers(&ex->hear, v->now_ns);
	busy = is_busy(ex, v) || v->latency != ex->own_latency;
	ex->own_latency = v->latency;
	/* Else there is nothing to tell, or nobody. */
	any = (any && (v->bulk || v->latency || has_told(ex))) || ex->hear.num ||
	      ex->survey.read.per_sec;
	if (any && (busy || v->now_ns >= ex->look_ns)) {
		if (!survey_read(&ex->survey, v->now_ns))
			return renew_ns;
		decide(ex, v);
		busy = is_busy(ex, v);
		ex->look_ns = renew_ns;
	}
	ex->receives = has_senders(ex);
	busy = busy || has_to_listen(ex, v);
	hear_forget_callers(&ex->hear);
	return busy ? min_u64(v->now_ns + STEP_NS, renew_ns) : renew_ns;
}
