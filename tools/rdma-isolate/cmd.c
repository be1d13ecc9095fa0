// SPDX-License-Identifier: GPL-2.0
/*
 * Reads command lines by the tables of the objects, and explains the tables.
 * Keywords are exact: what an abbreviation means would change with new words.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <linux/genetlink.h>
#include <linux/rdma_isolate.h>

#include "cmd.h"
#include "config_file.h"
#include "error.h"
#include "units.h"

static const struct object * const objects[] = {
	&dev_object,
	&flow_object,
	&group_object,
	&budget_object,
	&path_object,
	&rule_object,
	&stat_object,
	&monitor_object,
	&top_object,
	&explain_object,
	&doctor_object,
	&calibrate_object,
};

enum { OBJECTS = sizeof(objects) / sizeof(*objects) };

int usage_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	verror(format, args);
	va_end(args);
	return CMD_USAGE;
}

static const struct object *find_object(const char *name)
{
	unsigned int i;

	for (i = 0; i < OBJECTS; i++)
		if (!strcmp(objects[i]->name, name))
			return objects[i];
	return NULL;
}

static const struct verb *find_verb(const struct object *object,
				    const char *name)
{
	const struct verb *verb;

	for (verb = object->verbs; verb->name; verb++)
		if (!strcmp(verb->name, name))
			return verb;
	return NULL;
}

static const struct arg *find_arg(const struct arg *args, const char *key)
{
	for (; args->key; args++)
		if (!strcmp(args->key, key))
			return args;
	return NULL;
}

/* "RATE", what stands for the value of an argument in the help */
static void print_grammar(FILE *file, const struct arg *arg)
{
	static const char * const names[] = {
		[ARG_DEV] = "DEV",
		[ARG_TEXT] = "NAME",
		[ARG_PEER] = "ADDRESS",
		[ARG_COUNT] = "NUMBER",
		[ARG_RATE] = "RATE",
		[ARG_SIZE] = "SIZE",
		[ARG_TIME] = "TIME",
	};
	unsigned int i;

	if (arg->kind == ARG_WORD)
		for (i = 0; i < arg->words->n; i++)
			fprintf(file, "%s%s", i ? "|" : "",
				arg->words->values[i].name);
	else
		fputs(names[arg->kind], file);
	if (arg->automatic)
		fputs("|auto", file);
	if (arg->off)
		fputs("|off", file);
}

/* What the value of an argument can be, as the end of a sentence */
static void print_allowed(FILE *file, const struct arg *arg)
{
	static const char * const allowed[] = {
		[ARG_DEV] = "the name of an RDMA device",
		[ARG_TEXT] = "a name",
		[ARG_PEER] = "an IPv4 address, IPv6 address or GID",
		[ARG_COUNT] = COUNT_ALLOWED,
		[ARG_RATE] = RATE_ALLOWED,
		[ARG_SIZE] = SIZE_ALLOWED,
		[ARG_TIME] = TIME_ALLOWED,
	};
	char min[UNITS_LEN], max[UNITS_LEN];
	unsigned int i;

	switch (arg->kind) {
	case ARG_WORD:
		for (i = 0; i < arg->words->n; i++)
			fprintf(file, "%s%s", i ? ", " : "",
				arg->words->values[i].name);
		break;
	case ARG_DEV:
	case ARG_TEXT:
		fprintf(file, "%s of 1 to %" PRIu64 " bytes",
			allowed[arg->kind], arg->max);
		break;
	case ARG_RATE:
		fputs(allowed[arg->kind], file);
		if (arg->max)
			fprintf(file, ", %s to %s", rate_format(arg->min, min),
				rate_format(arg->max, max));
		break;
	case ARG_TIME:
		fputs(allowed[arg->kind], file);
		if (arg->max)
			fprintf(file, ", %s to %s", time_format(arg->min, min),
				time_format(arg->max, max));
		break;
	default:
		fputs(allowed[arg->kind], file);
		if (arg->max)
			fprintf(file, ", %" PRIu64 " to %" PRIu64, arg->min,
				arg->max);
	}
	if (arg->automatic)
		fputs("; or auto", file);
	if (arg->off)
		fputs("; or off", file);
}

