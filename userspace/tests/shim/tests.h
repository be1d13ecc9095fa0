/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The tests that each file has. main.c runs them.
 */
#ifndef RISO_TEST_TESTS_H
#define RISO_TEST_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The tests of one file, in the order in which they run */
struct prog_tests {
	const struct CMUnitTest *tests;
	size_t num;
};

extern const struct prog_tests prog_arm_tests;
extern const struct prog_tests prog_class_tests;
extern const struct prog_tests prog_path_tests;
extern const struct prog_tests prog_path_mix_tests;
extern const struct prog_tests prog_comp_tests;
extern const struct prog_tests prog_cq_fail_tests;
extern const struct prog_tests prog_cq_room_tests;
extern const struct prog_tests prog_cq_size_tests;
extern const struct prog_tests prog_cqex_tests;
extern const struct prog_tests prog_cut_tests;
extern const struct prog_tests prog_device_tests;
extern const struct prog_tests prog_error_tests;
extern const struct prog_tests prog_event_tests;
extern const struct prog_tests prog_fork_tests;
/* Register the handler of fork() of the program, before there is anything of the shim. */
void prog_handle_forks(void);
extern const struct prog_tests prog_gone_tests;
extern const struct prog_tests prog_handler_tests;
extern const struct prog_tests prog_helper_tests;
extern const struct prog_tests prog_line_tests;
extern const struct prog_tests prog_map_tests;
extern const struct prog_tests prog_mlx5_tests;
extern const struct prog_tests prog_model_tests;
extern const struct prog_tests prog_pay_tests;
extern const struct prog_tests prog_poller_tests;
extern const struct prog_tests prog_record_tests;
extern const struct prog_tests prog_refused_tests;
extern const struct prog_tests prog_session_tests;
extern const struct prog_tests prog_sq_tests;
extern const struct prog_tests prog_state_tests;
extern const struct prog_tests prog_teardown_tests;
extern const struct prog_tests prog_threads_tests;
extern const struct prog_tests prog_wr_tests;

#endif /* RISO_TEST_TESTS_H */
