// SPDX-License-Identifier: GPL-2.0
/*
 * OpenMetrics 1.0 text, or the older one of Prometheus (0.0.4), made piece by piece from
 * what is known at one moment. The latter has no units, no end, and fewer types: what
 * is an info or a state set is a gauge there, and a family has the name of its samples.
 *
 * A table has all families but those of the module's counters, whose names come from
 * the module. A piece is the head of a family, or its samples of one device, peer, path
 * or group, so whoever sends the text decides how much of it is made at once.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics.h"
#include "names_gen.h"

#define PREFIX "rdma_isolate_"
#define SECOND UINT64_C(1000000000)

enum type { GAUGE, COUNTER, INFO, STATESET, SUMMARY };
enum whose { AGENT, DEV, PEER, PATH, GROUP };
/* MAYBE_U64 and MAYBE_NS are none if they are 0. */
enum kind { U32, U64, MAYBE_U64, NS, MAYBE_NS, PER_10000, BOOL };

/* Samples of an array, which differ by a label; NULL ends the values */
struct by {
	const char *name;
	const char *val[5];
};

/**
 * struct family - a metric family
 * @name: without the prefix; ends with @unit if it has one
 * @type: its type
 * @unit: its unit, or NULL
 * @help: what it is
 * @whose: what its samples are about
 * @kind: of the values
 * @at: where the first is in the struct that it is about
 * @by: NULL if there is one only
 * @words: of a state set
 */
struct family {
	const char *name;
	enum type type;
	const char *unit;
	const char *help;
	enum whose whose;
	enum kind kind;
	size_t at;
	const struct by *by;
	const struct name_enum *words;
};

static const struct by by_class = { "class", {
	[RISO_CLASS_LATENCY] = "latency",
	[RISO_CLASS_THROUGHPUT] = "throughput",
	[RISO_CLASS_BANDWIDTH] = "bandwidth",
} };
static const struct by by_direction = { "direction", { "tx", "rx" } };
static const struct by by_quantile = { "quantile", { "0.5", "0.99", "0.999" } };
static const struct by by_reason = { "reason", { "clock", "window", "own", "path" } };
static const struct by by_window = { "window", { "10s", "60s", "300s" } };

#define D(field) DEV, .at = offsetof(struct metrics_dev, field)
#define P(field) PEER, .at = offsetof(struct metrics_peer, field)
#define L(field) PATH, .at = offsetof(struct metrics_path, field)
#define G(field) GROUP, .at = offsetof(struct metrics_group, field)
#define BYTES_PER_SECOND .unit = "bytes_per_second", .kind = U64

