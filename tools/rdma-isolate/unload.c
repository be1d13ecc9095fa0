// SPDX-License-Identifier: GPL-2.0
/*
 * Unloads the module, or says who keeps it.
 *
 * A process that has /dev/rdma_isolate open, or a page of it mapped, keeps the module, as
 * does a device that is observed, enabled or draining. Devices are disabled here;
 * processes are only named, before anything is changed. A process that has not read a dump
 * of generic netlink to its end keeps the module as well: it is named when the tool has
 * waited for it in vain.
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

#include <linux/netlink.h>
#include <linux/rdma_isolate.h>

#include "batch.h"
#include "cmd.h"
#include "error.h"
#include "unload.h"

#define NODE	"/dev/" RDMA_ISOLATE_FAMILY_NAME

enum {
	NAME_SIZE = RDMA_ISOLATE_DEV_NAME_MAX + 1,
	/*
	 * A dump of another program holds the module while it runs, and some programs ask all
	 * the time: 500 times 20 ms.
	 */
	TRIES = 500,
	PAUSE_MS = 20,
};

/* A file system that does not answer is not asked. */
static bool is_node(const char *path, dev_t node)
{
	struct statx st;

	return !statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) &&
	       S_ISCHR(st.stx_mode) &&
	       makedev(st.stx_rdev_major, st.stx_rdev_minor) == node;
}

/* Does a directory of the process lead to the device node, whatever its path is? */
static bool leads_to(const char *pid, const char *dir, dev_t node)
{
	char pattern[64];
	bool found = false;
	glob_t links;
	size_t i;

	snprintf(pattern, sizeof(pattern), "/proc/%.20s/%s/*", pid, dir);
	if (!glob(pattern, GLOB_NOSORT, NULL, &links))
		for (i = 0; i < links.gl_pathc && !found; i++)
			found = is_node(links.gl_pathv[i], node);
	globfree(&links);
	return found;
}

static bool has_socket(const char *pid, unsigned long inode)
{
	char pattern[64], is[64], name[64];
	bool found = false;
	glob_t links;
	ssize_t len;
	size_t i;

	snprintf(name, sizeof(name), "socket:[%lu]", inode);
	snprintf(pattern, sizeof(pattern), "/proc/%.20s/fd/*", pid);
	if (!glob(pattern, GLOB_NOSORT, NULL, &links))
		for (i = 0; i < links.gl_pathc && !found; i++) {
			len = readlink(links.gl_pathv[i], is, sizeof(is));
			found = len == (ssize_t)strlen(name) && !memcmp(is, name, len);
		}
	globfree(&links);
	return found;
}

/* Has the process begun a dump of generic netlink, and not read it to its end? */
static bool has_unread_dump(const char *pid)
{
	unsigned int protocol, dumps;
	char path[64], line[256];
	unsigned long inode;
	bool found = false;
	FILE *sockets;

	snprintf(path, sizeof(path), "/proc/%.20s/net/netlink", pid);
	sockets = fopen(path, "re");
	while (sockets && !found && fgets(line, sizeof(line), sockets))
		found = sscanf(line, "%*s %u %*s %*s %*s %*s %u %*s %*s %lu", &protocol,
			       &dumps, &inode) == 3 &&
			protocol == NETLINK_GENERIC && dumps && has_socket(pid, inode);
	if (sockets)
		fclose(sockets);
	return found;
}

/* A process may have given itself any name, with commands to the terminal in it. */
static void tell_process(const char *pid, const char *how)
{
	char path[64], comm[32] = "?", *c;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	file = fopen(path, "re");
	if (file) {
		if (fgets(comm, sizeof(comm), file))
			comm[strcspn(comm, "\n")] = 0;
		fclose(file);
	}
	for (c = comm; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	error("process %s (%s) has %s: end it first", pid, comm, how);
}

/* How many processes keep the module, after naming each */
static unsigned int tell_processes(bool waited)
{
	unsigned int n = 0;
	struct dirent *entry;
	struct stat st;
	DIR *proc;

	if (stat(NODE, &st))
		return 0;
	proc = opendir("/proc");
	while (proc && (entry = readdir(proc))) {
		if (!isdigit(entry->d_name[0]))
			continue;
		if (leads_to(entry->d_name, "fd", st.st_rdev))
			tell_process(entry->d_name, NODE " open");
		else if (leads_to(entry->d_name, "map_files", st.st_rdev))
			tell_process(entry->d_name, NODE " mapped");
		else if (waited && has_unread_dump(entry->d_name))
			tell_process(entry->d_name, "not read a netlink dump to its end");
		else
			continue;
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

/* The first one that is not idle */
static void take_name(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	char *name = data;

	(void)nlh;
	if (*name || !attrs[RDMA_ISOLATE_A_DEV_DEV] || !attrs[RDMA_ISOLATE_A_DEV_STATE] ||
	    mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_STATE]) == RISO_DEV_IDLE)
		return;
	snprintf(name, NAME_SIZE, "%s",
		 mnl_attr_get_str(attrs[RDMA_ISOLATE_A_DEV_DEV]));
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

/* One after the other, until none is left */
static int disable_all(void)
{
	struct nl *nl = nl_open();
	char name[NAME_SIZE];
	int err;

	if (!nl)
		return CMD_REFUSED;
	do {
		*name = 0;
		nl_request(nl, RDMA_ISOLATE_CMD_DEV_GET, true);
		err = nl_send(nl, &name_set_dev, take_name, name);
		if (!err && *name)
			err = disable_dev(name);
	} while (!err && *name);
	nl_close(nl);
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
	if (tell_processes(false) + tell_modules()) {
		error("nothing was changed");
		return CMD_REFUSED;
	}
	if (disable_all() != CMD_DONE)
		return CMD_REFUSED;
	if (delete_module())
		return CMD_DONE;
	err = errno;
	tell_processes(true);
	tell_modules();
	error("the devices are disabled, but the module cannot be unloaded: %s",
	      strerror(err));
	return CMD_REFUSED;
}
