/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Classes of sizes and of times, and how completions find the time of their post.
 *
 * Pure functions without side effects beyond their arguments: no lock, no
 * allocation, no kernel or verbs type. The kernel module and the user-space unit
 * tests compile this same file.
 */
#ifndef RISO_MEASURE_H
#define RISO_MEASURE_H

#include <linux/types.h>

#include "../uapi/linux/rdma_isolate.h"

enum { RISO_SIZES = RISO_SIZE_MORE + 1 };

/**
 * riso_size_of - the size class of a message
 * @bytes: its payload
 *
 * Return: the class.
 */
static inline enum riso_size riso_size_of(__u64 bytes)
{
	unsigned int i = 0;

	while (i < RISO_SIZE_MORE && bytes > 64ULL << 2 * i)
		i++;
	return (enum riso_size)i;
}

/**
 * riso_bucket_of - the bucket of a histogram of times
 * @ns: the time
 *
 * Return: its number.
 */
static inline unsigned int riso_bucket_of(__u64 ns)
{
	unsigned int i = 0;

	while (i < RDMA_ISOLATE_BUCKETS - 1 && ns >= 1000ULL << i)
		i++;
	return i;
}

/**
 * struct riso_post - a work request whose completion will come
 * @wr_id: the owner's
 * @ns: when it was posted, 0 if nobody wants to know
 */
struct riso_post {
	__u64 wr_id;
	__u64 ns;
};

/**
 * struct riso_posts - ring of posts of one send queue, whose completions come in order
 * @ring: room for @num
 * @num: a power of two
 * @head: where the next one goes
 * @tail: the oldest
 */
struct riso_posts {
	struct riso_post *ring;
	__u32 num;
	__u32 head;
	__u32 tail;
};

/**
 * riso_posts_drop - forget all
 * @p: the ring
 *
 * Their completions are found to be of nobody.
 */
static inline void riso_posts_drop(struct riso_posts *p)
{
	p->tail = p->head;
}

/**
 * riso_posts_add - remember a post
 * @p: the ring; when it is full, all that is in it is forgotten
 * @wr_id: the owner's
 * @ns: when it was posted
 */
static inline void riso_posts_add(struct riso_posts *p, __u64 wr_id, __u64 ns)
{
	struct riso_post *post;

	if (p->head - p->tail == p->num)
		riso_posts_drop(p);
	post = &p->ring[p->head++ & (p->num - 1)];
	post->wr_id = wr_id;
	post->ns = ns;
}

/**
 * riso_posts_take - a completion came
 * @p: the ring
 * @wr_id: of the completion
 *
 * What is in front of it in the ring was overtaken, and is forgotten. One of which
 * nothing is known (it was posted before the ring was there, or forgotten) changes
 * nothing.
 *
 * Return: when it was posted, 0 if that is not known.
 */
static inline __u64 riso_posts_take(struct riso_posts *p, __u64 wr_id)
{
	__u32 pos;

	for (pos = p->tail; pos != p->head; pos++) {
		const struct riso_post *post = &p->ring[pos & (p->num - 1)];

		if (post->wr_id == wr_id) {
			p->tail = pos + 1;
			return post->ns;
		}
	}
	return 0;
}

#endif /* RISO_MEASURE_H */
