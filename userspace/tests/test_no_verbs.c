// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A program with the verbs shim and without libibverbs: what it calls of the shim fails.
 *
 * The program has only weak references. It runs itself with the shim, which is built without any
 * optimisation here, and finds an empty file where libibverbs would be.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <infiniband/verbs.h>

#pragma weak ibv_close_device
#pragma weak ibv_create_cq
#pragma weak ibv_destroy_qp
#pragma weak ibv_get_cq_event
#pragma weak ibv_import_device
#pragma weak ibv_open_device
#pragma weak ibv_query_qp

/* A call that fails has told why, and this forgets it. */
static void expect_unsupported(void)
{
	assert_int_equal(errno, EOPNOTSUPP);
	errno = 0;
}

/* Also those behind the first one */
static void fails(void **state)
{
	(void)state;
	assert_non_null(ibv_open_device);
	errno = 0;
	assert_null(ibv_open_device(NULL));
	expect_unsupported();
	assert_null(ibv_import_device(-1));
	expect_unsupported();
	assert_null(ibv_create_cq(NULL, 1, NULL, NULL, 0));
	expect_unsupported();
	assert_int_equal(ibv_close_device(NULL), -1);
	expect_unsupported();
	assert_int_equal(ibv_get_cq_event(NULL, NULL, NULL), -1);
	expect_unsupported();
	assert_int_equal(ibv_destroy_qp(NULL), EOPNOTSUPP);
	assert_int_equal(ibv_query_qp(NULL, NULL, 0, NULL), EOPNOTSUPP);
}

/* What is printed on standard error, in another run of this program */
static void says_so_once(void **state)
{
	char said[512] = "";
	size_t len;
	FILE *run;

	(void)state;
	run = popen("NO_VERBS_CALLS=1 /proc/$PPID/exe 2>&1", "r");
	assert_non_null(run);
	len = fread(said, 1, sizeof(said) - 1, run);
	said[len] = 0;
	assert_int_equal(pclose(run), 0);
	assert_string_equal(said,
			    "rdma_isolate: the program's libibverbs is not found: calls fail\n");
}

static int run_with_shim(char **argv)
{
	char dir[4096], path[sizeof(dir) + 32];
	ssize_t len = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	if (len < 0)
		return 1;
	dir[len] = 0;
	*strrchr(dir, '/') = 0;
	snprintf(path, sizeof(path), "%s/shim_plain.so", dir);
	setenv("LD_PRELOAD", path, 1);
	snprintf(path, sizeof(path), "%s/probes/empty", dir);
	setenv("LD_LIBRARY_PATH", path, 1);
	execv("/proc/self/exe", argv);
	return 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fails),
		cmocka_unit_test(says_so_once),
	};

	(void)argc;
	if (!getenv("LD_PRELOAD"))
		return run_with_shim(argv);
	if (getenv("NO_VERBS_CALLS"))
		return ibv_open_device(NULL) || ibv_import_device(-1);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("no_verbs", tests, NULL, NULL);
}
