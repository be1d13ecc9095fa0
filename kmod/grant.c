// SPDX-License-Identifier: GPL-2.0
/*
 * What a process that shares in a device is told, and what it is believed.
 *
 * Owns the contents of the two pages of &struct riso_process (uapi/linux/
 * rdma_isolate_user.h). The process can write anything to its page at any time: each
 * field is read once, held against what is known here, and nothing else follows from
 * it than what the process itself gets and is charged. The books are kept here and
 * never read back from a page.
 *
 * Grants are charged in full when they are given (process.c), whatever becomes of
 * them. Two may be good at a time, so that the next one is there before the process
 * has woken up for the first; a process that does not take them gets no more, so one
 * that is stopped costs the others two grants. Nor does one that does not post: after
 * RISO_UNUSED_STOP grants the last one, a chunk, stays good until it posts under it.
 *
 * Everything here is under &riso_dev.lock, in any context, and bounded. But
 * riso_grant_wishes() takes no lock, and what reads &riso_upage.passed, which may be
 * RISO_USER_LANES cache lines, runs in process context: riso_grant_read_passed() and
 * riso_grant_forget().
 */

#include <linux/compiler.h>
#include <linux/ktime.h>
#include <linux/minmax.h>

#include "core/cost.h"
#include "dev.h"
#include "grant.h"
#include "limits.h"
#include "path.h"

enum {
	/* Bytes: more than 1 GiB is not believed to be wanted, or to be out. */
	RISO_WANT_MAX = 1 << 30,
	/* Who has not taken a grant for so long after it was void is stopped. */
	RISO_STOPPED_NS = NSEC_PER_SEC,
};

/* Bytes: 8 GiB in the 20 ms between two looks would be 3.4 Tbit/s. */
#define RISO_STEP_MAX (8ull << 30)
/* A grant without an end, in nanoseconds: ten years */
#define RISO_STANDING_NS (10ull * 365 * 24 * 3600 * NSEC_PER_SEC)

/* Listeners are told, and nothing else. */
static void blame(struct riso_process *pr, enum riso_fault fault)
{
	pr->group->fault = fault;
	WRITE_ONCE(pr->group->faults, pr->group->faults | BIT(fault));
}

/* Bytes of grants that are good and not taken; *@num is how many, of *@untaken. */
static u64 sum_valid_grants(const struct riso_process_path *ud, u32 taken, u64 now, u32 *num,
			    u32 *untaken)
{
	u64 bytes = 0;
	u32 n = ud->seq - taken;
	u32 k;

	/* What was not given cannot be taken. */
	n = min_t(u32, n, RISO_GRANTS);
	n = min(n, ud->seq);
	*untaken = n;
	*num = 0;
	for (k = ud->seq; n; n--, k--) {
		const struct riso_grant *g = &ud->grant[k % RISO_GRANTS];

		if (now >= g->not_after)
			break;
		bytes += g->bytes;
		++*num;
	}
	return bytes;
}

/* How far a counter of the process has come; one that goes back is not believed. */
static u64 advance(struct riso_process *pr, u64 *old, u64 new)
{
	u64 delta = new - *old;

	*old = new;
	if (delta <= RISO_STEP_MAX)
		return delta;
	blame(pr, RISO_FAULT_COUNTERS);
	return 0;
}

/* What it has posted without telling more of it than how much: up to RISO_USER_LANES cache lines */
static u64 sum_passed(const struct riso_upage *page, int dir)
{
	u32 num = min_t(u32, READ_ONCE(page->lanes), RISO_USER_LANES);
	u64 sum = 0;
	u32 i;

	for (i = 0; i < num; i++)
		sum += READ_ONCE(page->passed[i].bytes[dir]);
	return sum;
}

/**
 * riso_grant_forget - what a process has done until now does not count
 * @pr: the process
 *
 * Nobody has looked while the device was idle, and it may be any amount.
 *
 * Context: process, under &riso_dev.lock.
 */
