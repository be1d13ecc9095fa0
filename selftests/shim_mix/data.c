// SPDX-License-Identifier: GPL-2.0
/*
 * These functions write the data of work requests, and check them where they arrive. They
 * tell what a work request does by its opcode.
 */
#include <stdint.h>
#include <string.h>

#include "mix.h"

static __u64 word_of(__u64 key, __u64 off)
{
	return (key + off / 8) * 0x9e3779b97f4a7c15ull;
}

static __u8 byte_of(__u64 key, __u64 off)
{
	return word_of(key, off) >> (off % 8 * 8);
}

/* The bytes of @key from @off on. */
void mix_fill(__u8 *to, size_t len, __u64 key, __u64 off)
{
	__u64 word;

	for (; len && off % 8; len--)
		*to++ = byte_of(key, off++);
	for (; len >= 8; len -= 8, off += 8, to += 8) {
		word = word_of(key, off);
		memcpy(to, &word, 8);
	}
	for (; len; len--)
		*to++ = byte_of(key, off++);
}

static bool is_filled(const __u8 *at, size_t len, __u64 key, __u64 off)
{
	__u64 word;

	for (; len && off % 8; len--)
		if (*at++ != byte_of(key, off++))
			return false;
	for (; len >= 8; len -= 8, off += 8, at += 8) {
		memcpy(&word, at, 8);
		if (word != word_of(key, off))
			return false;
	}
	for (; len; len--)
		if (*at++ != byte_of(key, off++))
			return false;
	return true;
}

bool mix_is_clean(const __u8 *at, size_t len)
{
	return !len || (*at == MIX_FILL && !memcmp(at, at + 1, len - 1));
}

static void check_gaps(const struct mix_op *op, const __u8 *at, size_t len,
		       const char *where)
{
	if (!mix_is_clean(at - MIX_GAP, MIX_GAP) || !mix_is_clean(at + len, MIX_GAP))
		mix_fail("opcode %d: something around %zu bytes %s was changed",
			 op->opcode, len, where);
}

__u8 *mix_addr_of(const struct ibv_sge *sge)
{
	return (__u8 *)(uintptr_t)sge->addr;
}

void mix_fill_local(const struct mix_op *op)
{
	__u64 off = 0;
	int i;

	for (i = 0; i < op->num_sge; off += op->sge[i++].length)
		mix_fill(mix_addr_of(&op->sge[i]), op->sge[i].length, op->key, off);
}

void mix_clean_local(const struct mix_op *op)
{
	int i;

	for (i = 0; i < op->num_sge; i++)
		memset(mix_addr_of(&op->sge[i]), MIX_FILL, op->sge[i].length);
}

/* Is the message there, and nothing else changed? */
void mix_check_sges(const struct mix_op *op, const struct ibv_sge *sge, int num,
		    const char *where)
{
	__u64 off = 0;
	size_t len;
	int i;

	for (i = 0; i < num; i++, off += len) {
		len = sge[i].length;
		if (len > op->len - off)
			len = op->len - off;
		if (!is_filled(mix_addr_of(&sge[i]), len, op->key, off))
			mix_fail("opcode %d: wrong data %s, %u bytes, %d elements",
				 op->opcode, where, op->len, num);
		check_gaps(op, mix_addr_of(&sge[i]), len, where);
	}
}

bool mix_is_write(const struct mix_op *op)
{
	return op->opcode == IBV_WR_RDMA_WRITE ||
	       op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool mix_is_atomic(const struct mix_op *op)
{
	return op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	       op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

bool mix_is_send(const struct mix_op *op)
{
	return op->opcode == IBV_WR_SEND || op->opcode == IBV_WR_SEND_WITH_IMM;
}

bool mix_takes_recv(const struct mix_op *op)
{
	return mix_is_send(op) || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool mix_has_imm(const struct mix_op *op)
{
	return op->opcode == IBV_WR_SEND_WITH_IMM ||
	       op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

__u64 *mix_word_at(const void *at)
{
	return (__u64 *)(uintptr_t)at;
}

static void check_atomic(const struct mix_op *op)
{
	__u64 want = op->key;

	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		want += op->compare;
	else if (op->compare == op->key)
		want = op->swap;
	if (*mix_word_at(mix_addr_of(op->sge)) != op->key || *mix_word_at(op->remote) != want)
		mix_fail("opcode %d: wrong value", op->opcode);
	check_gaps(op, mix_addr_of(op->sge), 8, "here");
	check_gaps(op, op->remote, 8, "there");
}

/* It is complete, or what was posted behind it is. */
void mix_check_data(struct mix_op *op)
{
	if (op->checked)
		return;
	op->checked = true;
	if (mix_is_atomic(op)) {
		check_atomic(op);
	} else if (mix_is_write(op)) {
		if (!is_filled(op->remote, op->len, op->key, 0))
			mix_fail("opcode %d: wrong data there, %u bytes in %d elements%s",
				 op->opcode, op->len, op->num_sge,
				 op->own_local ? "" : ", not its own");
		check_gaps(op, op->remote, op->len, "there");
	} else if (op->opcode == IBV_WR_RDMA_READ) {
		mix_check_sges(op, op->sge, op->num_sge, "here");
	}
}
