// SPDX-License-Identifier: GPL-2.0
/*
 * What both laws of userspace/lib/aimd.c would have done with a recorded trace, of
 * tools/plot/steps.py, as a table for tools/plot/aimd.py. For people and for tests;
 * reads stdin, writes stdout.
 *
 *   replay_aimd max_rate target99_ns <trace >table
 *
 * A line of the trace is one step: now_ns L B T current99 short99 short95, in ns; those
 * that begin with # are skipped. The latencies are what they were: they do not
 * follow what is answered here.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "aimd.h"

static const char * const modes[] = {
	[AIMD_OPEN] = "open",
	[AIMD_TRACKING] = "tracking",
	[AIMD_MISSED] = "missed",
	[AIMD_NOT_LOCAL] = "not-local",
	[AIMD_UNATTAINABLE] = "unattainable",
};

int main(int argc, char **argv)
{
	struct aimd_params params[2];
	struct aimd_state state[2];
	struct aimd_output out[2];
	char line[256];
	unsigned int i, n = 0;

	if (argc != 3 || !strtoull(argv[1], NULL, 10) || !strtoull(argv[2], NULL, 10)) {
		fprintf(stderr, "usage: replay_aimd max_rate target99_ns <trace\n");
		return 2;
	}
	for (i = 0; i < 2; i++) {
		aimd_defaults(&params[i], strtoull(argv[1], NULL, 10),
			      strtoull(argv[2], NULL, 10));
		params[i].law = i ? AIMD_LAW_DEFAULT : AIMD_LAW_PAPER;
		aimd_init(&state[i], &params[i]);
	}
	printf("# now_ns current99_ns short99_ns paper mode default mode\n");
	while (fgets(line, sizeof(line), stdin)) {
		struct aimd_input in = { .have_samples = true };

		n++;
		if (*line == '#')
			continue;
		if (sscanf(line, "%" SCNu64 " %u %u %u %" SCNu64 " %" SCNu64 " %" SCNu64,
			   &in.now_ns, &in.l, &in.b, &in.t, &in.current99_ns,
			   &in.short99_ns, &in.short95_ns) != 7) {
			fprintf(stderr, "replay_aimd: line %u is no step\n", n);
			return 1;
		}
		for (i = 0; i < 2; i++)
			out[i] = aimd_step(&state[i], &params[i], &in);
		printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s %" PRIu64 " %s\n",
		       in.now_ns, in.current99_ns, in.short99_ns, out[0].safe_util,
		       modes[out[0].mode], out[1].safe_util, modes[out[1].mode]);
	}
	return 0;
}