void riso_grant_forget(struct riso_process *pr)
{
	u32 i;

	lockdep_assert_held(&pr->rd->lock);
	for (i = 0; i < pr->paths; i++) {
		const struct riso_upath *page = &pr->upage->path[i];
		struct riso_process_path *ud = &pr->path[i];

		/* What is done or owed was posted before. Pairs with the release of done ... */
		ud->done = smp_load_acquire(&page->done);
		/* ... and with that of debt in the process. */
		ud->debt = smp_load_acquire(&page->debt);
		ud->posted = READ_ONCE(page->posted);
		if (i < RISO_DIRS)
			ud->passed = sum_passed(pr->upage, i);
		ud->unused = 0;
		ud->paid = 0;
	}
}

/* What was granted before twice @span is not in the NIC any more. */
static void age_grants(struct riso_process_path *ud, u64 span, u64 now)
{
	if (now - ud->since_ns < span)
		return;
	ud->before = now - ud->since_ns < 2 * span ? ud->lately : 0;
	ud->lately = 0;
	ud->since_ns = now;
}

/* It has posted under grants: does it use what it is given? */
static void note_use(struct riso_process_path *ud, u64 bytes)
{
	if (!ud->unused || !bytes)
		return;
	ud->paid += bytes;
	if (ud->paid < ud->due / 2)
		return;
	ud->unused = 0;
	ud->paid = 0;
}

/**
 * riso_grant_init - fill the page of a process that is not attached yet
 * @pr: the process
 */
void riso_grant_init(struct riso_process *pr)
{
	int i;

	pr->kpage->version = RISO_USER_VERSION;
	pr->kpage->header = RISO_PACKET_HEADER;
	INIT_LIST_HEAD(&pr->laden);
	pr->kpage->paths = RISO_DIRS;
	pr->paths = RISO_DIRS;
	pr->path[RISO_RX].dir = RISO_RX;
	for (i = 0; i < RISO_USER_PATHS; i++) {
		pr->path[i].process = pr;
		INIT_LIST_HEAD(&pr->path[i].bound);
		INIT_LIST_HEAD(&pr->path[i].waiting);
	}
}

static u32 index_of(const struct riso_process *pr, const struct riso_process_path *ud)
{
	return ud - pr->path;
}

/**
 * riso_grant_read - look at what a process tells
 * @pr: the process
 * @ud: one path of it
 * @now: time, ns
 * @posted: cost bytes that it has posted since the last call, without &riso_upage.passed
 * @debt: those of them for which there was no grant
 *
 * Return: cost bytes that it may be granted, 0 as long as two grants are good.
 */
u64 riso_grant_read(struct riso_process *pr, struct riso_process_path *ud, u64 now,
		    u64 *posted, u64 *debt)
{
	const struct riso_upath *page = &pr->upage->path[index_of(pr, ud)];
	u64 want, out, granted;
	u32 taken, num, untaken;

	lockdep_assert_held(&pr->rd->lock);
	/*
	 * The process writes posted, debt, done, taken and want in this order, all but the
	 * first with a release. All is read the other way round, so what it posted or took
	 * before it wrote a number is seen with the number.
	 */
	want = min_t(u64, smp_load_acquire(&page->want), RISO_WANT_MAX);
	/* Pairs with the release of riso_upath.taken in the process. */
	taken = smp_load_acquire(&page->taken);
	ud->behind = taken != ud->seq;
	granted = sum_valid_grants(ud, taken, now, &num, &untaken);
	ud->lapsed = num < untaken;
	/* Pairs with the release of riso_upath.done in the process. */
	advance(pr, &ud->done, smp_load_acquire(&page->done));
	/* Pairs with the release of riso_upath.debt in the process. */
	*debt = advance(pr, &ud->debt, smp_load_acquire(&page->debt));
	*posted = advance(pr, &ud->posted, READ_ONCE(page->posted));
	*debt = min(*debt, *posted);
	note_use(ud, *posted - *debt);
	if ((s32)(ud->seq - taken) < 0)
		blame(pr, RISO_FAULT_TAKEN);
	out = ud->posted - ud->done;
	if (out > RISO_WANT_MAX)
		out = 0;
	age_grants(ud, pr->rd->lately_ns, now);
	ud->out = min(granted + out, ud->lately + ud->before);
	if (want && ud->behind && (pr->mode == RISO_USER_PACED || ud->limit) &&
	    now > ud->grant[ud->seq % ARRAY_SIZE(ud->grant)].not_after + RISO_STOPPED_NS)
		blame(pr, RISO_FAULT_STOPPED);
	ud->want = num < ARRAY_SIZE(ud->grant) && want > granted ?
		   want - granted : 0;
	if (ud->unused < RISO_UNUSED_STOP)
		return ud->want;
	if (ud->want)
		blame(pr, RISO_FAULT_UNSPENT);
	ud->want = 0;
	return 0;
}

