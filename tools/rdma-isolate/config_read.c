// SPDX-License-Identifier: GPL-2.0
/*
 * What the module has now.
 *
 * This file asks the kernel for all devices and rules. It finds a rule among them, or
 * prints them all as commands.
 */
#include <linux/rdma_isolate.h>

#include "config_item.h"
#include "config_read.h"
#include "error.h"

/*
 * Is MaxRate what auto gives? Not one that nobody has set, and that a SafeUtil keeps above what
 * the port tells: beside that the kernel does not take auto.
 */
static bool is_auto(const struct nlattr * const *attrs)
{
	return !nl_number(attrs, RDMA_ISOLATE_A_DEV_CALIBRATED, &name_set_dev) &&
	       nl_number(attrs, RDMA_ISOLATE_A_DEV_BELIEVED_FROM, &name_set_dev) !=
		       RISO_BELIEVED_FROM_SET;
}

static void read_dev(const struct nlattr * const *attrs,
		     const struct nlmsghdr *nlh, void *data)
{
	static const uint32_t modes[] = {
		[RISO_DEV_IDLE] = RISO_MODE_DISABLE,
		[RISO_DEV_OBSERVE] = RISO_MODE_OBSERVE,
		[RISO_DEV_ENABLE] = RISO_MODE_ENABLE,
		[RISO_DEV_DRAINING] = RISO_MODE_DISABLE,
	};
	struct setting *mode, *max_rate, *safe_util;
	struct items *devs = data;
	struct item *item;
	uint32_t state;

	(void)nlh;
	if (!attrs[RDMA_ISOLATE_A_DEV_DEV] || !attrs[RDMA_ISOLATE_A_DEV_STATE])
		return;
	state = mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_STATE]);
	if (state >= sizeof(modes) / sizeof(*modes))
		return;
	item = config_add_item(devs);
	config_copy_attrs(devs, item, dev_set_verb->args, &name_set_dev, attrs);
	mode = config_find_dev_setting(item, RDMA_ISOLATE_A_DEV_MODE);
	mode->given = true;
	mode->number = modes[state];
	max_rate = config_find_dev_setting(item, RDMA_ISOLATE_A_DEV_MAX_RATE);
	safe_util = config_find_dev_setting(item, RDMA_ISOLATE_A_DEV_SAFE_UTIL);
	item->max_rate = max_rate->number;
	item->guessed = !nl_number(attrs, RDMA_ISOLATE_A_DEV_CALIBRATED, &name_set_dev);
	if (is_auto(attrs))
		max_rate->number = RDMA_ISOLATE_RATE_AUTO;
	/* It follows then. */
	if (safe_util->number == item->max_rate)
		safe_util->number = RDMA_ISOLATE_RATE_AUTO;
}

static void read_rule(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct items *rules = data;
	struct item *item;

	(void)nlh;
	if (!attrs[RDMA_ISOLATE_A_RULE_ID])
		return;
	item = config_add_item(rules);
	item->id = mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_RULE_ID]);
	config_copy_attrs(rules, item, rule_add_verb->args, &name_set_rule, attrs);
}

int config_read(struct config *config)
{
	struct nl *nl = nl_open();
	const char *unknown;
	int err;

	*config = (struct config) { };
	if (!nl)
		return CMD_REFUSED;
	nl_request(nl, RDMA_ISOLATE_CMD_DEV_GET, true);
	err = nl_send(nl, &name_set_dev, read_dev, &config->devs);
	if (!err) {
		nl_request(nl, RDMA_ISOLATE_CMD_RULE_GET, true);
		err = nl_send(nl, &name_set_rule, read_rule, &config->rules);
	}
	nl_close(nl);
	unknown = config->devs.unknown ?: config->rules.unknown;
	if (unknown)
		error("unknown word for %s: the module is newer than this program, install both",
		      unknown);
	return err || unknown ? CMD_REFUSED : CMD_DONE;
}

uint32_t config_find_rule(const struct call *add)
{
	struct item wanted = { };
	struct config now;
	uint32_t id = 0;
	unsigned int i;

	config_copy_call(&wanted, add);
	config_fill_rule(&wanted);
	if (config_read(&now) == CMD_DONE)
		for (i = 0; i < now.rules.n && !id; i++)
			if (item_same(&now.rules.item[i], &wanted))
				id = now.rules.item[i].id;
	config_free(&now);
	return id;
}

int config_dump(FILE *file)
{
	struct config now;
	int status;

	status = config_read(&now);
	if (status == CMD_DONE) {
		config_print_items(file, "dev set", dev_set_verb->args, &now.devs);
		config_print_items(file, "rule add", rule_add_verb->args, &now.rules);
	}
	config_free(&now);
	return status;
}