static bool read_value(const struct arg *arg, const char *text,
		       uint64_t *number)
{
	unsigned char address[16];
	unsigned int i;
	bool good;

	if (arg->automatic && !strcmp(text, "auto")) {
		*number = auto_number(arg);
		return true;
	}
	if (arg->off && !strcmp(text, "off")) {
		*number = 0;
		return true;
	}

	switch (arg->kind) {
	case ARG_DEV:
	case ARG_TEXT:
		return *text && strlen(text) <= arg->max;
	case ARG_PEER:
		return inet_pton(AF_INET, text, address) == 1 ||
		       inet_pton(AF_INET6, text, address) == 1;
	case ARG_WORD:
		for (i = 0; i < arg->words->n; i++)
			if (!strcmp(arg->words->values[i].name, text)) {
				*number = i;
				return true;
			}
		return false;
	case ARG_COUNT:
		good = count_parse(text, number);
		break;
	case ARG_RATE:
		good = rate_parse(text, number);
		break;
	case ARG_SIZE:
		good = size_parse(text, number);
		break;
	case ARG_TIME:
		good = time_parse(text, number);
		break;
	default:
		return false;
	}
	return good && (!arg->max || (arg->off && !*number) ||
			(*number >= arg->min && *number <= arg->max));
}

/* The end of an error about a word: what stands there may be an option of the tool. */
static void end_unknown(const char *word)
{
	if (*word == '-')
		fputs("; options come before the object (rdma-isolate -d flow show)",
		      stderr);
	fputc('\n', stderr);
}

static void print_words(FILE *file, const struct arg *args)
{
	const char *comma = "";

	for (; args->key; args++, comma = ", ")
		fprintf(file, "%s%s", comma, args->key);
}

static int read_values(struct call *call, int argc, char **argv)
{
	const struct arg *arg;
	struct value *value;

	while (argc) {
		arg = find_arg(call->args, argv[0]);
		if (!arg) {
			error_begin();
			fprintf(stderr, "unknown word \"%s\", ", argv[0]);
			if (call->args->key) {
				fputs("one of: ", stderr);
				print_words(stderr, call->args);
			} else {
				fputs("nothing may follow", stderr);
			}
			end_unknown(argv[0]);
			return CMD_USAGE;
		}

		value = &call->values[arg - call->args];
		if (value->text)
			return usage_error("%s is given twice", arg->key);
		if (arg->kind == ARG_FLAG) {
			value->text = *argv++;
			argc--;
			continue;
		}
		if (argc < 2 || !read_value(arg, argv[1], &value->number)) {
			error_begin();
			fprintf(stderr, "%s ", arg->key);
			if (argc < 2)
				fputs("needs a value: ", stderr);
			else
				fprintf(stderr, "\"%s\": must be ", argv[1]);
			print_allowed(stderr, arg);
			fputc('\n', stderr);
			return CMD_USAGE;
		}
		value->text = argv[1];
		argc -= 2;
		argv += 2;
	}

	for (arg = call->args; arg->key; arg++)
		if (arg->must && !call->values[arg - call->args].text)
			return usage_error("%s is missing", arg->key);
	return CMD_DONE;
}

const struct value *call_value(const struct call *call, const char *key)
{
	return &call->values[find_arg(call->args, key) - call->args];
}

struct nlmsghdr *call_request(struct call *call, const struct name_set *set,
			      uint8_t cmd, bool dump)
{
	struct nlmsghdr *nlh = nl_request(call->nl, cmd, dump);
	const struct value *value = call->values;
	const struct arg *arg = call->args;

	for (; arg->key; arg++, value++) {
		if (!arg->attr || !value->text)
			continue;
		if (set->attrs[arg->attr].type == NAME_STRING)
			mnl_attr_put_strz(nlh, arg->attr, value->text);
		else
			nl_put_number(nlh, set, arg->attr, value->number);
	}
	return nlh;
}