static const struct family families[] = {
	{ "agent", INFO, .help = "The agent.", .whose = AGENT },
	{ "groups_left_out", GAUGE, .kind = U64,
	  .help = "Groups of which nothing is said here, there are too many.",
	  .whose = AGENT, .at = offsetof(struct metrics, left_out) },

	{ "device_state", STATESET, .words = &name_state,
	  .help = "What the module does with the device.", .whose = D(state) },
	{ "ctrl_state", STATESET, .words = &name_ctrl_state,
	  .help = "What the agent that steers the device finds.", .whose = D(ctrl_state) },
	{ "max_rate_bytes_per_second", GAUGE, BYTES_PER_SECOND,
	  .help = "What the port can send (MaxRate).", .whose = D(max_rate) },
	{ "safe_util_bytes_per_second", GAUGE, BYTES_PER_SECOND,
	  .help = "What shaped flows may use while there is a latency flow (SafeUtil).",
	  .whose = D(safe_util) },
	{ "pace_bytes_per_second", GAUGE, BYTES_PER_SECOND, .by = &by_direction,
	  .help = "Rate at which the device is given work.", .whose = D(pace) },
	{ "target99_seconds", GAUGE, "seconds", .kind = MAYBE_NS,
	  .help = "Target99 that the agent steers for.", .whose = D(target99_ns) },
	{ "current99_seconds", GAUGE, "seconds", .kind = MAYBE_NS,
	  .help = "99th percentile that the agent has measured (Current99).",
	  .whose = D(current99_ns) },
	{ "lease_seconds", GAUGE, "seconds", .kind = NS,
	  .help = "How long SafeUtil is lent yet.", .whose = D(lease_ns) },
	{ "active_groups", GAUGE, .kind = U32, .by = &by_class,
	  .help = "Groups that count (L, T and B).", .whose = D(groups) },
	{ "flows", GAUGE, .kind = U64, .by = &by_class,
	  .help = "Flows that are there.", .whose = D(flows) },
	{ "managed_flows", GAUGE, .kind = U32,
	  .help = "Those of them that are managed.", .whose = D(managed_flows) },
	{ "flows_tx_bytes", GAUGE, "bytes", .kind = U64, .by = &by_class,
	  .help = "Payload that the flows that are there have sent.",
	  .whose = D(tx_bytes) },
	{ "flows_rx_bytes", GAUGE, "bytes", .kind = U64, .by = &by_class,
	  .help = "Payload that the flows that are there have read.",
	  .whose = D(rx_bytes) },
	{ "held_work_requests", GAUGE, .kind = U32,
	  .help = "Work requests that wait for their turn.", .whose = D(held) },
	{ "agent_late_seconds", SUMMARY, "seconds", .kind = NS, .by = &by_quantile,
	  .help = "How late the agent's timer fires.", .whose = D(late) },

	{ "peer_connected", GAUGE, .kind = BOOL,
	  .help = "1 if the agent can measure with the peer.", .whose = P(connected) },
	{ "reference_messages", COUNTER, .kind = U64,
	  .help = "Reference messages that were sent.", .whose = P(sent) },
	{ "reference_messages_lost", COUNTER, .kind = U64,
	  .help = "Those of them that the connection ended before.", .whose = P(lost) },
	{ "reference_latency_seconds", SUMMARY, "seconds", .kind = NS, .by = &by_quantile,
	  .help = "Times of the last reference messages, a window of them.",
	  .whose = P(times) },

	{ "path_limit_bytes_per_second", GAUGE, "bytes_per_second", .kind = MAYBE_U64,
	  .help = "What may be sent to the peer, or read from it, on the wire.",
	  .whose = L(limit) },
	{ "path_lease_seconds", GAUGE, "seconds", .kind = NS,
	  .help = "How long the limit holds yet; 0 if it is an operator's.",
	  .whose = L(lease_ns) },
	{ "path_bytes", COUNTER, "bytes", .kind = U64,
	  .help = "What was posted under the limit, on the wire.", .whose = L(bytes) },
	{ "path_waits", COUNTER, .kind = U64,
	  .help = "How often a flow, or a program, had to wait for the limit.",
	  .whose = L(waits) },

	{ "group", INFO, .help = "Whose flows the group is.", .whose = GROUP },
	{ "group_weight", GAUGE, .kind = U32,
	  .help = "Share of the device beside others.", .whose = G(weight) },
	{ "group_flows", GAUGE, .kind = U32,
	  .help = "Flows that belong to the group.", .whose = G(flows) },
	{ "group_held_work_requests", GAUGE, .kind = U32,
	  .help = "Work requests that wait for their turn.", .whose = G(held) },
	{ "group_tx_bytes", COUNTER, "bytes", .kind = U64,
	  .help = "Payload that was posted to be sent.", .whose = G(tx_bytes) },
	{ "group_rx_bytes", COUNTER, "bytes", .kind = U64,
	  .help = "Payload that was posted to be read.", .whose = G(rx_bytes) },
	{ "group_work_requests", COUNTER, .kind = U64,
	  .help = "Work requests that were posted.", .whose = G(wrs) },
	{ "group_device_seconds", COUNTER, "seconds", .kind = NS,
	  .help = "Time that the device takes for what was posted.", .whose = G(used_ns) },
	{ "group_stall_seconds", COUNTER, "seconds", .kind = NS,
	  .help = "Time in which it had something to post and nothing was.",
	  .whose = G(stall_ns) },
	{ "group_wait_seconds", COUNTER, "seconds", .kind = NS, .by = &by_reason,
	  .help = "Time that it waited, by what for.", .whose = G(wait_ns) },
	{ "group_pressure_ratio", GAUGE, "ratio", .kind = PER_10000, .by = &by_window,
	  .help = "Share of the last 10, 60 and 300 seconds in which it waited.",
	  .whose = G(avg) },
};

