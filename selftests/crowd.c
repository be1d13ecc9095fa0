// SPDX-License-Identifier: GPL-2.0
/*
 * crowd KIND NUMBER DEVICE
 *
 * As many processes take part in DEVICE until they are told to end:
 * "honest" ones post what they are given, "grasp" take it and post nothing, "mute" do so
 * without a call, "debt" say that they post without grants, "keep" that nothing of what they
 * post completes. Prints "ready" when all run, and at the end how many bytes "honest" and
 * "keep" were given in how many nanoseconds since the last SIGUSR1, as JSON.
 */
#include <err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest.h"
#include "share.h"

static const struct {
	const char *name;
	int (*run)(struct share *unused);
} kinds[] = {
	{ "honest", share_rival },
	{ "grasp", share_grasp },
	{ "mute", share_grasp_mute },
	{ "debt", share_claim },
	{ "keep", share_keep },
};

static int (*find_kind(const char *name))(struct share *unused)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(name, kinds[i].name))
			return kinds[i].run;
	errx(2, "%s is no kind", name);
}

int main(int argc, char **argv)
{
	int (*run)(struct share *unused);
	int sig, n, status, failed = 0;
	unsigned long long bytes, ns;
	sigset_t set;
	__u64 began;

	if (argc != 4)
		errx(2, "usage: crowd KIND NUMBER DEVICE");
	run = find_kind(argv[1]);
	share_init(argv[3]);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (n = 0; n < atoi(argv[2]); n++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(run(NULL));
	}
	usleep(500000);
	puts("ready");
	fflush(stdout);
	do {
		began = share_now();
		__atomic_store_n(&share_end->bytes, 0, __ATOMIC_RELAXED);
		sigwait(&set, &sig);
	} while (sig == SIGUSR1);
	bytes = __atomic_load_n(&share_end->bytes, __ATOMIC_RELAXED);
	ns = share_now() - began;
	__atomic_store_n(&share_end->enough, true, __ATOMIC_RELAXED);
	while (wait(&status) > 0)
		failed |= status;
	printf("{\"bytes\": %llu, \"ns\": %llu}\n", bytes, ns);
	return !!failed;
}