void print_fields(struct printer *out, const struct name_set *set,
		  const struct field *fields,
		  const struct nlattr * const *attrs)
{
	const struct name_attr *name;
	const struct nlattr *attr;

	for (; fields->attr; fields++) {
		attr = attrs[fields->attr];
		name = &set->attrs[fields->attr];
		if (!attr || ((fields->format & FMT_DETAIL) &&
			      !print_has_details(out)))
			continue;
		if (name->type == NAME_STRING)
			print_string(out, fields->key, name->name,
				     mnl_attr_get_str(attr));
		else
			print_number(out, fields->key, name->name,
				     fields->format & ~FMT_DETAIL, name->words,
				     nl_get_number(attr, set));
	}
}

/* The name of a counter, NULL if there is none or no value */
static const char *read_counter(const struct nlattr *nest, uint64_t *value)
{
	const struct nlattr *attr, *name = NULL, *number = NULL;

	mnl_attr_for_each_nested(attr, nest) {
		switch (mnl_attr_get_type(attr)) {
		case RDMA_ISOLATE_A_COUNTER_NAME:
			name = attr;
			break;
		case RDMA_ISOLATE_A_COUNTER_VALUE:
			number = attr;
			break;
		}
	}

	if (!name || mnl_attr_validate(name, MNL_TYPE_NUL_STRING) < 0 ||
	    !number || mnl_attr_validate(number, MNL_TYPE_U64) < 0)
		return NULL;
	*value = mnl_attr_get_u64(number);
	return mnl_attr_get_str(name);
}

void print_counters(struct printer *out, const struct nlmsghdr *nlh,
		    uint16_t counter)
{
	const struct nlattr *attr;
	const char *name;
	uint64_t value;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) != counter)
			continue;
		name = read_counter(attr, &value);
		if (name)
			print_number(out, name, name, FMT_COUNT, NULL, value);
	}
}

uint64_t find_counter(const struct nlmsghdr *nlh, uint16_t counter, const char *name)
{
	const struct nlattr *attr;
	const char *is;
	uint64_t value;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) != counter)
			continue;
		is = read_counter(attr, &value);
		if (is && !strcmp(is, name))
			return value;
	}
	return 0;
}

static void verb_synopsis(FILE *file, const struct object *object,
			  const struct verb *verb)
{
	const struct arg *arg;

	fprintf(file, "rdma-isolate %s%s%s", object->name,
		*verb->name ? " " : "", verb->name);
	for (arg = verb->args; arg->key; arg++) {
		fprintf(file, arg->must ? " %s" : " [%s", arg->key);
		if (arg->kind != ARG_FLAG) {
			fputc(' ', file);
			print_grammar(file, arg);
		}
		fputs(arg->must ? "" : "]", file);
	}
	fputc('\n', file);
}

static void object_help(FILE *file, const struct object *object)
{
	const struct verb *verb;
	const struct arg *arg;

	for (verb = object->verbs; verb->name; verb++) {
		verb_synopsis(file, object, verb);
		fprintf(file, "    %s\n", verb->doc);
		for (arg = verb->args; arg->key; arg++) {
			fprintf(file, "      %-14s %s", arg->key, arg->doc);
			if (arg->kind != ARG_FLAG) {
				fputs("; ", file);
				print_allowed(file, arg);
			}
			fputc('\n', file);
		}
	}
}

