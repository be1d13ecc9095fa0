// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The fake kernel. Helper threads are created for the tests that are about them. In
 * others each helper is called at the end, when it only has to free its member.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <linux/rdma_isolate.h>

#include "core/grantring.h"
#include "fake_kernel.h"
#include "fake_verbs.h"
#include "grant.h"
#include "shim.h"

struct fake_kernel fake_kernel;

enum { FAKE_NAME = 1000, FAKE_OTHER_NAME, FAKE_FILE };

static const char *fake_name(void)
{
	return fake_kernel.now_called ? fake_kernel.now_called : fake_verbs.device.name;
}

static int fake_open(const char *path, int flags, ...)
{
	(void)flags;
	if (!strcmp(path, "/sys/class/infiniband_verbs/uverbs0/ibdev")) {
		errno = ENOENT;
		return fake_kernel.now_called ? FAKE_NAME : -1;
	}
	if (!strcmp(path, "/sys/class/infiniband_verbs/uverbs1/ibdev"))
		return FAKE_OTHER_NAME;
	assert_string_equal(path, RISO_USER_FILE);
	if (fake_kernel.open_err) {
		errno = fake_kernel.open_err;
		return -1;
	}
	fake_kernel.opened++;
	return fake_kernel.next_file ? fake_kernel.next_file : FAKE_FILE + fake_kernel.opened;
}

static bool fake_is_device(const char *name)
{
	return !strcmp(name, fake_name()) ||
	       (fake_kernel.other_called && !strcmp(name, fake_kernel.other_called));
}

static ssize_t fake_read(int fd, void *buf, size_t count)
{
	assert_true(fd == FAKE_NAME || fd == FAKE_OTHER_NAME);
	return snprintf(buf, count, "%s\n",
			fd == FAKE_NAME ? fake_name() : fake_kernel.other_called);
}

static int fake_ioctl(int fd, unsigned long request, ...)
{
	const struct riso_ioc_attach *attach;
	const struct riso_ioc_report *report;
	const struct riso_ioc_wait *w;
	struct riso_ioc_register *reg;
	va_list ap;
	void *arg;

	assert_true(fd > FAKE_FILE);
	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	errno = 0;
	switch (request) {
	case RISO_IOC_ATTACH:
		attach = arg;
		assert_int_equal(attach->version, RISO_USER_VERSION);
		assert_int_equal(attach->qpn, fake_verbs.next_qpn - 1);
		errno = fake_is_device(attach->dev) ? fake_kernel.attach_err : ENODEV;
		fake_kernel.attached += !errno;
		memcpy(fake_kernel.attached_to, attach->dev, sizeof(attach->dev));
		break;
	case RISO_IOC_REPORT:
		report = arg;
		if (!fake_is_device(report->dev)) {
			errno = ENODEV;
			break;
		}
		fake_kernel.reported = report->qpn;
		fake_kernel.reason = report->reason;
		break;
	case RISO_IOC_REGISTER:
		reg = arg;
		fake_syscall();
		errno = fake_kernel.register_err;
		if (errno == EPERM && reg->class_id == RISO_CLASS_BY_RULE)
			errno = 0;
		if (reg->class_id > RISO_CLASS_BANDWIDTH && reg->class_id != RISO_CLASS_BY_RULE)
			errno = EINVAL;
		fake_kernel.wish = reg->class_id;
		fake_kernel.registers++;
		assert_int_equal(reg->flags, 0);
		assert_int_equal(reg->path[0] + reg->path[1] + reg->pad[0] + reg->pad[1], 0);
		reg->class_id = fake_kernel.class_id;
		reg->flags = fake_kernel.register_flags;
		memcpy(reg->path, fake_kernel.path, sizeof(reg->path));
		break;
	case RISO_IOC_WAIT:
		w = arg;
		__atomic_add_fetch(&fake_kernel.waits, 1, __ATOMIC_RELAXED);
		if (w->timeout_us) {
			__atomic_store_n(&fake_kernel.timeout, w->timeout_us,
					 __ATOMIC_RELAXED);
			if (!fake_kernel.wait_err)
				usleep(50);
		}
		errno = fake_kernel.wait_err;
		break;
	default:
		fail();
	}
	return errno ? -1 : 0;
}

static void *fake_mmap(void *addr, size_t len, int prot, int flags, int fd,
		       off_t off)
{
	(void)addr;
	assert_int_equal(len, 4096);
	assert_int_equal(flags, MAP_SHARED);
	assert_true(fd > FAKE_FILE);
	if (off)
		assert_int_equal(prot, PROT_READ | PROT_WRITE);
	else
		assert_int_equal(prot, PROT_READ);
	if (fake_kernel.map_err) {
		errno = fake_kernel.map_err;
		return MAP_FAILED;
	}
	return off ? (void *)&fake_kernel.u : (void *)&fake_kernel.k;
}

static int fake_munmap(void *addr, size_t len)
{
	(void)addr;
	(void)len;
	return 0;
}

static int fake_close(int fd)
{
	if (fd > FAKE_FILE)
		__atomic_add_fetch(&fake_kernel.closed, 1, __ATOMIC_RELEASE);
	return 0;
}

/* The program may have closed a file, and have another one of that number. */
static uint64_t fake_device_of(int fd)
{
	(void)fd;
	return fake_kernel.file_device;
}

