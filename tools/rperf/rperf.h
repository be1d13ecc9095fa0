/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the parts of rperf share: options, an end of a connection, and the lines
 * of text that two ends exchange.
 */
#ifndef RPERF_H
#define RPERF_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

enum {
	MAX_PROBE_SIZE = 4096,
	MAX_LOAD_SIZE = 1 << 30,
	MAX_QPS = 1024,
	MAX_DEPTH = 16384,
	MAX_WATCH = 8,
	LINE_LEN = 256,
};

enum load {
	LOAD_NONE,
	LOAD_WRITE,
	LOAD_READ,
	LOAD_SEND,
	LOADS,
};

/*
 * The command line. The client tells the server the first five: what they do
 * together.
 */
struct params {
	enum load load;
	unsigned int size;
	unsigned int qps;
	unsigned int depth;
	bool verify;
	const char *dev;
	int gid;
	const char *peer;
	int peer_gid;
	const char *host;
	int port;
	double seconds;
	bool json;
	/* of the probe */
	uint64_t samples;
	uint64_t warmup;
	uint64_t interval_us;
	const char *watch[MAX_WATCH];
	int nwatch;
	const char *log;
	/* of the load */
	unsigned int batch;
	bool builders;
	const char *ready;
};

struct end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_port_attr port;
	union ibv_gid gid;
	int gid_index;
	/* READs at a time, both ways */
	unsigned int rd_atomic;
};

/* Goes before what this process says. */
extern const char *whoami;
/* Shows the watchdog that there is progress. */
extern volatile sig_atomic_t beats;

void die(const char *fmt, ...)
	__attribute__((noreturn, format(printf, 1, 2)));
uint64_t now_ns(void);
void start_watchdog(unsigned int seconds);

void put_line(int fd, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void get_line(int fd, char line[LINE_LEN]);

void open_end(struct end *e, const char *dev, int gid);
void init_qp(struct ibv_qp *qp, unsigned int access);
void connect_qp(const struct end *e, struct ibv_qp *qp, int fd);

void arm(struct ibv_cq *cq);
void wait_event(struct ibv_comp_channel *chan);
bool poll_one(struct ibv_cq *cq, struct ibv_wc *wc);

void probe_serve(const struct params *p, int fd);
void probe_run(const struct params *p, int fd);

extern const char * const load_names[LOADS];
void load_serve(const struct params *p, int fd);
void load_run(const struct params *p, int fd);

#endif /* RPERF_H */
