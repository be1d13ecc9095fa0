/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The cut-and-merge rule: how a message becomes chunks and how the completions
 * of chunks become the one completion that its owner asked for.
 *
 * The kernel module, the verbs shim and the unit tests compile this same file.
 */
#ifndef RISO_CORE_CHUNK_H
#define RISO_CORE_CHUNK_H

#include "units.h"

/*
 * A chunk takes 10 us if nobody has set its size: several times what a post and a completion
 * cost, and no more than a small message may wait.
 */
#define RISO_CHUNK_NS		10000
/* One of less than 4 KB has too many headers (paper, 4.2), ... */
#define RISO_CHUNK_AUTO_MIN	4096
/* ... and one of more than 512 KB is not needed up to 512 Gbit/s. */
#define RISO_CHUNK_AUTO_MAX	(512 * 1024)
/* A rest of a message makes chunks larger by an eighth at most. */
#define RISO_CHUNK_REST_PART	8

/**
 * struct riso_sge - a scatter/gather element
 * @addr: first byte
 * @length: bytes
 * @lkey: local key
 *
 * The same layout as struct ib_sge and struct ibv_sge.
 */
struct riso_sge {
	__u64 addr;
	__u32 length;
	__u32 lkey;
};

/**
 * struct riso_cursor - how far into a message cutting has come
 * @done: bytes of the message in front of the cursor
 * @sge: element that holds the next byte
 * @off: offset of the next byte in that element
 */
struct riso_cursor {
	__u64 done;
	__u32 sge;
	__u32 off;
};

/**
 * riso_chunk_round - a chunk size that fills its packets
 * @chunk: wanted size, 0 is off
 * @mtu: path MTU in bytes, not 0
 *
 * Return: @chunk rounded up to a multiple of @mtu, 0 when @chunk is 0.
 */
static inline __u32 riso_chunk_round(__u32 chunk, __u32 mtu)
{
	return (chunk + mtu - 1) / mtu * mtu;
}

/**
 * riso_chunk_auto - the chunk size of a device for which nobody has set one
 * @rate: what the device is believed to do, bytes per second
 *
 * Return: bytes, a multiple of 4 KB.
 */
static inline __u32 riso_chunk_auto(__u64 rate)
{
	__u64 bytes = riso_bytes_in(RISO_CHUNK_NS, rate);

	bytes = riso_min(riso_max(bytes, RISO_CHUNK_AUTO_MIN), RISO_CHUNK_AUTO_MAX);
	return bytes - bytes % RISO_CHUNK_AUTO_MIN;
}

/**
 * riso_chunk_fill - the size of pieces that fill a path though few may be out
 * @chunk: chunk size, bytes
 * @path: bandwidth-delay product of the path, bytes
 * @pieces: how many may be out, not 0
 * @max: largest piece, bytes
 *
 * On a long path larger pieces cost nobody much: they are no larger than what is on the path
 * already. A quarter more covers the time until their completion is seen.
 *
 * Return: bytes, at least @chunk.
 */
static inline __u32 riso_chunk_fill(__u32 chunk, __u64 path, __u32 pieces, __u32 max)
{
	return (__u32)riso_max(chunk, riso_min(max, (path + path / 4) / pieces));
}

/**
 * riso_chunk_next - size of the next chunk of a message
 * @left: bytes of the message that are left
 * @chunk: chunk size, 0 is off
 *
 * Return: how many of the @left bytes go out next.
 */
static inline __u32 riso_chunk_next(__u32 left, __u32 chunk)
{
	return chunk && left > chunk ? chunk : left;
}

/* One of @parts equal parts of @left bytes, in whole pages */
static inline __u32 riso_chunk_part(__u32 left, __u32 parts)
{
	__u64 part = ((__u64)left + parts - 1) / parts + RISO_CHUNK_AUTO_MIN - 1;

	return (__u32)riso_min(left, part - part % RISO_CHUNK_AUTO_MIN);
}

