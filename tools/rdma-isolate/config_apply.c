// SPDX-License-Identifier: GPL-2.0
/*
 * Makes the settings and rules of the module those that files want.
 *
 * This file plans what differs and sends only that to the kernel. When the kernel refuses,
 * it restores what was there before. It owns the lock that keeps two processes from
 * applying files at once.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <linux/rdma_isolate.h>

#include "config_apply.h"
#include "config_file.h"
#include "config_item.h"
#include "config_read.h"
#include "error.h"

/* only root can make it wait */
#define APPLY_LOCK "/run/rdma-isolate.lock"

void rule_plan(const struct items *now, const struct items *then,
	       struct rule_plan *plan)
{
	unsigned int next = 0;
	unsigned int i;

	for (i = 0; i < now->n; i++)
		plan->settled[i] = false;
	for (plan->add = 0; plan->add < then->n; plan->add++) {
		for (i = next; i < now->n; i++)
			if (item_same(&now->item[i], &then->item[plan->add]))
				break;
		if (i == now->n)
			return;
		plan->settled[i] = true;
		next = i + 1;
	}
}

static bool has_item(const struct items *items, unsigned int n,
		     const struct item *item)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		if (item_same(&items->item[i], item))
			return true;
	return false;
}

void rules_missing(const struct items *now, struct items *then)
{
	unsigned int i, n = 0;

	for (i = 0; i < then->n; i++)
		if (!has_item(now, now->n, &then->item[i]) &&
		    !has_item(then, n, &then->item[i]))
			then->item[n++] = then->item[i];
	then->n = n;
}

void devs_present(const struct items *now, struct items *then, const char *dev)
{
	unsigned int i, n = 0;
	const char *name;

	for (i = 0; i < then->n; i++) {
		name = config_get_dev_name(&then->item[i]);
		if (config_find_dev(now, name) && (!dev || !strcmp(dev, name)))
			then->item[n++] = then->item[i];
	}
	then->n = n;
}

static int send_item(struct nl *nl, uint8_t cmd, const struct name_set *set,
		     const struct arg *arg, const struct item *item)
{
	struct nlmsghdr *nlh = nl_request(nl, cmd, false);
	const struct setting *setting = item->set;

	for (; arg->key; arg++, setting++) {
		if (!arg->attr || !setting->given)
			continue;
		if (config_is_text(arg))
			mnl_attr_put_strz(nlh, arg->attr, setting->text);
		else
			nl_put_number(nlh, set, arg->attr, setting->number);
	}
	return nl_send(nl, set, NULL, NULL);
}

enum apply_how {
	APPLY_DELETES = 1,	/* rules that are not wanted */
	APPLY_GOES_ON = 2,	/* after a refusal, with what is left */
};

/* Is a setting of a device as it shall be? */
static bool is_as_wanted(const struct item *now, const struct item *then, unsigned int i)
{
	uint64_t is = now->set[i].number, want = then->set[i].number;

	switch (dev_set_verb->args[i].attr) {
	case RDMA_ISOLATE_A_DEV_MAX_RATE:
		/* A number in a file is one that somebody has set. */
		return is == want &&
		       !(then->file && now->guessed && want != RDMA_ISOLATE_RATE_AUTO);
	case RDMA_ISOLATE_A_DEV_SAFE_UTIL:
		/* One that follows is the number of MaxRate, too. */
		return is == want || (is == RDMA_ISOLATE_RATE_AUTO && want == now->max_rate);
	default:
		return is == want;
	}
}

/*
 * The name, and what differs; false if nothing does.
 * SafeUtil that is MaxRate follows it in the kernel, and is sent along.
 */
static bool dev_changes(const struct item *now, const struct item *then,
			struct item *change)
{
	unsigned int rate = config_find_place(dev_set_verb, RDMA_ISOLATE_A_DEV_MAX_RATE);
	unsigned int util = config_find_place(dev_set_verb, RDMA_ISOLATE_A_DEV_SAFE_UTIL);
	unsigned int name = config_find_place(dev_set_verb, RDMA_ISOLATE_A_DEV_DEV);
	bool any = false;
	unsigned int i;

