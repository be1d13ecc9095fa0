/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An event loop, librdmacm and libibverbs that do what a test says, at a time that the test
 * says, for the tests of probe.c and serve.c.
 */
#ifndef RISO_TEST_FAKE_CM_H
#define RISO_TEST_FAKE_CM_H

#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "cm.h"
#include "loop.h"

enum { FAKE_TIMERS = 4, FAKE_KHZ = 156250 };

/* What is there, and what was done. */
struct fake_cm {
	uint64_t now;
	uint64_t step;
	struct source *timers[FAKE_TIMERS];
	uint64_t at[FAKE_TIMERS];
	unsigned int ids;
	struct rdma_cm_id *last_id;
	unsigned int qps;
	unsigned int cqs;
	unsigned int mrs;
	bool listening;
	bool no_address;
	const char *wrong;
	unsigned int rejected;
	unsigned int posts;
	unsigned int asked;
	unsigned int records;
	uint64_t done_wr_id;
	char log[512];
	unsigned int logged;
	/* the device */
	uint64_t clock_mask;
	bool clock_broken;
	uint64_t ticks;
	uint64_t stamp;
	bool stamps;
	bool no_stamped_qp;
	bool armed;
	bool done;
	enum ibv_wc_status status;
	struct verbs_context verbs;
};

extern struct fake_cm fake;
extern struct ibv_device fake_device;

void fake_run_until(uint64_t ns);

/* Before and after each case */
int fake_set_up(void **state);
int fake_nothing_is_left(void **state);

#endif /* RISO_TEST_FAKE_CM_H */
