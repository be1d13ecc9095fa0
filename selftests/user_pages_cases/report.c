// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try what REPORT refuses. They count the events and the work that reports and
 * queue pairs cause.
 */
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include <linux/rdma_isolate.h>
#include <linux/rdma_isolate_user.h>
#include "kselftest.h"
#include "../share.h"
#include "pages.h"

/* A process says why it does not govern a queue pair, of its own only. */
bool pages_reporting(void)
{
	struct share s = share_open_qp(), other = share_join();
	__u32 class = RISO_CLASS_BY_RULE;
	__u32 qpn = s.qp->qp_num;
	int fd = share_open_file();
	bool ok;

	ok = pages_has_reason(qpn, "\"user-qp\"") &&
	     pages_report(fd, "no-such", qpn, RISO_REASON_MEMORY) == ENODEV &&
	     pages_report(fd, pages_device, 1, RISO_REASON_MEMORY) == ENOENT &&
	     pages_report(fd, pages_device, 0xfffffe, RISO_REASON_MEMORY) == ENOENT &&
	     pages_report(fd, pages_device, qpn, RISO_REASON_DISABLED) == EINVAL &&
	     pages_report(fd, pages_device, qpn, 1000) == EINVAL &&
	     ioctl(fd, RISO_IOC_REPORT, NULL) == -1 && errno == EFAULT &&
	     !pages_report(fd, pages_device, qpn, RISO_REASON_NO_CQ_ROOM) &&
	     pages_has_reason(qpn, "\"no-cq-room\"") &&
	     !pages_report(fd, pages_device, qpn, RISO_REASON_SHIM_LIMIT) &&
	     pages_has_reason(qpn, "\"shim-limit\"") &&
	     !pages_report(fd, pages_device, qpn, RISO_REASON_NONE) &&
	     pages_has_reason(qpn, "\"user-qp\"") &&
	     !pages_report(fd, pages_device, qpn, RISO_REASON_NO_THREAD) &&
	     !share_register(other.fd, qpn, &class) && pages_has_reason(qpn, "\"none\"");
	/* A second file of the process changes nothing. */
	qpn = other.qp->qp_num;
	ok = ok && !pages_report(fd, pages_device, qpn, RISO_REASON_NO_THREAD) &&
	     share_attach(fd, pages_device, RISO_USER_VERSION, qpn) == EBUSY &&
	     pages_has_reason(qpn, "\"no-thread\"");
	close(fd);
	share_leave(&other);
	share_close_qp(&s);
	return ok;
}

/* How many events of the queue pair there were; is @reason what the last one says? */
static unsigned int count_events(__u32 qpn, const char *reason, bool *last)
{
	FILE *file = fopen(pages_events, "r");
	char who[32], *line = NULL;
	unsigned int num = 0;
	size_t size = 0;

	if (!file)
		err(1, "%s", pages_events);
	snprintf(who, sizeof(who), "\"qpn\":%u,", qpn);
	for (*last = false; getline(&line, &size, file) > 0; ) {
		if (!strstr(line, who))
			continue;
		*last = strstr(line, reason);
		num++;
	}
	free(line);
	fclose(file);
	return num;
}

/* Who says something else all the time is not told of each time, but of the last. */
bool pages_reporting_much(void)
{
	static const __u32 reasons[] = { RISO_REASON_MEMORY, RISO_REASON_NO_THREAD };
	struct share s = share_open_qp();
	__u64 began = share_now(), most;
	unsigned int i, num = 0;
	int fd = share_open_file();
	bool ok = true, last = false;

	for (i = 0; ok && i < 20000; i++)
		ok = !pages_report(fd, pages_device, s.qp->qp_num, reasons[i % 2]);
	ok = ok && !pages_report(fd, pages_device, s.qp->qp_num, RISO_REASON_SHIM_LIMIT);
	for (i = 0; ok && !last && i < 200; i++) {
		usleep(50000);
		num = count_events(s.qp->qp_num, "\"shim-limit\"", &last);
	}
	/* The first one, a hundred at once, and as many in a second */
	most = 102 + (share_now() - began) / 10000000;
	ksft_print_msg("%u events, at most %llu\n", num, (unsigned long long)most);
	close(fd);
	share_close_qp(&s);
	return ok && last && num > 100 && num <= most;
}