	*change = *then;
	for (i = 0; i < ARGS_MAX; i++) {
		if (i == name || !change->set[i].given)
			continue;
		if (now && is_as_wanted(now, then, i))
			change->set[i].given = false;
		else
			any = true;
	}
	if (change->set[rate].given)
		change->set[util] = then->set[util];
	return any;
}

static int apply_devs(struct nl *nl, const struct config *now, const struct config *then,
		      unsigned int how, const char **refused)
{
	const struct item *dev = then->devs.item;
	int status = CMD_DONE;
	const struct item *is;
	struct item change;
	unsigned int i;

	for (i = 0; i < then->devs.n; i++, dev++) {
		is = config_find_dev(&now->devs, config_get_dev_name(dev));
		/* one that was there before and has gone */
		if (!is && !dev->file)
			continue;
		if (!dev_changes(is, dev, &change))
			continue;
		error_from(dev->file, dev->line);
		if (send_item(nl, RDMA_ISOLATE_CMD_DEV_SET, &name_set_dev,
			      dev_set_verb->args, &change)) {
			*refused = dev->file;
			status = CMD_REFUSED;
			if (!(how & APPLY_GOES_ON))
				break;
		}
	}
	return status;
}

static int delete_rule(struct nl *nl, uint32_t id)
{
	struct nlmsghdr *nlh = nl_request(nl, RDMA_ISOLATE_CMD_RULE_DEL, false);

	mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_RULE_ID, id);
	return nl_send(nl, &name_set_rule, NULL, NULL);
}

/* A rule that gets another place: the kernel does not take the same twice. */
static int delete_equal(struct nl *nl, const struct items *now, struct rule_plan *plan,
			const struct item *rule)
{
	unsigned int i;

	for (i = 0; i < now->n; i++) {
		if (plan->settled[i] || !item_same(&now->item[i], rule))
			continue;
		plan->settled[i] = true;
		return delete_rule(nl, now->item[i].id);
	}
	return 0;
}

/*
 * Change the module from @now to @then, as the bits of &enum apply_how say. @refused is the
 * file with the line that the kernel refused.
 */
static int apply(const struct config *now, const struct config *then, unsigned int how,
		 const char **refused)
{
	bool goes_on = how & APPLY_GOES_ON;
	const struct items *rules = &then->rules;
	struct rule_plan plan = {
		.settled = calloc(now->rules.n + 1, sizeof(*plan.settled)),
	};
	struct nl *nl = plan.settled ? nl_open() : NULL;
	int status = CMD_REFUSED;
	unsigned int i;

	if (!nl)
		goto free;
	status = CMD_DONE;
	if (how & APPLY_DELETES)
		rule_plan(&now->rules, rules, &plan);
	/* first what may be refused */
	for (i = plan.add; i < rules->n && (status == CMD_DONE || goes_on); i++) {
		error_from(rules->item[i].file, rules->item[i].line);
		if ((how & APPLY_DELETES) &&
		    delete_equal(nl, &now->rules, &plan, &rules->item[i])) {
			status = CMD_REFUSED;
		} else if (send_item(nl, RDMA_ISOLATE_CMD_RULE_ADD, &name_set_rule,
				     rule_add_verb->args, &rules->item[i])) {
			*refused = rules->item[i].file;
			status = CMD_REFUSED;
		}
	}
	if ((status == CMD_DONE || goes_on) && apply_devs(nl, now, then, how, refused))
		status = CMD_REFUSED;
	for (i = 0; i < now->rules.n && (status == CMD_DONE || goes_on); i++) {
		if (!(how & APPLY_DELETES) || plan.settled[i])
			continue;
		if (delete_rule(nl, now->rules.item[i].id))
			status = CMD_REFUSED;
	}
	nl_close(nl);
free:
	error_from(NULL, 0);
	free(plan.settled);
	return status;
}

void config_restore(const struct config *before)
{
	const char *refused;
	struct config now;

	if (config_read(&now) == CMD_DONE)
		apply(&now, before, APPLY_DELETES | APPLY_GOES_ON, &refused);
	config_free(&now);
}

