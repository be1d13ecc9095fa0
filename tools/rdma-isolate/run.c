// SPDX-License-Identifier: GPL-2.0
/*
 * Runs a program with the verbs shim, so that it takes part in the shares of its RDMA
 * devices.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cmd.h"
#include "error.h"
#include "run.h"

/* As env(1) and others have them. */
enum { RUN_NOT_EXECUTED = 126, RUN_NOT_FOUND = 127 };

#define SHIM	"librdma_isolate.so"

/* Where it lies beside this tool: installed, or in the source tree. */
static const char * const places[] = {
	"../lib/rdma-isolate/" SHIM, "../../userspace/shim/" SHIM, NULL,
};

bool find_beside(const char * const *place, char *path)
{
	char self[PATH_MAX], file[2 * PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return false;
	self[len] = 0;
	*strrchr(self, '/') = 0;
	for (; *place; place++) {
		snprintf(file, sizeof(file), "%s/%s", self, *place);
		if (realpath(file, path))
			return true;
	}
	return false;
}

static bool is_class(const char *word)
{
	unsigned int i;

	for (i = 0; i < name_class.n; i++)
		if (!strcmp(name_class.values[i].name, word))
			return true;
	return false;
}

/* The file that execvp() executes */
static bool find_program(const char *name, char *path, struct stat *st)
{
	const char *dirs = strchr(name, '/') ? "" : getenv("PATH") ?: "/bin:/usr/bin";
	int len;

	for (;; dirs += len + 1) {
		len = strcspn(dirs, ":");
		snprintf(path, PATH_MAX, "%.*s%s%s", len, dirs, len ? "/" : "", name);
		if (!access(path, X_OK) && !stat(path, st) && S_ISREG(st->st_mode))
			return true;
		if (!dirs[len])
			return false;
	}
}

/* Of a script, only the rights of its interpreter count. */
static bool is_script(const char *path)
{
	char start[2] = "";
	FILE *file = fopen(path, "re");

	if (!file)
		return false;
	if (fread(start, sizeof(start), 1, file) != 1)
		*start = 0;
	fclose(file);
	return start[0] == '#' && start[1] == '!';
}

bool run_is_secure(const char *name, uid_t uid, gid_t gid)
{
	char path[PATH_MAX];
	struct stat st;

	if (!find_program(name, path, &st) || is_script(path))
		return false;
	if ((st.st_mode & S_ISUID) && st.st_uid != uid)
		return true;
	/* Where the group may not execute the file, S_ISGID is about locks. */
	if ((st.st_mode & 02010) == 02010 && st.st_gid != gid)
		return true;
	return uid && getxattr(path, "security.capability", NULL, 0) > 0;
}

int run_program(int argc, char **argv)
{
	char shim[PATH_MAX], list[3 * PATH_MAX];
	const char *class = NULL, *others = getenv("LD_PRELOAD");

	if (argc > 2 && !strcmp(argv[1], "--class")) {
		class = argv[2];
		if (!is_class(class))
			return usage_error("class is latency, throughput or bandwidth, not \"%s\"",
					   class);
		argc -= 2;
		argv += 2;
	}
	if (argc < 3 || strcmp(argv[1], "--"))
		return usage_error("run takes [--class CLASS] -- PROGRAM [ARGUMENT]...");
	if (!find_beside(places, shim)) {
		error("%s is not where \"make install\" puts it, ../lib/rdma-isolate",
		      SHIM);
		return CMD_REFUSED;
	}
	if (snprintf(list, sizeof(list), "%s%s%s", shim, others ? ":" : "",
		     others ? others : "") >= (int)sizeof(list)) {
		error("LD_PRELOAD is too long");
		return CMD_REFUSED;
	}
	setenv("LD_PRELOAD", list, 1);
	setenv("NCCL_IBVERBS_LIB", shim, 1);
	if (class)
		setenv("RDMA_ISOLATE_CLASS", class, 1);
	if (run_is_secure(argv[2], getuid(), getgid()))
		error("warning: %s is setuid or setgid, or has capabilities: the shim is not used",
		      argv[2]);
	execvp(argv[2], argv + 2);
	error("%s: %s", argv[2], strerror(errno));
	return errno == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTED;
}
