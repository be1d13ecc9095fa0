// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Members: this process on its devices, with the file of each and its two pages.
 *
 * A member is the process on one device, however often the program opens the device. It
 * takes part from the first queue pair on that can be governed. Until then, and if the
 * kernel refuses it, it looks at empty pages, and all its flows go straight to the provider.
 *
 * Owns the list of members, the pages, and what is read from and written to them.
 *
 * Locks: shim_members.lock protects the list, and the number of contexts of a member. It is
 * never taken under shim_member.lock. shim_member.lock protects the books, and what the
 * pages said last. The file belongs to who holds shim_class_lock.
 *
 * Runs in threads of the program and in the helper.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/grantring.h"
#include "guard.h"
#include "member.h"
#include "shim.h"

/* Microseconds that the helper may spin at most. */
enum { SPIN_MAX = 1000 };

struct shim_members shim_members = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.list = TAILQ_HEAD_INITIALIZER(shim_members.list),
};

/*
 * The pages of a member that does not take part. No kernel's page has these classes, so
 * that flows are asked for once it does.
 */
struct riso_kpage shim_no_kpage = { .classes = UINT32_MAX };
struct riso_upage shim_no_upage;

/**
 * shim_member_is_open - may everything go out at once?
 * @m: the member
 *
 * Return: true if nothing has to wait for a grant.
 */
bool shim_member_is_open(const struct shim_member *m)
{
	return __atomic_load_n(&shim_member_kpage(m)->mode, __ATOMIC_RELAXED) !=
		       RISO_USER_PACED || shim_member_holds_none(m);
}

/**
 * shim_member_holds_none - may nothing be held, whatever the kernel's page says?
 * @m: the member
 *
 * Return: true if the kernel gives no grants, or nobody would post what is held.
 */
bool shim_member_holds_none(const struct shim_member *m)
{
	return __atomic_load_n(&m->gone, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&m->failed, __ATOMIC_RELAXED);
}

/**
 * shim_member_sum_posted - sum up what a process has posted
 * @m: the member, locked
 *
 * Return: cost bytes.
 */
uint64_t shim_member_sum_posted(const struct shim_member *m)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; i < m->terms.paths; i++)
		sum += m->book[i].posted;
	return sum;
}

/**
 * shim_has_news - has the kernel done something since?
 * @k: the kernel's page
 * @grants: riso_kpage.grants as seen last
 * @mode: riso_kpage.mode as seen last
 *
 * Return: true if it has.
 */
bool shim_has_news(const struct riso_kpage *k, uint32_t grants, uint32_t mode)
{
	if (__atomic_load_n(&k->grants, __ATOMIC_RELAXED) != grants)
		return true;
	return __atomic_load_n(&k->mode, __ATOMIC_RELAXED) != mode;
}

/**
 * shim_member_has_grants - may the kernel have granted something to what is held?
 * @m: the member, locked or not
 *
 * Return: true if it has done something since.
 */
bool shim_member_has_grants(const struct shim_member *m)
{
	return __atomic_load_n(&m->held, __ATOMIC_RELAXED) &&
	       shim_has_news(shim_member_kpage(m),
			     __atomic_load_n(&m->grants, __ATOMIC_RELAXED),
			     __atomic_load_n(&m->mode, __ATOMIC_RELAXED));
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
	return m->retired || shim_member_has_grants(m);
}

/* One that is used is wanted once more, so that the next message finds one. */
static void add_grant(struct shim_member *m, uint32_t path, const struct riso_grant *g, uint32_t n,
		      uint64_t now)
{
	struct shim_book *book = &m->book[path];

	shim_budget_add(&book->budget, g, n);
	book->given_ns = now;
	if (book->held)
		book->ahead = g->bytes;
}

/* Who lets one go by wants none ahead. */
static void skip_grant(struct shim_member *m, uint32_t path, uint32_t n)
{
	m->book[path].budget.taken = n;
	m->book[path].ahead = 0;
}

/**
 * shim_member_read_terms - see how to post
 * @m: the member, locked
 */
void shim_member_read_terms(struct shim_member *m)
{
	const struct riso_kpage *k = m->kpage;
	struct shim_terms *t = &m->terms;
	uint32_t paths = __atomic_load_n(&k->paths, __ATOMIC_RELAXED);
	uint32_t i;

	/* The page of a member that does not take part has none. */
	t->paths = paths < RISO_USER_DIRS ? RISO_USER_DIRS :
		   paths < RISO_USER_PATHS ? paths : RISO_USER_PATHS;
	for (i = 0; i < t->paths; i++)
		t->chunk[i] = __atomic_load_n(&k->path[i].chunk, __ATOMIC_RELAXED);
	t->header = __atomic_load_n(&k->header, __ATOMIC_RELAXED);
	t->op_bytes = __atomic_load_n(&k->op_bytes, __ATOMIC_RELAXED);
	t->slice_ns = __atomic_load_n(&k->slice_ns, __ATOMIC_RELAXED);
	t->sparse = __atomic_load_n(&k->sparse, __ATOMIC_RELAXED);
	t->window = __atomic_load_n(&k->window, __ATOMIC_RELAXED);
	t->rate = __atomic_load_n(&k->rate, __ATOMIC_RELAXED);
}

