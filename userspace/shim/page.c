// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * This process on its devices: the file, its two pages, and the helper threads.
 *
 * A member is the process on one device, however often the program opens that. It takes
 * part from the first queue pair on that can be governed; until then, and if the kernel
 * refuses it, it looks at empty pages and all its flows go straight to the provider.
 * While something is held, the program's own calls post what may be posted; the helper does
 * it when there are none. Each member has one, created when something has to wait and
 * asleep while nothing does. It ends when nothing has for a while: a process whose other
 * threads are all gone ends by itself, whether it has closed its devices or not.
 *
 * After fork() the child goes on as though there were no shim: its members look at
 * empty pages of their own, as the kernel's are not inherited, and all its flows go
 * straight to the provider.
 *
 * Locks: see shim.h. shim_members.lock is never taken under that of a member; who
 * wakes the helper has unlocked his member. At every unlock shim_member.waiting says
 * whether something is held; when that begins, the helper is woken. The kernel, which
 * forgets who wants nothing, is told whenever grants are wanted again.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "shim.h"

/* How long the helper waits for the kernel, in microseconds. */
enum {
	WAIT_GRANT = 100000,	/* only for a grant */
	WAIT_COMPLETION = 100,	/* for the room that a completion makes */
	WAIT_PROGRAM = 1000,	/* if the program polls, or to tell what is done */
};

/* Microseconds that it may spin at most. */
enum { SPIN_MAX = 1000 };

/* Seconds without anything to do after which it ends. */
enum { IDLE = 1 };

enum { STACK = 256 * 1024 };

static uint64_t clock_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

struct shim_sys shim_sys = {
	.open = open,
	.read = read,
	.ioctl = ioctl,
	.mmap = mmap,
	.munmap = munmap,
	.close = close,
	.now = clock_now,
	.create_thread = pthread_create,
	.membarrier = shim_membarrier,
};

/* The members. */
static struct {
	TAILQ_HEAD(, shim_member) list;
	pthread_mutex_t lock;
	bool handlers;
	bool told;
} members = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.list = TAILQ_HEAD_INITIALIZER(members.list),
};

/* How many locks this thread holds, and whether it could be cancelled without. */
static __thread unsigned int inside;
static __thread int cancel_state;

/*
 * The pages of a member that does not take part. No kernel's page has these classes, so
 * that flows are asked for once it does.
 */
static struct riso_kpage no_kpage = { .classes = UINT32_MAX };
static struct riso_upage no_upage;

/**
 * shim_enter - this thread will hold a lock
 *
 * It may not be cancelled then, though providers make system calls under our locks.
 */
void shim_enter(void)
{
	if (!inside++)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
}

/**
 * shim_leave - it holds it no more
 */
void shim_leave(void)
{
	if (!--inside)
		pthread_setcancelstate(cancel_state, NULL);
}

/**
 * shim_debug - a line on stderr, if that is wanted
 * @fmt: as printf()
 */
void shim_debug(const char *fmt, ...)
{
	const char *env = getenv("RDMA_ISOLATE_DEBUG");
	char line[256];
	va_list ap;

	if (!env || strcmp(env, "1"))
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "rdma_isolate: %s\n", line);
}

/**
 * shim_member_open - may everything go out at once?
 * @m: the member
 *
 * Return: true if nothing has to wait for a grant.
 */
bool shim_member_open(const struct shim_member *m)
{
	return __atomic_load_n(&shim_member_kpage(m)->mode, __ATOMIC_RELAXED) !=
		       RISO_USER_PACED ||
	       __atomic_load_n(&m->gone, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&m->failed, __ATOMIC_RELAXED);
}

/* Has the kernel done something since? */
static bool has_news(const struct riso_kpage *k, const uint32_t *seq, uint32_t mode)
{
	int dir;

	for (dir = 0; dir < RISO_USER_DIRS; dir++)
		if (__atomic_load_n(&k->dir[dir].seq, __ATOMIC_RELAXED) != seq[dir])
			return true;
	return __atomic_load_n(&k->mode, __ATOMIC_RELAXED) != mode;
}