static const char * const openmetrics_types[] = {
	[GAUGE] = "gauge", [COUNTER] = "counter", [INFO] = "info",
	[STATESET] = "stateset", [SUMMARY] = "summary",
};

static const char * const prometheus_types[] = {
	[GAUGE] = "gauge", [COUNTER] = "counter", [INFO] = "gauge",
	[STATESET] = "gauge", [SUMMARY] = "summary",
};

enum { FAMILIES = sizeof(families) / sizeof(*families) };

/* Text goes on, but @n counts what does not fit. */
struct out {
	bool openmetrics;
	char *buf;
	size_t len;
	size_t n;
};

__attribute__((format(printf, 2, 3)))
static void put(struct out *out, const char *format, ...)
{
	size_t room = out->n < out->len ? out->len - out->n : 0;
	va_list args;

	va_start(args, format);
	out->n += vsnprintf(room ? out->buf + out->n : NULL, room, format, args);
	va_end(args);
}

/* What is no printable ASCII is "?": a task may have any bytes in its name. */
static void put_label(struct out *out, const char *name, const char *val)
{
	put(out, "%s=\"", name);
	for (; *val; val++) {
		if (*val == '\n')
			put(out, "\\n");
		else if (*val == '"' || *val == '\\')
			put(out, "\\%c", *val);
		else
			put(out, "%c", *val < ' ' || *val > '~' ? '?' : *val);
	}
	put(out, "\"");
}

/* The n-th of an array */
static void put_value(struct out *out, enum kind kind, const void *at, size_t n)
{
	const uint32_t *u32 = at;
	const uint64_t *u64 = at;

	switch (kind) {
	case U32:
		put(out, " %u\n", u32[n]);
		break;
	case U64:
	case MAYBE_U64:
		put(out, " %ju\n", (uintmax_t)u64[n]);
		break;
	case NS:
	case MAYBE_NS:
		put(out, " %ju.%09ju\n", (uintmax_t)(u64[n] / SECOND),
		    (uintmax_t)(u64[n] % SECOND));
		break;
	case PER_10000:
		put(out, " %u.%04u\n", u32[n] / 10000, u32[n] % 10000);
		break;
	case BOOL:
		put(out, " %d\n", *(const bool *)at);
		break;
	}
}

static void put_head(struct out *out, const char *name, enum type type,
		     const char *unit, const char *help)
{
	const char *end = "";

	if (!out->openmetrics)
		end = type == COUNTER ? "_total" : type == INFO ? "_info" : "";
	put(out, "# TYPE " PREFIX "%s%s %s\n", name, end,
	    out->openmetrics ? openmetrics_types[type] : prometheus_types[type]);
	if (unit && out->openmetrics)
		put(out, "# UNIT " PREFIX "%s %s\n", name, unit);
	put(out, "# HELP " PREFIX "%s%s %s\n", name, end, help);
}

static const void *find_item(const struct metrics *m, enum whose of, size_t i)
{
	switch (of) {
	case AGENT:
		return i ? NULL : m;
	case DEV:
		return i < m->num_devs ? &m->dev[i] : NULL;
	case PEER:
		return i < m->num_peers ? &m->peer[i] : NULL;
	case PATH:
		return i < m->num_paths ? &m->path[i] : NULL;
	case GROUP:
		return i < m->num_groups ? &m->group[i] : NULL;
	}
	return NULL;
}