static int apply_or_restore(const struct config *now, const struct config *then,
			    unsigned int how, const char **refused)
{
	int status = apply(now, then, how, refused);

	if (status != CMD_DONE)
		config_restore(now);
	return status;
}

int config_lock(void)
{
	int fd = open(APPLY_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || !flock(fd, LOCK_EX))
		return fd;
	close(fd);
	return -1;
}

static int lock_error(void)
{
	if (errno == EACCES)
		error("only root may apply settings");
	else
		error("%s: %s", APPLY_LOCK, strerror(errno));
	return CMD_REFUSED;
}

int config_sync(const char *file)
{
	struct config now = { }, then = { };
	const char *refused;
	int status, locked;

	status = config_read_file(file, &then);
	if (status == CMD_DONE && config_check_devs(&then.devs))
		status = CMD_USAGE;
	if (status == CMD_DONE) {
		/* One with the capability alone cannot have it. */
		locked = config_lock();
		status = locked < 0 && errno != EACCES ? lock_error() : config_read(&now);
		if (status == CMD_DONE)
			status = apply_or_restore(&now, &then, APPLY_DELETES, &refused);
		if (locked >= 0)
			close(locked);
	}
	config_free(&now);
	config_free(&then);
	return status;
}

static int apply_additions(struct config *then, const char *dev, const char **refused)
{
	struct config now;
	int status;

	*refused = NULL;
	status = config_read(&now);
	if (status == CMD_DONE) {
		rules_missing(&now.rules, &then->rules);
		devs_present(&now.devs, &then->devs, dev);
		status = apply_or_restore(&now, then, 0, refused);
	}
	config_free(&now);
	return status;
}

/*
 * Two files may have to do with what was refused: the later one is left out first, and
 * is tried again when it has turned out to be the earlier one's fault.
 */
static int apply_again(struct config *then, const char *dev, const char *last)
{
	const char *refused;
	size_t i;

	for (i = 0; i < then->files.gl_pathc; i++) {
		if (then->left[i] != CONFIG_REFUSED || then->files.gl_pathv[i] == last)
			continue;
		then->left[i] = CONFIG_TAKEN;
		config_read_files(then);
		if (apply_additions(then, dev, &refused) == CMD_DONE)
			continue;
		then->left[i] = CONFIG_REFUSED;
		if (!refused)
			return CMD_REFUSED;
	}
	return CMD_DONE;
}

/* Leave out what the kernel refuses, until it takes the rest. */
static int apply_files(struct config *then, const char *dev)
{
	const char *refused, *last = NULL;
	int status;

	while ((status = apply_additions(then, dev, &refused)) != CMD_DONE && refused) {
		last = refused;
		config_leave_out(then, last, CONFIG_REFUSED);
		config_read_files(then);
	}
	if (status == CMD_DONE && last)
		status = apply_again(then, dev, last);
	return last ? CMD_REFUSED : status;
}

int config_apply(const char *dir, const char *dev)
{
	int status, locked, applied = CMD_DONE;
	struct config then;
	size_t i;

	status = config_read_dir(dir, &then);
	if (then.devs.n || then.rules.n) {
		locked = config_lock();
		applied = locked < 0 ? lock_error() : apply_files(&then, dev);
		if (locked >= 0)
			close(locked);
	}
	for (i = 0; i < then.files.gl_pathc; i++)
		if (then.left && then.left[i] != CONFIG_TAKEN)
			error("%s is left out", then.files.gl_pathv[i]);
	config_free(&then);
	return status == CMD_DONE ? applied : status;
}

int config_count_open(struct config *then)
{
	struct item change;
	struct config now;
	unsigned int i;
	int n;

	if (config_read(&now) != CMD_DONE)
		return -1;
	rules_missing(&now.rules, &then->rules);
	devs_present(&now.devs, &then->devs, NULL);
	n = then->rules.n;
	for (i = 0; i < then->devs.n; i++)
		n += dev_changes(config_find_dev(&now.devs,
						 config_get_dev_name(&then->devs.item[i])),
				 &then->devs.item[i], &change);
	config_free(&now);
	return n;
}
