/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Items: devices and rules, in the form of the arguments of "dev set" and "rule add".
 */
#ifndef RDMA_ISOLATE_CONFIG_ITEM_H
#define RDMA_ISOLATE_CONFIG_ITEM_H

#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <linux/rdma_isolate.h>

#include "cmd.h"

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
 * @max_rate: the one that is in force
 * @file: that it is from, NULL if it is from the kernel
 * @line: of the file; if it is from several, the last
 * @set: one for each argument of the verb
 */
struct item {
	uint32_t id;
	bool guessed;
	uint64_t max_rate;
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

/* Return the place of the argument of a verb that has this attribute, which must exist */
unsigned int config_find_place(const struct verb *verb, uint16_t attr);

/* Return the setting of a device that has this attribute of "dev set" */
struct setting *config_find_dev_setting(struct item *item, uint16_t attr);

/* Return the name of a device */
const char *config_get_dev_name(const struct item *item);

/* Is the value of an argument a text? */
bool config_is_text(const struct arg *arg);

/* Copy what a call gives into the settings of an item */
void config_copy_call(struct item *item, const struct call *call);

/**
 * config_copy_attrs - copy an answer of the kernel into the settings of an item
 * @items: the list of the item, which gets the key of a word that is unknown
 * @item: the item
 * @arg: arguments of the verb
 * @set: names of the attributes
 * @attrs: the answer
 */
void config_copy_attrs(struct items *items, struct item *item, const struct arg *arg,
		       const struct name_set *set, const struct nlattr * const *attrs);

/* Make a rule what the kernel would show: the weight always, and nothing that is off */
void config_fill_rule(struct item *rule);

/* Does an item say the same as another, of the same verb? */
bool item_same(const struct item *a, const struct item *b);

/* Add an empty item at the end; exit if there is no memory */
struct item *config_add_item(struct items *items);

/* Return the device of this name, NULL if there is none */
struct item *config_find_dev(const struct items *devs, const char *name);

/* Free devices and rules, and keep the files */
void config_drop_items(struct config *config);

/* Free all that belongs to a config, and empty it */
void config_free(struct config *config);

/**
 * config_print_items - print items as commands
 * @file: where to print
 * @words: object and verb, with which each line begins
 * @args: arguments of the verb
 * @items: the items
 */
void config_print_items(FILE *file, const char *words, const struct arg *args,
			const struct items *items);

#endif /* RDMA_ISOLATE_CONFIG_ITEM_H */
