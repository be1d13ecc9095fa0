/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What each opcode of a work request does.
 *
 * Owns the one table of opcodes. An opcode that is missing there may do anything: its work
 * request goes as it is, and its flow is not managed any more.
 */
#ifndef RISO_CORE_WR_H
#define RISO_CORE_WR_H

#include "types.h"

/* The numbers of enum ib_uverbs_wr_opcode and, from 0x20 on, of enum ib_wr_opcode */
enum riso_opcode {
	RISO_OPCODE_WRITE = 0,
	RISO_OPCODE_WRITE_IMM = 1,
	RISO_OPCODE_SEND = 2,
	RISO_OPCODE_SEND_IMM = 3,
	RISO_OPCODE_READ = 4,
	RISO_OPCODE_CMP_AND_SWP = 5,
	RISO_OPCODE_FETCH_AND_ADD = 6,
	RISO_OPCODE_LOCAL_INV = 7,
	RISO_OPCODE_BIND_MW = 8,
	RISO_OPCODE_SEND_INV = 9,
	RISO_OPCODE_READ_INV = 11,
	RISO_OPCODE_MASKED_CMP_AND_SWP = 12,
	RISO_OPCODE_MASKED_FETCH_AND_ADD = 13,
	RISO_OPCODE_REG_MR = 0x20,
	RISO_OPCODES,
};

/**
 * enum riso_wr_kind - what structure a work request is part of
 * @RISO_WR_UNKNOWN: one that the kernel's users of RDMA do not have
 * @RISO_WR_PLAIN: none
 * @RISO_WR_RDMA: that of RDMA
 * @RISO_WR_ATOMIC: that of atomics
 * @RISO_WR_REG: that of the registration of memory
 */
enum riso_wr_kind {
	RISO_WR_UNKNOWN,
	RISO_WR_PLAIN,
	RISO_WR_RDMA,
	RISO_WR_ATOMIC,
	RISO_WR_REG,
};

enum riso_wr_traits {
	RISO_WR_KIND = 7,	/* enum riso_wr_kind */
	RISO_WR_DATA = 8,	/* has a payload */
	RISO_WR_READ = 16,	/* which comes from the peer */
	RISO_WR_FETCH = 32,	/* takes one of the QP's max_rd_atomic */
	RISO_WR_TOLD = 64,	/* the peer gets a completion by it */
	RISO_WR_CUT = 128,	/* may be cut into chunks */
	RISO_WR_USER = 256,	/* libibverbs has it, under the same number */
};

/* The longest message of the InfiniBand architecture, bytes */
#define RISO_MESSAGE_MAX 0x80000000u

/**
 * riso_wr_traits - what an opcode does
 * @opcode: of a work request
 *
 * Only plain WRITE and READ are cut: RC places their bytes in order, so the peer cannot
 * tell. A SEND or an immediate takes a receive of the peer and tells it a length. See
 * riso_wr_may_cut() for who does not read that.
 *
 * Return: bits of &enum riso_wr_traits; of an opcode that is not known, it has data and tells the
 * peer.
 */
static inline __u32 riso_wr_traits(__u32 opcode)
{
	static const __u16 traits[RISO_OPCODES] = {
		[RISO_OPCODE_WRITE] = RISO_WR_RDMA | RISO_WR_DATA | RISO_WR_CUT | RISO_WR_USER,
		[RISO_OPCODE_WRITE_IMM] = RISO_WR_RDMA | RISO_WR_DATA | RISO_WR_TOLD | RISO_WR_USER,
		[RISO_OPCODE_SEND] = RISO_WR_PLAIN | RISO_WR_DATA | RISO_WR_TOLD | RISO_WR_USER,
		[RISO_OPCODE_SEND_IMM] = RISO_WR_PLAIN | RISO_WR_DATA | RISO_WR_TOLD | RISO_WR_USER,
		[RISO_OPCODE_READ] = RISO_WR_RDMA | RISO_WR_DATA | RISO_WR_READ | RISO_WR_FETCH |
				     RISO_WR_CUT | RISO_WR_USER,
		[RISO_OPCODE_CMP_AND_SWP] = RISO_WR_ATOMIC | RISO_WR_DATA | RISO_WR_FETCH |
					    RISO_WR_USER,
		[RISO_OPCODE_FETCH_AND_ADD] = RISO_WR_ATOMIC | RISO_WR_DATA | RISO_WR_FETCH |
					      RISO_WR_USER,
		[RISO_OPCODE_LOCAL_INV] = RISO_WR_PLAIN | RISO_WR_USER,
		/* The kernel has no structure for it: only programs bind memory windows. */
		[RISO_OPCODE_BIND_MW] = RISO_WR_UNKNOWN | RISO_WR_USER,
		[RISO_OPCODE_SEND_INV] = RISO_WR_PLAIN | RISO_WR_DATA | RISO_WR_TOLD | RISO_WR_USER,
		[RISO_OPCODE_READ_INV] = RISO_WR_RDMA | RISO_WR_DATA | RISO_WR_READ | RISO_WR_FETCH,
		[RISO_OPCODE_MASKED_CMP_AND_SWP] = RISO_WR_ATOMIC | RISO_WR_DATA | RISO_WR_FETCH,
		[RISO_OPCODE_MASKED_FETCH_AND_ADD] = RISO_WR_ATOMIC | RISO_WR_DATA | RISO_WR_FETCH,
		[RISO_OPCODE_REG_MR] = RISO_WR_REG,
	};
	__u32 found = opcode < RISO_OPCODES ? traits[opcode] : 0;

	return found ? found : RISO_WR_UNKNOWN | RISO_WR_DATA | RISO_WR_TOLD;
}

static inline enum riso_wr_kind riso_wr_kind(__u32 opcode)
{
	return (enum riso_wr_kind)(riso_wr_traits(opcode) & RISO_WR_KIND);
}

static inline bool riso_wr_has_data(__u32 opcode)
{
	return riso_wr_traits(opcode) & RISO_WR_DATA;
}

static inline bool riso_wr_is_read(__u32 opcode)
{
	return riso_wr_traits(opcode) & RISO_WR_READ;
}

static inline bool riso_wr_is_fetch(__u32 opcode)
{
	return riso_wr_traits(opcode) & RISO_WR_FETCH;
}

static inline bool riso_wr_is_told(__u32 opcode)
{
	return riso_wr_traits(opcode) & RISO_WR_TOLD;
}

static inline bool riso_wr_is_cut(__u32 opcode)
{
	return riso_wr_traits(opcode) & RISO_WR_CUT;
}

/**
 * riso_wr_may_cut - may a work request be cut?
 * @opcode: of the work request
 * @cut_imm: WRITEs with immediate data may be: the peer does not read the length that its
 *	receive tells, which is that of the last piece
 *
 * Return: true if so.
 */
static inline bool riso_wr_may_cut(__u32 opcode, bool cut_imm)
{
	return riso_wr_is_cut(opcode) || (cut_imm && opcode == RISO_OPCODE_WRITE_IMM);
}

static inline bool riso_wr_is_user(__u32 opcode)
{
	return riso_wr_traits(opcode) & RISO_WR_USER;
}

/**
 * riso_wr_fetches_max - READs and atomics that a queue pair may have out
 * @max_rd_atomic: of the queue pair
 *
 * One more would stall the whole send queue.
 *
 * Return: how many, at least 1.
 */
static inline __u32 riso_wr_fetches_max(__u32 max_rd_atomic)
{
	return max_rd_atomic ? max_rd_atomic : 1;
}

#endif /* RISO_CORE_WR_H */