/**
 * shim_member_news - is there a reason to see what may be posted?
 * @m: the member, locked
 *
 * For who polls and polls. What only time brings is the helper's.
 *
 * Return: true if something has completed, or the kernel has done something.
 */
bool shim_member_news(const struct shim_member *m)
{
	return m->retired || (m->held && has_news(m->kpage, m->seq, m->mode));
}

/**
 * shim_member_take - take over what the kernel has granted
 * @m: the member, locked
 * @now: time
 */
void shim_member_take(struct shim_member *m, uint64_t now)
{
	struct riso_grant g;
	int dir;

	m->mode = __atomic_load_n(&m->kpage->mode, __ATOMIC_RELAXED);
	for (dir = 0; dir < RISO_USER_DIRS; dir++) {
		const struct riso_kdir *kdir = &m->kpage->dir[dir];
		struct shim_budget *b = &m->book[dir].budget;

		m->seq[dir] = __atomic_load_n(&kdir->seq, __ATOMIC_RELAXED);
		if (m->seq[dir] == b->taken && !shim_budget_left(b))
			continue;
		shim_budget_expire(b, now);
		while (!shim_budget_full(b)) {
			uint32_t n = shim_grant_read(kdir, b->taken, &g);

			if (n == b->taken)
				break;
			if (g.not_after > now)
				shim_budget_add(b, &g, n);
			else
				b->taken = n;
		}
	}
}

/**
 * shim_member_publish - tell the kernel how things are
 * @m: the member, locked
 */
void shim_member_publish(struct shim_member *m)
{
	int dir;

	if (!m->attached)
		return;
	for (dir = 0; dir < RISO_USER_DIRS; dir++) {
		const struct shim_book *book = &m->book[dir];
		struct riso_udir *u = &m->upage->dir[dir];
		uint64_t left = shim_budget_left(&book->budget);
		uint64_t held = book->held - book->stuck;
		uint64_t want = held > left ? held - left : 0;

		/* What is done or owed was posted before. */
		__atomic_store_n(&u->posted, book->posted, __ATOMIC_RELAXED);
		__atomic_store_n(&u->debt, book->debt, __ATOMIC_RELEASE);
		__atomic_store_n(&u->done, book->done, __ATOMIC_RELEASE);
		__atomic_store_n(&u->taken, book->budget.taken, __ATOMIC_RELEASE);
		__atomic_store_n(&u->want, want, __ATOMIC_RELEASE);
		if (!want)
			m->asked[dir] = false;
	}
}

/* The device is gone: nothing holds the program up. */
static void set_gone(struct shim_member *m)
{
	__atomic_store_n(&m->gone, true, __ATOMIC_RELAXED);
}

/**
 * shim_member_register - ask for the class of a queue pair
 * @m: the member, not locked
 * @qpn: number of the queue pair
 * @class_id: the wish, and the class in force
 *
 * Return: 0 or an error.
 */
int shim_member_register(struct shim_member *m, uint32_t qpn, uint32_t *class_id)
{
	struct riso_ioc_register reg = { .qpn = qpn, .class = *class_id };

	if (shim_sys.ioctl(m->fd, RISO_IOC_REGISTER, &reg)) {
		if (errno == ENODEV)
			set_gone(m);
		return errno;
	}
	*class_id = reg.class;
	return 0;
}

/* Have the kernel look at the page, and wait for what it does. */
static void wait_kernel(struct shim_member *m, const struct riso_ioc_wait *w)
{
	if (shim_sys.ioctl(m->fd, RISO_IOC_WAIT, w) && errno != EINTR)
		set_gone(m);
}

static bool holds(const struct shim_member *m)
{
	return __atomic_load_n(&m->held, __ATOMIC_RELAXED);
}

