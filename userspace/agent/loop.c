// SPDX-License-Identifier: GPL-2.0
/*
 * The loop of the agent: it sleeps until one of its descriptors is readable.
 *
 * One thread, so nothing is locked. Owns the epoll instance. A source that is removed
 * while events of it are still to be handled is not called any more.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "loop.h"

enum { EVENTS = 16 };

static struct {
	int fd;
	bool stop;
	struct epoll_event events[EVENTS];
	int num;
} loop = { .fd = -1 };

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

/* To the journal, which adds time and name. */
void log_line(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

int loop_open(void)
{
	loop.fd = epoll_create1(EPOLL_CLOEXEC);
	return loop.fd < 0 ? -errno : 0;
}

void loop_close(void)
{
	close(loop.fd);
}

int loop_add(struct source *s)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = s };

	return epoll_ctl(loop.fd, EPOLL_CTL_ADD, s->fd, &event) ? -errno : 0;
}

void loop_remove(struct source *s)
{
	int i;

	if (s->fd < 0)
		return;
	for (i = 0; i < loop.num; i++)
		if (loop.events[i].data.ptr == s)
			loop.events[i].data.ptr = NULL;
	epoll_ctl(loop.fd, EPOLL_CTL_DEL, s->fd, NULL);
	s->fd = -1;
}

void loop_run(void)
{
	int i;

	while (!loop.stop) {
		loop.num = epoll_wait(loop.fd, loop.events, EVENTS, -1);
		for (i = 0; i < loop.num; i++) {
			struct source *s = loop.events[i].data.ptr;

			if (s)
				s->ready(s);
		}
		loop.num = 0;
	}
}

void loop_stop(void)
{
	loop.stop = true;
}

int timer_open(struct source *s, void (*ready)(struct source *s))
{
	s->ready = ready;
	s->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return s->fd < 0 ? -errno : loop_add(s);
}

void timer_close(struct source *s)
{
	int fd = s->fd;

	loop_remove(s);
	if (fd >= 0)
		close(fd);
}

void timer_set(struct source *s, uint64_t at_ns)
{
	struct itimerspec when = {
		.it_value = { .tv_sec = at_ns / SEC, .tv_nsec = at_ns % SEC },
	};

	timerfd_settime(s->fd, TFD_TIMER_ABSTIME, &when, NULL);
}

bool timer_fired(struct source *s)
{
	uint64_t times;

	return read(s->fd, &times, sizeof(times)) == sizeof(times);
}
