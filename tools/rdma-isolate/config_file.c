// SPDX-License-Identifier: GPL-2.0
/*
 * What files want.
 *
 * This file reads the files of a directory, checks them and leaves out those that are
 * wrong. It changes nothing, neither in the kernel nor in the directory.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <linux/rdma_isolate.h>

#include "batch.h"
#include "config_file.h"
#include "config_item.h"
#include "error.h"

static int add_command(struct config *config, const struct command *cmd,
		       const char *file, unsigned int line)
{
	struct item wanted = { .file = file, .line = line };
	struct item *item;
	unsigned int i;

	if (cmd->verb != dev_set_verb && cmd->verb != rule_add_verb)
		return usage_error("only dev set and rule add may stand here");
	for (i = 0; cmd->call.args[i].key; i++)
		if (!cmd->call.args[i].attr && cmd->call.values[i].text)
			return usage_error("%s may not stand here",
					   cmd->call.args[i].key);
	config_copy_call(&wanted, &cmd->call);
	if (cmd->verb == rule_add_verb) {
		config_fill_rule(&wanted);
		*config_add_item(&config->rules) = wanted;
		return CMD_DONE;
	}
	item = config_find_dev(&config->devs, config_get_dev_name(&wanted));
	if (!item) {
		*config_add_item(&config->devs) = wanted;
		return CMD_DONE;
	}
	item->file = file;
	item->line = line;
	for (i = 0; i < ARGS_MAX; i++)
		if (wanted.set[i].given)
			item->set[i] = wanted.set[i];
	return CMD_DONE;
}

int config_read_file(const char *name, struct config *config)
{
	struct batch batch;
	unsigned int i;
	int status;

	status = batch_read(name, &batch);
	for (i = 0; status == CMD_DONE && i < batch.n; i++) {
		error_from(name, batch.lines[i].number);
		status = add_command(config, &batch.lines[i].cmd, name,
				     batch.lines[i].number);
	}
	error_from(NULL, 0);
	batch_free(&batch);
	return status;
}

const char *config_check_devs(const struct items *devs)
{
	struct item *dev = devs->item;
	struct setting *max_rate, *safe_util;

	for (; dev < devs->item + devs->n; dev++) {
		max_rate = config_find_dev_setting(dev, RDMA_ISOLATE_A_DEV_MAX_RATE);
		safe_util = config_find_dev_setting(dev, RDMA_ISOLATE_A_DEV_SAFE_UTIL);
		/* Only the kernel knows what auto is; as a number it is 0. */
		if (!max_rate->given || !safe_util->given ||
		    max_rate->number == RDMA_ISOLATE_RATE_AUTO ||
		    safe_util->number <= max_rate->number)
			continue;
		error_from(dev->file, dev->line);
		usage_error("safe-util of %s may not be above its max-rate",
			    config_get_dev_name(dev));
		error_from(NULL, 0);
		return dev->file;
	}
	return NULL;
}

static int dir_error(const char *dir, int err)
{
	if (err == ENOENT)
		return 0;
	error("%s: %s", dir, strerror(err));
	return err;
}

/* The names of the files; nothing is read yet. */
static int find_files(const char *dir, struct config *config)
{
	char names[PATH_MAX];

	*config = (struct config) { };
	snprintf(names, sizeof(names), "%s/*.conf", dir);
	switch (glob(names, 0, dir_error, &config->files)) {
	case 0:
	case GLOB_NOMATCH:
		break;
	case GLOB_NOSPACE:
		error("%s", strerror(ENOMEM));
		return CMD_REFUSED;
	default:
		return CMD_REFUSED;
	}
	config->left = calloc(config->files.gl_pathc + 1, sizeof(*config->left));
	if (config->left)
		return CMD_DONE;
	error("%s", strerror(ENOMEM));
	return CMD_REFUSED;
}

void config_leave_out(struct config *config, const char *file, enum config_left why)
{
	size_t i;

	for (i = 0; i < config->files.gl_pathc; i++)
		if (!strcmp(config->files.gl_pathv[i], file))
			config->left[i] = why;
}

/* Read those files that are not left out; the first that is wrong, or NULL */
static const char *read_taken(struct config *config, int *status)
{
	const char *wrong;
	size_t i;

	config_drop_items(config);
	for (i = 0; i < config->files.gl_pathc; i++) {
		if (config->left[i] != CONFIG_TAKEN)
			continue;
		*status = config_read_file(config->files.gl_pathv[i], config);
		if (*status != CMD_DONE)
			return config->files.gl_pathv[i];
	}
	wrong = config_check_devs(&config->devs);
	*status = wrong ? CMD_USAGE : CMD_DONE;
	return wrong;
}

int config_read_files(struct config *config)
{
	int status, first = CMD_DONE;
	const char *wrong;

	while ((wrong = read_taken(config, &status))) {
		config_leave_out(config, wrong, CONFIG_WRONG);
		if (first == CMD_DONE)
			first = status;
	}
	return first;
}

int config_read_dir(const char *dir, struct config *config)
{
	int status = find_files(dir, config);

	return status == CMD_DONE ? config_read_files(config) : status;
}

int config_check_command(const char *dir, const char *instead, const struct command *cmd)
{
	int added = CMD_DONE;
	struct config config;
	char **name, **end;

	if (find_files(dir, &config) != CMD_DONE) {
		config_free(&config);
		return CMD_REFUSED;
	}
	config_leave_out(&config, instead, CONFIG_WRONG);
	config_read_files(&config);
	config_drop_items(&config);
	name = config.files.gl_pathv;
	end = name + config.files.gl_pathc;
	for (; name < end; name++) {
		if (cmd && strcmp(*name, instead) >= 0) {
			added = add_command(&config, cmd, instead, 1);
			cmd = NULL;
		}
		if (config.left[name - config.files.gl_pathv] == CONFIG_TAKEN)
			config_read_file(*name, &config);
	}
	if (cmd)
		added = add_command(&config, cmd, instead, 1);
	if (added == CMD_DONE && config_check_devs(&config.devs))
		added = CMD_USAGE;
	config_free(&config);
	return added;
}