/* Look at the page for a while, no longer than @w; true if there is something new. */
static bool spin(struct shim_member *m, const struct riso_ioc_wait *w)
{
	uint64_t most = w->timeout_us * 1000ULL;
	struct riso_ioc_wait ask = *w;
	uint64_t end;

	if (!m->spin_ns)
		return false;
	ask.timeout_us = 0;
	wait_kernel(m, &ask);
	end = shim_sys.now() + (m->spin_ns < most ? m->spin_ns : most);
	do {
		if (has_news(m->kpage, w->seq, w->mode))
			return true;
	} while (holds(m) && shim_sys.now() < end);
	return false;
}

static struct riso_ioc_wait known(struct shim_member *m, uint32_t timeout_us)
{
	int dir;

	for (dir = 0; dir < RISO_USER_DIRS; dir++)
		m->asked[dir] = m->upage->dir[dir].want;
	return (struct riso_ioc_wait) {
		.seq = { m->seq[RISO_USER_TX], m->seq[RISO_USER_RX] },
		.mode = m->mode,
		.timeout_us = timeout_us,
	};
}

/* How long the helper shall wait, 0 for no more. */
static uint32_t how_long(const struct shim_member *m)
{
	uint32_t timeout = WAIT_GRANT;
	const struct shim_qp *f;

	if (!m->held)
		return 0;
	TAILQ_FOREACH(f, &m->busy, busy) {
		if (!f->sq.signaled && !f->full)
			continue;
		if (f->full && f->cq->unseen > 1)
			return WAIT_COMPLETION;
		timeout = WAIT_PROGRAM;
	}
	return timeout;
}

/* Take completions and grants, and post; how long to wait then, 0 for no more. */
static uint32_t serve(struct shim_member *m, struct riso_ioc_wait *w)
{
	struct shim_qp *f;

	shim_lock(&m->lock);
	m->round++;
	TAILQ_FOREACH(f, &m->busy, busy) {
		if ((!f->sq.signaled && !f->full) || f->cq->round == m->round)
			continue;
		f->cq->round = m->round;
		f->cq->unseen++;
		shim_comp_reap(f->cq);
		shim_comp_update(f->cq);
	}
	shim_queue_drive(m);
	m->waiting = m->held;
	*w = known(m, how_long(m));
	shim_unlock(&m->lock);
	return w->timeout_us;
}

static void free_member(struct shim_member *m)
{
	long page = sysconf(_SC_PAGESIZE);

	TAILQ_REMOVE(&members.list, m, list);
	if (m->attached) {
		shim_sys.munmap((void *)m->kpage, page);
		shim_sys.munmap(m->upage, page);
	}
	if (m->fd >= 0)
		shim_sys.close(m->fd);
	pthread_cond_destroy(&m->wake);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

/* Sleep until there may be something to do; false after IDLE without. */
static bool wait_idle(struct shim_member *m)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += IDLE;
	return pthread_cond_timedwait(&m->wake, &members.lock, &until) != ETIMEDOUT;
}

/* Lives until nothing was held for IDLE, or the last context is closed. */
static void *helper(void *arg)
{
	struct shim_member *m = arg;
	struct riso_ioc_wait w;

	shim_lock(&members.lock);
	while (m->refs) {
		if (!holds(m)) {
			if (!wait_idle(m) && !holds(m))
				break;
			continue;
		}
		shim_unlock(&members.lock);
		if (shim_member_stale(m))
			shim_qps_refresh(m);
		if (serve(m, &w) && !spin(m, &w))
			wait_kernel(m, &w);
		shim_lock(&members.lock);
	}
	/* Who holds something from here on finds no helper, and starts one. */
	m->started = false;
	if (!m->refs)
		free_member(m);
	shim_unlock(&members.lock);
	return NULL;
}

/* A thread that no other of its processor runs beside, as long as it does not sleep */
static bool is_real_time(void)
{
	int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;

	return policy == SCHED_FIFO || policy == SCHED_RR;
}

/*
 * Signals are for the program's own threads. One of real-time priority may wait for what
 * the helper posts without sleeping: the helper is not of its kind, so that the kernel
 * lets it have a part of the time.
 */
