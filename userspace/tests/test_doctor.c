// SPDX-License-Identifier: GPL-2.0
/*
 * What tools/rdma-isolate doctor makes of a host, in trees of files that look like one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/rdma_isolate.h>

#include "doctor.h"

static char root[32];
static char report[4096];
static char fixes[4096];
static char finds[4096];

static const char * const clock_file =
	"/sys/devices/system/clocksource/clocksource0/current_clocksource";

/* A file with a line, and its directories */
static void put(const char *name, const char *line)
{
	char path[512];
	FILE *file;
	char *at;

	snprintf(path, sizeof(path), "%s%s", root, name);
	for (at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		mkdir(path, 0755);
		*at = '/';
	}
	file = fopen(path, "w");
	assert_non_null(file);
	fprintf(file, "%s\n", line);
	fclose(file);
}

static void tell(const char *check, enum verdict verdict, const char *found,
		 const char *fix, void *data)
{
	size_t len = strlen(report), fixes_len = strlen(fixes), finds_len = strlen(finds);

	(void)data;
	assert_true(*found);
	/* what is not as it should be can be mended */
	assert_true(verdict == VERDICT_OK || fix);
	snprintf(report + len, sizeof(report) - len, "[%s %d]", check, verdict);
	snprintf(finds + finds_len, sizeof(finds) - finds_len, "[%s]", found);
	if (fix)
		snprintf(fixes + fixes_len, sizeof(fixes) - fixes_len, "[%s: %s]", check, fix);
}

static void begin(void)
{
	report[0] = 0;
	fixes[0] = 0;
	finds[0] = 0;
}

static void expect(const char *want)
{
	begin();
	doctor_host(root, "6.1.0", tell, NULL);
	if (!strstr(report, want))
		fail_msg("%s is not in %s", want, report);
}

static int make_root(void **state)
{
	(void)state;
	/* mkdtemp() wants six of these at the end */
	snprintf(root, sizeof(root), "/tmp/test_doctor.%s", "XXXXXX");
	return !mkdtemp(root);
}

static int remove_root(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return system(command);
}

static void a_good_host(void **state)
{
	(void)state;
	put("/sys/module/rdma_isolate/refcnt", "0");
	put("/sys/module/ib_core/refcnt", "0");
	put("/lib/modules/6.1.0/kernel/drivers/infiniband/core/ib_core.ko", "");
	put("/sys/kernel/security/lockdown", "[none] integrity confidentiality");
	put("/sys/kernel/tracing/events/enable", "0");
	put("/sys/kernel/btf/vmlinux", "");
	put(clock_file, "tsc");
	put("/sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0");
	expect("[module 0][ib_core 0][lockdown 0][tracing 0][btf 0][clock 0][idle 0]");
}

static void expect_fix(const char *want)
{
	expect("[module 2]");
	if (!strstr(fixes, want))
		fail_msg("%s is not in %s", want, fixes);
}

/* As after the kernel was updated: there is a module, but for another kernel. */
static void no_module(void **state)
{
	(void)state;
	put("/lib/modules/5.10.0/modules.dep", "updates/rdma_isolate.ko:");
	put("/lib/modules/6.1.0/modules.dep", "updates/other_rdma_isolate.ko: rdma_isolate.ko");
	expect_fix("install linux-headers-6.1.0, then in the sources: make install KVER=6.1.0]");
	put("/lib/modules/6.1.0/build/Makefile", "");
	expect_fix("[module: in the sources: make install KVER=6.1.0]");
	put("/var/lib/dkms/rdma_isolate/0.1/source/dkms.conf", "");
	expect_fix("[module: dkms autoinstall -k 6.1.0, and see dkms status]");
}

static void expect_modprobe(const char *line)
{
	put("/lib/modules/6.1.0/modules.dep", line);
	expect_fix("[module: modprobe rdma_isolate]");
}

static void not_loaded(void **state)
{
	(void)state;
	expect_modprobe("kernel/a.ko: kernel/b.ko\nupdates/rdma_isolate.ko: kernel/ib_core.ko");
	expect_modprobe("updates/dkms/rdma_isolate.ko.xz: kernel/ib_core.ko.xz");
	expect_modprobe("extra/rdma_isolate.ko.zst:");
	expect_modprobe("rdma_isolate.ko.gz:");
}

static void nothing_there(void **state)
{
	(void)state;
	expect("[module 2][ib_core 0][lockdown 0][tracing 1][btf 1][clock 1][idle 0]");
}

