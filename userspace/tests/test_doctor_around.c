// SPDX-License-Identifier: GPL-2.0
/*
 * What tools/rdma-isolate doctor says of queue pairs that may post around the shim. The module, the
 * RDMA core and the time are made up here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "around_nl.h"
#include "doctor.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A queue pair, and what the core says of it */
struct qp {
	bool marked, sends, silent;
	int err;
};

static struct {
	const struct qp *qp;
	size_t n;
	int list_err, ask_err;
	uint32_t psn;
	char said[1024];
} fake;

int nanosleep(const struct timespec *time, struct timespec *left)
{
	(void)time;
	(void)left;
	return 0;
}

int around_list(struct nl *nl, struct around_look *look)
{
	size_t i;

	(void)nl;
	if (fake.list_err)
		return fake.list_err;
	look->n = fake.n;
	look->flow = calloc(fake.n + 1, sizeof(*look->flow));
	assert_non_null(look->flow);
	for (i = 0; i < fake.n; i++) {
		struct around_flow *f = &look->flow[i];

		f->qpn = 17 + i;
		f->marked = fake.qp[i].marked;
		snprintf(f->dev, sizeof(f->dev), "d");
		snprintf(f->comm, sizeof(f->comm), "prog");
	}
	return 0;
}

int around_ask(struct psn *p, const struct around_look *look, size_t first)
{
	(void)p;
	(void)look;
	assert_int_equal(first, 0);
	return fake.ask_err;
}

bool around_take(struct psn *p, struct around_look *look)
{
	size_t i;

	(void)p;
	fake.psn++;
	for (i = 0; i < look->n; i++) {
		struct around_flow *f = &look->flow[i];

		if (fake.qp[i].silent || f->marked)
			continue;
		f->asked = true;
		f->err = fake.qp[i].err;
		f->answered = !f->err;
		f->psn = fake.qp[i].sends ? fake.psn : 1;
	}
	return false;
}

int around_read_told(struct nl *nl, struct around_look *look)
{
	(void)nl;
	(void)look;
	return 0;
}

void psn_end(struct psn *p)
{
	(void)p;
}

static void tell(const char *check, enum verdict verdict, const char *found, const char *fix,
		 void *data)
{
	size_t len = strlen(fake.said);

	(void)data;
	assert_string_equal(check, "around");
	assert_true(verdict == VERDICT_OK || fix);
	snprintf(fake.said + len, sizeof(fake.said) - len, "[%d %s]", verdict, found);
}

static void look(const struct qp *qp, size_t n)
{
	fake.qp = qp;
	fake.n = n;
	fake.said[0] = 0;
	doctor_around(NULL, tell, NULL);
}

static void expect(const char *part)
{
	if (!strstr(fake.said, part))
		fail_msg("%s is not in %s", part, fake.said);
}

static void none_is_seen(void **state)
{
	static const struct qp qp[] = { { }, { } };

	(void)state;
	look(qp, ARRAY_SIZE(qp));
	expect("[0 none of 2 queue pairs");
	look(NULL, 0);
	expect("[0 none of 0 queue pairs");
}

static void one_is_seen(void **state)
{
	static const struct qp qp[] = { { }, { .sends = true } };

	(void)state;
	look(qp, ARRAY_SIZE(qp));
	expect("[1 prog (process 0) sends on queue pair 18 of d");
	assert_null(strstr(fake.said, "none of"));
}

/* Nothing is known, and it says why. */
static void nobody_answers(void **state)
{
	static const struct qp refused[] = { { .err = EPERM }, { .err = EPERM } };
	static const struct qp silent[] = { { .silent = true } };

	(void)state;
	look(refused, ARRAY_SIZE(refused));
	expect("[1 what 2 of 2 queue pairs");
	expect("; of queue pair 17 of d the RDMA core says: Operation not permitted]");
	assert_null(strstr(fake.said, "none of"));
	look(silent, ARRAY_SIZE(silent));
	expect("[1 what 1 of 1 queue pairs");
	expect("no answer]");
	assert_null(strstr(fake.said, "none of"));
}

/* A mark needs no answer. */
static void some_answer(void **state)
{
	static const struct qp qp[] = {
		{ .marked = true }, { .sends = true }, { }, { .err = ENODATA },
	};

	(void)state;
	look(qp, ARRAY_SIZE(qp));
	expect("sends on queue pair 17 of d");
	expect("sends on queue pair 18 of d");
	expect("[1 what 1 of 4 queue pairs");
	expect("; of queue pair 20 of d the RDMA core says: ");
}

static void nobody_asks(void **state)
{
	static const struct qp qp[] = { { } };

	(void)state;
	fake.list_err = -EPERM;
	look(qp, ARRAY_SIZE(qp));
	fake.list_err = 0;
	assert_string_equal(fake.said,
			    "[1 cannot look who posts around the shim: Operation not permitted]");
	fake.ask_err = -ENOMEM;
	look(qp, ARRAY_SIZE(qp));
	expect("[1 cannot look who posts around the shim: ");
	fake.ask_err = -EBUSY;
	look(qp, ARRAY_SIZE(qp));
	fake.ask_err = 0;
	assert_string_equal(fake.said,
			    "[1 the kernel does not tell in time what some queue pairs send]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_is_seen),
		cmocka_unit_test(one_is_seen),
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(some_answer),
		cmocka_unit_test(nobody_asks),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("doctor_around", tests, NULL, NULL);
}