static uint64_t fake_clock(void)
{
	__atomic_add_fetch(&fake_kernel.clocks, 1, __ATOMIC_RELAXED);
	return __atomic_load_n(&fake_kernel.now, __ATOMIC_RELAXED);
}

static void *run_helper(void *arg)
{
	void *ret = fake_kernel.helper(arg);

	__atomic_add_fetch(&fake_kernel.ended, 1, __ATOMIC_RELEASE);
	return ret;
}

static int fake_create_thread(pthread_t *thread, const pthread_attr_t *attr,
			      void *(*fn)(void *arg), void *arg)
{
	size_t stack;
	int detached;

	assert_int_equal(pthread_attr_getdetachstate(attr, &detached), 0);
	assert_int_equal(detached, PTHREAD_CREATE_DETACHED);
	assert_int_equal(pthread_attr_getinheritsched(attr, &fake_kernel.inherits), 0);
	if (fake_kernel.run_helper) {
		fake_kernel.helper = fn;
		fake_kernel.begun++;
		return pthread_create(thread, attr, run_helper, arg);
	}
	*thread = pthread_self();
	if (fake_kernel.thread_err)
		return fake_kernel.thread_err;
	assert_int_equal(pthread_attr_getstacksize(attr, &stack), 0);
	if (stack < fake_kernel.least_stack)
		return EINVAL;
	assert_true(fake_kernel.helpers < ARRAY_SIZE(fake_kernel.helps));
	fake_kernel.helper = fn;
	fake_kernel.helps[fake_kernel.helpers++] = arg;
	return 0;
}

static int fake_membarrier(int cmd)
{
	if (fake_kernel.at_barrier)
		fake_kernel.at_barrier();
	return fake_kernel.no_barrier ? -1 : shim_membarrier(cmd);
}

uint64_t fake_cost(uint64_t len)
{
	return shim_cost(len, FAKE_MTU, FAKE_HEADER, fake_kernel.k.op_bytes);
}

void fake_grant_until(int path, uint64_t bytes, uint64_t not_after)
{
	struct riso_kpath *k = &fake_kernel.k.path[path];
	const struct riso_grant g = {
		.not_after = not_after,
		.bytes = bytes,
		.seq = riso_grantring_follow(k->seq),
	};

	riso_grantring_write(k, &g);
	__atomic_add_fetch(&fake_kernel.k.grants, 1, __ATOMIC_RELEASE);
	fake_kernel.granted[path] += bytes;
}

void fake_grant(int path, uint64_t bytes)
{
	fake_grant_until(path, bytes, fake_kernel.now + 10 * MSEC);
}

/* What is posted is paid for. */
void fake_check_books(void)
{
	int i;

	for (i = 0; i < RISO_USER_PATHS; i++) {
		const struct riso_upath *u = &fake_kernel.u.path[i];

		assert_true(u->done <= u->posted);
		assert_true(u->debt <= u->posted);
		if (fake_kernel.k.mode == RISO_USER_PACED || i >= RISO_USER_DIRS)
			assert_true(u->posted - u->debt <= fake_kernel.granted[i]);
	}
}

void fake_kernel_install(void)
{
	shim_sys = (struct shim_sys) {
		.open = fake_open,
		.read = fake_read,
		.ioctl = fake_ioctl,
		.mmap = fake_mmap,
		.munmap = fake_munmap,
		.close = fake_close,
		.device_of = fake_device_of,
		.now = fake_clock,
		.create_thread = fake_create_thread,
		.membarrier = fake_membarrier,
	};
}

void fake_kernel_reset(void)
{
	fake_kernel.now = 1000ULL * MSEC;
	memset(fake_kernel.kroom, 0, sizeof(fake_kernel.kroom));
	memset(fake_kernel.uroom, 0, sizeof(fake_kernel.uroom));
	memset(fake_kernel.granted, 0, sizeof(fake_kernel.granted));
	fake_kernel.k.version = RISO_USER_VERSION;
	fake_kernel.k.header = FAKE_HEADER;
	fake_kernel.k.op_bytes = 100;
	fake_kernel.k.slice_ns = MSEC;
	fake_kernel.k.window = 1ULL << 40;
	fake_kernel.k.mode = RISO_USER_PACED;
	fake_kernel.k.paths = RISO_USER_DIRS;
	fake_kernel.k.path[0].chunk = FAKE_CHUNK;
	fake_kernel.k.path[1].chunk = FAKE_CHUNK;
	fake_kernel.path[RISO_USER_TX] = RISO_USER_TX;
	fake_kernel.path[RISO_USER_RX] = RISO_USER_RX;
	fake_kernel.class_id = RISO_CLASS_BANDWIDTH;
	fake_kernel.register_flags = 0;
	fake_kernel.open_err = 0;
	fake_kernel.attach_err = 0;
	fake_kernel.map_err = 0;
	fake_kernel.register_err = 0;
	fake_kernel.wait_err = 0;
	fake_kernel.next_file = 0;
	fake_kernel.file_device = 7;
	fake_kernel.attached = 0;
	fake_kernel.now_called = NULL;
	fake_kernel.other_called = NULL;
	fake_kernel.reported = 0;
	fake_kernel.run_helper = false;
	fake_kernel.thread_err = 0;
	fake_kernel.least_stack = 0;
}