/**
 * riso_grant_read_passed - look at what a process posts without telling more than how much
 * @pr: the process
 * @dir: direction
 *
 * It says who is active and is counted, and no grant depends on it. Threads that count in one
 * place at a time may set it back: that is nobody's fault.
 *
 * Context: process, under &riso_dev.lock, as the page has many places to read.
 * Return: cost bytes since the last call.
 */
u64 riso_grant_read_passed(struct riso_process *pr, enum riso_dir dir)
{
	struct riso_process_path *ud = &pr->path[dir];
	u64 sum = sum_passed(pr->upage, dir);
	u64 delta = sum - ud->passed;

	lockdep_assert_held(&pr->rd->lock);
	ud->passed = sum;
	return delta <= RISO_STEP_MAX ? delta : 0;
}

/**
 * riso_grant_wishes - would it help to look at what a process tells?
 * @pr: the process
 *
 * Takes no lock. What it misses, the next look at all processes finds.
 *
 * Context: any.
 * Return: true if the process wants something for which it does not stand in line.
 */
bool riso_grant_wishes(const struct riso_process *pr)
{
	u32 num = READ_ONCE(pr->paths);
	u32 i;

	if (!READ_ONCE(pr->group->senders))
		return false;
	/* Nobody asks for what is not held to a limit while the device is open. */
	for (i = READ_ONCE(pr->mode) == RISO_USER_PACED ? 0 : RISO_DIRS; i < num; i++) {
		const struct riso_upath *page = &pr->upage->path[i];
		const struct riso_process_path *ud = &pr->path[i];

		if (!READ_ONCE(page->want) ||
		    (READ_ONCE(pr->group->dir[ud->dir].asks) && READ_ONCE(ud->called)))
			continue;
		/* Who has posted nothing is given nothing. */
		if (READ_ONCE(ud->unused) < RISO_UNUSED_STOP ||
		    READ_ONCE(page->posted) != READ_ONCE(ud->posted))
			return true;
	}
	return false;
}

/**
 * riso_grant_give - give a grant
 * @pr: the process
 * @ud: for which path
 * @bytes: cost bytes
 * @not_after: void from then on; the last one of a process that does not post stays
 * @now: time, ns
 */
void riso_grant_give(struct riso_process *pr, struct riso_process_path *ud, u64 bytes,
		     u64 not_after, u64 now)
{
	u32 seq = riso_grantring_follow(ud->seq);
	struct riso_grant *g = &ud->grant[seq % RISO_GRANTS];
	struct riso_grant told;

	lockdep_assert_held(&pr->rd->lock);
	age_grants(ud, pr->rd->lately_ns, now);
	ud->called = false;
	ud->lately += bytes;
	ud->out += bytes;
	ud->due = min(ud->want, bytes);
	WRITE_ONCE(ud->seq, seq);
	WRITE_ONCE(ud->unused, ud->unused + 1);
	if (ud->unused == RISO_UNUSED_STOP)
		not_after = now + RISO_STANDING_NS;
	g->bytes = bytes;
	g->not_after = not_after;
	told = (struct riso_grant) {
		.not_after = not_after + pr->offset_ns,
		.bytes = bytes,
		.seq = seq,
	};
	riso_grantring_write(&pr->kpage->path[index_of(pr, ud)], &told);
	WRITE_ONCE(pr->grants, pr->grants + 1);
	/* After the grant. Pairs with the acquire of riso_kpage.grants in the process. */
	smp_store_release(&pr->kpage->grants, pr->grants);
	wake_up_all(&pr->wait);
}

