/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What of the host keeps the module from working, or from working well.
 */
#ifndef RDMA_ISOLATE_DOCTOR_H
#define RDMA_ISOLATE_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * enum verdict - how bad a finding is
 * @VERDICT_OK: as it should be
 * @VERDICT_HINT: it works, but could work better
 * @VERDICT_BAD: it cannot work like this
 */
enum verdict {
	VERDICT_OK,
	VERDICT_HINT,
	VERDICT_BAD,
};

/**
 * typedef doctor_fn - called for each finding
 * @check: what was looked at, one word
 * @verdict: how bad it is
 * @found: what was found
 * @fix: a line that mends it, NULL if there is nothing to mend
 * @data: of the caller
 */
typedef void (*doctor_fn)(const char *check, enum verdict verdict,
			  const char *found, const char *fix, void *data);

/**
 * doctor_host - look at all that files tell
 * @root: put in front of every path, "" for this host
 * @release: of the kernel
 * @tell: called for each check
 * @data: for @tell
 */
void doctor_host(const char *root, const char *release, doctor_fn tell,
		 void *data);

/**
 * struct doctor_dev - what the module says of an enabled device
 * @name: of the device
 * @calibrated: somebody has set its max-rate
 * @latency_flows: how many it protects
 * @chunk: what messages are cut to, bytes, 0 for off
 * @late_ns: how late the module's timer is, a moving mean
 * @safe_util: what shaped flows may use, bytes per second
 * @max_rate: MaxRate, bytes per second
 * @believed_rate: what chunks and windows go by, bytes per second
 * @pace: what it is given to send and to read, bytes per second
 */
struct doctor_dev {
	const char *name;
	bool calibrated;
	uint64_t latency_flows;
	uint64_t chunk;
	uint64_t late_ns;
	uint64_t safe_util;
	uint64_t max_rate;
	uint64_t believed_rate;
	uint64_t pace[2];
};

/* Tell what is not as it should be */
void doctor_dev(const struct doctor_dev *dev, doctor_fn tell, void *data);

/**
 * struct doctor_process - a process that has queue pairs of a class that is held
 * @pid: its number
 * @reasons: why some are not held, a bit 1 << RISO_REASON_* for each reason
 */
struct doctor_process {
	uint32_t pid;
	uint32_t reasons;
};

/**
 * struct doctor_processes - processes
 * @process: what is known of each
 * @n: how many
 */
struct doctor_processes {
	struct doctor_process *process;
	size_t n;
};

/**
 * doctor_programs - look at all programs that have an RDMA device open
 * @root: put in front of every path, "" for this host
 * @processes: those that have queue pairs of a class that is held
 * @tell: called for each fault
 * @data: for @tell
 */
void doctor_programs(const char *root, const struct doctor_processes *processes,
		     doctor_fn tell, void *data);

struct nl;

/**
 * doctor_around - look for queue pairs that post around the shim
 * @nl: the module
 * @tell: called for each, or once if there is none
 * @data: for @tell
 *
 * It takes some seconds if there are programs to look at.
 */
void doctor_around(struct nl *nl, doctor_fn tell, void *data);

#endif /* RDMA_ISOLATE_DOCTOR_H */
