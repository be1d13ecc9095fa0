// SPDX-License-Identifier: GPL-2.0
/*
 * Settings that are kept for the next boot.
 *
 * This file runs a command and stores it in the directory that is read at boot. The new
 * file gets its name only after the kernel has accepted the command.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd.h"
#include "config_file.h"
#include "config_item.h"
#include "config_keep.h"
#include "error.h"

static bool write_dev(const char *name, const struct command *cmd)
{
	struct item dev = { };
	const struct items devs = { .n = 1, .item = &dev };
	FILE *file = fopen(name, "we");
	bool good;

	if (!file)
		return false;
	config_copy_call(&dev, &cmd->call);
	config_print_items(file, "dev set", dev_set_verb->args, &devs);
	good = !ferror(file);
	return !fclose(file) && good;
}

int config_keep(const char *dir, const char *name, struct command *cmd)
{
	char file[PATH_MAX], fresh[PATH_MAX];
	const char *dev = call_value(&cmd->call, "dev")->text;
	int status;

	snprintf(file, sizeof(file), "%s/%s-%s.conf", dir, name, dev);
	snprintf(fresh, sizeof(fresh), "%s/.%s-%s.conf", dir, name, dev);
	status = config_check_command(dir, file, cmd);
	if (status != CMD_DONE)
		return status;
	if ((mkdir(dir, 0755) && errno != EEXIST) || !write_dev(fresh, cmd)) {
		error("%s: %s", fresh, strerror(errno));
		return CMD_REFUSED;
	}
	status = cmd->verb->run(&cmd->call);
	if (status == CMD_DONE && rename(fresh, file)) {
		error("%s: %s", file, strerror(errno));
		status = CMD_REFUSED;
	}
	if (status != CMD_DONE)
		unlink(fresh);
	return status;
}
