// SPDX-License-Identifier: GPL-2.0
/*
 * What a device has measured with one peer.
 *
 * Owns the reference flow to the peer, and the windows of what its messages have taken. steer.c
 * says when to send one. Runs in the thread of the agent: samples come from probe.c, when a message
 * has completed or while it is sent.
 */
#include <arpa/inet.h>

#include "loop.h"
#include "minmax.h"
#include "peer.h"

enum {
	/* Samples that say something, if the short window has as many. */
	ENOUGH = 50,
};

/* Without a sample for so long nothing is known. */
static uint64_t stale_ns(const struct peer *p)
{
	return max_u64(4 * p->conf->ref_period_ns, SEC);
}

static void on_sample(struct probe *probe, uint64_t ns)
{
	struct peer *p = container_of(probe, struct peer, probe);
	uint64_t now = now_ns();
	uint32_t missed;

	/* Nothing was sent for a while: what was measured before says nothing of now. */
	if (now - ns - p->last_ns > stale_ns(p))
		peer_forget(p);
	/* Those that could not be sent meanwhile would have waited for the rest. */
	for (missed = 0; missed <= p->conf->short_window; missed++) {
		percentile_add(&p->all, ns);
		percentile_add(&p->late, ns);
		if (ns < 2 * p->period_ns)
			break;
		ns -= p->period_ns;
	}
	p->last_ns = now;
}

/* How long the message has been out that is */
static uint64_t age(const struct peer *p, uint64_t now)
{
	return p->probe.posted_ns && now > p->probe.posted_ns ? now - p->probe.posted_ns : 0;
}

/* It has not answered for so long that it is as good as not there. */
static bool is_hung(const struct peer *p, uint64_t now)
{
	return age(p, now) > stale_ns(p);
}

/* Its last sample is too old. One may be later than @now: it came while that was spent. */
static bool is_stale(const struct peer *p, uint64_t now)
{
	return now > p->last_ns && now - p->last_ns > stale_ns(p);
}

bool peer_has_measured(const struct peer *p, uint64_t now, struct aimd_input *in)
{
	uint64_t out = age(p, now);

	if (!peer_is_there(p, now) || is_stale(p, now) ||
	    percentile_count(&p->late) < min_u64(p->conf->short_window, ENOUGH))
		return false;
	if (out <= p->conf->ref_period_ns * p->conf->short_window / 20)
		out = 0;
	in->current99_ns = percentile_get(&p->all, PERCENTILE_P99);
	in->short99_ns = max_u64(out, percentile_get(&p->late, PERCENTILE_P99));
	in->short95_ns = max_u64(out, percentile_get(&p->late, 950000));
	return true;
}

bool peer_is_there(const struct peer *p, uint64_t now)
{
	return p->probe.ready && !is_hung(p, now);
}

bool peer_is_out(const struct peer *p)
{
	return p->probe.posted_ns;
}

void peer_forget(struct peer *p)
{
	percentile_reset(&p->all);
	percentile_reset(&p->late);
}

void peer_send(struct peer *p, uint64_t period_ns)
{
	p->period_ns = period_ns;
	probe_send(&p->probe, now_ns());
}

bool peer_open(struct peer *p, const struct conf *conf, const char *dev,
	       const union conf_addr *addr)
{
	p->conf = conf;
	p->probe.retry.fd = -1;
	p->probe.done.fd = -1;
	p->probe.dev = dev;
	p->probe.peer = *addr;
	/* IPv4 and IPv6 have the port at the same place. */
	p->probe.peer.v4.sin_port = htons(conf->port);
	p->probe.sample = on_sample;
	p->probe.spin_ns = conf->spin_ns;
	return !percentile_init(&p->all, conf->window) &&
	       !percentile_init(&p->late, conf->short_window) && !probe_open(&p->probe);
}

void peer_close(struct peer *p)
{
	probe_close(&p->probe);
	percentile_free(&p->all);
	percentile_free(&p->late);
}
