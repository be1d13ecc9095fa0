// SPDX-License-Identifier: GPL-2.0
/*
 * The checks of the host that need nothing but its files.
 */
#include <errno.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"

#define MODULE "rdma_isolate"

enum {
	LINE_LEN = 256,
	PATH_LEN = 512,
	/* A CPU that sleeps so deeply wakes up later than a small message takes. */
	IDLE_LATENCY_US = 20,
};

struct host {
	const char *root;
	doctor_fn tell;
	void *data;
};

static void path_of(const struct host *host, char *path, const char *name)
{
	snprintf(path, PATH_LEN, "%s%s", host->root, name);
}

static bool is_there(const struct host *host, const char *name)
{
	char path[PATH_LEN];

	path_of(host, path, name);
	return !access(path, F_OK);
}

/* Only root may look. */
static bool is_hidden(const struct host *host, const char *name)
{
	return !is_there(host, name) && errno == EACCES;
}

/* The first line of a file, without its end; false if there is none */
static bool first_line(const char *path, char *line)
{
	FILE *file = fopen(path, "r");
	bool good;

	if (!file)
		return false;
	good = fgets(line, LINE_LEN, file);
	fclose(file);
	if (good)
		line[strcspn(line, "\n")] = 0;
	return good;
}

static bool read_line(const struct host *host, const char *name, char *line)
{
	char path[PATH_LEN];

	path_of(host, path, name);
	return first_line(path, line);
}

/* Does any file match? */
__attribute__((format(printf, 2, 3)))
static bool any(const struct host *host, const char *format, ...)
{
	char name[PATH_LEN], path[PATH_LEN];
	va_list args;
	glob_t found;
	bool match;

	va_start(args, format);
	vsnprintf(name, sizeof(name), format, args);
	va_end(args);
	path_of(host, path, name);
	match = !glob(path, 0, NULL, &found);
	globfree(&found);
	return match;
}

/* What is as it should be needs no fix. */
static void judge(const struct host *host, const char *check,
		  enum verdict verdict, const char *found, const char *fix)
{
	host->tell(check, verdict, found, verdict == VERDICT_OK ? NULL : fix,
		   host->data);
}

/*
 * Where modprobe would find a module: depmod has listed it with directory and ending. @where has
 * LINE_LEN bytes, and is empty if it would find none.
 */
static void find_module(const struct host *host, const char *release, const char *module,
			char *where)
{
	char name[LINE_LEN], path[PATH_LEN];
	size_t size = 0, len = strlen(module);
	char *line = NULL, *file;
	FILE *list;

	*where = 0;
	snprintf(name, sizeof(name), "/lib/modules/%s/modules.dep", release);
	path_of(host, path, name);
	list = fopen(path, "r");
	while (list && !*where && getline(&line, &size, list) > 0) {
		line[strcspn(line, ":")] = 0;
		file = strrchr(line, '/');
		file = file ? file + 1 : line;
		if (!strncmp(file, module, len) && !strncmp(file + len, ".ko", 3))
			snprintf(where, LINE_LEN, "%s", line);
	}
	free(line);
	if (list)
		fclose(list);
}

static void tell_not_installed(const struct host *host, const char *release)
{
	char found[LINE_LEN], fix[LINE_LEN], name[LINE_LEN];
	int len = 0;

	snprintf(found, sizeof(found),
		 "there is no " MODULE " for the kernel that runs, %s", release);
	snprintf(name, sizeof(name), "/lib/modules/%s/build/Makefile", release);
	if (!is_there(host, name))
		len = snprintf(fix, sizeof(fix), "install linux-headers-%s, then ",
			       release);
	if (is_there(host, "/var/lib/dkms/" MODULE))
		snprintf(fix + len, sizeof(fix) - len,
			 "dkms autoinstall -k %s, and see dkms status", release);
	else
		snprintf(fix + len, sizeof(fix) - len,
			 "in the sources: make install KVER=%s", release);
	judge(host, "module", VERDICT_BAD, found, fix);
}

static void check_module(const struct host *host, const char *release)
{
	bool loaded = is_there(host, "/sys/module/" MODULE);
	char where[LINE_LEN];

	find_module(host, release, MODULE, where);
	if (loaded || *where)
		judge(host, "module", loaded ? VERDICT_OK : VERDICT_BAD,
		      loaded ? MODULE " is loaded" : MODULE " is not loaded",
		      "modprobe " MODULE);
	else
		tell_not_installed(host, release);
}

