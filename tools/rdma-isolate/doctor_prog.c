// SPDX-License-Identifier: GPL-2.0
/*
 * The checks of programs that have RDMA devices open, by what is mapped into them, and by
 * why the module does not hold their queue pairs.
 */
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/rdma_isolate.h>

#include "doctor.h"

enum {
	NAME_LEN = 64,
	PATH_LEN = 512,
	TEXT_LEN = 320,
	/* Reasons for which what is mapped into a program tells more */
	BY_MAPS = 1 << RISO_REASON_USER_QP | 1 << RISO_REASON_SHIM_LIMIT,
};

/* Reasons that a program with the shim may have, each with what to do */
static const struct {
	uint32_t reason;
	const char *fault;
	const char *fix;
} lacks[] = {
	{
		RISO_REASON_NO_PLACE,
		"finds no place: its user, its container or the device has too many programs",
		"end some, or use fewer processes; it asks again when it creates a queue pair"
	},
	{
		RISO_REASON_MEMORY,
		"got no memory for what the shim and the module keep of its queue pairs",
		"raise its limits (ulimit -v, memory.max), and start it anew"
	},
	{
		RISO_REASON_NO_THREAD,
		"could not start the thread that the shim needs",
		"raise the limit of threads of its user or control group (ulimit -u, pids.max)"
	},
	{
		RISO_REASON_NO_CQ_ROOM,
		"has a completion queue without room for what the shim adds",
		"have it create more completion queues, each 8 entries smaller than the device allows"
	},
	{
		RISO_REASON_UNKNOWN_OPCODE,
		"has created a queue pair for operations that the shim does not know",
		"have it create one without FLUSH, ATOMIC_WRITE and what only mlx5dv posts"
	},
};

/**
 * struct mapped - what is mapped into a program
 * @any: there was something to read
 * @shim: the verbs shim
 * @musl: the C library is musl
 * @verbs: file name of its libibverbs, empty if it has none
 * @gpu: file name of a library by which a GPU may post, empty if it has none
 */
struct mapped {
	bool any;
	bool shim;
	bool musl;
	char verbs[NAME_LEN];
	char gpu[NAME_LEN];
};

/* Libraries that let kernels on a GPU post; one may also be linked into another, unseen. */
static const char * const gpu_posters[] = {
	"nvshmem_transport_ibgda", "libdoca_gpunetio", "libgdaki",
};

