/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a device sends to its peers and reads from them, as the module counts it.
 */
#ifndef RISO_SURVEY_H
#define RISO_SURVEY_H

#include <stdbool.h>
#include <stdint.h>

#include "conf.h"
#include "nl.h"

enum { SURVEY_DIRS = 2, SURVEY_ADDR = 16 };

/**
 * struct survey_rate - a counter, and how fast it grows
 * @total: when it was read last
 * @per_sec: what came in a second since the time before; what it was then counts for half, unless
 *	that is 0, or 200 ms ago
 * @known: @total was read
 */
struct survey_rate {
	uint64_t total;
	uint64_t per_sec;
	bool known;
};

/**
 * struct survey_way - a direction of a path
 * @used: what is posted there, while it has a limit
 * @rate: the limit in force, bytes per second, 0 for none
 * @stays: the limit has no lease: an operator has set it
 * @waits: how often flows had to wait for it
 * @waiting: they did since the time before
 * @seen: it is in the list that is read
 */
struct survey_way {
	struct survey_rate used;
	uint64_t rate;
	bool stays;
	uint64_t waits;
	bool waiting;
	bool seen;
};

/**
 * struct survey_peer - a host
 * @addr: its address, IPv4 as mapped in IPv6
 * @latency: groups with latency flows to it
 * @bulk: groups with other flows to it that have posted in the last second
 * @way: by direction, enum riso_path_dir
 */
struct survey_peer {
	uint8_t addr[SURVEY_ADDR];
	uint32_t latency;
	uint32_t bulk;
	struct survey_way way[SURVEY_DIRS];
};

struct survey_flow;
struct survey_group;

/**
 * struct survey - of a device
 * @nl: requests to the module
 * @dev: the device
 * @peer: hosts that are asked for
 * @num: how many
 * @busy: device time that all groups use, ns
 * @read: what all groups read from other hosts
 * @flow: flows to @peer, as they are read
 * @num_flows: how many
 * @flow_room: for how many there is memory
 * @group: groups of the device by their id, as they were read last
 * @num_groups: how many
 * @group_room: for how many there is memory
 * @fresh: those that are read now
 * @num_fresh: how many
 * @fresh_room: for how many there is memory
 * @paths_ns: when paths were read, 0 for never
 * @groups_ns: when flows and groups were
 * @due_ns: when they are next
 */
struct survey {
	struct nl *nl;
	const char *dev;
	struct survey_peer peer[CONF_PEERS_MAX];
	unsigned int num;
	struct survey_rate busy;
	struct survey_rate read;
	struct survey_flow *flow;
	size_t num_flows;
	size_t flow_room;
	struct survey_group *group;
	size_t num_groups;
	size_t group_room;
	struct survey_group *fresh;
	size_t num_fresh;
	size_t fresh_room;
	uint64_t paths_ns;
	uint64_t groups_ns;
	uint64_t due_ns;
};

/* IPv4 as mapped in IPv6 */
void survey_address(const struct sockaddr *sa, uint8_t *addr);

/**
 * survey_read - read what has changed
 * @s: the survey, with @nl, @dev and addresses of @peer filled in
 * @now: time, ns
 *
 * Paths are read each time. Flows and groups are read so often that it takes no more than a 50th
 * of the time, at most ten times a second.
 *
 * Return: false if the module does not answer.
 */
bool survey_read(struct survey *s, uint64_t now);
void survey_free(struct survey *s);

#endif /* RISO_SURVEY_H */