/**
 * riso_grant_polls - does a process see by itself what it is granted?
 * @pr: the process
 *
 * Return: true if it says so.
 */
bool riso_grant_polls(const struct riso_process *pr)
{
	return READ_ONCE(pr->upage->polls);
}

/**
 * riso_grant_looked - tell a process that polls when it was looked at
 * @pr: the process
 * @now: time, ns
 */
void riso_grant_looked(struct riso_process *pr, u64 now)
{
	lockdep_assert_held(&pr->rd->lock);
	if (riso_grant_polls(pr))
		WRITE_ONCE(pr->kpage->looked, now + pr->offset_ns);
}

/**
 * riso_grant_linger - tell a process how long it need not call
 * @pr: the process
 * @until: until then it is looked at what it wants, ns
 */
void riso_grant_linger(struct riso_process *pr, u64 until)
{
	lockdep_assert_held(&pr->rd->lock);
	WRITE_ONCE(pr->kpage->looks_until, until + pr->offset_ns);
}

/**
 * riso_grant_classes - the rules treat a QP otherwise than they did
 * @pr: the process
 */
void riso_grant_classes(struct riso_process *pr)
{
	lockdep_assert_held(&pr->rd->lock);
	WRITE_ONCE(pr->kpage->classes, ++pr->classes);
	WRITE_ONCE(pr->modes, pr->modes + 1);
	/* Who sleeps asks at once: what is held may have to wait no longer. */
	wake_up_all(&pr->wait);
}

/**
 * riso_grant_add_path - let a process have one path more
 * @pr: the process, which has taken nothing of the next element so far
 */
void riso_grant_add_path(struct riso_process *pr)
{
	lockdep_assert_held(&pr->rd->lock);
	WRITE_ONCE(pr->paths, pr->paths + 1);
	WRITE_ONCE(pr->kpage->paths, pr->paths);
}

/**
 * riso_grant_cut - to what size are messages of a path cut?
 * @pr: the process
 * @ud: the path
 *
 * As its peer wants it, if nobody here does.
 *
 * Return: bytes, 0 for not at all.
 */
u32 riso_grant_cut(const struct riso_process *pr, const struct riso_process_path *ud)
{
	if (ud->limit && ud->limit->cut && !riso_is_shaped(pr->rd))
		return pr->rd->chunk;
	return pr->rd->pacing.chunk;
}

/**
 * riso_grant_chunk - tell a process how messages of a path are cut
 * @pr: the process
 * @ud: the path
 */
void riso_grant_chunk(struct riso_process *pr, const struct riso_process_path *ud)
{
	lockdep_assert_held(&pr->rd->lock);
	WRITE_ONCE(pr->kpage->path[index_of(pr, ud)].chunk, riso_grant_cut(pr, ud));
}

/**
 * riso_grant_pace - tell a process how to post
 * @pr: the process
 * @p: how
 */
void riso_grant_pace(struct riso_process *pr, const struct riso_pacing *p)
{
	struct riso_kpage *page = pr->kpage;
	u32 i;

	lockdep_assert_held(&pr->rd->lock);
	WRITE_ONCE(page->op_bytes, p->op_bytes);
	WRITE_ONCE(page->slice_ns, p->slice_ns);
	WRITE_ONCE(page->sparse, p->sparse);
	WRITE_ONCE(page->window, p->window);
	WRITE_ONCE(page->rate, p->rate);
	WRITE_ONCE(page->over_target, p->over_target);
	for (i = 0; i < pr->paths; i++)
		riso_grant_chunk(pr, &pr->path[i]);
	if (pr->mode == p->mode)
		return;
	WRITE_ONCE(pr->mode, p->mode);
	WRITE_ONCE(pr->modes, pr->modes + 1);
	/* After what goes with it. */
	smp_store_release(&page->mode, p->mode);
	wake_up_all(&pr->wait);
}
