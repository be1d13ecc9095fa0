// SPDX-License-Identifier: GPL-2.0
/*
 * Which programs tools/rdma-isolate says to run without the shim, and that it runs them.
 */
#include <elf.h>
#include <limits.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "run.h"

#define NAME "riso_program"

enum { OTHER = 65534, ANSWER = 42 };

static const char program[] = "exit 42\n";

static char dir[32];
static char file[PATH_MAX], search[PATH_MAX];
static uid_t uid;
static gid_t gid;

static int write_program(const char *line)
{
	FILE *f = fopen(file, "w");

	if (!f)
		return -1;
	fputs(line, f);
	return fclose(f);
}

/*
 * A program that is found in the second directory of PATH. It is no script: execvp() has
 * the shell run what has no format.
 */
static int make_program(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/riso.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(search, sizeof(search), "/nowhere:%s:/usr/bin:/bin", dir);
	snprintf(file, sizeof(file), "%s/" NAME, dir);
	setenv("PATH", search, 1);
	uid = getuid();
	gid = getgid();
	return write_program(program);
}

static int remove_program(void **state)
{
	(void)state;
	return unlink(file) || rmdir(dir);
}

static void change_mode(mode_t mode)
{
	assert_int_equal(chmod(file, mode), 0);
}

static void by_mode(void **state)
{
	(void)state;
	change_mode(0755);
	assert_false(run_is_secure(NAME, uid + 1, gid + 1));

	change_mode(04755);
	assert_true(run_is_secure(NAME, uid + 1, gid));
	assert_false(run_is_secure(NAME, uid, gid + 1));

	change_mode(02755);
	assert_true(run_is_secure(NAME, uid, gid + 1));
	assert_false(run_is_secure(NAME, uid + 1, gid));

	/* Nobody of the group may execute it: the bit is about locks. */
	change_mode(02705);
	assert_false(run_is_secure(NAME, uid, gid + 1));
}

static void by_path(void **state)
{
	(void)state;
	change_mode(04755);
	assert_true(run_is_secure(file, uid + 1, gid));
	assert_false(run_is_secure("./" NAME, uid + 1, gid));
	assert_false(run_is_secure("riso_nothing", uid + 1, gid));

	/* What cannot be executed is passed over, and so is a directory. */
	change_mode(04644);
	assert_false(run_is_secure(NAME, uid + 1, gid));
	assert_false(run_is_secure(dir, uid + 1, gid + 1));

	change_mode(04755);
	setenv("PATH", "/nowhere", 1);
	assert_false(run_is_secure(NAME, uid + 1, gid));
	setenv("PATH", search, 1);
}

/* The kernel does not heed the bits of a script. */
static void by_format(void **state)
{
	(void)state;
	assert_int_equal(write_program("#!/bin/sh\n"), 0);
	change_mode(06755);
	assert_false(run_is_secure(NAME, uid + 1, gid + 1));
	assert_int_equal(write_program("#\n"), 0);
	change_mode(06755);
	assert_true(run_is_secure(NAME, uid + 1, gid + 1));
	assert_int_equal(write_program(program), 0);
}

static void by_capabilities(void **state)
{
	const struct vfs_cap_data raw = {
		.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE,
		.data[0].permitted = 1 << CAP_NET_RAW,
	};

	(void)state;
	change_mode(0755);
	if (setxattr(file, "security.capability", &raw, sizeof(raw), 0))
		skip();
	assert_true(run_is_secure(NAME, uid + 1, gid));
	assert_false(run_is_secure(NAME, 0, gid));
	assert_int_equal(removexattr(file, "security.capability"), 0);
}

/* A file that is only as much of a program as has one part */
static void write_elf(uint16_t type, uint32_t part_type, const void *content, size_t size)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr part;
	} elf = {
		.head = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
			.e_type = type,
			.e_phoff = sizeof(elf.head),
			.e_phentsize = sizeof(elf.part),
			.e_phnum = 1,
		},
		.part = {
			.p_type = part_type,
			.p_offset = sizeof(elf),
			.p_filesz = size,
		},
	};
	FILE *f = fopen(file, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(&elf, sizeof(elf), 1, f), 1);
	assert_int_equal(fwrite(content, 1, size, f), size);
	assert_int_equal(fclose(f), 0);
}

/* It names its dynamic linker. */
static void write_linked(const char *interpreter)
{
	write_elf(ET_EXEC, PT_INTERP, interpreter, strlen(interpreter) + 1);
}

