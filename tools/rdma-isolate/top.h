/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What top looks at: samples of devices, their groups and their paths, what happened
 * between two of them, and how that is shown.
 */
#ifndef RDMA_ISOLATE_TOP_H
#define RDMA_ISOLATE_TOP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <libmnl/libmnl.h>

#include <linux/rdma_isolate.h>

#include "group.h"
#include "print.h"

/**
 * struct top_group - a group of a device
 * @id: never given to another as long as the device is there
 * @who: its name
 * @classes: of its flows, a bit for each
 * @used_ns: device time that it has used
 * @bytes: that it has posted, in both directions
 * @stall_ns: time that it has waited
 * @share: of what all groups used between the samples, in 1/100 percent
 * @rate: bytes per second between the samples
 * @wait: part of the time between the samples, in 1/100 percent
 */
struct top_group {
	uint32_t id;
	char who[WHO_LEN];
	uint32_t classes;
	uint64_t used_ns;
	uint64_t bytes;
	uint64_t stall_ns;
	uint64_t share;
	uint64_t rate;
	uint64_t wait;
};

/**
 * struct top_path - a limit of what a device sends to a peer, or reads from it
 * @peer: address of the peer
 * @dir: enum riso_path_dir
 * @limit: the limit, in bytes per second, 0 if messages are only cut
 * @lease_ns: what is left of its lease, 0 if it holds until it is changed
 * @bytes: that were posted under it
 * @waits: how often flows had to wait for it
 * @used: part of the limit that was used between the samples, in 1/100 percent
 * @rate: bytes per second between the samples
 * @waited: how often flows had to wait between the samples
 */
struct top_path {
	char peer[RDMA_ISOLATE_PEER_MAX + 1];
	uint32_t dir;
	uint64_t limit;
	uint64_t lease_ns;
	uint64_t bytes;
	uint64_t waits;
	uint64_t used;
	uint64_t rate;
	uint64_t waited;
};

/**
 * struct top_dev - a device
 * @name: its name, which may change
 * @index: its number, which does not
 * @state: enum rdma_isolate_state
 * @ctrl_state: enum rdma_isolate_ctrl_state
 * @max_rate: MaxRate, in bytes per second
 * @safe_util: SafeUtil that is in force, in bytes per second
 * @target99_ns: Target99 of the agent, else of the operator
 * @current99_ns: Current99, 0 if the agent has not measured it
 * @agent_pid: 0 for no agent
 * @lease_ns: what is left of the lease
 * @latency_groups: L
 * @bandwidth_groups: B
 * @throughput_groups: T
 * @groups: in the order of their ids, or of their shares once they are known
 * @n: how many
 * @paths: in any order, or those that are used most first once that is known
 * @num_paths: how many
 */
struct top_dev {
	char name[RDMA_ISOLATE_DEV_NAME_MAX + 1];
	uint32_t index;
	uint32_t state;
	uint32_t ctrl_state;
	uint64_t max_rate;
	uint64_t safe_util;
	uint32_t target99_ns;
	uint64_t current99_ns;
	uint32_t agent_pid;
	uint64_t lease_ns;
	uint32_t latency_groups;
	uint32_t bandwidth_groups;
	uint32_t throughput_groups;
	struct top_group *groups;
	unsigned int n;
	struct top_path *paths;
	unsigned int num_paths;
};

/**
 * struct top_sample - all that was seen at a time
 * @when_ns: the time
 * @devs: the devices
 * @n: how many
 * @interval_ns: time since the sample before
 * @has_paths: who looks may see paths
 * @no_memory: there was more
 */
struct top_sample {
	uint64_t when_ns;
	struct top_dev *devs;
	unsigned int n;
	uint64_t interval_ns;
	bool has_paths;
	bool no_memory;
};

/*
 * Add what a message tells to the sample that is data: devices first, flows after
 * their groups. Each is a nl_reply_fn.
 */
void top_read_dev(const struct nlattr * const *attrs,
		  const struct nlmsghdr *nlh, void *data);
void top_read_budget(const struct nlattr * const *attrs,
		     const struct nlmsghdr *nlh, void *data);
void top_read_group(const struct nlattr * const *attrs,
		    const struct nlmsghdr *nlh, void *data);
void top_read_flow(const struct nlattr * const *attrs,
		   const struct nlmsghdr *nlh, void *data);
void top_read_path(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data);

/* Work out what happened since an older sample, those with most first */
void top_compare(struct top_sample *old, struct top_sample *new);

/* A part of a whole in 1/100 percent, 0 if there is nothing */
uint64_t top_part(uint64_t of, uint64_t whole);

void top_free(struct top_sample *sample);

/* Lines of a screen that are no rows: above all devices, of each, and of each with paths */
enum { TOP_LINES = 1, TOP_DEV_LINES = 4, TOP_PATH_LINES = 1 };

/* How many rows groups and paths of each device may have, so that all fit as many lines */
unsigned int top_rows(const struct top_sample *sample, unsigned int lines);

/* Print each device with at most as many groups, and paths, and an empty line behind it */
void top_print(FILE *file, const struct top_sample *sample, unsigned int rows);

/* Print an object for each device */
void top_print_json(struct printer *out, const struct top_sample *sample);

#endif /* RDMA_ISOLATE_TOP_H */
