/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runs a program with the verbs shim, and finds what lies beside the tool.
 */
#ifndef RDMA_ISOLATE_RUN_H
#define RDMA_ISOLATE_RUN_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * find_beside - find a file that belongs to the tool
 * @place: where it may be, from the tool's directory; the last is NULL
 * @path: set to its path, PATH_MAX bytes
 *
 * Return: whether it is there.
 */
bool find_beside(const char * const *place, char *path);

/**
 * run_is_secure - does a program get more rights than who starts it?
 * @name: of the program, as execvp() takes it
 * @uid: real user of who starts it
 * @gid: real group of who starts it
 *
 * For such a program the dynamic linker ignores the paths in LD_PRELOAD. The mount option
 * nosuid and no_new_privs, which take these rights away, are not looked at.
 *
 * Return: whether the file is setuid to another user, setgid to another group, or has
 * capabilities while @uid is not root.
 */
bool run_is_secure(const char *name, uid_t uid, gid_t gid);

/**
 * enum run_libc - what a program is linked with
 * @RUN_LIBC_UNKNOWN: not known: it is a script, not of 64 bits, or not there
 * @RUN_LIBC_GLIBC: a dynamic linker, presumably that of glibc
 * @RUN_LIBC_MUSL: musl, whose dynamic linker cannot load the shim
 * @RUN_LIBC_STATIC: no dynamic linker, so nothing is preloaded
 */
enum run_libc {
	RUN_LIBC_UNKNOWN,
	RUN_LIBC_GLIBC,
	RUN_LIBC_MUSL,
	RUN_LIBC_STATIC,
};

/**
 * run_find_libc - find what a program is linked with
 * @name: of the program, as execvp() takes it
 *
 * Return: what.
 */
enum run_libc run_find_libc(const char *name);

/*
 * Become "run [--class CLASS] [--ucx-verbs] [-v] -- PROGRAM [ARGUMENT]...", or tell why not
 */
int run_program(int argc, char **argv);

#endif /* RDMA_ISOLATE_RUN_H */
