// SPDX-License-Identifier: GPL-2.0
/*
 * Items: devices and rules, in the form of the arguments of "dev set" and "rule add".
 *
 * This file makes items from commands and from answers of the kernel, compares them and
 * prints them as commands.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <linux/rdma_isolate.h>

#include "config_item.h"
#include "error.h"
#include "units.h"

unsigned int config_find_place(const struct verb *verb, uint16_t attr)
{
	unsigned int i;

	for (i = 0; verb->args[i].attr != attr; i++)
		;
	return i;
}

struct setting *config_find_dev_setting(struct item *item, uint16_t attr)
{
	return &item->set[config_find_place(dev_set_verb, attr)];
}

const char *config_get_dev_name(const struct item *item)
{
	return item->set[config_find_place(dev_set_verb, RDMA_ISOLATE_A_DEV_DEV)].text;
}

/* One text for each address, the one that the kernel has. */
static void copy_peer(char *to, const char *text)
{
	unsigned char gid[16] = { [10] = 0xff, [11] = 0xff };

	if (inet_pton(AF_INET, text, gid + 12) == 1 ||
	    inet_pton(AF_INET6, text, gid) == 1)
		inet_ntop(AF_INET6, gid, to, CONFIG_TEXT);
}

static void set_text(struct setting *setting, const struct arg *arg,
		     const char *text)
{
	setting->given = true;
	if (arg->kind == ARG_PEER)
		copy_peer(setting->text, text);
	else
		snprintf(setting->text, sizeof(setting->text), "%s", text);
}

bool config_is_text(const struct arg *arg)
{
	return arg->kind == ARG_DEV || arg->kind == ARG_TEXT ||
	       arg->kind == ARG_PEER;
}

void config_copy_call(struct item *item, const struct call *call)
{
	unsigned int i;

	for (i = 0; call->args[i].key; i++) {
		if (!call->values[i].text)
			continue;
		if (config_is_text(&call->args[i])) {
			set_text(&item->set[i], &call->args[i],
				 call->values[i].text);
			continue;
		}
		item->set[i].given = true;
		item->set[i].number = call->values[i].number;
	}
}

void config_copy_attrs(struct items *items, struct item *item, const struct arg *arg,
		       const struct name_set *set, const struct nlattr * const *attrs)
{
	struct setting *to = item->set;
	const struct nlattr *attr;

	for (; arg->key; arg++, to++) {
		attr = arg->attr ? attrs[arg->attr] : NULL;
		if (!attr)
			continue;
		if (config_is_text(arg)) {
			set_text(to, arg, mnl_attr_get_str(attr));
			continue;
		}
		to->given = true;
		to->number = nl_get_number(attr, set);
		if (arg->kind == ARG_WORD && to->number >= arg->words->n)
			items->unknown = arg->key;
	}
}

void config_fill_rule(struct item *rule)
{
	static const uint16_t switches[] = {
		RDMA_ISOLATE_A_RULE_CHOOSE, RDMA_ISOLATE_A_RULE_CUT_IMM,
	};
	struct setting *weight, *off;
	unsigned int i;

	weight = &rule->set[config_find_place(rule_add_verb, RDMA_ISOLATE_A_RULE_WEIGHT)];
	if (!weight->given)
		weight->number = RDMA_ISOLATE_WEIGHT_DEFAULT;
	weight->given = true;
	for (i = 0; i < sizeof(switches) / sizeof(*switches); i++) {
		off = &rule->set[config_find_place(rule_add_verb, switches[i])];
		if (off->given && off->number == RISO_SWITCH_OFF)
			*off = (struct setting){ };
	}
}

bool item_same(const struct item *a, const struct item *b)
{
	unsigned int i;

	for (i = 0; i < ARGS_MAX; i++)
		if (a->set[i].given != b->set[i].given ||
		    a->set[i].number != b->set[i].number ||
		    strcmp(a->set[i].text, b->set[i].text))
			return false;
	return true;
}

struct item *config_add_item(struct items *items)
{
	struct item *more = realloc(items->item,
				    (items->n + 1) * sizeof(*more));

	if (!more) {
		error("%s", strerror(ENOMEM));
		exit(CMD_REFUSED);
	}
	items->item = more;
	more += items->n++;
	*more = (struct item) { };
	return more;
}

struct item *config_find_dev(const struct items *devs, const char *name)
{
	unsigned int i;

	for (i = 0; i < devs->n; i++)
		if (!strcmp(config_get_dev_name(&devs->item[i]), name))
			return &devs->item[i];
	return NULL;
}

void config_drop_items(struct config *config)
{
	free(config->devs.item);
	free(config->rules.item);
	config->devs = (struct items) { };
	config->rules = (struct items) { };
}

void config_free(struct config *config)
{
	config_drop_items(config);
	globfree(&config->files);
	free(config->left);
	*config = (struct config) { };
}

/* --- as commands --- */

static void print_word(FILE *file, const char *word)
{
	if (*word && !strpbrk(word, " \t\r\n\"\\#")) {
		fputs(word, file);
		return;
	}
	fputc('"', file);
	for (; *word; word++) {
		if (*word == '"' || *word == '\\' || *word == '\n')
			fputc('\\', file);
		fputc(*word == '\n' ? 'n' : *word, file);
	}
	fputc('"', file);
}

static void print_value(FILE *file, const struct arg *arg,
			const struct setting *setting)
{
	char buf[UNITS_LEN];

	if (config_is_text(arg)) {
		print_word(file, setting->text);
		return;
	}
	if (arg->automatic && setting->number == auto_number(arg)) {
		fputs("auto", file);
		return;
	}
	if (arg->off && !setting->number) {
		fputs("off", file);
		return;
	}
	switch (arg->kind) {
	case ARG_WORD:
		fputs(arg->words->values[setting->number].name, file);
		break;
	case ARG_RATE:
		fputs(rate_format(setting->number, buf), file);
		break;
	case ARG_SIZE:
		fputs(size_format(setting->number, buf), file);
		break;
	case ARG_TIME:
		fprintf(file, "%" PRIu64 "ns", setting->number);
		break;
	default:
		fprintf(file, "%" PRIu64, setting->number);
	}
}

void config_print_items(FILE *file, const char *words, const struct arg *args,
			const struct items *items)
{
	unsigned int i, j;

	for (i = 0; i < items->n; i++) {
		fputs(words, file);
		for (j = 0; args[j].key; j++) {
			if (!items->item[i].set[j].given)
				continue;
			fprintf(file, " %s ", args[j].key);
			print_value(file, &args[j], &items->item[i].set[j]);
		}
		fputc('\n', file);
	}
}
