// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A library for test_dlopen.c that opens libibverbs while it is loaded, some time after another
 * thread does.
 */
#include <dlfcn.h>
#include <unistd.h>

__attribute__((constructor)) static void open_verbs(void)
{
	usleep(300000);
	dlopen("libibverbs.so.1", RTLD_NOW);
}