static bool start_helper(struct shim_member *m)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	size_t size;
	int err;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (is_real_time())
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_getstacksize(&attr, &size);
	pthread_attr_setstacksize(&attr, STACK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = shim_sys.create_thread(&thread, &attr, helper, m);
	if (err == EINVAL) {
		/* The program's thread-local variables are on it, too. */
		pthread_attr_setstacksize(&attr, size);
		err = shim_sys.create_thread(&thread, &attr, helper, m);
	}
	if (!err)
		pthread_setname_np(thread, "rdma_isolate");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return !err;
}

/* False if there cannot be a helper, so that nothing may wait; its list is locked. */
static bool have_helper(struct shim_member *m)
{
	if (!m->started)
		m->started = start_helper(m);
	__atomic_store_n(&m->failed, !m->started, __ATOMIC_RELAXED);
	return m->started;
}

/* False if nothing may wait. */
static bool wake_helper(struct shim_member *m)
{
	bool failed, was_failed;

	shim_lock(&members.lock);
	was_failed = m->failed;
	failed = was_failed || !have_helper(m);
	pthread_cond_signal(&m->wake);
	shim_unlock(&members.lock);
	if (failed && !was_failed) {
		shim_qps_no_thread(m);
		/* They ask again with the next queue pair, for which there may be one. */
		__atomic_store_n(&m->refused, true, __ATOMIC_RELAXED);
	}
	return !failed;
}

/* Try once more to have a helper where there could be none. */
static int retry_helper(struct shim_member *m)
{
	bool failed;

	shim_lock(&members.lock);
	failed = m->failed && !have_helper(m);
	shim_unlock(&members.lock);
	return failed ? EAGAIN : 0;
}

/* Post once more; true if something is held still. */
static bool drive(struct shim_member *m)
{
	bool held;

	shim_lock(&m->lock);
	shim_queue_drive(m);
	held = m->held;
	m->waiting = held;
	shim_unlock(&m->lock);
	return held;
}

/* Grants are wanted, and the kernel does not know. */
static bool must_ask(const struct shim_member *m)
{
	int dir;

	for (dir = 0; dir < RISO_USER_DIRS; dir++)
		if (!m->asked[dir] && m->upage->dir[dir].want)
			return true;
	return false;
}

/**
 * shim_unlock_and_drive - unlock a member where something may be held now
 * @m: the member
 */
void shim_unlock_and_drive(struct shim_member *m)
{
	bool begins = m->held && !m->waiting;
	bool asks = must_ask(m);
	struct riso_ioc_wait w;
	int saved;

	m->waiting = m->held;
	if (asks)
		w = known(m, 0);
	shim_unlock(&m->lock);
	if (!begins && !asks)
		return;
	saved = errno;
	if (asks) {
		wait_kernel(m, &w);
		begins = drive(m) && begins;
	}
	if (begins && !wake_helper(m))
		drive(m);
	errno = saved;
}

/* Does this thread hold a lock of ours, or does one that does wait for its poll? */
static bool is_inside(void)
{
	return inside || shim_poller.turn % 2;
}

/*
 * A signal handler may fork inside a call of ours, as to start a debugger, and who waited
 * here for the locks of its own thread would wait for ever. That child has them locked, and
 * all that is the parent's: it can do nothing but exec or _exit().
 */
static void before_fork(void)
{
	struct shim_member *m;

	if (is_inside())
		return;
	pthread_mutex_lock(&shim_class_lock);
	pthread_mutex_lock(&shim_size_lock);
	shim_pollers_lock();
	pthread_mutex_lock(&members.lock);
	TAILQ_FOREACH(m, &members.list, list)
		pthread_mutex_lock(&m->lock);
	shim_maps_lock();
}

static void unlock_all(void)
{
	struct shim_member *m;

	if (is_inside())
		return;
	shim_maps_unlock();
	TAILQ_FOREACH(m, &members.list, list)
		pthread_mutex_unlock(&m->lock);
	pthread_mutex_unlock(&members.lock);
	shim_pollers_unlock();
	pthread_mutex_unlock(&shim_size_lock);
	pthread_mutex_unlock(&shim_class_lock);
}