void cmd_help(FILE *file)
{
	const struct verb *verb;
	unsigned int i;

	fputs("usage: rdma-isolate [-d] [-j] [-p] OBJECT VERB [KEY VALUE]...\n"
	      "       rdma-isolate [-d] [-j] [-p] -b FILE\n"
	      "       rdma-isolate dump\n"
	      "       rdma-isolate sync FILE\n"
	      "       rdma-isolate apply [DEV | --check]\n"
	      "       rdma-isolate unload\n"
	      "       rdma-isolate run [--class CLASS] [--ucx-verbs] [-v] -- PROGRAM [ARGUMENT]...\n"
	      "       rdma-isolate OBJECT help | help OBJECT\n"
	      "       rdma-isolate -V | --version | help | -h | --help\n"
	      "    -b  run the commands of a file, - is standard input: all or none\n"
	      "    -d  text with details; JSON always has them\n"
	      "    -j  JSON, an array of objects\n"
	      "    -p  one value a line\n"
	      "    -V  print the version\n"
	      "dump: print settings and rules as commands\n"
	      "sync: make settings and rules those of such a file\n"
	      "apply: add settings and rules of all files in " CONFIG_DIR "\n"
	      "       --check: only say whether the files are right\n"
	      "unload: disable all devices and unload the module, or say who keeps it\n"
	      "run: run a program with the verbs shim, which shares by the rules\n",
	      file);
	for (i = 0; i < OBJECTS; i++) {
		fprintf(file, "%s: %s\n", objects[i]->name, objects[i]->doc);
		for (verb = objects[i]->verbs; verb->name; verb++) {
			fputs("    ", file);
			verb_synopsis(file, objects[i], verb);
		}
	}
}

/* What stands alone on a command line, and never in a file */
static const char * const alone[] = {
	"dump", "sync", "apply", "run", "unload", "help",
};

#define ALONE (sizeof(alone) / sizeof(*alone))

static bool is_alone(const char *name)
{
	unsigned int i;

	for (i = 0; i < ALONE; i++)
		if (!strcmp(alone[i], name))
			return true;
	return false;
}

/* End a line with the objects that may stand there. */
static int list_objects(void)
{
	unsigned int i;

	for (i = 0; i < OBJECTS; i++)
		if (!error_is_of_file() || (!objects[i]->stream && !objects[i]->fleeting))
			fprintf(stderr, "%s%s", i ? ", " : "", objects[i]->name);
	for (i = 0; !error_is_of_file() && i < ALONE; i++)
		fprintf(stderr, ", %s", alone[i]);
	fputc('\n', stderr);
	return CMD_USAGE;
}

int cmd_refuse_in_file(const char *name)
{
	error_begin();
	fprintf(stderr, "%s may not stand here, one of: ", name);
	return list_objects();
}

static int unknown_object(const char *name)
{
	if (error_is_of_file() && is_alone(name))
		return cmd_refuse_in_file(name);
	error_begin();
	fprintf(stderr, "unknown object \"%s\", one of: ", name);
	return list_objects();
}

bool cmd_is_help(const char *word)
{
	return !strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h");
}

bool cmd_has_no_help(const char *name)
{
	return is_alone(name) && strcmp(name, "run");
}

static int unknown_verb(const struct object *object, const char *name)
{
	const struct verb *verb;

	error_begin();
	fprintf(stderr, "unknown verb \"%s\" for %s, one of: ", name,
		object->name);
	for (verb = object->verbs; verb->name; verb++)
		fprintf(stderr, "%s, ", verb->name);
	fputs("help", stderr);
	end_unknown(name);
	return CMD_USAGE;
}

int cmd_parse(int argc, char **argv, struct command *cmd)
{
	const struct object *object = find_object(argv[0]);
	const struct verb *verb;
	int status;

	*cmd = (struct command) { .object = object };
	if (!object)
		return unknown_object(argv[0]);

	argc--;
	argv++;
	if (argc == 1 && cmd_is_help(argv[0]))
		return CMD_DONE;
	verb = object->verbs;
	if (argc && *verb->name) {
		verb = find_verb(object, argv[0]);
		if (!verb)
			return unknown_verb(object, argv[0]);
		argc--;
		argv++;
	}

	cmd->verb = verb;
	cmd->call.args = verb->args;
	status = read_values(&cmd->call, argc, argv);
	if (status == CMD_DONE && verb->check)
		status = verb->check(&cmd->call);
	return status;
}

