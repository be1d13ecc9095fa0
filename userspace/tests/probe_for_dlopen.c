// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What test_dlopen.c looks for.
 */

int probe_for_dlopen(void);

int probe_for_dlopen(void)
{
	return 4711;
}