static void vendors(void **state)
{
	(void)state;
	static const char * const places[] = {
		"updates/ib_core.ko:", "updates/dkms/ib_core.ko.xz: kernel/a.ko.xz",
		"extra/ib_core.ko.zst:", "extra/mlnx/drivers/infiniband/core/ib_core.ko:",
		"weak-updates/mlnx/core/ib_core.ko:",
	};
	unsigned int i;

	put("/lib/modules/5.10.0/modules.dep", "updates/dkms/ib_core.ko:");
	put("/lib/modules/6.1.0/modules.dep", "kernel/drivers/infiniband/core/ib_core.ko.xz:");
	expect("[ib_core 0]");
	put("/lib/modules/6.1.0/modules.dep", "updates/other_ib_core.ko: kernel/ib_core.ko");
	expect("[ib_core 0]");
	for (i = 0; i < sizeof(places) / sizeof(*places); i++) {
		put("/lib/modules/6.1.0/modules.dep", places[i]);
		expect("[ib_core 2]");
	}
}

static void vendors_layer(void **state)
{
	(void)state;
	put("/sys/module/mlx_compat/refcnt", "1");
	expect("[ib_core 2]");
}

static void lockdown(void **state)
{
	(void)state;
	put("/sys/kernel/security/lockdown", "none [integrity] confidentiality");
	expect("[lockdown 2]");
	/* it was let in */
	put("/sys/module/rdma_isolate/refcnt", "0");
	expect("[lockdown 0]");
}

static void a_slow_clock(void **state)
{
	(void)state;
	put(clock_file, "hpet");
	expect("[clock 1]");
}

