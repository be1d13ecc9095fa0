// SPDX-License-Identifier: GPL-2.0
/*
 * Unloads the module, or says who keeps it.
 *
 * A process that has /dev/rdma_isolate open keeps the module, as does a device that is
 * observed, enabled or draining. Devices are disabled here; processes are only named,
 * before anything is changed.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <linux/rdma_isolate.h>

#include "batch.h"
#include "cmd.h"
#include "error.h"
#include "unload.h"

#define NODE	"/dev/" RDMA_ISOLATE_FAMILY_NAME

enum {
	NAMES_MAX = 64,
	/* A dump of another program holds the module while it runs: 20 times 100 ms. */
	TRIES = 20,
	PAUSE_MS = 100,
};

/* A file system that does not answer is not asked. */
static bool is_node(const char *path, dev_t node)
{
	struct statx st;

	return !statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) &&
	       S_ISCHR(st.stx_mode) &&
	       makedev(st.stx_rdev_major, st.stx_rdev_minor) == node;
}

/* Does the process have the device node open, under whatever path? */
static bool has_open(const char *pid, dev_t node)
{
	char pattern[64];
	bool found = false;
	glob_t fds;
	size_t i;

	snprintf(pattern, sizeof(pattern), "/proc/%.20s/fd/*", pid);
	if (!glob(pattern, GLOB_NOSORT, NULL, &fds))
		for (i = 0; i < fds.gl_pathc && !found; i++)
			found = is_node(fds.gl_pathv[i], node);
	globfree(&fds);
	return found;
}

static void tell_process(const char *pid)
{
	char path[64], comm[32] = "?";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	file = fopen(path, "re");
	if (file) {
		if (fgets(comm, sizeof(comm), file))
			comm[strcspn(comm, "\n")] = 0;
		fclose(file);
	}
	error("process %s (%s) has " NODE " open: end it first", pid, comm);
}

/* How many processes keep the module, after naming each */
static unsigned int tell_processes(void)
{
	unsigned int n = 0;
	struct dirent *entry;
	struct stat st;
	DIR *proc;

	if (stat(NODE, &st))
		return 0;
	proc = opendir("/proc");
	while (proc && (entry = readdir(proc))) {
		if (!isdigit(entry->d_name[0]) || !has_open(entry->d_name, st.st_rdev))
			continue;
		tell_process(entry->d_name);
		n++;
	}
	if (proc)
		closedir(proc);
	return n;
}

/* How many modules keep it, after naming each */
static unsigned int tell_modules(void)
{
	unsigned int n = 0;
	glob_t found;
	size_t i;

	if (!glob("/sys/module/" RDMA_ISOLATE_FAMILY_NAME "/holders/*", 0, NULL, &found))
		for (i = 0; i < found.gl_pathc; i++, n++)
			error("module %s uses it: unload that first",
			      strrchr(found.gl_pathv[i], '/') + 1);
	globfree(&found);
	return n;
}

struct names {
	unsigned int n;
	char name[NAMES_MAX][RDMA_ISOLATE_DEV_NAME_MAX + 1];
};

/* Those that are not idle */
static void add_name(const struct nlattr * const *attrs,
		     const struct nlmsghdr *nlh, void *data)
{
	struct names *names = data;

	(void)nlh;
	if (names->n == NAMES_MAX || !attrs[RDMA_ISOLATE_A_DEV_NAME] ||
	    !attrs[RDMA_ISOLATE_A_DEV_STATE] ||
	    mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_STATE]) == RISO_DEV_IDLE)
		return;
	snprintf(names->name[names->n++], sizeof(names->name[0]), "%s",
		 mnl_attr_get_str(attrs[RDMA_ISOLATE_A_DEV_NAME]));
}

/* As "dev set" does, which waits and says what it waits for. */
static int disable_dev(const char *dev)
{
	struct printer out = { .file = stdout };
	struct command cmd;
	struct words words;
	char line[128];

	snprintf(line, sizeof(line), "dev set dev \"%s\" mode disable", dev);
	words_split(line, &words);
	return cmd_parse(words.n, words.word, &cmd) == CMD_DONE ?
	       cmd_run(&cmd, &out) : CMD_REFUSED;
}

static int disable_all(void)
{
	struct names names = { };
	struct nl *nl = nl_open();
	unsigned int i;
	int err;

	if (!nl)
		return CMD_REFUSED;
	nl_request(nl, RDMA_ISOLATE_CMD_DEV_GET, true);
	err = nl_send(nl, &name_set_dev, add_name, &names);
	nl_close(nl);
	for (i = 0; i < names.n && !err; i++)
		err = disable_dev(names.name[i]);
	return err ? CMD_REFUSED : CMD_DONE;
}

static bool delete_module(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_MS * 1000000L };
	unsigned int i;

	for (i = 0; i < TRIES; i++) {
		if (!syscall(SYS_delete_module, RDMA_ISOLATE_FAMILY_NAME, O_NONBLOCK))
			return true;
		if (errno != EAGAIN)
			return false;
		nanosleep(&pause, NULL);
	}
	return false;
}

int unload_module(void)
{
	int err;

	if (!nl_module_loaded()) {
		error("module " RDMA_ISOLATE_FAMILY_NAME " is not loaded");
		return CMD_REFUSED;
	}
	if (geteuid()) {
		error("only root may unload the module");
		return CMD_REFUSED;
	}
	if (tell_processes() + tell_modules()) {
		error("nothing was changed");
		return CMD_REFUSED;
	}
	if (disable_all() != CMD_DONE)
		return CMD_REFUSED;
	if (delete_module())
		return CMD_DONE;
	err = errno;
	if (!tell_processes() && !tell_modules())
		error("the devices are disabled, but the module cannot be unloaded: %s",
		      strerror(err));
	return CMD_REFUSED;
}