static bool begins_with(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static void note_file(struct mapped *m, const char *name)
{
	size_t i;

	if (begins_with(name, "librdma_isolate"))
		m->shim = true;
	else if (begins_with(name, "ld-musl-"))
		m->musl = true;
	else if (begins_with(name, "libibverbs.so") || begins_with(name, "libibverbs-"))
		snprintf(m->verbs, sizeof(m->verbs), "%s", name);
	for (i = 0; i < sizeof(gpu_posters) / sizeof(*gpu_posters); i++)
		if (begins_with(name, gpu_posters[i]))
			snprintf(m->gpu, sizeof(m->gpu), "%s", name);
}

static void read_maps(const char *root, uint32_t pid, struct mapped *m)
{
	char path[PATH_LEN], *line = NULL, *file;
	size_t size = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/maps", root, pid);
	maps = fopen(path, "r");
	while (maps && getline(&line, &size, maps) > 0) {
		m->any = true;
		line[strcspn(line, "\n")] = 0;
		file = strrchr(line, '/');
		if (file)
			note_file(m, file + 1);
	}
	free(line);
	if (maps)
		fclose(maps);
}

static void read_comm(const char *root, uint32_t pid, char *comm)
{
	char path[PATH_LEN];
	FILE *file;

	snprintf(comm, NAME_LEN, "?");
	snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/comm", root, pid);
	file = fopen(path, "r");
	if (!file)
		return;
	if (fgets(comm, NAME_LEN, file))
		comm[strcspn(comm, "\n")] = 0;
	fclose(file);
}

/* The name of the linker's own, not of a copy that a package has renamed */
static bool is_usual(const char *verbs)
{
	return begins_with(verbs, "libibverbs.so");
}

static const char *find_fault(const struct mapped *m, bool ungoverned, const char **fix)
{
	*fix = "use an image with glibc 2.17 or newer, or let a rule give it class latency";
	if (ungoverned && m->musl)
		return "is linked with musl, into which the shim cannot be loaded";
	*fix = "link it with libibverbs.so.1 and start it by \"rdma-isolate run\"";
	if (!*m->verbs)
		return "has an RDMA device open without libibverbs.so: is it statically linked?";
	*fix = "start it by \"rdma-isolate run\", or let a rule give it class latency";
	if (ungoverned && !m->shim)
		return is_usual(m->verbs) ? "runs without the shim" :
		       "runs without the shim, and has a libibverbs of its own";
	*fix = "have it use the system's libibverbs.so.1; RDMA_ISOLATE_DEBUG=1 says more";
	if (ungoverned && !is_usual(m->verbs))
		return "has a libibverbs of its own, which the shim may not have found";
	*fix = "give it /dev/rdma_isolate, or start it anew; else \"flow show\" has the reason";
	return ungoverned ? "has queue pairs that the shim does not hold" : NULL;
}

static void tell_lacks(const char *comm, uint32_t pid, uint32_t reasons, doctor_fn tell,
		       void *data)
{
	char found[TEXT_LEN];
	size_t i;

	for (i = 0; i < sizeof(lacks) / sizeof(*lacks); i++) {
		if (!(reasons & 1U << lacks[i].reason))
			continue;
		snprintf(found, sizeof(found), "%s (process %" PRIu32 ") %s", comm, pid,
			 lacks[i].fault);
		tell("program", VERDICT_HINT, found, lacks[i].fix, data);
	}
}

static void check_program(const char *root, uint32_t pid, uint32_t reasons, doctor_fn tell,
			  void *data)
{
	char comm[NAME_LEN], found[TEXT_LEN];
	const char *fault, *fix;
	struct mapped m = {};

	read_maps(root, pid, &m);
	/* It has ended, or only root may look. */
	if (!m.any)
		return;
	read_comm(root, pid, comm);
	fault = find_fault(&m, reasons & BY_MAPS, &fix);
	if (fault) {
		snprintf(found, sizeof(found), "%s (process %" PRIu32 ", %s) %s", comm, pid,
			 *m.verbs ? m.verbs : "no libibverbs", fault);
		tell("program", VERDICT_HINT, found, fix, data);
	}
	tell_lacks(comm, pid, reasons, tell, data);
	if (*m.gpu) {
		snprintf(found, sizeof(found),
			 "%s (process %" PRIu32 ") has %s: a GPU may post, which nobody holds",
			 comm, pid, m.gpu);
		tell("program", VERDICT_HINT, found,
		     "have the program's own processors post (NVSHMEM_IB_ENABLE_IBGDA=0 for nvshmem)",
		     data);
	}
}

static bool is_verbs_file(const char *link)
{
	char target[NAME_LEN];
	ssize_t len = readlink(link, target, sizeof(target) - 1);

	if (len < 0)
		return false;
	target[len] = 0;
	return begins_with(target, "/dev/infiniband/uverbs");
}

void doctor_programs(const char *root, const struct doctor_processes *processes,
		     doctor_fn tell, void *data)
{
	uint32_t last = 0, pid, reasons;
	char path[PATH_LEN];
	glob_t found;
	size_t i, k;

	snprintf(path, sizeof(path), "%s/proc/[0-9]*/fd/*", root);
	if (glob(path, 0, NULL, &found))
		return;
	/* The files of a process follow each other. */
	for (i = 0; i < found.gl_pathc; i++) {
		pid = strtoul(found.gl_pathv[i] + strlen(root) + strlen("/proc/"), NULL, 10);
		if (pid == last || !is_verbs_file(found.gl_pathv[i]))
			continue;
		last = pid;
		reasons = 0;
		for (k = 0; k < processes->n; k++)
			if (processes->process[k].pid == pid)
				reasons = processes->process[k].reasons;
		check_program(root, pid, reasons, tell, data);
	}
	globfree(&found);
}