int cmd_run(struct command *cmd, struct printer *out)
{
	bool pretty = out->pretty;
	int status = CMD_REFUSED;

	if (!cmd->verb) {
		object_help(stdout, cmd->object);
		return CMD_DONE;
	}

	/* JSON is complete also when the kernel refuses */
	cmd->call.out = out;
	out->stream = cmd->object->stream;
	print_begin(out);
	if (!cmd->object->offline)
		cmd->call.nl = nl_open();
	if (cmd->call.nl || cmd->object->offline)
		status = cmd->verb->run(&cmd->call);
	if (cmd->call.nl)
		nl_close(cmd->call.nl);
	print_end(out);
	/* A verb may have wanted a line for each thing, the next one need not. */
	out->pretty = pretty;
	return status;
}

static void print_name(const struct nlattr * const *attrs,
		       const struct nlmsghdr *nlh, void *data)
{
	(void)nlh;
	(void)data;
	if (attrs[RDMA_ISOLATE_A_DEV_DEV])
		puts(mnl_attr_get_str(attrs[RDMA_ISOLATE_A_DEV_DEV]));
}

static void complete_dev(void)
{
	struct nl *nl = nl_open();

	if (!nl)
		return;
	nl_request(nl, RDMA_ISOLATE_CMD_DEV_GET, true);
	nl_send(nl, &name_set_dev, print_name, NULL);
	nl_close(nl);
}

static void complete_value(const struct arg *arg)
{
	unsigned int i;

	if (arg->kind == ARG_WORD)
		for (i = 0; i < arg->words->n; i++)
			puts(arg->words->values[i].name);
	if (arg->automatic)
		puts("auto");
	if (arg->off)
		puts("off");

	if (arg->kind == ARG_DEV)
		complete_dev();
}

/* The keys that were not given yet, or the values of the last one */
static void complete_args(const struct arg *args, int argc, char **argv)
{
	bool given[ARGS_MAX] = {};
	const struct arg *arg;

	while (argc) {
		arg = find_arg(args, argv[0]);
		if (!arg)
			return;
		given[arg - args] = true;
		argc--;
		argv++;
		if (arg->kind == ARG_FLAG)
			continue;
		if (!argc) {
			complete_value(arg);
			return;
		}
		argc--;
		argv++;
	}
	for (arg = args; arg->key; arg++)
		if (!given[arg - args])
			puts(arg->key);
}

/* What run takes before the program; run reads it by itself. */
static const struct arg run_args[] = {
	{ .key = "--class", .kind = ARG_WORD, .words = &name_class },
	{ .key = "--ucx-verbs", .kind = ARG_FLAG },
	{ .key = "-v", .kind = ARG_FLAG },
	{ .key = "--verbose", .kind = ARG_FLAG },
	{ .key = "--", .kind = ARG_FLAG },
	{ }
};

int cmd_complete(int argc, char **argv)
{
	const struct object *object;
	const struct verb *verb;
	unsigned int i;

	while (argc && argv[0][0] == '-') {
		argc--;
		argv++;
	}

	if (!argc) {
		for (i = 0; i < OBJECTS; i++)
			puts(objects[i]->name);
		puts("dump\nsync\napply\nrun\nunload\nhelp");
		return CMD_DONE;
	}

	if (argc == 1 && !strcmp(argv[0], "apply")) {
		puts("--check");
		complete_dev();
	}
	if (!strcmp(argv[0], "run"))
		complete_args(run_args, argc - 1, argv + 1);
	object = find_object(argv[0]);
	if (!object)
		return CMD_DONE;
	argc--;
	argv++;
	verb = object->verbs;
	if (!argc)
		puts("help");
	if (*verb->name && !argc) {
		for (; verb->name; verb++)
			puts(verb->name);
		return CMD_DONE;
	}
	if (*verb->name) {
		verb = find_verb(object, argv[0]);
		argc--;
		argv++;
	}
	if (verb)
		complete_args(verb->args, argc, argv);
	return CMD_DONE;
}
