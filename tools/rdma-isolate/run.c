// SPDX-License-Identifier: GPL-2.0
/*
 * Runs a program with the verbs shim, so that it takes part in the shares of its RDMA
 * devices.
 */
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <linux/rdma_isolate_user.h>

#include "cmd.h"
#include "error.h"
#include "run.h"

/* As env(1) and others have them. */
enum { RUN_NOT_EXECUTED = 126, RUN_NOT_FOUND = 127 };

#define SHIM	"librdma_isolate.so"
/* For those who open libibverbs by its name */
#define VERBS	"librdma_isolate_verbs.so"

#define WORDS	"[--class CLASS] [--ucx-verbs] [-v] -- PROGRAM [ARGUMENT]..."
#define USAGE	"run takes " WORDS

static const char help[] =
	"rdma-isolate run " WORDS "\n"
	"      --class CLASS  latency, throughput or bandwidth, where a rule says \"choose on\"\n"
	"      --ucx-verbs    have UCX post by libibverbs on adapters of the mlx5 driver\n"
	"      -v, --verbose  say what is set for the program, and what it will lack\n";

/* Where it lies beside this tool: installed, or in the source tree. */
static const char * const places[] = {
	"../lib/rdma-isolate/" SHIM, "../../userspace/shim/" SHIM, NULL,
};

/*
 * What brings programs in that would go around the shim. NCCL posts each slice as one WRITE with
 * immediate data otherwise, which is only cut where a rule says "cut-imm on".
 */
static const struct setting {
	const char *name;
	const char *value;
} nccl[] = {
	{ "NCCL_IB_ADAPTIVE_ROUTING", "1" },
	{ }
};

/* UCX would use queues of the adapter that no function of libibverbs posts to. */
static const struct setting ucx[] = {
	{ "UCX_TLS", "^rc_mlx5,dc_mlx5,ud_mlx5" },
	{ "UCX_IB_MLX5_DEVX", "n" },
	{ }
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

/* Does a dynamic section say that its file is a program, wherever that is loaded? */
static bool says_pie(FILE *file, const Elf64_Phdr *dynamic)
{
	uint64_t left = dynamic->p_filesz;
	Elf64_Dyn entry;

	if (fseek(file, dynamic->p_offset, SEEK_SET))
		return false;
	for (; left >= sizeof(entry); left -= sizeof(entry)) {
		if (fread(&entry, sizeof(entry), 1, file) != 1 || entry.d_tag == DT_NULL)
			return false;
		if (entry.d_tag == DT_FLAGS_1)
			return entry.d_un.d_val & DF_1_PIE;
	}
	return false;
}

/*
 * The path of the dynamic linker that a program asks for; empty if it is static. A dynamic linker
 * asks for none either, and is a library.
 */
static bool read_interpreter(FILE *file, char *path)
{
	Elf64_Phdr part, dynamic = { };
	Elf64_Ehdr head;
	unsigned int i;

	if (fread(&head, sizeof(head), 1, file) != 1 ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	*path = 0;
	for (i = 0; i < head.e_phnum; i++) {
		if (fseek(file, head.e_phoff + i * (long)head.e_phentsize, SEEK_SET) ||
		    fread(&part, sizeof(part), 1, file) != 1)
			return false;
		if (part.p_type == PT_DYNAMIC)
			dynamic = part;
		if (part.p_type != PT_INTERP)
			continue;
		if (part.p_filesz < 2 || part.p_filesz > PATH_MAX ||
		    fseek(file, part.p_offset, SEEK_SET) ||
		    fread(path, part.p_filesz, 1, file) != 1)
			return false;
		path[part.p_filesz - 1] = 0;
		return true;
	}
	return head.e_type == ET_EXEC || says_pie(file, &dynamic);
}

enum run_libc run_find_libc(const char *name)
{
	char path[PATH_MAX], interpreter[PATH_MAX];
	enum run_libc libc = RUN_LIBC_UNKNOWN;
	const char *base;
	struct stat st;
	FILE *file;

	file = find_program(name, path, &st) ? fopen(path, "re") : NULL;
	if (!file)
		return libc;
	if (read_interpreter(file, interpreter)) {
		base = strrchr(interpreter, '/');
		base = base ? base + 1 : interpreter;
		libc = !*base ? RUN_LIBC_STATIC :
		       !strncmp(base, "ld-musl", strlen("ld-musl")) ? RUN_LIBC_MUSL :
								      RUN_LIBC_GLIBC;
	}
	fclose(file);
	return libc;
}

static void tell(const char *name)
{
	const char *is = getenv(name);

	if (is)
		error("%s=%s", name, is);
}

/* What the user has set stays, and is told of where the user has @asked for something else. */
static void set_all(const struct setting *of, bool asked, bool verbose)
{
	const char *is;

	for (; of->name; of++) {
		is = getenv(of->name);
		if (!is)
			setenv(of->name, of->value, 1);
		else if (asked && strcmp(is, of->value))
			error("warning: %s is set and stays \"%s\", not \"%s\"", of->name, is,
			      of->value);
		if (verbose)
			tell(of->name);
	}
}

/**
 * struct options - what run is asked for
 * @class: the class, or NULL
 * @ucx_verbs: have UCX post by libibverbs
 * @verbose: say what is set
 */
struct options {
	const char *class;
	bool ucx_verbs;
	bool verbose;
};

/* Options up to "--"; how many words that is, 0 if they are wrong, and that was said. */
static int read_options(int argc, char **argv, struct options *o)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		if (!strncmp(argv[i], "--class=", strlen("--class="))) {
			o->class = argv[i] + strlen("--class=");
		} else if (!strcmp(argv[i], "--class")) {
			o->class = i + 1 < argc ? argv[++i] : "";
		} else if (!strcmp(argv[i], "--ucx-verbs")) {
			o->ucx_verbs = true;
		} else if (!strcmp(argv[i], "-v") || !strcmp(argv[i], "--verbose")) {
			o->verbose = true;
		} else if (*argv[i] == '-') {
			usage_error("unknown option \"%s\", " USAGE, argv[i]);
			return 0;
		} else {
			usage_error("\"--\" is missing before \"%s\", " USAGE, argv[i]);
			return 0;
		}
		if (o->class && !is_class(o->class)) {
			usage_error("class is latency, throughput or bandwidth, not \"%s\"",
				    o->class);
			return 0;
		}
	}
	if (i + 1 < argc)
		return i;
	usage_error(USAGE);
	return 0;
}