/* The labels of what a sample is about; more may follow */
static void put_whose(struct out *out, enum whose whose, const void *item)
{
	const struct metrics_group *g = item;
	const struct metrics_path *l = item;
	const struct metrics_peer *p = item;
	const struct metrics_dev *d = item;

	switch (whose) {
	case AGENT:
		break;
	case DEV:
		put_label(out, "dev", d->name);
		break;
	case PEER:
		put_label(out, "dev", p->dev);
		put(out, ",");
		put_label(out, "peer", p->name);
		break;
	case PATH:
		put_label(out, "dev", l->dev);
		put(out, ",");
		put_label(out, "peer", l->peer);
		put(out, ",");
		put_label(out, by_direction.name, by_direction.val[l->dir]);
		break;
	case GROUP:
		put_label(out, "dev", g->dev);
		put(out, ",group=\"%u\"", g->id);
		break;
	}
}

static void put_info(struct out *out, enum whose whose, const void *item)
{
	const struct metrics_group *g = item;

	if (whose == AGENT) {
		put_label(out, "version", VERSION);
		return;
	}
	put(out, ",");
	put_label(out, "ulp", g->ulp);
	put(out, ",");
	put_label(out, "peer", g->peer);
	put(out, ",");
	put_label(out, "comm", g->comm);
	put(out, ",pid=\"");
	if (g->pid)
		put(out, "%u", g->pid);
	put(out, "\"");
}

static void put_states(struct out *out, const struct family *f, const void *item)
{
	uint32_t is = *(const uint32_t *)(item + f->at);
	uint32_t i;

	for (i = 0; i < f->words->n; i++) {
		put(out, PREFIX "%s{", f->name);
		put_whose(out, f->whose, item);
		put(out, ",");
		put(out, PREFIX "%s=\"%s\"} %d\n", f->name, f->words->values[i].name,
		    i == is);
	}
}

static void put_samples(struct out *out, const struct family *f, const void *item)
{
	const void *at = item + f->at;
	size_t n;

	if ((f->kind == MAYBE_NS || f->kind == MAYBE_U64) && !*(const uint64_t *)at)
		return;
	if (f->type == SUMMARY) {
		const struct metrics_times *times = at;

		if (!times->any)
			return;
		at = times->ns;
	}
	for (n = 0; !n || (f->by && f->by->val[n]); n++) {
		put(out, PREFIX "%s%s", f->name, f->type == COUNTER ? "_total" : "");
		if (f->whose != AGENT) {
			put(out, "{");
			put_whose(out, f->whose, item);
			if (f->by)
				put(out, ",%s=\"%s\"", f->by->name, f->by->val[n]);
			put(out, "}");
		}
		put_value(out, f->kind, at, n);
	}
}

static void put_item(struct out *out, const struct family *f, const void *item)
{
	if (f->type == STATESET) {
		put_states(out, f, item);
	} else if (f->type == INFO) {
		put(out, PREFIX "%s_info{", f->name);
		put_whose(out, f->whose, item);
		put_info(out, f->whose, item);
		put(out, "} 1\n");
	} else {
		put_samples(out, f, item);
	}
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), len = strlen(end);

	return n > len && !strcmp(text + n - len, end);
}

/* A counter of the module; its mean of nanoseconds is none. */
static void put_counter(struct out *out, const struct metrics *m, size_t n,
			const struct metrics_dev *dev)
{
	const char *name = m->counter[n];
	bool mean = ends_with(name, "_ns");
	int len = strlen(name) - (mean ? strlen("ns") : 0);
	char full[METRICS_COUNTER_LEN + 16];

	snprintf(full, sizeof(full), "stat_%.*s%s", len, name, mean ? "seconds" : "");
	if (!dev) {
		put_head(out, full, mean ? GAUGE : COUNTER,
			 mean ? "seconds" : ends_with(name, "_bytes") ? "bytes" : NULL, name);
		return;
	}
	put(out, PREFIX "%s%s{", full, mean ? "" : "_total");
	put_whose(out, DEV, dev);
	put(out, "}");
	put_value(out, mean ? NS : U64, dev->counter, n);
}

