// SPDX-License-Identifier: GPL-2.0
/*
 * shim_rude WAY DEVICE PEER
 *
 * WRITEs 1 MB from DEVICE to PEER, some times, and compares every byte. It does what programs
 * are not expected to do, in one of these ways:
 *
 *   plain		nothing of that
 *   close-before	closes all files from 3 on before it opens the devices
 *   close-others	closes those that are not its own after the first WRITE, opens files that
 *			get their numbers, and finds these as they were in the end
 *   close-all		closes all files after the first WRITE, so that the others fail
 *   fork		forks between the event of a completion and its poll
 *   signal-idle	all WRITEs are made by a signal handler, while it does nothing else
 *   signal-busy	a signal handler WRITEs to a queue pair of its own, meanwhile. The next
 *			signal tries again where the post is refused with EDEADLK.
 *   destructor, atexit	all WRITEs are made when it exits
 *   malloc-count	has a malloc() of its own, which counts
 *   malloc-none	its malloc() has no memory after the first WRITE
 *   malloc-shim	its malloc() has no memory for the verbs shim
 *   open		makes queue pairs and destroys them, and WRITEs nothing
 *
 * GID index 1 of both devices is used. The result is on the standard output.
 */
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "connect.h"
#include "verbs.h"

enum {
	LENGTH = 1 << 20,
	ROUNDS = 4,
	FILES = 64,		/* more than it has open */
	HANDLED = 200,		/* WRITEs of the signal handler */
	HANDLED_LENGTH = 64,
};

struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	union ibv_gid gid;
	unsigned char data[LENGTH];
};

/* The two ends of all WRITEs, and of those of the signal handler that interrupts them. */
static struct end ends[2], own[2];
static const char *way;
static unsigned int rounds;
static volatile sig_atomic_t handled;

/* --- memory ------------------------------------------------------------------- */

static unsigned long allocations;
static bool has_none, has_none_for_shim;

/* In shim_rude_plain malloc() is that of the system, or what LD_PRELOAD has. */
#ifndef NO_MALLOC

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t num, size_t size);
void *__libc_realloc(void *p, size_t size);
void __libc_free(void *p);

static bool may_allocate(const void *caller)
{
	static __thread bool asks;
	Dl_info info;
	bool may;

	__atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
	if (!has_none_for_shim || asks)
		return !has_none;
	asks = true;
	may = !dladdr(caller, &info) || !strstr(info.dli_fname, "librdma_isolate");
	asks = false;
	return may;
}

static void *none(void)
{
	errno = ENOMEM;
	return NULL;
}

void *malloc(size_t size)
{
	return may_allocate(__builtin_return_address(0)) ? __libc_malloc(size) : none();
}

void *calloc(size_t num, size_t size)
{
	return may_allocate(__builtin_return_address(0)) ? __libc_calloc(num, size) : none();
}

void *realloc(void *p, size_t size)
{
	return may_allocate(__builtin_return_address(0)) ? __libc_realloc(p, size) : none();
}

void free(void *p)
{
	__libc_free(p);
}

#endif /* NO_MALLOC */

/* --- queue pairs -------------------------------------------------------------- */

static void open_end(struct end *e, const char *name)
{
	e->context = open_device(name);
	e->pd = make_pd(e->context);
	e->channel = ibv_create_comp_channel(e->context);
	if (!e->channel || ibv_query_gid(e->context, 1, 1, &e->gid))
		err(1, "%s", name);
	e->cq = ibv_create_cq(e->context, 4, NULL, e->channel, 0);
	if (!e->cq)
		err(1, "%s: completion queue", name);
	e->mr = ibv_reg_mr(e->pd, e->data, LENGTH,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (!e->mr)
		err(1, "%s: memory", name);
	e->qp = make_qp(e->pd, e->cq, 2);
}

static void open_both(struct end *e, char **names)
{
	open_end(&e[0], names[0]);
	open_end(&e[1], names[1]);
	connect_qp(ibv_modify_qp, e[0].qp, e[1].qp->qp_num, &e[1].gid);
	connect_qp(ibv_modify_qp, e[1].qp, e[0].qp->qp_num, &e[0].gid);
}

static int close_end(struct end *e)
{
	return ibv_destroy_qp(e->qp) ?: ibv_destroy_cq(e->cq) ?: ibv_dereg_mr(e->mr) ?:
	       ibv_destroy_comp_channel(e->channel) ?: ibv_dealloc_pd(e->pd) ?:
	       ibv_close_device(e->context);
}

static int post(struct end *e, unsigned int length, unsigned int round)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)e[0].data,
		.length = length,
		.lkey = e[0].mr->lkey,
	};
	struct ibv_send_wr *bad, wr = {
		.wr_id = round,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)e[1].data, .rkey = e[1].mr->rkey },
	};

	return ibv_post_send(e[0].qp, &wr, &bad);
}

/* Wait for the completion of WRITE @round; its status, or -1 */
static int wait_for(struct end *e, unsigned int round)
{
	struct ibv_wc wc = { 0 };
	int n;

	do {
		n = ibv_poll_cq(e[0].cq, 1, &wc);
	} while (!n);
	return n < 0 || wc.wr_id != round ? -1 : (int)wc.status;
}

static void fill(struct end *e, unsigned int length, unsigned int round)
{
	unsigned int i;

	for (i = 0; i < length; i++)
		e[0].data[i] = (i * 2654435761U >> 13) + round * 7 + 1;
}

static void write_once(struct end *e, unsigned int length, unsigned int round)
{
	int status;

	fill(e, length, round);
	if (post(e, length, round))
		err(1, "%u: post", round);
	status = wait_for(e, round);
	if (status)
		errx(1, "%u: status %d", round, status);
	if (memcmp(e[0].data, e[1].data, length))
		errx(1, "%u: other data", round);
}

