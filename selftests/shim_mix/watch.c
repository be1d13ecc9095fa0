// SPDX-License-Identifier: GPL-2.0
/*
 * These functions end the program where something is wrong, or where nothing completes.
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "mix.h"

enum { STALL_SECONDS = 30 };

/* What the watchdog looks at. */
unsigned long mix_beats;
static unsigned int alarm_us;
struct mix_world *mix_watched;

static void report(void)
{
	unsigned int i;

	for (i = 0; mix_watched && i < mix_watched->num_pairs; i++) {
		const struct mix_pair *p = &mix_watched->pair[i];
		const struct mix_op *op = &p->op[p->retired % p->shape.depth];

		if (p->posted == p->retired)
			continue;
		printf("# pair %u: %llu of %llu, %llu of %llu receives;", i,
		       p->retired, p->posted, p->received, p->recvs);
		printf(" opcode %d, %u bytes, flags %x, sent %d received %d\n",
		       op->opcode, op->len, op->flags, op->sent, op->received);
	}
}

void mix_fail(const char *fmt, ...)
{
	va_list ap;

	printf("# %d: ", getpid());
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

/* It also interrupts whoever waits. */
static void on_alarm(int sig)
{
	static unsigned long seen;
	static __u64 idle_us;

	(void)sig;
	idle_us = mix_beats == seen ? idle_us + alarm_us : 0;
	seen = mix_beats;
	if (idle_us < STALL_SECONDS * 1000000ull)
		return;
	report();
	mix_fail("nothing has completed for %d s", STALL_SECONDS);
}

/* Look from time to time whether something happens; 0 for no more. */
void mix_watch(unsigned int interval_us)
{
	struct itimerval each = { { 0, interval_us }, { 0, interval_us } };
	struct sigaction sa = { .sa_handler = on_alarm };

	alarm_us = interval_us;
	mix_beats++;
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
}

__u64 mix_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}
