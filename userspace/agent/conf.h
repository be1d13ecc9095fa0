/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the operator wants of rdma-isolated: its file, and its command line, which
 * wins. Settings are complete and in their ranges, or they are not there at all.
 */
#ifndef RDMA_ISOLATED_CONF_H
#define RDMA_ISOLATED_CONF_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/rdma_isolate.h>

#include "peer_record.h"

#define CONF_FILE "/etc/rdma-isolated.conf"

enum { CONF_PEERS_MAX = 16, CONF_AGENT_KEYS = 11, CONF_ERROR_LEN = 512 };

/* exit statuses, or CONF_RUN, which conf_args() returns */
enum {
	CONF_RUN = -1,
	CONF_DONE = 0,
	CONF_FAILED = 1,
	CONF_USAGE = 2,
	CONF_NO_MODULE = 3,
};

enum conf_law { CONF_LAW_DEFAULT, CONF_LAW_PAPER };
enum conf_unattainable { CONF_KEEP, CONF_GIVE_UP };
enum conf_not_local { CONF_RECOVER, CONF_STAY };

/* An address of IPv4 or IPv6, as the sa_family says; its port is 0. */
union conf_addr {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/**
 * struct conf_dev - what is set for one device
 * @name: of the RDMA device
 * @peer: agents to measure with; never the same twice
 * @n_peers: how many
 * @unattainable: one of enum conf_unattainable
 * @delta_ns: how long the target is missed before it is unattainable
 * @not_local: one of enum conf_not_local
 */
struct conf_dev {
	char name[RDMA_ISOLATE_DEV_NAME_MAX + 1];
	union conf_addr peer[CONF_PEERS_MAX];
	unsigned int n_peers;
	uint64_t unattainable;
	uint64_t delta_ns;
	uint64_t not_local;
};

/**
 * struct conf - all settings; all 0 is one without any
 * @listen: where peers reach this agent
 * @port: the one of this agent, and of its peers
 * @ref_period_ns: from one reference message to the next
 * @spin_ns: for how long the program looks for a reference message's completion before
 *	it sleeps, 0 for not at all
 * @window: samples that the 99th percentile is of
 * @short_window: samples of the estimate that is quick; less than @window
 * @lease_ns: for how long SafeUtil is lent
 * @law: one of enum conf_law
 * @metrics: port where metrics are, 0 for none
 * @metrics_listen: and the address
 * @has_secret: there is a @secret
 * @secret: key of what agents tell each other
 * @dev: devices
 * @n_devs: how many
 */
struct conf {
	union conf_addr listen;
	uint64_t port;
	uint64_t ref_period_ns;
	uint64_t spin_ns;
	uint64_t window;
	uint64_t short_window;
	uint64_t lease_ns;
	uint64_t law;
	uint64_t metrics;
	union conf_addr metrics_listen;
	bool has_secret;
	uint8_t secret[RECORD_KEY];
	struct conf_dev *dev;
	unsigned int n_devs;
};

/**
 * struct conf_args - a command line
 * @file: file of settings
 * @named: the file was named, so it has to be there
 * @check: the settings are to be checked, and nothing else done
 * @only: only the devices of @over are wanted
 * @set: values of section [agent], in the order of the keys in conf.c
 * @over: has devices alone, and these have peers alone
 */
struct conf_args {
	const char *file;
	bool named;
	bool check;
	bool only;
	const char *set[CONF_AGENT_KEYS];
	struct conf over;
};

/**
 * conf_args - read the command line
 * @argc: as of main()
 * @argv: as of main(); has to stay as long as @args does
 * @args: is filled in
 *
 * Return: CONF_RUN; else the exit status, after all has been said, also for --help and
 * --version. @args are to be freed in any case.
 */
int conf_args(int argc, char **argv, struct conf_args *args);

/**
 * conf_load - read the file, and let the command line win
 * @conf: settings, or all 0; is replaced, or on errors stays as it is
 * @args: the command line
 * @error: what is wrong, and what is allowed
 * @len: its size, CONF_ERROR_LEN is enough
 *
 * Return: true, or false with @error
 */
bool conf_load(struct conf *conf, const struct conf_args *args, char *error,
	       size_t len);

/* An address as text, in @name, of INET6_ADDRSTRLEN */
const char *conf_addr_name(const union conf_addr *addr, char *name);

/* For how long a message that was late is in the short window: the period has a jitter. */
static inline uint64_t conf_window_ns(const struct conf *conf)
{
	return conf->short_window * conf->ref_period_ns * 5 / 4;
}

/* Key of what agents tell each other, NULL for none */
static inline const uint8_t *conf_secret(const struct conf *conf)
{
	return conf->has_secret ? conf->secret : NULL;
}

/* NULL if the settings do not have it */
struct conf_dev *conf_dev(const struct conf *conf, const char *name);

/* Are all devices steered alike, except for what is set for one? */
bool conf_same_law(const struct conf *a, const struct conf *b);
/* Is the same set for a device? */
bool conf_same_dev(const struct conf_dev *a, const struct conf_dev *b);

void conf_free(struct conf *conf);
void conf_args_free(struct conf_args *args);

#endif /* RDMA_ISOLATED_CONF_H */