/*
 * Of many queue pairs whose process says something else at once, not all can be told of for
 * seconds. A few of them are looked at meanwhile, 100 times a second.
 */
bool pages_owing_much(void)
{
	static struct ibv_qp *qp[600];
	struct share s = share_open_qp();
	unsigned long long looks, most;
	int fd = share_open_file();
	bool ok = true, last;
	__u64 began;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(qp); i++) {
		qp[i] = s.qp;
		share_make_qp(&s);
	}
	for (i = 0; ok && i < ARRAY_SIZE(qp); i++)
		ok = !pages_report(fd, pages_device, qp[i]->qp_num, RISO_REASON_NO_CQ_ROOM);
	pages_start_counting("riso_rate_take");
	began = share_now();
	sleep(1);
	looks = pages_stop_counting();
	most = 32 * ((share_now() - began) / 10000000 + 2);
	ksft_print_msg("%llu looks, at most %llu\n", looks, most);
	ok = ok && looks && looks <= most;
	for (i = 0, last = false; ok && !last && i < 200; i++) {
		usleep(100000);
		count_events(qp[ARRAY_SIZE(qp) - 1]->qp_num, "\"no-cq-room\"", &last);
	}
	for (i = 0; i < ARRAY_SIZE(qp); i++)
		ibv_destroy_qp(qp[i]);
	close(fd);
	share_close_qp(&s);
	return ok && last;
}

/* Are listeners told of the queue pair, soon? Then they were of what was before. */
static bool is_told_of(__u32 qpn)
{
	bool unused;
	int n;

	for (n = 0; n < 200 && !count_events(qpn, "", &unused); n++)
		usleep(100000);
	return n < 200;
}

/* How many events of queue pairs of this process there were */
static unsigned int count_own_events(void)
{
	FILE *file = fopen(pages_events, "r");
	char who[32], *line = NULL;
	unsigned int num = 0;
	size_t size = 0;

	if (!file)
		err(1, "%s", pages_events);
	snprintf(who, sizeof(who), "\"pid\":%d,", getpid());
	while (getline(&line, &size, file) > 0)
		num += strstr(line, "\"event\":\"flow") && strstr(line, who);
	free(line);
	fclose(file);
	return num;
}

/* Nor is told of each queue pair that is made and destroyed, but of the last. */
bool pages_making_many(void)
{
	struct share s = share_open_qp();
	unsigned int i, num, most;
	bool ok = is_told_of(s.qp->qp_num);
	__u64 began;

	num = count_own_events();
	began = share_now();
	for (i = 0; i < 2000; i++) {
		ibv_destroy_qp(s.qp);
		share_make_qp(&s);
	}
	ok = is_told_of(s.qp->qp_num) && ok;
	most = 102 + (share_now() - began) / 10000000;
	num = count_own_events() - num;
	ksft_print_msg("%u events, at most %u\n", num, most);
	share_close_qp(&s);
	return ok && num && num <= most;
}

/* Nobody waits for what a program does with completion queues, or changes again and again. */
bool pages_changing_little(void)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 1 };
	struct share s = share_open_qp();
	unsigned long long forgotten, runs;
	bool ok = true;
	int i;

	share_connect_qp(&s);
	pages_start_counting("riso_cq_destroyed");
	for (i = 0; ok && i < 100; i++)
		ok = !ibv_destroy_cq(ibv_create_cq(s.context, 1, NULL, NULL, 0));
	forgotten = pages_stop_counting();
	pages_start_counting("riso_sched_run");
	for (i = 0; ok && i < 1000; i++)
		ok = !ibv_modify_qp(s.qp, &attr, IBV_QP_MIN_RNR_TIMER);
	runs = pages_stop_counting();
	share_close_qp(&s);
	ksft_print_msg("%llu completion queues forgotten, %llu runs\n", forgotten, runs);
	return ok && !forgotten && runs < 500;
}
