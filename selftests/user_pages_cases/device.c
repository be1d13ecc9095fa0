// SPDX-License-Identifier: GPL-2.0
/*
 * These functions configure the device and add rules. They report and read why a process does
 * not govern a queue pair.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/rdma_isolate_user.h>
#include "pages.h"

int pages_report(int fd, const char *dev, __u32 qpn, __u32 reason)
{
	struct riso_ioc_report r = { .qpn = qpn, .reason = reason };

	memcpy(r.dev, dev, strnlen(dev, sizeof(r.dev)));
	return ioctl(fd, RISO_IOC_REPORT, &r) ? errno : 0;
}

/* Settings of the device */
int pages_configure(const char *settings)
{
	char line[128];

	snprintf(line, sizeof(line), "rdma-isolate dev set dev %s %s", pages_device, settings);
	return system(line);
}

/* The id of a new rule, or 0 */
unsigned int pages_add_rule(const char *rule)
{
	unsigned int id = 0;
	char line[128];
	FILE *pipe;

	snprintf(line, sizeof(line), "rdma-isolate -j rule add %s", rule);
	pipe = popen(line, "r");
	if (pipe && fscanf(pipe, " [ { \"id\" : %u", &id) != 1)
		id = 0;
	if (pipe && pclose(pipe))
		id = 0;
	return id;
}

int pages_delete_rule(unsigned int id)
{
	char line[64];

	snprintf(line, sizeof(line), "rdma-isolate rule delete id %u", id);
	return system(line);
}

/* Has a queue pair this reason in "flow show"? */
bool pages_has_reason(__u32 qpn, const char *reason)
{
	char line[160];

	snprintf(line, sizeof(line), "rdma-isolate -j flow show dev %s qpn %u | grep -q '%s'",
		 pages_device, qpn, reason);
	return !system(line);
}