/* A file without a dynamic linker that is loaded anywhere: a static program, or a library */
static void write_pie(uint64_t flags)
{
	const Elf64_Dyn dynamic[2] = { { .d_tag = DT_FLAGS_1, .d_un.d_val = flags } };

	write_elf(ET_DYN, PT_DYNAMIC, dynamic, sizeof(dynamic));
}

static void by_libc(void **state)
{
	char *argv[] = { "run", "--", NAME, NULL };

	(void)state;
	change_mode(0755);
	assert_int_equal(run_find_libc(NAME), RUN_LIBC_UNKNOWN);
	assert_int_equal(run_find_libc("riso_nothing"), RUN_LIBC_UNKNOWN);
	write_linked("/lib64/ld-linux-x86-64.so.2");
	assert_int_equal(run_find_libc(NAME), RUN_LIBC_GLIBC);
	write_elf(ET_EXEC, PT_LOAD, "", 0);
	assert_int_equal(run_find_libc(NAME), RUN_LIBC_STATIC);
	write_pie(DF_1_PIE);
	assert_int_equal(run_find_libc(NAME), RUN_LIBC_STATIC);
	write_pie(DF_1_NOW);
	assert_int_equal(run_find_libc(NAME), RUN_LIBC_UNKNOWN);
	write_linked("/lib/ld-musl-x86_64.so.1");
	assert_int_equal(run_find_libc(NAME), RUN_LIBC_MUSL);
	assert_int_equal(run_program(3, argv), 1);
	assert_int_equal(write_program(program), 0);
}

/* Becomes the program in a child; @said is what is printed on standard error. */
static void run_as(const char *first, const char *second, char *said, size_t size)
{
	char *argv[6] = { "run" };
	int fds[2], status, n = 1;
	ssize_t got;
	pid_t pid;

	if (first)
		argv[n++] = (char *)first;
	if (second)
		argv[n++] = (char *)second;
	argv[n++] = "--";
	argv[n++] = NAME;
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		dup2(fds[1], STDERR_FILENO);
		_exit(run_program(n, argv));
	}
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), ANSWER);
	got = read(fds[0], said, size - 1);
	close(fds[0]);
	assert_true(got >= 0);
	said[got] = 0;
}

static void run(char *said, size_t size)
{
	run_as(NULL, NULL, said, size);
}

/* What the user has set stays, and UCX is left alone unless it is asked for. */
static void sets_what_brings_in(void **state)
{
	char said[512];

	(void)state;
	change_mode(0755);
	assert_int_equal(write_program("test \"$NCCL_IB_ADAPTIVE_ROUTING$UCX_TLS\" = 1 && exit 42\n"),
			 0);
	run(said, sizeof(said));
	setenv("NCCL_IB_ADAPTIVE_ROUTING", "0", 1);
	assert_int_equal(write_program("test $NCCL_IB_ADAPTIVE_ROUTING = 0 && exit 42\n"), 0);
	run(said, sizeof(said));
	assert_string_equal(said, "");
	run_as("--ucx-verbs", "-v", said, sizeof(said));
	assert_non_null(strstr(said, "NCCL_IB_ADAPTIVE_ROUTING=0\n"));
	assert_non_null(strstr(said, "UCX_IB_MLX5_DEVX=n\n"));
	assert_null(strstr(said, "warning: UCX"));
	setenv("UCX_TLS", "rc", 1);
	run(said, sizeof(said));
	assert_string_equal(said, "");
	run_as("--ucx-verbs", NULL, said, sizeof(said));
	assert_non_null(strstr(said, "warning: UCX_TLS is set and stays \"rc\", not \"^rc_mlx5,"));
	unsetenv("UCX_TLS");
	unsetenv("NCCL_IB_ADAPTIVE_ROUTING");
	assert_int_equal(write_program(program), 0);
}

static void warns_and_runs(void **state)
{
	char said[512];

	(void)state;
	change_mode(0755);
	run(said, sizeof(said));
	assert_string_equal(said, "");
	if (chown(file, OTHER, -1))
		skip();
	change_mode(04755);
	run(said, sizeof(said));
	assert_non_null(strstr(said, "warning: " NAME " is setuid"));
	assert_int_equal(chown(file, uid, -1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_mode),
		cmocka_unit_test(by_path),
		cmocka_unit_test(by_format),
		cmocka_unit_test(by_capabilities),
		cmocka_unit_test(by_libc),
		cmocka_unit_test(sets_what_brings_in),
		cmocka_unit_test(warns_and_runs),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("run", tests, make_program, remove_program);
}
