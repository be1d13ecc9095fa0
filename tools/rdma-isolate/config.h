/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All settings and rules at once: to show them as commands, and to make them those
 * of a file, or what they were before.
 */
#ifndef RDMA_ISOLATE_CONFIG_H
#define RDMA_ISOLATE_CONFIG_H

#include <stdio.h>

#include "cmd.h"

enum { CONFIG_TEXT = 64 };

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
 * @line: of the file that it is from
 * @set: one for each argument of the verb
 */
struct item {
	uint32_t id;
	bool guessed;
	unsigned int line;
	struct setting set[ARGS_MAX];
};

struct items {
	unsigned int n;
	struct item *item;
};

struct config {
	const char *file;
	struct items devs;
	struct items rules;
};

/**
 * struct rule_plan - how to make the rules others
 * @keep: for each that is there now: it stays
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

/* Each returns CMD_DONE, or another status after telling what is wrong. */
int config_read(struct config *config);
int config_dump(FILE *file);
int config_sync(const char *file);

/* Undo what was done since */
void config_restore(const struct config *before);
void config_free(struct config *config);

#endif /* RDMA_ISOLATE_CONFIG_H */