/**
 * riso_chunk_even - size of the next piece of a message that fills a long path
 * @left: bytes of the message that are left
 * @chunk: least size of a piece, not 0
 *
 * Few pieces may be out, so none of them is a small rest.
 *
 * Return: size to cut to: @chunk or more, so that what is left goes in equal pieces of whole pages.
 */
static inline __u32 riso_chunk_even(__u32 left, __u32 chunk)
{
	__u32 pieces = left / chunk;

	return pieces < 2 ? riso_max(left, chunk) : riso_chunk_part(left, pieces);
}

/**
 * riso_chunk_equal - size of the next chunk of a message, where nobody has set one
 * @left: bytes of the message that are left
 * @chunk: what a chunk should be, not 0
 *
 * A small rest leaves the device too soon for the chunk behind it to be posted in time. So a rest
 * that makes the others larger by an eighth at most is no chunk of its own, and else all are
 * as large.
 *
 * Return: size to cut to, so that what is left goes in equal chunks of whole pages. What comes
 * behind the message may be cut to it as well.
 */
static inline __u32 riso_chunk_equal(__u32 left, __u32 chunk)
{
	__u32 chunks = left / chunk;
	__u32 equal;

	if (left <= chunk)
		return chunk;
	if (left % chunk > left / (RISO_CHUNK_REST_PART + 1))
		chunks++;
	equal = riso_chunk_part(left, chunks);
	return equal > chunk + chunk / RISO_CHUNK_REST_PART ? chunk : equal;
}

/**
 * riso_chunk_cut - take the elements of the next chunk
 * @in: elements of the message
 * @num: how many
 * @cur: where the chunk begins, moved behind it
 * @len: bytes of the chunk, at most what is left of the message
 * @out: room for @num elements, may not be @in
 *
 * Return: the number of elements written to @out, never more than @num.
 */
static inline __u32 riso_chunk_cut(const struct riso_sge *in, __u32 num,
				   struct riso_cursor *cur, __u32 len,
				   struct riso_sge *out)
{
	__u32 n = 0;

	cur->done += len;
	/* Most chunks lie within one element. */
	if (len && cur->sge < num && len < in[cur->sge].length - cur->off) {
		out[0].addr = in[cur->sge].addr + cur->off;
		out[0].length = len;
		out[0].lkey = in[cur->sge].lkey;
		cur->off += len;
		return 1;
	}
	while (len && cur->sge < num) {
		__u32 part = in[cur->sge].length - cur->off;

		if (part > len)
			part = len;
		if (part) {
			out[n].addr = in[cur->sge].addr + cur->off;
			out[n].length = part;
			out[n].lkey = in[cur->sge].lkey;
			n++;
		}
		len -= part;
		cur->off += part;
		if (cur->off == in[cur->sge].length) {
			cur->sge++;
			cur->off = 0;
		}
	}
	return n;
}

/**
 * enum riso_verdict - what becomes of a completion of the provider
 * @RISO_HIDE: the owner must not see it
 * @RISO_DELIVER: the owner sees it, under its own identity
 */
enum riso_verdict {
	RISO_HIDE,
	RISO_DELIVER,
};

/**
 * riso_merge - one completion for each message
 * @success: the provider reports success
 * @last: it is the last chunk of the message
 * @signaled: the owner asked for a completion
 * @reported: an error of this message was delivered before
 *
 * The completion of the last chunk is that of the message, if the owner asked
 * for it. The first error of any chunk is delivered at once, asked for or not,
 * and ends the message: what follows of it is hidden.
 *
 * Return: what to do with the completion.
 */
static inline enum riso_verdict riso_merge(int success, int last, int signaled,
					   int reported)
{
	if (reported)
		return RISO_HIDE;
	if (!success)
		return RISO_DELIVER;
	return last && signaled ? RISO_DELIVER : RISO_HIDE;
}

#endif /* RISO_CORE_CHUNK_H */
