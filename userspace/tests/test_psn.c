// SPDX-License-Identifier: GPL-2.0
/*
 * The process that asks the RDMA core, with a core that is made up here: by the number of the queue
 * pair it answers, refuses, or does not come back.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <libmnl/libmnl.h>
#include <rdma/rdma_netlink.h>

#include "psn.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum {
	QP_INIT = 1,
	QP_GONE = 2,
	QP_WITHOUT_NUMBER = 3,
	QP_HELD = 4,
	/* Not in RTS if who asks has something of its parent's */
	QP_IF_CLEAN = 5,
	/* All others are in RTS; their packets have the number */
	PSN = 1000,
};

static uint32_t asked;
static uint32_t seq;
static bool refused;

/* What the parent has mapped and open, as it would be of a device; which of it the child has yet */
static const size_t page = 4096;
static void *device;
static int file = -1;

static bool has_device(void)
{
	unsigned char there;

	return device && !mincore(device, page, &there);
}

struct mnl_socket *mnl_socket_open(int bus)
{
	static int sock;

	errno = EPROTONOSUPPORT;
	return bus == NETLINK_RDMA && !refused ? (void *)&sock : NULL;
}

int mnl_socket_bind(struct mnl_socket *sock, unsigned int groups, pid_t pid)
{
	(void)sock;
	(void)groups;
	(void)pid;
	return 0;
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *sock)
{
	(void)sock;
	return 0;
}

/* As the core has it, which wants to know device, port and number. */
ssize_t mnl_socket_sendto(const struct mnl_socket *sock, const void *req, size_t size)
{
	const struct nlmsghdr *nlh = req;
	const struct nlattr *attr;
	int known = 0;

	(void)sock;
	seq = nlh->nlmsg_seq;
	mnl_attr_for_each(attr, nlh, 0) {
		known++;
		if (mnl_attr_get_type(attr) == RDMA_NLDEV_ATTR_RES_LQPN)
			asked = mnl_attr_get_u32(attr);
	}
	if (asked == QP_HELD)
		for (;;)
			pause();
	if (known != 3)
		asked = QP_GONE;
	return size;
}

ssize_t mnl_socket_recvfrom(const struct mnl_socket *sock, void *buf, size_t size)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct nlmsgerr *e;

	(void)sock;
	(void)size;
	nlh->nlmsg_seq = seq;
	if (asked == QP_GONE) {
		nlh->nlmsg_type = NLMSG_ERROR;
		e = mnl_nlmsg_put_extra_header(nlh, sizeof(*e));
		e->error = -ENOENT;
		return nlh->nlmsg_len;
	}
	nlh->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_QP_GET);
	mnl_attr_put_u32(nlh, RDMA_NLDEV_ATTR_RES_LQPN, asked);
	if (asked == QP_IF_CLEAN && (has_device() || (file >= 0 && !fcntl(file, F_GETFD))))
		asked = QP_INIT;
	mnl_attr_put_u8(nlh, RDMA_NLDEV_ATTR_RES_STATE, asked == QP_INIT ? 1 : 3);
	if (asked != QP_WITHOUT_NUMBER)
		mnl_attr_put_u32(nlh, RDMA_NLDEV_ATTR_RES_SQ_PSN, PSN + asked);
	return nlh->nlmsg_len;
}

/* The next answer; 0 at the end, -EAGAIN when there is none for a while */
static int next(struct psn *p, struct psn_answer *answer)
{
	struct pollfd fd = { .fd = p->fd, .events = POLLIN };

	if (poll(&fd, 1, 500) == 0)
		return -EAGAIN;
	return psn_read(p, answer);
}