/**
 * shim_member_take - take over what the kernel has granted
 * @m: the member, locked
 * @now: time
 */
void shim_member_take(struct shim_member *m, uint64_t now)
{
	struct riso_grant g;
	uint32_t i;

	/* Before the grants: one that comes after this is noticed. Pairs with the release there. */
	__atomic_store_n(&m->grants, __atomic_load_n(&m->kpage->grants, __ATOMIC_ACQUIRE),
			 __ATOMIC_RELAXED);
	shim_member_read_terms(m);
	__atomic_store_n(&m->mode, __atomic_load_n(&m->kpage->mode, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	for (i = 0; i < m->terms.paths; i++) {
		const struct riso_kpath *from = &m->kpage->path[i];
		struct shim_budget *b = &m->book[i].budget;

		if (__atomic_load_n(&from->seq, __ATOMIC_RELAXED) == b->taken &&
		    !shim_budget_left(b))
			continue;
		if (shim_budget_expire(b, now))
			m->book[i].ahead = 0;
		while (!shim_budget_full(b)) {
			uint32_t n = riso_grantring_read(from, b->taken, &g);

			if (n == b->taken)
				break;
			if (g.not_after > now)
				add_grant(m, i, &g, n, now);
			else
				skip_grant(m, i, n);
		}
	}
}

/**
 * shim_member_publish - tell the kernel how things are
 * @m: the member, locked
 */
void shim_member_publish(struct shim_member *m)
{
	uint32_t i;

	if (!m->attached)
		return;
	for (i = 0; i < m->terms.paths; i++) {
		const struct shim_book *book = &m->book[i];
		struct riso_upath *u = &m->upage->path[i];
		uint64_t left = shim_budget_left(&book->budget);
		uint64_t held = book->held - book->stuck + (m->naps ? book->ahead : 0);
		uint64_t want = held > left ? held - left : 0;

		/*
		 * What is done or owed was posted before. The releases pair with the acquires
		 * in riso_grant_read() and riso_grant_forget().
		 */
		__atomic_store_n(&u->posted, book->posted, __ATOMIC_RELAXED);
		__atomic_store_n(&u->debt, book->debt, __ATOMIC_RELEASE);
		__atomic_store_n(&u->done, book->done, __ATOMIC_RELEASE);
		__atomic_store_n(&u->taken, book->budget.taken, __ATOMIC_RELEASE);
		__atomic_store_n(&u->want, want, __ATOMIC_RELEASE);
		if (!want)
			m->asked[i] = false;
	}
}

/**
 * shim_member_set_naps - note whether the program sees by itself what the kernel grants
 * @m: the member, locked
 * @naps: it does
 */
void shim_member_set_naps(struct shim_member *m, bool naps)
{
	__atomic_store_n(&m->naps, naps, __ATOMIC_RELAXED);
	if (m->attached)
		__atomic_store_n(&m->upage->polls, naps, __ATOMIC_RELAXED);
}

/* The device is gone: nothing holds the program up. Returns whether it was before. */
static bool set_gone(struct shim_member *m)
{
	return __atomic_exchange_n(&m->gone, true, __ATOMIC_RELAXED);
}

/* The program has closed the file, so the kernel has let the process go. */
static void set_lost(struct shim_member *m)
{
	if (!set_gone(m))
		shim_warn("%s: not held: the program has closed a file of the shim", m->name);
}

/* Ask the kernel by the file. */
static int ask_by_file(struct shim_member *m, unsigned long request, const void *arg)
{
	int err;

	if (!shim_sys.ioctl(m->fd, request, arg))
		return 0;
	err = errno;
	if (err == ENODEV)
		set_gone(m);
	else if (err == EBADF || err == ENOTTY)
		set_lost(m);
	return err;
}

/**
 * shim_member_register - ask for the class of a queue pair
 * @m: the member, not locked
 * @reg: the queue pair and the wish; what is in force
 *
 * Return: 0 or an error.
 */
int shim_member_register(struct shim_member *m, struct riso_ioc_register *reg)
{
	return ask_by_file(m, RISO_IOC_REGISTER, reg);
}

/**
 * shim_wait_kernel - have the kernel look at the page, and wait for what it does
 * @m: the member
 * @w: what was seen last, and how long to wait
 */
void shim_wait_kernel(struct shim_member *m, const struct riso_ioc_wait *w)
{
	int err = ask_by_file(m, RISO_IOC_WAIT, w);

	if (err && err != EINTR)
		set_gone(m);
}

/**
 * shim_member_close_file - close the file of a member
 * @m: the member
 *
 * Nothing happens if its number is that of a file of the program by now.
 */
void shim_member_close_file(struct shim_member *m)
{
	if (m->fd < 0)
		return;
	if (shim_sys.device_of(m->fd) == m->file_device)
		shim_sys.close(m->fd);
	else
		set_lost(m);
	m->fd = -1;
}

/**
 * shim_free_member - forget a member
 * @m: a member without contexts and without a helper; shim_members.lock is held
 */
void shim_free_member(struct shim_member *m)
{
	long page = sysconf(_SC_PAGESIZE);

	TAILQ_REMOVE(&shim_members.list, m, list);
	if (m->attached) {
		shim_sys.munmap((void *)m->kpage, page);
		shim_sys.munmap(m->upage, page);
	}
	shim_member_close_file(m);
	pthread_cond_destroy(&m->wake);
	pthread_mutex_destroy(&m->lock);
	free(m);
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
	/* Pairs with the acquire in shim_member_kpage(). */
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

/* The program has closed the file of another member, if the new one got its number. */
static void forget_number(const struct shim_member *m)
{
	struct shim_member *other;

	shim_lock(&shim_members.lock);
	TAILQ_FOREACH(other, &shim_members.list, list)
		if (other != m && other->fd == m->fd) {
			set_lost(other);
			other->fd = -1;
		}
	shim_unlock(&shim_members.lock);
}

static int open_file(struct shim_member *m)
{
	if (m->fd >= 0)
		return 0;
	m->fd = shim_sys.open(RISO_USER_FILE, O_RDWR | O_CLOEXEC);
	if (m->fd < 0)
		return errno;
	m->file_device = shim_sys.device_of(m->fd);
	forget_number(m);
	return 0;
}

/**
 * shim_member_attach - take part in the device
 * @m: the member, not locked; shim_class_lock is held
 * @qpn: number of a queue pair of this process on it
 *
 * Return: 0, also if it takes part already; or an error.
 */
int shim_member_attach(struct shim_member *m, uint32_t qpn)
{
	struct riso_ioc_attach a = { .version = RISO_USER_VERSION, .qpn = qpn };
	int err;

	if (m->attached)
		return 0;
	if (__atomic_load_n(&m->gone, __ATOMIC_RELAXED))
		return ENODEV;
	err = open_file(m);
	if (err)
		return err;
	present_name(m, a.dev, sizeof(a.dev));
	if (shim_sys.ioctl(m->fd, RISO_IOC_ATTACH, &a))
		return errno;
	err = map_pages(m);
	/* It cannot be attached for a second time. */
	if (err)
		shim_member_close_file(m);
	return err;
}

/* A file to tell something with: where no more can be opened, that of another device. */
static int file_to_report(struct shim_member *m)
{
	struct shim_member *other;
	int fd = -1;

	if (!open_file(m))
		return m->fd;
	shim_lock(&shim_members.lock);
	TAILQ_FOREACH(other, &shim_members.list, list)
		if (other->fd >= 0)
			fd = other->fd;
	shim_unlock(&shim_members.lock);
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

/**
 * shim_init_wake - prepare the sleep of a helper
 * @m: a member without a helper
 *
 * The sleep follows the clock of wait_idle() in helper.c.
 */
void shim_init_wake(struct shim_member *m)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&m->wake, &attr);
	pthread_condattr_destroy(&attr);
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
	if (!shim_members.told)
		shim_debug("%s: not shared: open " RISO_USER_FILE ": %s", name,
			   strerror(errno));
	shim_members.told = true;
	return false;
}

static struct shim_member *new_member(struct ibv_device *device)
{
	const char *name = shim_real.get_device_name(device);
	struct shim_member *m;
	uint32_t i;

	if (!has_file(name))
		return NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	snprintf(m->dev, sizeof(m->dev), "%s", device->dev_name);
	snprintf(m->name, sizeof(m->name), "%s", name);
	m->fd = -1;
	m->kpage = &shim_no_kpage;
	m->upage = &shim_no_upage;
	pthread_mutex_init(&m->lock, NULL);
	shim_init_wake(m);
	m->spin_ns = wanted_spin();
	TAILQ_INIT(&m->busy);
	for (i = 0; i < RISO_USER_PATHS; i++)
		TAILQ_INIT(&m->line[i]);
	m->refs = 1;
	TAILQ_INSERT_TAIL(&shim_members.list, m, list);
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
		shim_wait_kernel(m, &w);
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

	shim_lock(&shim_members.lock);
	TAILQ_FOREACH(m, &shim_members.list, list) {
		/* One that came with the file of one that went is another device. */
		if (!strcmp(m->dev, device->dev_name) && !is_gone(m)) {
			m->refs++;
			goto unlock;
		}
	}
	m = new_member(device);
unlock:
	shim_unlock(&shim_members.lock);
	return m;
}

/**
 * shim_member_put - take part no longer in a device that is closed
 * @m: the member
 */
void shim_member_put(struct shim_member *m)
{
	shim_lock(&shim_members.lock);
	m->refs--;
	if (m->started)
		pthread_cond_signal(&m->wake);
	else if (!m->refs)
		shim_free_member(m);
	shim_unlock(&shim_members.lock);
}
