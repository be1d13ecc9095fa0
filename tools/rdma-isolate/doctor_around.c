// SPDX-License-Identifier: GPL-2.0
/*
 * The check of queue pairs that post around the shim, by some looks at all of them.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "around_nl.h"
#include "doctor.h"

enum {
	TEXT_LEN = 320,
	/* Milliseconds from look to look */
	PERIOD_MS = 1000,
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000) + ts.tv_nsec / 1000000;
}

/* Wait for the answers, as long as there can be some; false if one is missing. */
static bool wait_for_answers(struct psn *p, struct around_look *look)
{
	struct pollfd answers = { .fd = p->fd, .events = POLLIN };
	uint64_t end = now_ms() + PSN_LIMIT_MS, now;

	while (around_take(p, look)) {
		now = now_ms();
		if (now >= end)
			return false;
		poll(&answers, 1, end - now);
	}
	return true;
}

/* One look; 0 or a negative errno. @held is set if the kernel holds an answer back. */
static int take_look(struct nl *nl, struct psn *p, struct around_look *look, bool *held)
{
	int err;

	*held = false;
	err = around_list(nl, look);
	if (err)
		return err;
	err = around_ask(p, look, 0);
	*held = err == -EBUSY;
	if (err)
		return err;
	*held = !wait_for_answers(p, look);
	psn_end(p);
	return around_read_told(nl, look);
}

static void tell_one(const struct around_flow *f, doctor_fn tell, void *data)
{
	char found[TEXT_LEN];

	snprintf(found, sizeof(found),
		 "%s (process %" PRIu32 ") sends on queue pair %" PRIu32
		 " of %s what the module was not told of: it seems to post around the shim",
		 f->comm, f->pid, f->qpn, f->dev);
	tell("around", VERDICT_HINT, found,
	     f->shim ? "have it post by libibverbs; for UCX: rdma-isolate run --ucx-verbs" :
		       "start it by \"rdma-isolate run\", or let a rule give it class latency",
	     data);
}

/* Tell of those that nothing is known of, with the reason of the first; false if there is none. */
static bool tell_unknown(const struct around_look *look, doctor_fn tell, void *data)
{
	const struct around_flow *first = NULL;
	char found[TEXT_LEN];
	size_t i, n = 0;

	for (i = 0; i < look->n; i++) {
		const struct around_flow *f = &look->flow[i];

		if (f->marked || (f->asked && !f->err))
			continue;
		first = first ? first : f;
		n++;
	}
	if (!n)
		return false;
	snprintf(found, sizeof(found),
		 "what %zu of %zu queue pairs send is not known; of queue pair %" PRIu32
		 " of %s the RDMA core says: %s", n, look->n, first->qpn, first->dev,
		 first->asked ? strerror(first->err) : "no answer");
	tell("around", VERDICT_HINT, found,
	     "see whether \"rdma resource show qp\" has them, and their sq-psn", data);
	return true;
}

static void tell_all(const struct around_look *look, bool held, doctor_fn tell, void *data)
{
	char found[TEXT_LEN];
	size_t i, seen = 0;

	for (i = 0; i < look->n; i++) {
		if (!look->flow[i].marked && !around_is_seen(&look->flow[i]))
			continue;
		tell_one(&look->flow[i], tell, data);
		seen++;
	}
	if (held)
		tell("around", VERDICT_HINT,
		     "the kernel does not tell in time what some queue pairs send",
		     "\"rdma resource show qp\" stops at one: end its program", data);
	else if (tell_unknown(look, tell, data))
		return;
	if (seen || held)
		return;
	snprintf(found, sizeof(found),
		 "none of %zu queue pairs of programs was seen to post around the shim", look->n);
	tell("around", VERDICT_OK, found, NULL, data);
}

void doctor_around(struct nl *nl, doctor_fn tell, void *data)
{
	static const struct timespec period = { .tv_sec = PERIOD_MS / 1000 };
	struct around_look last = { }, now = { };
	struct psn psn = { .fd = -1 };
	bool held = false, any_held = false;
	char found[TEXT_LEN];
	int i, err = 0;

	for (i = 0; i <= AROUND_INTERVALS; i++) {
		if (i)
			nanosleep(&period, NULL);
		around_clear(&last);
		last = now;
		err = take_look(nl, &psn, &now, &held);
		any_held = any_held || held;
		if (err || !now.n)
			break;
		around_compare(&last, &now);
	}
	if (!err || held) {
		tell_all(&now, any_held, tell, data);
	} else {
		snprintf(found, sizeof(found),
			 "cannot look who posts around the shim: %s", strerror(-err));
		tell("around", VERDICT_HINT, found, "show it again", data);
	}
	around_clear(&last);
	around_clear(&now);
}
