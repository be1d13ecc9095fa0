/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What goes straight to the provider while the device is open is counted, so that the kernel
 * sees who uses the device. Threads that post on queue pairs with the same lane at the same
 * moment may lose what one of them adds: the kernel compares users, and needs no exact bytes.
 */
#ifndef SHIM_PASSED_H
#define SHIM_PASSED_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/rdma_isolate_user.h>

#include "core/wr.h"
#include "ctx.h"
#include "grant.h"
#include "member.h"
#include "qp.h"

/**
 * shim_qp_counts - tell whether what goes straight is counted
 * @f: the flow
 *
 * Without a lock.
 *
 * Return: false for flows that the kernel does not pace.
 */
static inline bool shim_qp_counts(const struct shim_qp *f)
{
	return __atomic_load_n(&f->paced, __ATOMIC_RELAXED);
}

/**
 * shim_qp_price - tell what a work request costs that goes straight
 * @f: a flow of which shim_qp_counts() is true
 * @len: its bytes
 *
 * Without a lock.
 *
 * Return: cost bytes.
 */
static inline uint64_t shim_qp_price(const struct shim_qp *f, uint64_t len)
{
	const struct riso_kpage *k = shim_member_kpage(f->ctx->m);
	uint64_t cost = k->header + len + RISO_MESSAGE_HEADER;

	if (len > f->mtu || cost < k->op_bytes)
		cost = shim_cost(len, f->mtu, k->header, k->op_bytes);
	return cost;
}

/**
 * shim_qp_count - count what has gone straight
 * @f: a flow of which shim_qp_counts() is true
 * @dir: direction, enum riso_user_dir
 * @cost: cost bytes
 *
 * Without a lock.
 */
static inline void shim_qp_count(const struct shim_qp *f, int dir, uint64_t cost)
{
	__u64 *sum = &f->ctx->m->upage->passed[f->lane].bytes[dir];

	__atomic_store_n(sum, *sum + cost, __ATOMIC_RELAXED);
}

/**
 * shim_wr_dir - find the direction of a work request
 * @opcode: of the work request
 *
 * Return: the direction.
 */
static inline int shim_wr_dir(uint32_t opcode)
{
	return riso_wr_is_read(opcode) ? RISO_USER_RX : RISO_USER_TX;
}

#endif /* SHIM_PASSED_H */
