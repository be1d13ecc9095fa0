// SPDX-License-Identifier: GPL-2.0
/*
 * These cases close the file while a call waits for memory, and again and again.
 */
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/rdma_isolate.h>
#include <linux/rdma_isolate_user.h>
#include <linux/userfaultfd.h>
#include "kselftest.h"
#include "../share.h"
#include "pages.h"

/* A page that is not there until this program gives it, and then not to be written to */
static void *absent;
static int faults;

static bool make_absent(void)
{
	struct uffdio_api api = {
		.api = UFFD_API,
		.features = UFFD_FEATURE_PAGEFAULT_FLAG_WP,
	};
	struct uffdio_register r = {
		.range = { .len = pages_page },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP,
	};

	absent = mmap(NULL, pages_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	faults = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	r.range.start = (uintptr_t)absent;
	return absent != MAP_FAILED && faults >= 0 && !ioctl(faults, UFFDIO_API, &api) &&
	       !ioctl(faults, UFFDIO_REGISTER, &r);
}

static bool give_absent(void *content)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)absent,
		.src = (uintptr_t)content,
		.len = pages_page,
		.mode = UFFDIO_COPY_MODE_WP,
	};

	return !ioctl(faults, UFFDIO_COPY, &copy);
}

static bool let_write_absent(void)
{
	struct uffdio_writeprotect w = { .range = { (uintptr_t)absent, pages_page } };

	return !ioctl(faults, UFFDIO_WRITEPROTECT, &w);
}

/* Does somebody wait for the page, soon? */
static bool is_awaited(void)
{
	struct pollfd p = { .fd = faults, .events = POLLIN };
	struct uffd_msg msg;

	return poll(&p, 1, 10000) == 1 && read(faults, &msg, sizeof(msg)) == sizeof(msg) &&
	       msg.event == UFFD_EVENT_PAGEFAULT;
}

/* A process that has @fd, too, and closes it when @tell is closed */
static pid_t start_holder(int fd, int *tell)
{
	int ends[2];
	char byte;
	pid_t pid;

	if (pipe(ends))
		err(1, "pipe");
	pid = fork();
	if (!pid) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) || close(fd));
	}
	close(ends[0]);
	*tell = ends[1];
	return pid;
}

/* Does it end well, soon? */
static bool ends_soon(pid_t pid)
{
	int n, status;

	for (n = 0; n < 1000; n++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return !status;
		usleep(10000);
	}
	return false;
}

static void *register_absent(void *file)
{
	return (void *)(long)ioctl(*(int *)file, RISO_IOC_REGISTER, absent);
}

static void *close_another(void *file)
{
	return (void *)(long)close(dup(*(int *)file));
}

/* Does a thread that closes the file in its own process end soon? Its process waits. */
static bool closes_soon(int *file, pthread_t *thread)
{
	struct timespec end;

	if (pthread_create(thread, NULL, close_another, file))
		err(1, "thread");
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 10;
	return !pthread_timedjoin_np(*thread, NULL, &end);
}

/*
 * The kernel waits for memory of a call, to read it and then to write to it. Whoever
 * closes the file meanwhile does not wait: another process at first, and then its own.
 */
bool pages_closing(void)
{
	struct riso_ioc_register *r = calloc(1, pages_page);
	struct share s = share_join();
	pthread_t caller, closer;
	bool ok, other, own;
	void *failed;
	pid_t pid;
	int tell;

	pid = start_holder(s.fd, &tell);
	if (!r || !make_absent())
		err(1, "userfaultfd");
	r->qpn = s.qp->qp_num;
	r->class_id = RISO_CLASS_BY_RULE;
	if (pthread_create(&caller, NULL, register_absent, &s.fd))
		err(1, "thread");
	ok = is_awaited();
	close(tell);
	other = ends_soon(pid);
	ok = give_absent(r) && is_awaited() && ok;
	own = closes_soon(&s.fd, &closer);
	ok = let_write_absent() && ok;
	pthread_join(caller, &failed);
	if (!other)
		waitpid(pid, NULL, 0);
	if (!own)
		pthread_join(closer, NULL);
	ksft_print_msg("the other process %s, its own %s\n", other ? "closed it" : "waited",
		       own ? "closed it" : "waited");
	close(faults);
	munmap(absent, pages_page);
	share_leave(&s);
	free(r);
	return ok && other && own && !failed;
}

/* Nobody would dismiss a process that attaches a file which it has closed. */
bool pages_closing_before(void)
{
	struct share s = share_open_qp();
	int error;

	share_connect_qp(&s);
	s.fd = share_open_file();
	close(dup(s.fd));
	error = share_attach(s.fd, pages_device, RISO_USER_VERSION, s.qp->qp_num);
	close(s.fd);
	/* By another file it may. */
	share_take_part(&s);
	share_leave(&s);
	ksft_print_msg("by the closed one %s\n", strerror(error));
	return error == ENODEV;
}

/* Its process may close it again and again: others wait for that once. */
bool pages_closing_on(void)
{
	struct share s = share_join();
	unsigned long long hits;
	int n;

	pages_start_counting("riso_attach_dismiss");
	for (n = 0; n < 1000; n++)
		close(dup(s.fd));
	hits = pages_stop_counting();
	share_leave(&s);
	ksft_print_msg("dismissed %llu times\n", hits);
	return hits == 1;
}
