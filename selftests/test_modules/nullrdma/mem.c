// SPDX-License-Identifier: GPL-2.0
/*
 * The memory that messages are moved between: pieces, each a kernel address or a place in
 * a region, and the copy from one to the other.
 *
 * Owns no state. All of it runs under nr_engine.lock, in hard interrupts mostly.
 */

#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "mem.h"
#include "mr.h"

/* Where the address is in the kernel, and how many bytes from there on are in one piece. */
static void *find_run(struct nr_mr *mr, u64 addr, u64 *run)
{
	u64 off, size, page;

	if (!mr || mr->all) {
		*run = U32_MAX;
		return (void *)(uintptr_t)addr;
	}
	size = BIT_ULL(mr->page_shift);
	off = addr - (mr->iova & ~(size - 1));
	page = off >> mr->page_shift;
	if (WARN_ON_ONCE(page >= mr->npages))
		return NULL;
	off &= size - 1;
	*run = size - off;
	return (void *)(uintptr_t)(mr->pages[page] + off);
}

void *nr_find_word(struct nr_mr *mr, u64 addr)
{
	u64 run;

	return find_run(mr, addr, &run);
}

/* The next bytes in one piece, or NULL at the end. */
static void *next_run(struct nr_mem *mem, u32 *length)
{
	void *at;
	u64 run;

	while (!mem->left) {
		const struct ib_sge *sge = mem->sge;

		if (!mem->num)
			return NULL;
		mem->sge++;
		mem->num--;
		mem->addr = sge->addr;
		mem->left = sge->length;
		mem->mr = NULL;
		if (sge->length && sge->lkey != NR_ALL_LKEY) {
			mem->mr = nr_find_mr(mem->qp->end, mem->qp->ibqp.pd, sge->lkey,
					     sge->addr, sge->length, 0);
			/* The ULP has taken it away while the message was on its way. */
			if (!mem->mr)
				return NULL;
		}
	}
	at = find_run(mem->mr, mem->addr, &run);
	*length = min_t(u64, run, mem->left);
	return at;
}

static void advance(struct nr_mem *mem, u32 length)
{
	mem->addr += length;
	mem->left -= length;
}

/* Copy a message. */
void nr_move(struct nr_mem *to, struct nr_mem *from, u32 length)
{
	lockdep_assert_held(&nr_engine.lock);
	while (length) {
		u32 a, b;
		void *dst = next_run(to, &a);
		void *src = next_run(from, &b);
		u32 run;

		if (!dst || !src)
			return;
		run = min3(a, b, length);
		memcpy(dst, src, run);
		advance(to, run);
		advance(from, run);
		length -= run;
	}
}

/* Copy what the adapter itself has. */
void nr_put(struct nr_mem *to, const void *data, u32 length)
{
	while (length) {
		u32 run;
		void *dst = next_run(to, &run);

		if (!dst)
			return;
		run = min(run, length);
		memcpy(dst, data, run);
		data += run;
		advance(to, run);
		length -= run;
	}
}
