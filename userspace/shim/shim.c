// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the shim stands on: the functions of libibverbs, the calls of the system, and
 * lines on stderr.
 *
 * Owns the two tables of functions. preload.c fills shim_real once, before the first call
 * reads it. A unit test fills both tables with functions of its own. Everybody reads the
 * tables without a lock, in any thread.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

struct shim_real shim_real;

static uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/**
 * shim_membarrier - membarrier()
 * @cmd: MEMBARRIER_CMD_*
 *
 * Return: 0, or -1 and errno.
 */
int shim_membarrier(int cmd)
{
	return syscall(__NR_membarrier, cmd, 0, 0);
}

/*
 * Which device is an open file? 0 if there is no such file. Not by fstat(), which glibc 2.17 does
 * not export.
 */
static uint64_t device_of(int fd)
{
	struct stat st;

	return syscall(__NR_fstat, fd, &st) ? 0 : st.st_rdev;
}

struct shim_sys shim_sys = {
	.open = open,
	.read = read,
	.ioctl = ioctl,
	.mmap = mmap,
	.munmap = munmap,
	.close = close,
	.device_of = device_of,
	.now = clock_now,
	.create_thread = pthread_create,
	.membarrier = shim_membarrier,
};

/* A signal handler may call this. */
static void write_line(const char *fmt, va_list ap)
{
	char line[256];

	vsnprintf(line, sizeof(line), fmt, ap);
	dprintf(STDERR_FILENO, "rdma_isolate: %s\n", line);
}

/* RDMA_ISOLATE_DEBUG is 1. The helper must not look at what the program may be changing. */
static bool wants_debug;

static void __attribute__((constructor)) read_environment(void)
{
	const char *env = getenv("RDMA_ISOLATE_DEBUG");

	wants_debug = env && !strcmp(env, "1");
}

/**
 * shim_debug - a line on stderr, if that is wanted
 * @fmt: as printf()
 */
void shim_debug(const char *fmt, ...)
{
	va_list ap;

	if (!wants_debug)
		return;
	va_start(ap, fmt);
	write_line(fmt, ap);
	va_end(ap);
}

/**
 * shim_warn - a line on stderr, for what the program has done
 * @fmt: as printf()
 */
void shim_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(fmt, ap);
	va_end(ap);
}
