// SPDX-License-Identifier: GPL-2.0
/*
 * user_pages DEVICE RATE EVENTS CGROUPS
 *
 * What /dev/rdma_isolate allows and refuses, and that nothing which a process writes to
 * its page gets it more than its share, but names it. DEVICE is enabled with a max-rate
 * of RATE bytes per second and has a latency flow; EVENTS is what "rdma-isolate -j
 * monitor" writes; CGROUPS is where control groups of version 2 are mounted. KTAP on
 * standard output.
 */
#include <err.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kselftest.h"
#include "../share.h"
#include "pages.h"

const char *pages_device, *pages_events, *pages_cgroups;
__u64 pages_rate;
size_t pages_page;

static const struct {
	const char *name;
	bool (*run)(void);
} cases[] = {
	{ "attach", pages_attaching },
	{ "report", pages_reporting },
	{ "many reports", pages_reporting_much },
	{ "reports of many", pages_owing_much },
	{ "many queue pairs, one after another", pages_making_many },
	{ "little changes", pages_changing_little },
	{ "another network namespace", pages_moving_away },
	{ "map", pages_mapping },
	{ "fork", pages_forking },
	{ "passed through a socket", pages_passing },
	{ "closed while a call waits for memory", pages_closing },
	{ "closed before it attaches", pages_closing_before },
	{ "closed again and again", pages_closing_on },
	{ "register", pages_registering },
	{ "register again", pages_asking_again },
	{ "many files", pages_many_files },
	{ "many files of a container", pages_many_files_of_container },
	{ "many places of a user", pages_many_places },
	{ "many places of a container", pages_many_places_of_container },
	{ "many places of root of a container", pages_many_places_of_root },
	{ "many places of one that leaves its container", pages_many_places_of_leaver },
	{ "many places of a user namespace", pages_many_places_of_namespace },
	{ "one that joins anew", pages_joining_anew },
	{ "one that registers without end", pages_registering_on },
	{ "calls without a reason", pages_calling },
	{ "grants", pages_granting },
	{ "posts while idle", pages_idling },
	{ "another clock", pages_timing },
	{ "a small wish", pages_wishing },
	{ "void grants", pages_voiding },
	{ "waiting", pages_waiting },
	{ "a liar", pages_lying },
	{ "a boaster", pages_boasting },
	{ "three without queue pairs that boast", pages_strangers },
	{ "three that claim as much as they can", pages_claiming },
	{ "one that has owed", pages_has_owed },
	{ "one that wants without end", pages_grasping },
	{ "eight that take grants and post nothing", pages_grasping_eight },
	{ "eight that claim as much as they can", pages_claiming_eight },
	{ "one that posts again", pages_waking_up },
	{ "eight of one control group", pages_sharing },
	{ "eight control groups of one user", pages_sharing_by_user },
	{ "eight control groups of one container", pages_sharing_by_container },
	{ "one that unmaps its pages", pages_unmapping },
	{ "a thief", pages_stealing },
	{ "a hoarder", pages_hoarding },
	{ "one that is stopped", pages_stopping },
	{ "200 that are killed", pages_killing },
	{ "200 that are killed, nothing is cut", pages_killing_open },
};

int main(int argc, char **argv)
{
	struct rlimit files = { 16384, 16384 };
	unsigned int i;

	if (argc != 5)
		errx(2, "usage: user_pages DEVICE RATE EVENTS CGROUPS");
	pages_device = argv[1];
	pages_rate = strtoull(argv[2], NULL, 10);
	pages_events = argv[3];
	pages_cgroups = argv[4];
	pages_page = sysconf(_SC_PAGESIZE);
	setrlimit(RLIMIT_NOFILE, &files);
	share_init(pages_device);
	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(cases));
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		ksft_test_result(cases[i].run(), "%s\n", cases[i].name);
	ksft_finished();
}
