// SPDX-License-Identifier: GPL-2.0
/*
 * Tells systemd how the agent is, by sd_notify(3).
 *
 * Owns the timer of the watchdog. It fires in the loop like anything else does, so a
 * loop that hangs is a process that is killed. Without systemd there is no timer, and
 * nothing is sent.
 */
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "loop.h"
#include "notify.h"

enum { STATUS_LEN = 512 };

static struct source watchdog = { .fd = -1 };
static uint64_t period_ns;
static char told[STATUS_LEN];

static void on_watchdog(struct source *s)
{
	if (!timer_fired(s))
		return;
	sd_notify(0, "WATCHDOG=1");
	timer_set(s, now_ns() + period_ns);
}

int notify_open(void)
{
	uint64_t us;
	int err;

	if (sd_watchdog_enabled(0, &us) <= 0)
		return 0;
	err = timer_open(&watchdog, on_watchdog);
	if (err)
		return err;
	period_ns = us * 1000 / 2;
	timer_set(&watchdog, now_ns());
	return 0;
}

void notify_close(void)
{
	timer_close(&watchdog);
}

void notify_ready(void)
{
	sd_notify(0, "READY=1");
}

void notify_reloading(void)
{
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%ju", (uintmax_t)now_ns() / 1000);
}

void notify_stopping(void)
{
	sd_notify(0, "STOPPING=1");
}

void notify_status(const char *status)
{
	if (!strncmp(status, told, sizeof(told) - 1))
		return;
	snprintf(told, sizeof(told), "%s", status);
	sd_notifyf(0, "STATUS=%s", told);
}
