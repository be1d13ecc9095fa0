/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All settings and rules at once: to show them as commands, to make them those of a
 * file, or what they were before, and to add those of a directory.
 */
#ifndef RDMA_ISOLATE_CONFIG_H
#define RDMA_ISOLATE_CONFIG_H

#include <glob.h>
#include <stdio.h>

#include <linux/rdma_isolate.h>

#include "cmd.h"

/* where the settings are that come at boot */
#define CONFIG_DIR "/etc/rdma-isolate.d"

/* the longest text that a setting may have, a control group, and its end */
enum { CONFIG_TEXT = RDMA_ISOLATE_CGROUP_MAX + 1 };

/**
 * struct setting - an argument of "dev set" or "rule add"
 * @given: it has a value
 * @number: the value, unless it is a text
 * @text: the value, if it is one
 */
struct setting {
	bool given;
	uint64_t number;
	char text[CONFIG_TEXT];
};

/**
 * struct item - a device or a rule
 * @id: of the rule
 * @guessed: MaxRate of the device was not set by anybody
 * @file: that it is from, NULL if it is from the kernel
 * @line: of the file; if it is from several, the last
 * @set: one for each argument of the verb
 */
struct item {
	uint32_t id;
	bool guessed;
	const char *file;
	unsigned int line;
	struct setting set[ARGS_MAX];
};

/**
 * struct items - devices or rules
 * @n: how many
 * @item: they
 * @unknown: a key whose word in the kernel this program does not know, or NULL
 */
struct items {
	unsigned int n;
	struct item *item;
	const char *unknown;
};

/**
 * enum config_left - why a file is left out
 * @CONFIG_TAKEN: it is not
 * @CONFIG_WRONG: a line of it is wrong
 * @CONFIG_REFUSED: the kernel has refused a line of it
 */
enum config_left {
	CONFIG_TAKEN,
	CONFIG_WRONG,
	CONFIG_REFUSED,
};

/**
 * struct config - settings and rules
 * @devs: devices, each once
 * @rules: in their order
 * @files: of config_read_dir(), whose names the items have
 * @left: for each file, why it is left out
 */
struct config {
	struct items devs;
	struct items rules;
	glob_t files;
	enum config_left *left;
};

/**
 * struct rule_plan - how to make the rules others
 * @keep: for each that is there now: it is not to be deleted
 * @add: the first of the others that has to be added, as have all behind it
 *
 * A rule is only ever added behind all others, and the order counts.
 */
struct rule_plan {
	bool *keep;
	unsigned int add;
};

/* Does an item say the same as another, of the same verb? */
bool item_same(const struct item *a, const struct item *b);

/* Which rules stay; keep has a place for each of now */
void rule_plan(const struct items *now, const struct items *then,
	       struct rule_plan *plan);

/* Leave those rules that are not there yet, and each once */
void rules_missing(const struct items *now, struct items *then);

/* Leave those devices that are there now; of these only dev, unless it is NULL */
void devs_present(const struct items *now, struct items *then, const char *dev);

/* Each returns CMD_DONE, or another status after telling what is wrong. */
int config_read(struct config *config);
int config_dump(FILE *file);
int config_sync(const char *file);

/**
 * config_read_dir - read what all files of a directory want
 * @dir: the directory, which need not be there
 * @config: gets what those files want that have nothing wrong in them
 *
 * Return: CMD_DONE, or the status of the first file that is left out, after telling what
 * is wrong with each.
 */
int config_read_dir(const char *dir, struct config *config);

/**
 * config_apply - add what the files of a directory want to what there is
 * @dir: the directory
 * @dev: the only device that is changed, NULL for all
 *
 * A file with anything wrong in it, or that the kernel refuses, is left out.
 *
 * Return: CMD_DONE, or the status of the first file that was left out, after telling why.
 */
int config_apply(const char *dir, const char *dev);

/**
 * config_keep - run a "dev set", and have it again at each boot
 * @dir: where the file is that keeps it, made if it is not there
 * @name: the file's, before the device's; what it had is replaced
 * @cmd: the command
 *
 * Nothing is done when it is at odds with other files of the directory, or the kernel
 * refuses it.
 *
 * Return: CMD_DONE, or another status after telling what is wrong.
 */
int config_keep(const char *dir, const char *name, struct command *cmd);

/**
 * config_count_open - count what files want and is not so
 * @then: what they want, of config_read_dir(); is changed
 *
 * Return: settings of devices that are there, and rules; or -1 after telling what is
 * wrong.
 */
int config_count_open(struct config *then);

/* The id of the rule that says what "rule add" would, 0 if there is none */
uint32_t config_find_rule(const struct call *add);

/* Undo what was done since */
void config_restore(const struct config *before);
void config_free(struct config *config);

#endif /* RDMA_ISOLATE_CONFIG_H */