/* False when the family has no such piece; 0 is its head. */
static bool put_piece(struct out *out, const struct metrics *m,
		      const struct metrics_pos *pos)
{
	const struct family *f = pos->family < FAMILIES ? &families[pos->family] : NULL;
	const void *item = NULL;

	if (pos->item) {
		item = find_item(m, f ? f->whose : DEV, pos->item - 1);
		if (!item)
			return false;
	}
	if (!f)
		put_counter(out, m, pos->family - FAMILIES, item);
	else if (item)
		put_item(out, f, item);
	else
		put_head(out, f->name, f->type, f->unit, f->help);
	return true;
}

size_t metrics_text(const struct metrics *m, struct metrics_pos *pos, char *buf,
		    size_t len)
{
	/* Behind the last family OpenMetrics has a line that says so. */
	size_t last = FAMILIES + m->num_counters;
	struct out out = { .openmetrics = pos->openmetrics, .buf = buf, .len = len };
	size_t fits = 0;

	while (pos->family <= last) {
		if (pos->family == last) {
			if (out.openmetrics)
				put(&out, "# EOF\n");
		} else if (!put_piece(&out, m, pos)) {
			pos->family++;
			pos->item = 0;
			continue;
		}
		/* vsnprintf() ends it with a NUL. */
		if (out.n >= len)
			break;
		fits = out.n;
		if (pos->family == last)
			pos->family++;
		else
			pos->item++;
	}
	return fits;
}

/* --- what it is made from --- */

static void *add(void **array, size_t *num, size_t size)
{
	void *new = *array;

	/* Room for 1, 2, 4 and so on */
	if (!(*num & (*num - 1)))
		new = reallocarray(new, *num ? 2 * *num : 1, size);
	if (!new)
		return NULL;
	*array = new;
	new += (*num)++ * size;
	return memset(new, 0, size);
}

struct metrics_dev *metrics_add_dev(struct metrics *m, const char *name)
{
	struct metrics_dev *d = add((void **)&m->dev, &m->num_devs, sizeof(*d));

	if (d)
		snprintf(d->name, sizeof(d->name), "%s", name);
	return d;
}

struct metrics_peer *metrics_add_peer(struct metrics *m, const char *dev)
{
	struct metrics_peer *p = add((void **)&m->peer, &m->num_peers, sizeof(*p));

	if (p)
		snprintf(p->dev, sizeof(p->dev), "%s", dev);
	return p;
}

struct metrics_path *metrics_add_path(struct metrics *m, const char *dev)
{
	struct metrics_path *p = add((void **)&m->path, &m->num_paths, sizeof(*p));

	if (p)
		snprintf(p->dev, sizeof(p->dev), "%s", dev);
	return p;
}

struct metrics_group *metrics_add_group(struct metrics *m, const char *dev)
{
	struct metrics_group *g = NULL;

	if (m->num_groups < METRICS_GROUPS)
		g = add((void **)&m->group, &m->num_groups, sizeof(*g));
	if (g)
		snprintf(g->dev, sizeof(g->dev), "%s", dev);
	else
		m->left_out++;
	return g;
}

struct metrics_dev *metrics_find_dev(const struct metrics *m, const char *name)
{
	size_t i;

	for (i = 0; i < m->num_devs; i++)
		if (!strcmp(m->dev[i].name, name))
			return &m->dev[i];
	return NULL;
}

void metrics_count(struct metrics *m, struct metrics_dev *dev, const char *name,
		   uint64_t value)
{
	size_t i;

	if (!*name || strlen(name) >= METRICS_COUNTER_LEN ||
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
		return;
	for (i = 0; i < m->num_counters; i++)
		if (!strcmp(m->counter[i], name))
			break;
	if (i == METRICS_COUNTERS)
		return;
	if (i == m->num_counters)
		snprintf(m->counter[m->num_counters++], METRICS_COUNTER_LEN, "%s", name);
	dev->counter[i] = value;
}

void metrics_free(struct metrics *m)
{
	free(m->dev);
	free(m->peer);
	free(m->path);
	free(m->group);
	*m = (struct metrics){ };
}