/* By the clock of wait_idle() */
static void init_wake(struct shim_member *m)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&m->wake, &attr);
	pthread_condattr_destroy(&attr);
}

static void in_child(void)
{
	struct shim_member *m;

	if (is_inside())
		return;
	TAILQ_FOREACH(m, &members.list, list) {
		if (m->fd >= 0)
			shim_sys.close(m->fd);
		m->fd = -1;
		m->gone = true;
		m->attached = false;
		m->kpage = &no_kpage;
		m->upage = &no_upage;
		/* The child may open the device anew. */
		m->dev[0] = 0;
		init_wake(m);
		m->started = false;
		m->failed = false;
	}
	members.told = false;
	shim_qps_forked();
	shim_pollers_forked();
	unlock_all();
}

/* Map the pages of an attached file. */
static int map_pages(struct shim_member *m)
{
	long page = sysconf(_SC_PAGESIZE);
	struct riso_kpage *k;
	void *u;
	int err;

	k = shim_sys.mmap(NULL, page, PROT_READ, MAP_SHARED, m->fd,
			  RISO_USER_KPAGE * page);
	if (k == MAP_FAILED)
		return errno;
	u = shim_sys.mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd,
			  RISO_USER_UPAGE * page);
	err = errno;
	if (u == MAP_FAILED)
		goto unmap_kpage;
	err = EPROTONOSUPPORT;
	if (k->version != RISO_USER_VERSION)
		goto unmap_upage;
	shim_lock(&m->lock);
	m->upage = u;
	m->attached = true;
	/* Pairs with the load of shim_member_kpage(). */
	__atomic_store_n(&m->kpage, k, __ATOMIC_RELEASE);
	shim_unlock(&m->lock);
	return 0;

unmap_upage:
	shim_sys.munmap(u, page);
unmap_kpage:
	shim_sys.munmap(k, page);
	return err;
}

/* libibverbs goes on calling a device what it was called when it was first seen. */
static void present_name(const struct shim_member *m, char *name, size_t size)
{
	char path[sizeof("/sys/class/infiniband_verbs//ibdev") + sizeof(m->dev)];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%s/ibdev", m->dev);
	fd = shim_sys.open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = shim_sys.read(fd, name, size - 1);
		shim_sys.close(fd);
	}
	if (n > 0) {
		name[n] = 0;
		name[strcspn(name, "\n")] = 0;
	} else {
		snprintf(name, size, "%s", m->name);
	}
}

static int open_file(struct shim_member *m)
{
	if (m->fd < 0)
		m->fd = shim_sys.open(RISO_USER_FILE, O_RDWR | O_CLOEXEC);
	return m->fd < 0 ? errno : 0;
}

/**
 * shim_member_attach - take part in the device
 * @m: the member, not locked; shim_class_lock is held
 * @qpn: number of a queue pair of this process on it
 *
 * Return: 0, also if it takes part already; EAGAIN if there is no helper; or another
 * error.
 */
int shim_member_attach(struct shim_member *m, uint32_t qpn)
{
	struct riso_ioc_attach a = { .version = RISO_USER_VERSION, .qpn = qpn };
	int err;

	if (m->attached)
		return retry_helper(m);
	if (__atomic_load_n(&m->gone, __ATOMIC_RELAXED))
		return ENODEV;
	err = open_file(m);
	if (err)
		return err;
	present_name(m, a.dev, sizeof(a.dev));
	if (shim_sys.ioctl(m->fd, RISO_IOC_ATTACH, &a))
		return errno;
	err = map_pages(m);
	if (err) {
		/* It cannot be attached for a second time. */
		shim_sys.close(m->fd);
		m->fd = -1;
	}
	return err;
}

/* A file to tell something with: where no more can be opened, that of another device. */
static int file_to_report(struct shim_member *m)
{
	struct shim_member *other;
	int fd = -1;

	if (!open_file(m))
		return m->fd;
	shim_lock(&members.lock);
	TAILQ_FOREACH(other, &members.list, list)
		if (other->fd >= 0)
			fd = other->fd;
	shim_unlock(&members.lock);
	return fd;
}