static void write_all(void)
{
	while (rounds < ROUNDS)
		write_once(ends, LENGTH, rounds++);
}

/* --- ways --------------------------------------------------------------------- */

static void close_files(bool all)
{
	int fd;

	for (fd = 3; fd < FILES; fd++)
		if (all || (fd != ends[0].context->cmd_fd && fd != ends[1].context->cmd_fd &&
			    fd != ends[0].context->async_fd &&
			    fd != ends[1].context->async_fd &&
			    fd != ends[0].channel->fd && fd != ends[1].channel->fd))
			close(fd);
}

/* The files that get the numbers of those that were closed are pipes with one byte. */
static int pipes[8][2];

static void open_pipes(void)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		if (pipe(pipes[i]) || write(pipes[i][1], "x", 1) != 1)
			err(1, "pipe");
}

static void check_pipes(void)
{
	unsigned int i;
	char c = 0;

	for (i = 0; i < 8; i++)
		if (read(pipes[i][0], &c, 1) != 1 || c != 'x')
			err(1, "pipe %u is another file, or closed", i);
}

static void fork_in_handler(void)
{
	struct ibv_cq *cq;
	void *context;
	int status;
	pid_t pid;

	fill(ends, LENGTH, rounds);
	if (ibv_req_notify_cq(ends[0].cq, 0) || post(ends, LENGTH, rounds) ||
	    ibv_get_cq_event(ends[0].channel, &cq, &context))
		err(1, "%u: event", rounds);
	pid = fork();
	if (pid < 0)
		err(1, "fork");
	if (!pid && rounds % 2)
		execl("/bin/true", "true", NULL);
	if (!pid)
		exit(0);
	if (waitpid(pid, &status, 0) != pid || status)
		errx(1, "%u: the child ended with %d", rounds, status);
	ibv_ack_cq_events(cq, 1);
	if (wait_for(ends, rounds) || memcmp(ends[0].data, ends[1].data, LENGTH))
		errx(1, "%u: other status or data", rounds);
	rounds++;
}

static void on_signal(int sig)
{
	int error;

	(void)sig;
	if (!strcmp(way, "signal-idle")) {
		write_once(ends, LENGTH, rounds++);
	} else if (handled < HANDLED) {
		fill(own, HANDLED_LENGTH, handled);
		error = post(own, HANDLED_LENGTH, handled);
		if (error == EDEADLK)
			return;
		if (error || wait_for(own, handled))
			errx(1, "signal %d: post %d", handled, error);
		handled++;
	}
}

static void start_timer(unsigned int us)
{
	struct itimerval timer = { .it_value.tv_usec = us, .it_interval.tv_usec = us };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &timer, NULL))
		err(1, "timer");
}

static void stop_timer(void)
{
	struct itimerval none = { 0 };

	setitimer(ITIMER_REAL, &none, NULL);
}

static void wait_for_signals(void)
{
	sigset_t set, old;

	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	sigprocmask(SIG_BLOCK, &set, &old);
	start_timer(1000);
	while (rounds < ROUNDS)
		sigsuspend(&old);
	stop_timer();
	sigprocmask(SIG_SETMASK, &old, NULL);
}

static void write_under_signals(void)
{
	start_timer(700);
	while (handled < HANDLED || rounds < ROUNDS)
		write_once(ends, LENGTH, rounds++);
	stop_timer();
	rounds = ROUNDS;
}

static void finish(void)
{
	if (close_end(&ends[0]) || close_end(&ends[1]))
		err(1, "close");
	if (pipes[0][0])
		check_pipes();
	printf("%s: %u rounds\n", way, rounds);
	fflush(stdout);
}

static void write_and_finish(void)
{
	write_all();
	finish();
}

static void __attribute__((destructor)) destruct(void)
{
	if (way && !strcmp(way, "destructor"))
		write_and_finish();
}

/* Files are gone: the provider refuses, or the verbs shim has nobody to tell. */
static void close_all(void)
{
	close_files(true);
	printf("%s: post %d\n", way, post(ends, LENGTH, rounds));
	fflush(stdout);
	_exit(0);
}

static void act(void)
{
	if (!strcmp(way, "close-others")) {
		write_once(ends, LENGTH, rounds++);
		close_files(false);
		open_pipes();
	} else if (!strcmp(way, "close-all")) {
		write_once(ends, LENGTH, rounds++);
		close_all();
	} else if (!strcmp(way, "fork")) {
		while (rounds < ROUNDS)
			fork_in_handler();
	} else if (!strcmp(way, "signal-idle")) {
		wait_for_signals();
	} else if (!strcmp(way, "signal-busy")) {
		write_under_signals();
	} else if (!strcmp(way, "malloc-none")) {
		write_once(ends, LENGTH, rounds++);
		has_none = true;
	} else if (!strcmp(way, "open")) {
		rounds = ROUNDS;
	}
	write_all();
	has_none = false;
	if (!strcmp(way, "malloc-count") && !allocations)
		errx(1, "malloc() was not called");
	finish();
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 4)
		errx(2, "usage: shim_rude WAY DEVICE PEER");
	way = argv[1];
	if (!strcmp(way, "close-before"))
		for (fd = 3; fd < FILES; fd++)
			close(fd);
	has_none_for_shim = !strcmp(way, "malloc-shim");
	open_both(ends, argv + 2);
	if (!strcmp(way, "signal-busy"))
		open_both(own, argv + 2);
	if (!strcmp(way, "atexit"))
		return atexit(write_and_finish);
	if (!strcmp(way, "destructor"))
		return 0;
	act();
	return 0;
}