static void deep_sleep(void **state)
{
	(void)state;
	put("/sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "20");
	expect("[idle 0]");
	put("/sys/devices/system/cpu/cpu0/cpuidle/state2/latency", "133");
	put("/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "0");
	expect("[idle 1]");
	put("/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1");
	expect("[idle 0]");
}

static void expect_dev(const struct doctor_dev *dev, const char *want)
{
	begin();
	doctor_dev(dev, tell, NULL);
	assert_string_equal(report, want);
}

static void a_device(void **state)
{
	const struct doctor_dev good = {
		.name = "d", .calibrated = true, .latency_flows = 1, .chunk = 4096,
		.late_ns = 100000, .safe_util = 1000, .pace = { 500, 1000 },
	};
	struct doctor_dev dev = good;

	(void)state;
	expect_dev(&dev, "");
	dev.calibrated = false;
	expect_dev(&dev, "[max-rate 1]");
	dev = good;
	dev.latency_flows = 0;
	expect_dev(&dev, "[latency 1]");
	/* not by comm, which any program can take */
	assert_string_equal(fixes,
			    "[latency: rdma-isolate rule add dev d cgroup PATH class latency]");
	dev = good;
	dev.chunk = 0;
	expect_dev(&dev, "[chunk-bytes 1]");
	dev = good;
	dev.late_ns++;
	expect_dev(&dev, "[timer 1]");
	dev = good;
	dev.pace[0]--;
	expect_dev(&dev, "[pace 1]");
	dev.pace[0] = 1000;
	dev.pace[1] = 0;
	expect_dev(&dev, "[pace 1]");
}

/* A process with a file open, and what is mapped into it */
static void put_program(int pid, const char *file, const char *maps)
{
	char name[64], path[512];

	snprintf(name, sizeof(name), "/proc/%d/comm", pid);
	put(name, "prog");
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	put(name, maps);
	/* For its directory */
	snprintf(name, sizeof(name), "/proc/%d/fd/.0", pid);
	put(name, "");
	snprintf(path, sizeof(path), "%s/proc/%d/fd/3", root, pid);
	unlink(path);
	assert_int_equal(symlink(file, path), 0);
}

/* What the doctor says of process 7, with what is mapped into it */
static void look_at_program(const char *maps, uint32_t reasons)
{
	struct doctor_process process = { .pid = 7, .reasons = reasons };
	const struct doctor_processes all = { &process, reasons != 0 };

	put_program(7, "/dev/infiniband/uverbs0", maps);
	begin();
	doctor_programs(root, &all, tell, NULL);
}

/* Its queue pairs are not governed, or are; @want NULL for no word of it */
static void expect_program(const char *maps, bool ungoverned, const char *want)
{
	look_at_program(maps, ungoverned ? 1U << RISO_REASON_USER_QP : 0);
	if (!want)
		assert_string_equal(report, "");
	else if (!strstr(finds, want))
		fail_msg("%s is not in %s", want, finds);
}

#define VERBS	"7f00-7f01 r-xp 0 08:01 9 /usr/lib/libibverbs.so.1.14.44.0\n"
#define BUNDLED	"7f00-7f01 r-xp 0 08:01 9 /py/torch.libs/libibverbs-7f3ad3f8.so.1.14.44\n"
#define MUSL	"7f04-7f05 r-xp 0 08:01 7 /lib/ld-musl-x86_64.so.1\n"
#define SHIM	"7f02-7f03 r-xp 0 08:01 8 /usr/lib/librdma_isolate.so\n"

static void a_program(void **state)
{
	(void)state;
	expect_program(VERBS SHIM, false, NULL);
	expect_program(BUNDLED SHIM, false, NULL);
	/* A rule protects it, or it has no queue pair. */
	expect_program(VERBS, false, NULL);
	expect_program(VERBS, true,
		       "[prog (process 7, libibverbs.so.1.14.44.0) runs without the shim]");
	expect_program(BUNDLED, true, "libibverbs-7f3ad3f8.so.1.14.44) runs without the shim, and");
	expect_program(BUNDLED SHIM, true, "which the shim may not have found");
	/* As in a container without the module's file */
	expect_program(VERBS SHIM, true, "has queue pairs that the shim does not hold");
	expect_program(SHIM "7f04-7f05 r-xp 0 08:01 7 /bin/prog", false, "statically linked");
	expect_program(MUSL VERBS, true, "musl");
	expect_program(MUSL VERBS, false, NULL);
	expect_program(VERBS SHIM "7f0-7f1 r-xp 0 0:0 1 /l/nvshmem_transport_ibgda.so.3", false,
		       "nvshmem_transport_ibgda.so.3: a GPU may post");
	expect_program("", true, "no libibverbs");
}

/* One line for each reason, and no word of the shim, which the program has. */
static void a_program_that_lacks(void **state)
{
	static const struct {
		uint32_t reason;
		const char *found;
		const char *fix;
	} cases[] = {
		{ RISO_REASON_NO_PLACE, "[prog (process 7) finds no place:", "end some" },
		{ RISO_REASON_MEMORY, "[prog (process 7) got no memory", "memory.max" },
		{ RISO_REASON_NO_THREAD, "[prog (process 7) could not start", "pids.max" },
		{ RISO_REASON_NO_CQ_ROOM, "[prog (process 7) has a completion queue",
		  "completion queues" },
		{ RISO_REASON_UNKNOWN_OPCODE, "[prog (process 7) has created", "FLUSH" },
	};
	uint32_t all = 0;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		all |= 1U << cases[i].reason;
		look_at_program(VERBS SHIM, 1U << cases[i].reason);
		assert_string_equal(report, "[program 1]");
		assert_non_null(strstr(finds, cases[i].found));
		assert_non_null(strstr(fixes, cases[i].fix));
	}
	look_at_program(VERBS SHIM, all);
	assert_string_equal(report, "[program 1][program 1][program 1][program 1][program 1]");
	look_at_program(VERBS SHIM, all | 1U << RISO_REASON_SHIM_LIMIT);
	assert_string_equal(report, "[program 1][program 1][program 1][program 1][program 1]"
			    "[program 1]");
	/* Nothing is to be done about these. */
	look_at_program(VERBS SHIM, 1U << RISO_REASON_QP_TYPE);
	assert_string_equal(report, "");
}

/* Neither those that have no device open, nor one that has ended. */
static void other_programs(void **state)
{
	const struct doctor_processes none = {};

	(void)state;
	put_program(8, "/dev/null", "7f04-7f05 r-xp 0 08:01 7 /bin/prog");
	put_program(9, "/dev/infiniband/uverbs0", VERBS);
	put("/proc/self/fd/3", "");
	begin();
	doctor_programs(root, &none, tell, NULL);
	assert_string_equal(report, "");
}

/* What only root may see need not be mounted. */
static void hidden_from_users(void **state)
{
	char path[64];
	int status;
	pid_t pid;

	(void)state;
	put("/sys/kernel/tracing/events/enable", "0");
	chmod(root, 0755);
	snprintf(path, sizeof(path), "%s/sys/kernel/tracing", root);
	assert_int_equal(chmod(path, geteuid() ? 0 : 0700), 0);
	pid = fork();
	if (!pid) {
		if (!geteuid() && setuid(65534))
			_exit(1);
		begin();
		doctor_host(root, "6.1.0", tell, NULL);
		_exit(!strstr(report, "[tracing 0]"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(chmod(path, 0700), 0);
	assert_int_equal(status, 0);
}

#define WITH_ROOT(test) \
	cmocka_unit_test_setup_teardown(test, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_ROOT(a_good_host),
		WITH_ROOT(nothing_there),
		WITH_ROOT(no_module),
		WITH_ROOT(not_loaded),
		WITH_ROOT(vendors),
		WITH_ROOT(vendors_layer),
		WITH_ROOT(lockdown),
		WITH_ROOT(a_slow_clock),
		WITH_ROOT(deep_sleep),
		WITH_ROOT(hidden_from_users),
		cmocka_unit_test(a_device),
		WITH_ROOT(a_program),
		WITH_ROOT(a_program_that_lacks),
		WITH_ROOT(other_programs),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
