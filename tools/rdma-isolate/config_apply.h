/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Applies what files want, and restores what was there before.
 */
#ifndef RDMA_ISOLATE_CONFIG_APPLY_H
#define RDMA_ISOLATE_CONFIG_APPLY_H

#include <stdbool.h>

#include "config_item.h"

/**
 * struct rule_plan - how to make the rules others
 * @settled: for each rule that is there now: it stays, or is deleted already
 * @add: the first of the others that has to be added, as have all behind it
 *
 * A rule is only ever added behind all others, and the order counts.
 */
struct rule_plan {
	bool *settled;
	unsigned int add;
};

/* Which rules stay; settled has a place for each of now */
void rule_plan(const struct items *now, const struct items *then,
	       struct rule_plan *plan);

/* Leave those rules that are not there yet, and each once */
void rules_missing(const struct items *now, struct items *then);

/* Leave those devices that are there now; of these only dev, unless it is NULL */
void devs_present(const struct items *now, struct items *then, const char *dev);

/**
 * config_sync - make all settings and rules those of a file
 * @file: the file, "-" is standard input
 *
 * Return: CMD_DONE, or another status after telling what is wrong.
 */
int config_sync(const char *file);

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
 * config_count_open - count what files want and is not so
 * @then: what they want, of config_read_dir(); is changed
 *
 * Return: settings of devices that are there, and rules; or -1 after telling what is
 * wrong.
 */
int config_count_open(struct config *then);

/**
 * config_lock - keep others from changing settings and rules
 *
 * Devices may appear at once: of two who look, both would add a rule. And who goes back to
 * what was before would undo what others did meanwhile.
 *
 * Return: a descriptor that holds the lock until it is closed; or -1 with errno, EACCES for
 * who is not root.
 */
int config_lock(void);

/* Make all settings and rules again what they were before, as far as the kernel lets it */
void config_restore(const struct config *before);

#endif /* RDMA_ISOLATE_CONFIG_APPLY_H */