static void check_core(const struct host *host, const char *release)
{
	char where[LINE_LEN];
	bool other;

	find_module(host, release, "ib_core", where);
	other = is_there(host, "/sys/module/mlx_compat") ||
		(*where && strncmp(where, "kernel/", strlen("kernel/")));
	judge(host, "ib_core", other ? VERDICT_BAD : VERDICT_OK,
	      other ? "the RDMA core is a vendor's, not the kernel's" :
		      "the RDMA core is the kernel's",
	      "remove the vendor's packages (for MLNX_OFED: ofed_uninstall.sh) and reboot");
}

static void check_lockdown(const struct host *host)
{
	bool loaded = is_there(host, "/sys/module/" MODULE);
	char line[LINE_LEN];
	bool locked;

	locked = read_line(host, "/sys/kernel/security/lockdown", line) &&
		 !strstr(line, "[none]");
	judge(host, "lockdown", locked && !loaded ? VERDICT_BAD : VERDICT_OK,
	      locked ? "the kernel takes signed modules only" :
		       "unsigned modules may be loaded",
	      "sign the module with a key that mokutil --import has enrolled");
}

static void check_tracing(const struct host *host)
{
	bool tracing = any(host, "/sys/kernel/tracing/events") ||
		       any(host, "/sys/kernel/debug/tracing/events");
	bool btf = is_there(host, "/sys/kernel/btf/vmlinux");

	if (!tracing && (is_hidden(host, "/sys/kernel/tracing/events") ||
			 is_hidden(host, "/sys/kernel/debug/tracing/events")))
		judge(host, "tracing", VERDICT_OK, "only root may read tracepoints", NULL);
	else
		judge(host, "tracing", tracing ? VERDICT_OK : VERDICT_HINT,
		      tracing ? "tracepoints can be read" :
				"tracepoints cannot be read",
		      "mount -t tracefs none /sys/kernel/tracing");
	judge(host, "btf", btf ? VERDICT_OK : VERDICT_HINT,
	      btf ? "the kernel describes its types" :
		    "the kernel does not describe its types (BTF)",
	      "use a kernel with CONFIG_DEBUG_INFO_BTF for bpftrace");
}

static void check_clock(const struct host *host)
{
	static const char * const good[] = {
		"tsc", "kvm-clock", "hyperv_clocksource_tsc_page",
		"arch_sys_counter", "timebase",
	};
	char found[LINE_LEN + 32], line[LINE_LEN];
	enum verdict verdict = VERDICT_HINT;
	unsigned int i;

	if (!read_line(host, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		       line))
		snprintf(line, sizeof(line), "unknown");
	snprintf(found, sizeof(found), "the clock source is %s", line);
	for (i = 0; i < sizeof(good) / sizeof(*good); i++)
		if (!strcmp(line, good[i]))
			verdict = VERDICT_OK;
	judge(host, "clock", verdict, found,
	      "see why the kernel does not trust the TSC: dmesg | grep -i clocksource");
}

/* The deepest state that is allowed, in us; 0 if none is known */
static unsigned long idle_latency(const struct host *host)
{
	char path[PATH_LEN], line[LINE_LEN];
	unsigned long us, worst = 0;
	glob_t found;
	size_t i;

	path_of(host, path, "/sys/devices/system/cpu/cpu0/cpuidle/state*");
	if (!glob(path, 0, NULL, &found)) {
		for (i = 0; i < found.gl_pathc; i++) {
			snprintf(path, sizeof(path), "%s/disable",
				 found.gl_pathv[i]);
			if (first_line(path, line) && strcmp(line, "0"))
				continue;
			snprintf(path, sizeof(path), "%s/latency",
				 found.gl_pathv[i]);
			us = first_line(path, line) ? strtoul(line, NULL, 10) :
						      0;
			if (us > worst)
				worst = us;
		}
	}
	globfree(&found);
	return worst;
}

static void check_idle(const struct host *host)
{
	unsigned long us = idle_latency(host);
	char found[LINE_LEN];

	snprintf(found, sizeof(found), "idle CPUs wake up within %lu us", us);
	judge(host, "idle", us <= IDLE_LATENCY_US ? VERDICT_OK : VERDICT_HINT,
	      found, "cpupower idle-set -D 20");
}

void doctor_host(const char *root, const char *release, doctor_fn tell,
		 void *data)
{
	const struct host host = { root, tell, data };

	check_module(&host, release);
	check_core(&host, release);
	check_lockdown(&host);
	check_tracing(&host);
	check_clock(&host);
	check_idle(&host);
}
