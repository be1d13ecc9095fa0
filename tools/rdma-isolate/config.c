// SPDX-License-Identifier: GPL-2.0
/*
 * All settings and rules at once.
 *
 * What is there now and what files want are brought into the same form, the
 * arguments of "dev set" and "rule add". Only what differs is sent to the kernel.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/rdma_isolate.h>

#include "batch.h"
#include "config.h"
#include "error.h"
#include "units.h"

/* only root can make it wait */
#define APPLY_LOCK "/run/rdma-isolate.lock"

enum { WEIGHT_DEFAULT = 100 };

static unsigned int place_of(const struct verb *verb, uint16_t attr)
{
	unsigned int i;

	for (i = 0; verb->args[i].attr != attr; i++)
		;
	return i;
}

static struct setting *dev_setting(struct item *item, uint16_t attr)
{
	return &item->set[place_of(dev_set_verb, attr)];
}

static const char *dev_name(const struct item *item)
{
	return item->set[place_of(dev_set_verb, RDMA_ISOLATE_A_DEV_NAME)].text;
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

static bool is_text(const struct arg *arg)
{
	return arg->kind == ARG_DEV || arg->kind == ARG_TEXT ||
	       arg->kind == ARG_PEER;
}

static void item_from_call(struct item *item, const struct call *call)
{
	unsigned int i;

	for (i = 0; call->args[i].key; i++) {
		if (!call->values[i].text)
			continue;
		if (is_text(&call->args[i])) {
			set_text(&item->set[i], &call->args[i],
				 call->values[i].text);
			continue;
		}
		item->set[i].given = true;
		item->set[i].number = call->values[i].number;
	}
}

static void item_from_attrs(struct item *item, const struct arg *arg,
			    const struct name_set *set,
			    const struct nlattr * const *attrs)
{
	struct setting *to = item->set;
	const struct nlattr *attr;

	for (; arg->key; arg++, to++) {
		attr = arg->attr ? attrs[arg->attr] : NULL;
		if (!attr)
			continue;
		if (is_text(arg)) {
			set_text(to, arg, mnl_attr_get_str(attr));
			continue;
		}
		to->given = true;
		to->number = nl_get_number(attr, set);
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

void rule_plan(const struct items *now, const struct items *then,
	       struct rule_plan *plan)
{
	unsigned int next = 0;
	unsigned int i;

	for (i = 0; i < now->n; i++)
		plan->keep[i] = false;
	for (plan->add = 0; plan->add < then->n; plan->add++) {
		for (i = next; i < now->n; i++)
			if (item_same(&now->item[i], &then->item[plan->add]))
				break;
		if (i == now->n)
			return;
		plan->keep[i] = true;
		next = i + 1;
	}
}

static struct item *add_item(struct items *items)
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

static struct item *find_dev(const struct items *devs, const char *name)
{
	unsigned int i;

	for (i = 0; i < devs->n; i++)
		if (!strcmp(dev_name(&devs->item[i]), name))
			return &devs->item[i];
	return NULL;
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
		name = dev_name(&then->item[i]);
		if (find_dev(now, name) && (!dev || !strcmp(dev, name)))
			then->item[n++] = then->item[i];
	}
	then->n = n;
}

/* --- what is there --- */

static void read_dev(const struct nlattr * const *attrs,
		     const struct nlmsghdr *nlh, void *data)
{
	static const uint32_t modes[] = {
		[RISO_DEV_IDLE] = RISO_MODE_DISABLE,
		[RISO_DEV_OBSERVE] = RISO_MODE_OBSERVE,
		[RISO_DEV_ENFORCE] = RISO_MODE_ENABLE,
		[RISO_DEV_DRAINING] = RISO_MODE_DISABLE,
	};
	struct items *devs = data;
	struct setting *mode;
	struct item *item;
	uint32_t state;

	(void)nlh;
	if (!attrs[RDMA_ISOLATE_A_DEV_NAME] || !attrs[RDMA_ISOLATE_A_DEV_STATE])
		return;
	state = mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_STATE]);
	if (state >= sizeof(modes) / sizeof(*modes))
		return;
	item = add_item(devs);
	item_from_attrs(item, dev_set_verb->args, &name_set_dev, attrs);
	mode = dev_setting(item, RDMA_ISOLATE_A_DEV_MODE);
	mode->given = true;
	mode->number = modes[state];
	item->guessed = attrs[RDMA_ISOLATE_A_DEV_CALIBRATED] &&
		!mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_CALIBRATED]);
}

