// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * This program runs all tests of the shim, as one group. With an argument, it runs only
 * the tests whose names match it.
 */
#include <stdlib.h>
#include <string.h>

#include "prog.h"
#include "tests.h"

/* calloc() refuses what is too large, also with the address sanitizer. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static const struct prog_tests * const all[] = {
	&prog_cut_tests,
	&prog_record_tests,
	&prog_sq_tests,
	&prog_error_tests,
	&prog_comp_tests,
	&prog_poller_tests,
	&prog_arm_tests,
	&prog_event_tests,
	&prog_gone_tests,
	&prog_pay_tests,
	&prog_line_tests,
	&prog_class_tests,
	&prog_path_tests,
	&prog_path_mix_tests,
	&prog_teardown_tests,
	&prog_cq_size_tests,
	&prog_cq_room_tests,
	&prog_cq_fail_tests,
	&prog_model_tests,
	&prog_refused_tests,
	&prog_wr_tests,
	&prog_cqex_tests,
	&prog_device_tests,
	&prog_mlx5_tests,
	&prog_map_tests,
	&prog_fork_tests,
	&prog_handler_tests,
	&prog_helper_tests,
	&prog_threads_tests,
	&prog_session_tests,
	&prog_state_tests,
};

int main(int argc, char **argv)
{
	struct CMUnitTest *tests, *to;
	size_t i, num = 0;
	int failed;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		num += all[i]->num;
	tests = calloc(num, sizeof(*tests));
	if (!tests)
		return 1;
	to = tests;
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		memcpy(to, all[i]->tests, all[i]->num * sizeof(*to));
		to += all[i]->num;
	}
	prog_handle_forks();
	cmocka_set_message_output(CM_OUTPUT_TAP);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	/* cmocka_run_group_tests_name() only takes an array whose size is known. */
	failed = _cmocka_run_group_tests("shim", tests, num, prog_group_setup, NULL);
	free(tests);
	return failed;
}
