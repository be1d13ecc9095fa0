/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is known at one moment, and the same as text: of OpenMetrics, or of Prometheus.
 */
#ifndef RISO_METRICS_H
#define RISO_METRICS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/rdma_isolate.h>

enum {
	METRICS_CLASSES = 3,
	METRICS_TIMES = 3,
	METRICS_COUNTERS = 64,
	METRICS_COUNTER_LEN = 32,
	/* More are left out. */
	METRICS_GROUPS = 1024,
	/* Room for all lines of one family about one device, peer, path or group */
	METRICS_PIECE = 4096,
};

/* 50th, 99th and 99.9th percentile of a window; none without @any */
struct metrics_times {
	bool any;
	uint64_t ns[METRICS_TIMES];
};

/* A device; the values are the module's, of the agent @late. Of 2: sent, and read */
struct metrics_dev {
	char name[RDMA_ISOLATE_DEV_NAME_MAX + 1];
	uint32_t state;
	uint64_t max_rate;
	uint64_t safe_util;
	uint64_t pace[2];
	uint64_t target99_ns;
	uint64_t current99_ns;
	uint64_t lease_ns;
	uint32_t ctrl_state;
	uint32_t groups[METRICS_CLASSES];
	uint32_t managed_flows;
	uint32_t held;
	uint64_t flows[METRICS_CLASSES];
	uint64_t tx_bytes[METRICS_CLASSES];
	uint64_t rx_bytes[METRICS_CLASSES];
	uint64_t counter[METRICS_COUNTERS];
	struct metrics_times late;
};

/* A peer that the agent measures with */
struct metrics_peer {
	char dev[RDMA_ISOLATE_DEV_NAME_MAX + 1];
	char name[INET6_ADDRSTRLEN];
	bool connected;
	uint64_t sent;
	uint64_t lost;
	struct metrics_times times;
};

/* A limit that the module has for a peer; @dir is 0 or 1, @limit 0 if messages are only cut. */
struct metrics_path {
	char dev[RDMA_ISOLATE_DEV_NAME_MAX + 1];
	char peer[RDMA_ISOLATE_PEER_MAX + 1];
	uint32_t dir;
	uint64_t limit;
	uint64_t lease_ns;
	uint64_t bytes;
	uint64_t waits;
};

/*
 * A group; a name that it does not have is empty, a pid 0. @avg is of 10, 60 and 300
 * seconds, @wait_ns for the clock, the window, what is its own, and paths.
 */
struct metrics_group {
	char dev[RDMA_ISOLATE_DEV_NAME_MAX + 1];
	uint32_t id;
	char ulp[RDMA_ISOLATE_ULP_NAME_MAX + 1];
	char peer[RDMA_ISOLATE_PEER_MAX + 1];
	char comm[RDMA_ISOLATE_COMM_MAX + 1];
	uint32_t pid;
	uint32_t weight;
	uint32_t flows;
	uint32_t held;
	uint32_t avg[3];
	uint64_t tx_bytes;
	uint64_t rx_bytes;
	uint64_t wrs;
	uint64_t used_ns;
	uint64_t stall_ns;
	uint64_t wait_ns[4];
};

/**
 * struct metrics - all that is known at one moment
 * @dev: devices that the module knows
 * @num_devs: how many
 * @peer: whom the agent measures with
 * @num_peers: how many
 * @path: limits of peers
 * @num_paths: how many
 * @group: groups
 * @num_groups: how many
 * @left_out: groups that there was no room for
 * @counter: names of the module's counters of a device
 * @num_counters: how many
 */
struct metrics {
	struct metrics_dev *dev;
	size_t num_devs;
	struct metrics_peer *peer;
	size_t num_peers;
	struct metrics_path *path;
	size_t num_paths;
	struct metrics_group *group;
	size_t num_groups;
	uint64_t left_out;
	char counter[METRICS_COUNTERS][METRICS_COUNTER_LEN];
	size_t num_counters;
};

/* Where in the text one is; all 0 is the begin of that of Prometheus. */
struct metrics_pos {
	bool openmetrics;
	size_t family;
	size_t item;
};

/* A new one, all 0, at the end; NULL if there is no memory or room */
struct metrics_dev *metrics_add_dev(struct metrics *m, const char *name);
struct metrics_peer *metrics_add_peer(struct metrics *m, const char *dev);
struct metrics_path *metrics_add_path(struct metrics *m, const char *dev);
struct metrics_group *metrics_add_group(struct metrics *m, const char *dev);
/* NULL if there is none */
struct metrics_dev *metrics_find_dev(const struct metrics *m, const char *name);
/* A counter of the module, by its name */
void metrics_count(struct metrics *m, struct metrics_dev *dev, const char *name,
		   uint64_t value);
void metrics_free(struct metrics *m);

/**
 * metrics_text - some more of the text, whole lines
 * @m: what it is about
 * @pos: where it goes on
 * @buf: for the text, which has no NUL
 * @len: its size, METRICS_PIECE or more
 *
 * Return: length of the text, 0 when all of it was there.
 */
size_t metrics_text(const struct metrics *m, struct metrics_pos *pos, char *buf,
		    size_t len);

#endif /* RISO_METRICS_H */