static void read_rule(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct items *rules = data;
	struct item *item;

	(void)nlh;
	if (!attrs[RDMA_ISOLATE_A_RULE_ID])
		return;
	item = add_item(rules);
	item->id = mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_RULE_ID]);
	item_from_attrs(item, rule_add_verb->args, &name_set_rule, attrs);
}

int config_read(struct config *config)
{
	struct nl *nl = nl_open();
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
	return err ? CMD_REFUSED : CMD_DONE;
}

void config_free(struct config *config)
{
	free(config->devs.item);
	free(config->rules.item);
	globfree(&config->files);
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

	if (is_text(arg)) {
		print_word(file, setting->text);
		return;
	}
	if (arg->automatic && setting->number == RDMA_ISOLATE_AUTO) {
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

static void print_items(FILE *file, const char *words, const struct arg *args,
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

/* A guess is no setting, nor is a SafeUtil that follows it. */
static void drop_guess(struct item *dev)
{
	struct setting *max_rate, *safe_util;

	if (!dev->guessed)
		return;
	max_rate = dev_setting(dev, RDMA_ISOLATE_A_DEV_MAX_RATE);
	safe_util = dev_setting(dev, RDMA_ISOLATE_A_DEV_SAFE_UTIL);
	safe_util->given = safe_util->number != max_rate->number;
	max_rate->given = false;
}

int config_dump(FILE *file)
{
	struct config now;
	unsigned int i;
	int status;

	status = config_read(&now);
	if (status == CMD_DONE) {
		for (i = 0; i < now.devs.n; i++)
			drop_guess(&now.devs.item[i]);
		print_items(file, "dev set", dev_set_verb->args, &now.devs);
		print_items(file, "rule add", rule_add_verb->args, &now.rules);
	}
	config_free(&now);
	return status;
}

/* --- what a file wants --- */

static int add_command(struct config *config, const struct command *cmd,
		       const char *file, unsigned int line)
{
	struct item wanted = { .file = file, .line = line };
	struct setting *weight, *choose;
	struct item *item;
	unsigned int i;

	if (cmd->verb != dev_set_verb && cmd->verb != rule_add_verb)
		return usage_error("only dev set and rule add may stand here");
	for (i = 0; cmd->call.args[i].key; i++)
		if (!cmd->call.args[i].attr && cmd->call.values[i].text)
			return usage_error("%s may not stand here",
					   cmd->call.args[i].key);
	item_from_call(&wanted, &cmd->call);
	if (cmd->verb == rule_add_verb) {
		weight = &wanted.set[place_of(rule_add_verb,
					      RDMA_ISOLATE_A_RULE_WEIGHT)];
		if (!weight->given)
			weight->number = WEIGHT_DEFAULT;
		weight->given = true;
		/* The kernel does not tell of what is off. */
		choose = &wanted.set[place_of(rule_add_verb,
					      RDMA_ISOLATE_A_RULE_CHOOSE)];
		if (choose->given && choose->number == RISO_SWITCH_OFF)
			*choose = (struct setting){ };
		*add_item(&config->rules) = wanted;
		return CMD_DONE;
	}
	item = find_dev(&config->devs, dev_name(&wanted));
	if (!item) {
		*add_item(&config->devs) = wanted;
		return CMD_DONE;
	}
	item->file = file;
	item->line = line;
	for (i = 0; i < ARGS_MAX; i++)
		if (wanted.set[i].given)
			item->set[i] = wanted.set[i];
	return CMD_DONE;
}

/* Add what a file wants */
static int read_file(const char *name, struct config *config)
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

/* What can only be seen when all lines about a device are known */
static int check_devs(const struct items *devs)
{
	struct item *dev = devs->item;
	struct setting *max_rate, *safe_util;

	for (; dev < devs->item + devs->n; dev++) {
		max_rate = dev_setting(dev, RDMA_ISOLATE_A_DEV_MAX_RATE);
		safe_util = dev_setting(dev, RDMA_ISOLATE_A_DEV_SAFE_UTIL);
		if (!max_rate->given || !safe_util->given ||
		    safe_util->number <= max_rate->number)
			continue;
		error_from(dev->file, dev->line);
		usage_error("safe-util of %s may not be above its max-rate",
			    dev_name(dev));
		error_from(NULL, 0);
		return CMD_USAGE;
	}
	return CMD_DONE;
}

static int dir_error(const char *dir, int err)
{
	if (err == ENOENT)
		return 0;
	error("%s: %s", dir, strerror(err));
	return err;
}

/* With the command, unless it is NULL, in place of what the file of this name has */
static int read_dir(const char *dir, struct config *config, const char *instead,
		    const struct command *cmd)
{
	char **name, **end, names[PATH_MAX];
	int status = CMD_DONE;

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
	name = config->files.gl_pathv;
	end = name + config->files.gl_pathc;
	for (; name < end && status == CMD_DONE; name++) {
		if (cmd && strcmp(*name, instead) >= 0) {
			status = add_command(config, cmd, instead, 1);
			cmd = NULL;
		}
		if (status == CMD_DONE && (!instead || strcmp(*name, instead)))
			status = read_file(*name, config);
	}
	if (cmd && status == CMD_DONE)
		status = add_command(config, cmd, instead, 1);
	return status == CMD_DONE ? check_devs(&config->devs) : status;
}

int config_read_dir(const char *dir, struct config *config)
{
	return read_dir(dir, config, NULL, NULL);
}

/* --- to make them the same --- */

static int send_item(struct nl *nl, uint8_t cmd, const struct name_set *set,
		     const struct arg *arg, const struct item *item)
{
	struct nlmsghdr *nlh = nl_request(nl, cmd, false);
	const struct setting *setting = item->set;

	for (; arg->key; arg++, setting++) {
		if (!arg->attr || !setting->given)
			continue;
		if (is_text(arg))
			mnl_attr_put_strz(nlh, arg->attr, setting->text);
		else
			nl_put_number(nlh, set, arg->attr, setting->number);
	}
	return nl_send(nl, set, NULL, NULL);
}

/*
 * The name, and what differs, as does what is only guessed; false if nothing does.
 * SafeUtil that is MaxRate follows it in the kernel, and is sent along.
 */
static bool dev_changes(const struct item *now, const struct item *then,
			struct item *change)
{
	unsigned int rate = place_of(dev_set_verb, RDMA_ISOLATE_A_DEV_MAX_RATE);
	unsigned int util = place_of(dev_set_verb, RDMA_ISOLATE_A_DEV_SAFE_UTIL);
	unsigned int name = place_of(dev_set_verb, RDMA_ISOLATE_A_DEV_NAME);
	bool any = false;
	unsigned int i;

	*change = *then;
	for (i = 0; i < ARGS_MAX; i++) {
		if (i == name || !change->set[i].given)
			continue;
		if (now && now->set[i].number == then->set[i].number &&
		    (i != rate || now->guessed == then->guessed))
			change->set[i].given = false;
		else
			any = true;
	}
	if (change->set[rate].given)
		change->set[util] = then->set[util];
	return any;
}

static int apply_devs(struct nl *nl, const struct config *now,
		      const struct config *then)
{
	const struct item *dev = then->devs.item;
	const struct item *is;
	struct item change;
	unsigned int i;

	for (i = 0; i < then->devs.n; i++, dev++) {
		is = find_dev(&now->devs, dev_name(dev));
		/* one that was there before and has gone */
		if (!is && !dev->file)
			continue;
		if (!dev_changes(is, dev, &change))
			continue;
		error_from(dev->file, dev->line);
		if (send_item(nl, RDMA_ISOLATE_CMD_DEV_SET, &name_set_dev,
			      dev_set_verb->args, &change))
			return CMD_REFUSED;
	}
	return CMD_DONE;
}

/* Make it what then says; if others_go, rules that it does not have are deleted. */
static int apply(const struct config *now, const struct config *then,
		 bool others_go)
{
	const struct items *rules = &then->rules;
	struct rule_plan plan = {
		.keep = calloc(now->rules.n + 1, sizeof(*plan.keep)),
	};
	struct nl *nl = plan.keep ? nl_open() : NULL;
	struct nlmsghdr *nlh;
	int status = CMD_REFUSED;
	unsigned int i;

	if (!nl)
		goto free;
	if (others_go)
		rule_plan(&now->rules, rules, &plan);
	/* first what may be refused */
	for (i = plan.add; i < rules->n; i++) {
		error_from(rules->item[i].file, rules->item[i].line);
		if (send_item(nl, RDMA_ISOLATE_CMD_RULE_ADD, &name_set_rule,
			      rule_add_verb->args, &rules->item[i]))
			goto close;
	}
	status = apply_devs(nl, now, then);
	for (i = 0; i < now->rules.n && status == CMD_DONE; i++) {
		if (!others_go || plan.keep[i])
			continue;
		nlh = nl_request(nl, RDMA_ISOLATE_CMD_RULE_DEL, false);
		mnl_attr_put_u32(nlh, RDMA_ISOLATE_A_RULE_ID,
				 now->rules.item[i].id);
		if (nl_send(nl, &name_set_rule, NULL, NULL))
			status = CMD_REFUSED;
	}
close:
	nl_close(nl);
free:
	error_from(NULL, 0);
	free(plan.keep);
	return status;
}

void config_restore(const struct config *before)
{
	struct config now;

	if (config_read(&now) == CMD_DONE)
		apply(&now, before, true);
	config_free(&now);
}

static int apply_or_restore(const struct config *now, const struct config *then,
			    bool others_go)
{
	int status = apply(now, then, others_go);

	if (status != CMD_DONE)
		config_restore(now);
	return status;
}

int config_sync(const char *file)
{
	struct config now = { }, then = { };
	int status;

	status = read_file(file, &then);
	if (status == CMD_DONE)
		status = check_devs(&then.devs);
	if (status == CMD_DONE)
		status = config_read(&now);
	if (status == CMD_DONE)
		status = apply_or_restore(&now, &then, true);
	config_free(&now);
	config_free(&then);
	return status;
}

/* Devices may appear at once, and of two who look, both would add a rule. */
static int lock(void)
{
	int fd = open(APPLY_LOCK, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd >= 0 && !flock(fd, LOCK_EX))
		return fd;
	error("%s: %s", APPLY_LOCK, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static int apply_additions(struct config *then, const char *dev)
{
	struct config now;
	int status;

	status = config_read(&now);
	if (status == CMD_DONE) {
		rules_missing(&now.rules, &then->rules);
		devs_present(&now.devs, &then->devs, dev);
		status = apply_or_restore(&now, then, false);
	}
	config_free(&now);
	return status;
}

int config_apply(const char *dir, const char *dev)
{
	struct config then;
	int status, locked;

	status = config_read_dir(dir, &then);
	if (status == CMD_DONE && (then.devs.n || then.rules.n)) {
		locked = lock();
		status = locked < 0 ? CMD_REFUSED : apply_additions(&then, dev);
		if (locked >= 0)
			close(locked);
	}
	config_free(&then);
	return status;
}

/* --- to keep a setting --- */

static bool write_dev(const char *name, const struct command *cmd)
{
	struct item dev = { };
	const struct items devs = { .n = 1, .item = &dev };
	FILE *file = fopen(name, "we");
	bool good;

	if (!file)
		return false;
	item_from_call(&dev, &cmd->call);
	print_items(file, "dev set", dev_set_verb->args, &devs);
	good = !ferror(file);
	return !fclose(file) && good;
}

int config_keep(const char *dir, const char *name, struct command *cmd)
{
	char file[PATH_MAX], fresh[PATH_MAX];
	const char *dev = call_value(&cmd->call, "dev")->text;
	struct config config;
	int status;

	snprintf(file, sizeof(file), "%s/%s-%s.conf", dir, name, dev);
	snprintf(fresh, sizeof(fresh), "%s/.%s-%s.conf", dir, name, dev);
	status = read_dir(dir, &config, file, cmd);
	config_free(&config);
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
