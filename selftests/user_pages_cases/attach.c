// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try what ATTACH and REGISTER refuse, and see when a process is to ask again.
 */
#include <errno.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include <linux/rdma_isolate.h>
#include <linux/rdma_isolate_user.h>
#include "../share.h"
#include "pages.h"

bool pages_attaching(void)
{
	struct riso_ioc_wait w = { .timeout_us = 1 };
	int fd = share_open_file(), other = share_open_file();
	__u32 class = RISO_CLASS_BY_RULE;
	struct share s = share_open_qp();
	__u32 qpn = s.qp->qp_num;
	bool ok;

	ok = fd >= 0 && other >= 0 &&
	     ioctl(fd, RISO_IOC_WAIT, &w) == -1 && errno == ENOTCONN &&
	     share_register(fd, 1, &class) == ENOTCONN &&
	     ioctl(fd, _IO(RISO_IOC_MAGIC, 9)) == -1 && errno == ENOTTY &&
	     ioctl(fd, RISO_IOC_ATTACH, NULL) == -1 && errno == EFAULT &&
	     share_attach(fd, pages_device, RISO_USER_VERSION + 1, qpn) == EPROTONOSUPPORT &&
	     share_attach(fd, "no-such", RISO_USER_VERSION, qpn) == ENODEV &&
	     share_attach(fd, "a-name-that-has-no-end-and-fills-all-of-the-sixty-four-bytes-of-it",
			  RISO_USER_VERSION, qpn) == EINVAL &&
	     share_attach(fd, pages_device, RISO_USER_VERSION, 1) == ENOENT &&
	     share_attach(fd, pages_device, RISO_USER_VERSION, 0xfffffe) == ENOENT &&
	     !share_attach(fd, pages_device, RISO_USER_VERSION, qpn) &&
	     share_attach(fd, pages_device, RISO_USER_VERSION, qpn) == EBUSY &&
	     share_attach(other, pages_device, RISO_USER_VERSION, qpn) == EBUSY;
	close(fd);
	ok = ok && !share_attach(other, pages_device, RISO_USER_VERSION, qpn);
	close(other);
	share_close_qp(&s);
	return ok;
}

/* In another network namespace, which does not have the device */
static int moves_away(struct share *unused)
{
	struct share s = share_open_qp();
	int fd = share_open_file();

	(void)unused;
	if (unshare(CLONE_NEWNET))
		return 1;
	return share_attach(fd, pages_device, RISO_USER_VERSION, s.qp->qp_num) != ENODEV ||
	       pages_report(fd, pages_device, s.qp->qp_num, RISO_REASON_MEMORY) != ENODEV;
}

bool pages_moving_away(void)
{
	pid_t pid;

	return !pages_in_child(moves_away, NULL, &pid);
}

static int register_flags(int fd, __u32 qpn, __u32 flags)
{
	struct riso_ioc_register r = {
		.qpn = qpn, .class_id = RISO_CLASS_BY_RULE, .flags = flags,
	};

	return ioctl(fd, RISO_IOC_REGISTER, &r) ? errno : 0;
}

bool pages_registering(void)
{
	__u32 class = RISO_CLASS_BY_RULE, again = class, other = class;
	__u32 wish = RISO_CLASS_LATENCY, wrong = 3;
	struct share s = share_join();
	__u32 qpn = s.qp->qp_num;
	bool ok;

	ok = !share_register(s.fd, qpn, &class) && class == RISO_CLASS_BANDWIDTH &&
	     !share_register(s.fd, qpn, &again) && again == class &&
	     share_register(s.fd, qpn, &wish) == EPERM &&
	     share_register(s.fd, qpn, &wrong) == EINVAL &&
	     register_flags(s.fd, qpn, RISO_REGISTER_CUT_IMM) == EINVAL &&
	     share_register(s.fd, 1, &other) == ENOENT &&
	     share_register(s.fd, 0xfffffe, &other) == ENOENT;
	/* Without a queue pair there are no grants, ... */
	ibv_destroy_qp(s.qp);
	ok = ok && share_register(s.fd, qpn, &other) == ENOENT;
	s.u->path[0].want = 4096;
	ok = ok && !share_wait(&s, 100000) && !s.k->path[0].seq;
	/* ... nor with one that cannot send yet. */
	share_make_qp(&s);
	ok = ok && !share_register(s.fd, s.qp->qp_num, &other) && !share_wait(&s, 100000) &&
	     !s.k->path[0].seq;
	share_connect_qp(&s);
	while (ok && !s.k->path[0].seq)
		ok = !share_wait(&s, 100000);
	share_leave(&s);
	return ok;
}

/* Is the process to ask again, soon? */
static bool asks_again(const struct share *s, __u32 *classes)
{
	__u32 before = *classes;
	int n;

	for (n = 0; n < 1000 && *classes == before; n++) {
		usleep(10000);
		*classes = __atomic_load_n(&s->k->classes, __ATOMIC_ACQUIRE);
	}
	return *classes != before;
}

/* Is another queue pair given @class, and no other one asked for again? */
static bool adds_quietly(const struct share *s, __u32 wish, __u32 class)
{
	__u32 before = __atomic_load_n(&s->k->classes, __ATOMIC_ACQUIRE);
	struct share other = *s;
	bool ok;

	share_make_qp(&other);
	share_connect_qp(&other);
	ok = !share_register(s->fd, other.qp->qp_num, &wish) && wish == class;
	ibv_destroy_qp(other.qp);
	return ok && __atomic_load_n(&s->k->classes, __ATOMIC_ACQUIRE) == before;
}

/* Rules have a process ask again, but neither a queue pair of its own nor a wish. */
bool pages_asking_again(void)
{
	struct share s = share_join();
	__u32 classes = __atomic_load_n(&s.k->classes, __ATOMIC_ACQUIRE);
	unsigned int rule;
	bool ok;

	ok = adds_quietly(&s, RISO_CLASS_BY_RULE, RISO_CLASS_BANDWIDTH);
	rule = pages_add_rule("comm user_pages class bandwidth choose on");
	ok = rule && asks_again(&s, &classes) && ok;
	ok = adds_quietly(&s, RISO_CLASS_BY_RULE, RISO_CLASS_BANDWIDTH) && ok;
	ok = adds_quietly(&s, RISO_CLASS_LATENCY, RISO_CLASS_LATENCY) && ok;
	ok = !pages_delete_rule(rule) && asks_again(&s, &classes) && ok;
	share_leave(&s);
	return ok;
}