static void answers(void **state)
{
	static const struct psn_query query[] = {
		{ 3, 17 }, { 3, QP_INIT }, { 3, QP_GONE }, { 3, QP_WITHOUT_NUMBER }, { 4, 18 },
	};
	struct psn p = { .fd = -1 };
	struct psn_answer answer;
	size_t i;

	(void)state;
	assert_int_equal(psn_begin(&p, query, ARRAY_SIZE(query)), 0);
	for (i = 0; i < ARRAY_SIZE(query); i++) {
		assert_int_equal(next(&p, &answer), 1);
		assert_int_equal(answer.of.index, query[i].index);
		assert_int_equal(answer.of.qpn, query[i].qpn);
		assert_int_equal(answer.sends, query[i].qpn >= 17);
		assert_int_equal(answer.err, query[i].qpn == QP_GONE ? ENOENT :
				 query[i].qpn == QP_WITHOUT_NUMBER ? ENODATA : 0);
		if (answer.sends)
			assert_int_equal(answer.psn, PSN + query[i].qpn);
	}
	assert_int_equal(next(&p, &answer), 0);
	psn_end(&p);
	assert_int_equal(p.fd, -1);
}

/* Each has an answer even so. */
static void no_socket(void **state)
{
	static const struct psn_query query[] = { { 3, 17 }, { 3, 18 } };
	struct psn p = { .fd = -1 };
	struct psn_answer answer;
	size_t i;

	(void)state;
	refused = true;
	assert_int_equal(psn_begin(&p, query, ARRAY_SIZE(query)), 0);
	refused = false;
	for (i = 0; i < ARRAY_SIZE(query); i++) {
		assert_int_equal(next(&p, &answer), 1);
		assert_int_equal(answer.of.qpn, query[i].qpn);
		assert_int_equal(answer.err, EPROTONOSUPPORT);
		assert_false(answer.sends);
	}
	assert_int_equal(next(&p, &answer), 0);
	psn_end(&p);
}

static void nobody(void **state)
{
	struct psn p = { .fd = -1 };
	struct psn_answer answer;

	(void)state;
	assert_int_equal(psn_begin(&p, NULL, 0), 0);
	assert_int_equal(p.pid, 0);
	assert_int_equal(psn_read(&p, &answer), 0);
	psn_end(&p);
}

/* What came before is there. Another can ask as soon as the kernel has let go of the first. */
static void held(void **state)
{
	static const struct psn_query query[] = { { 3, 17 }, { 3, QP_HELD }, { 3, 18 } };
	struct psn p = { .fd = -1 };
	struct psn_answer answer;
	int err, tries = 10000;

	(void)state;
	assert_int_equal(psn_begin(&p, query, ARRAY_SIZE(query)), 0);
	assert_int_equal(next(&p, &answer), 1);
	assert_int_equal(next(&p, &answer), -EAGAIN);
	assert_int_equal(psn_begin(&p, query, 1), -EBUSY);
	psn_end(&p);
	while ((err = psn_begin(&p, query, 1)) == -EBUSY && tries--)
		usleep(1000);
	assert_int_equal(err, 0);
	assert_int_equal(next(&p, &answer), 1);
	assert_int_equal(next(&p, &answer), 0);
	psn_end(&p);
}

/* Of what its parent has */
static void keeps_nothing(void **state)
{
	static const struct psn_query query[] = { { 3, QP_IF_CLEAN } };
	struct psn p = { .fd = -1 };
	struct psn_answer answer;

	(void)state;
	file = memfd_create("device", 0);
	assert_true(file >= 0);
	assert_int_equal(ftruncate(file, page), 0);
	device = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	assert_ptr_not_equal(device, MAP_FAILED);
	assert_int_equal(psn_begin(&p, query, ARRAY_SIZE(query)), 0);
	assert_int_equal(next(&p, &answer), 1);
	assert_true(answer.sends);
	assert_int_equal(next(&p, &answer), 0);
	psn_end(&p);
	/* Its parent has them yet. */
	assert_true(has_device());
	assert_int_equal(munmap(device, page), 0);
	device = NULL;
	close(file);
	file = -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers),
		cmocka_unit_test(no_socket),
		cmocka_unit_test(nobody),
		cmocka_unit_test(held),
		cmocka_unit_test(keeps_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