/* Without the module the program runs as without the shim. */
static void warn_without_module(void)
{
	if (access(RISO_USER_FILE, R_OK | W_OK))
		error("warning: " RISO_USER_FILE ": %s: nothing is held", strerror(errno));
}

int run_program(int argc, char **argv)
{
	char shim[PATH_MAX], list[3 * PATH_MAX], verbs[PATH_MAX + sizeof(VERBS)];
	const char *others = getenv("LD_PRELOAD");
	struct options o = { };
	enum run_libc libc;
	int words, err;

	if (argc == 2 && cmd_is_help(argv[1])) {
		fputs(help, stdout);
		return CMD_DONE;
	}
	words = read_options(argc, argv, &o);
	if (!words)
		return CMD_USAGE;
	argv += words - 1;
	libc = run_find_libc(argv[2]);
	if (libc == RUN_LIBC_MUSL) {
		error("%s is linked with musl, and the shim needs glibc: start it without \"run\"",
		      argv[2]);
		return CMD_REFUSED;
	}
	if (!find_beside(places, shim)) {
		error("%s is not where \"make install\" puts it, ../lib/rdma-isolate",
		      SHIM);
		return CMD_REFUSED;
	}
	if (strpbrk(shim, " :")) {
		error("%s: LD_PRELOAD takes no path with a blank or a colon", shim);
		return CMD_REFUSED;
	}
	/* The runtime of a sanitizer has to be the first. */
	if (snprintf(list, sizeof(list), "%s%s%s", others ? others : "", others ? ":" : "",
		     shim) >= (int)sizeof(list)) {
		error("LD_PRELOAD is too long");
		return CMD_REFUSED;
	}
	snprintf(verbs, sizeof(verbs), "%.*s" VERBS, (int)(strrchr(shim, '/') + 1 - shim), shim);
	setenv("LD_PRELOAD", list, 1);
	if (!access(verbs, R_OK))
		setenv("NCCL_IBVERBS_LIB", verbs, 0);
	else
		error("warning: %s: %s: NCCL posts without the shim", verbs, strerror(errno));
	set_all(nccl, false, o.verbose);
	if (o.ucx_verbs)
		set_all(ucx, true, o.verbose);
	if (o.class)
		setenv("RDMA_ISOLATE_CLASS", o.class, 1);
	if (o.verbose) {
		tell("LD_PRELOAD");
		tell("NCCL_IBVERBS_LIB");
		tell("RDMA_ISOLATE_CLASS");
		warn_without_module();
	}
	if (libc == RUN_LIBC_STATIC)
		error("warning: %s is statically linked: the shim is not used", argv[2]);
	if (run_is_secure(argv[2], getuid(), getgid()))
		error("warning: %s is setuid or setgid, or has capabilities: the shim is not used",
		      argv[2]);
	execvp(argv[2], argv + 2);
	err = errno;
	error("%s: %s", *argv[2] ? argv[2] : "\"\"", strerror(err));
	return err == ENOENT ? RUN_NOT_FOUND : RUN_NOT_EXECUTED;
}
