// SPDX-License-Identifier: GPL-2.0
/*
 * Draws on a terminal with the few sequences that all of them know, reads keys, and
 * leaves the terminal as it was, whatever ends the tool.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "error.h"
#include "term.h"

#define HOME		"\033[H"
#define CLEAR_LINE	"\033[K"
#define CLEAR_BELOW	"\033[J"
#define HIDE_CURSOR	"\033[?25l"
#define SHOW_CURSOR	"\033[?25h"

/* of a terminal that does not tell its size */
enum { LINES = 24, COLUMNS = 80 };

/* Ctrl-C and the like still make signals. */
static void take(struct term *term)
{
	struct termios modes;

	if (term->keys) {
		modes = term->modes;
		modes.c_lflag &= ~(ICANON | ECHO);
		tcsetattr(STDIN_FILENO, TCSADRAIN, &modes);
	}
	fputs(HIDE_CURSOR, stdout);
}

static void give_back(struct term *term)
{
	fputs(SHOW_CURSOR, stdout);
	fflush(stdout);
	if (term->keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &term->modes);
}

bool term_open(struct term *term)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGQUIT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGTSTP);
	sigaddset(&signals, SIGWINCH);
	term->signals = signalfd(-1, &signals, SFD_CLOEXEC);
	if (term->signals < 0) {
		error("signals: %s", strerror(errno));
		return false;
	}
	sigprocmask(SIG_BLOCK, &signals, &term->mask);
	term->keys = !tcgetattr(STDIN_FILENO, &term->modes);
	take(term);
	return true;
}

void term_close(struct term *term)
{
	give_back(term);
	sigprocmask(SIG_SETMASK, &term->mask, NULL);
	close(term->signals);
}

static enum term_event on_signal(struct term *term)
{
	struct signalfd_siginfo info;

	if (read(term->signals, &info, sizeof(info)) != sizeof(info))
		return TERM_DRAW;
	switch (info.ssi_signo) {
	case SIGWINCH:
		return TERM_DRAW;
	case SIGTSTP:
		give_back(term);
		raise(SIGSTOP);
		take(term);
		return TERM_DRAW;
	}
	give_back(term);
	sigprocmask(SIG_SETMASK, &term->mask, NULL);
	raise(info.ssi_signo);
	return TERM_QUIT;
}

enum term_event term_wait(struct term *term, uint64_t until_ns)
{
	struct pollfd fds[] = {
		{ .fd = term->signals, .events = POLLIN },
		{ .fd = term->keys ? STDIN_FILENO : -1, .events = POLLIN },
	};
	struct timespec now;
	uint64_t now_ns;
	char key;

	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		now_ns = now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
		if (now_ns >= until_ns)
			return TERM_TIME;
		poll(fds, 2, (until_ns - now_ns) / 1000000 + 1);
		if (fds[0].revents)
			return on_signal(term);
		/* a terminal that is gone has no more keys */
		if (fds[1].revents &&
		    (read(STDIN_FILENO, &key, 1) != 1 || key == 'q'))
			return TERM_QUIT;
	}
}

void term_size(unsigned int *lines, unsigned int *columns)
{
	struct winsize size = {};

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*lines = size.ws_row ?: LINES;
	*columns = size.ws_col ?: COLUMNS;
}

/* The last line is left empty: to end it would move the others up. */
void term_draw(FILE *file, const char *text, unsigned int lines,
	       unsigned int columns)
{
	size_t len;

	fputs(HOME, file);
	while (*text && lines-- > 1) {
		len = strcspn(text, "\n");
		fprintf(file, CLEAR_LINE "%.*s\n",
			(int)(len < columns ? len : columns), text);
		text += len + (text[len] == '\n');
	}
	fputs(CLEAR_BELOW, file);
}