/**
 * shim_member_report - tell the kernel why a queue pair is not governed
 * @m: the member, not locked; it is attached, or shim_class_lock is held
 * @qpn: number of the queue pair
 * @reason: why
 */
void shim_member_report(struct shim_member *m, uint32_t qpn, uint32_t reason)
{
	struct riso_ioc_report r = { .qpn = qpn, .reason = reason };
	int fd;

	if (__atomic_load_n(&m->gone, __ATOMIC_RELAXED))
		return;
	fd = file_to_report(m);
	if (fd < 0)
		return;
	present_name(m, r.dev, sizeof(r.dev));
	shim_sys.ioctl(fd, RISO_IOC_REPORT, &r);
}

/* RDMA_ISOLATE_SPIN_US, in nanoseconds */
static uint64_t wanted_spin(void)
{
	const char *env = getenv("RDMA_ISOLATE_SPIN_US");
	unsigned long us;
	char *end;

	if (!env)
		return 0;
	us = strtoul(env, &end, 10);
	if (end != env && !*end && us <= SPIN_MAX)
		return us * 1000;
	shim_debug("RDMA_ISOLATE_SPIN_US: '%s' is not a number from 0 to %d", env,
		   SPIN_MAX);
	return 0;
}

/* Is there a kernel module, and may this program ask it? */
static bool has_file(const char *name)
{
	int fd = shim_sys.open(RISO_USER_FILE, O_RDWR | O_CLOEXEC);

	if (fd >= 0) {
		shim_sys.close(fd);
		return true;
	}
	/* There may be fewer open files when there is a queue pair. */
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
		return true;
	if (!members.told)
		shim_debug("%s: not shared: open " RISO_USER_FILE ": %s", name,
			   strerror(errno));
	members.told = true;
	return false;
}

static struct shim_member *new_member(struct ibv_device *device)
{
	const char *name = shim_real.get_device_name(device);
	struct shim_member *m;

	if (!has_file(name))
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	snprintf(m->dev, sizeof(m->dev), "%s", device->dev_name);
	snprintf(m->name, sizeof(m->name), "%s", name);
	m->fd = -1;
	m->kpage = &no_kpage;
	m->upage = &no_upage;
	pthread_mutex_init(&m->lock, NULL);
	init_wake(m);
	m->spin_ns = wanted_spin();
	TAILQ_INIT(&m->busy);
	m->refs = 1;
	TAILQ_INSERT_TAIL(&members.list, m, list);
	return m;
}

/* Nobody has asked the kernel since, if nothing was held when the device went. */
static bool is_gone(struct shim_member *m)
{
	struct riso_ioc_wait w = {};
	bool attached;

	shim_lock(&m->lock);
	attached = m->attached;
	shim_unlock(&m->lock);
	if (attached)
		wait_kernel(m, &w);
	return __atomic_load_n(&m->gone, __ATOMIC_RELAXED);
}

/**
 * shim_member_get - this process on a device that it may take part in
 * @device: the device
 *
 * Return: the member, to be given to shim_member_put(); or NULL.
 */
struct shim_member *shim_member_get(struct ibv_device *device)
{
	struct shim_member *m;

	shim_lock(&members.lock);
	if (!members.handlers) {
		pthread_atfork(before_fork, unlock_all, in_child);
		members.handlers = true;
	}
	TAILQ_FOREACH(m, &members.list, list) {
		/* One that came with the file of one that went is another device. */
		if (!strcmp(m->dev, device->dev_name) && !is_gone(m)) {
			m->refs++;
			goto unlock;
		}
	}
	m = new_member(device);
unlock:
	shim_unlock(&members.lock);
	return m;
}

/**
 * shim_member_put - take part no longer in a device that is closed
 * @m: the member
 */
void shim_member_put(struct shim_member *m)
{
	shim_lock(&members.lock);
	m->refs--;
	if (m->started)
		pthread_cond_signal(&m->wake);
	else if (!m->refs)
		free_member(m);
	shim_unlock(&members.lock);
}
