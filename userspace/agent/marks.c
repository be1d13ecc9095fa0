// SPDX-License-Identifier: GPL-2.0
/*
 * Tells the module which queue pairs of programs post around the shim.
 *
 * Owns the timer, what the last look has found, and the process that asks the RDMA core. The loop
 * does not wait for that process: what has not answered after a while is left out. Looks that are
 * cut short so begin at the same queue pair until some can be told to post around, and the ones
 * after that begin where those have ended.
 */
#include <errno.h>

#include "around_nl.h"
#include "loop.h"
#include "marks.h"

/* From look to look */
#define MARKS_NS (10 * SEC)

static struct {
	struct nl *nl;
	struct source tick;
	struct source answers;
	struct psn psn;
	struct around_look last, now;
	/* Where looks begin, and how many have begun there */
	struct psn_query from;
	unsigned int looks;
	bool held;
} marks = { .tick.fd = -1, .answers.fd = -1, .psn.fd = -1 };

static void mark(const struct around_flow *f)
{
	struct nlmsghdr *nlh = nl_request(marks.nl, RDMA_ISOLATE_CMD_FLOW_MARK, false);

	mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_FLOW_DEV, f->dev);
	nl_put_number(nlh, &name_set_flow, RDMA_ISOLATE_A_FLOW_QPN, f->qpn);
	nl_put_number(nlh, &name_set_flow, RDMA_ISOLATE_A_FLOW_GROUP, f->group);
	/* It may be gone by now, or another. */
	nl_send(marks.nl, &name_set_flow, NULL, NULL);
}

/* Logged once each time that it begins */
static void tell_held(bool held)
{
	if (held && !marks.held)
		log_line("the kernel does not tell in time what some queue pairs send");
	marks.held = held;
}

/* The place of the first that is not before the one to begin with */
static size_t find_first(const struct around_look *look)
{
	size_t i;

	for (i = 0; i < look->n; i++) {
		const struct around_flow *f = &look->flow[i];

		if (f->index > marks.from.index ||
		    (f->index == marks.from.index && f->qpn >= marks.from.qpn))
			return i;
	}
	return 0;
}

/* Begin with the one that this look has waited for at its end, or after it if it was the first. */
static void move_on(const struct around_look *look)
{
	size_t i, first = find_first(look);
	const struct around_flow *f;
	bool any = false;

	for (i = 0; i < look->n; i++) {
		f = &look->flow[(first + i) % look->n];
		if (!f->asked && !f->marked)
			break;
		any = any || f->asked;
	}
	f = &look->flow[(first + i + !any) % look->n];
	marks.from.index = f->index;
	marks.from.qpn = f->qpn;
	marks.looks = 0;
}

/* With the answers that there are */
static void finish(bool held)
{
	size_t i;

	loop_remove(&marks.answers);
	psn_end(&marks.psn);
	tell_held(held);
	marks.looks++;
	if (held && marks.looks > AROUND_INTERVALS)
		move_on(&marks.now);
	timer_set(&marks.tick, now_ns() + MARKS_NS);
	if (around_read_told(marks.nl, &marks.now)) {
		around_clear(&marks.now);
		return;
	}
	around_compare(&marks.last, &marks.now);
	for (i = 0; i < marks.now.n; i++)
		if (around_is_seen(&marks.now.flow[i]))
			mark(&marks.now.flow[i]);
	around_clear(&marks.last);
	marks.last = marks.now;
	marks.now = (struct around_look){ };
}

static void on_answers(struct source *s)
{
	(void)s;
	if (!around_take(&marks.psn, &marks.now))
		finish(false);
}

static void begin(void)
{
	int err;

	timer_set(&marks.tick, now_ns() + MARKS_NS);
	/* The module has gone, say, which the rest of the agent finds out. */
	if (around_list(marks.nl, &marks.now))
		return;
	err = marks.now.n ? around_ask(&marks.psn, &marks.now, find_first(&marks.now)) : 0;
	if (err || !marks.now.n) {
		tell_held(err == -EBUSY);
		around_clear(&marks.now);
		around_clear(&marks.last);
		return;
	}
	marks.answers.ready = on_answers;
	marks.answers.fd = marks.psn.fd;
	if (loop_add(&marks.answers)) {
		finish(false);
		return;
	}
	timer_set(&marks.tick, now_ns() + PSN_LIMIT_MS * MS);
}

static void on_tick(struct source *s)
{
	if (!timer_fired(s))
		return;
	if (marks.answers.fd >= 0)
		finish(around_take(&marks.psn, &marks.now));
	else
		begin();
}

int marks_open(struct nl *nl)
{
	int err = timer_open(&marks.tick, on_tick);

	marks.nl = nl;
	marks.from = (struct psn_query){ };
	marks.looks = 0;
	if (!err)
		timer_set(&marks.tick, now_ns() + MARKS_NS);
	return err;
}

void marks_close(void)
{
	loop_remove(&marks.answers);
	psn_end(&marks.psn);
	timer_close(&marks.tick);
	around_clear(&marks.last);
	around_clear(&marks.now);
}
