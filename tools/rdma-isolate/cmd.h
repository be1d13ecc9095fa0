/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Objects, their verbs and what these take. The parser, the help and the
 * completion all read these tables.
 */
#ifndef RDMA_ISOLATE_CMD_H
#define RDMA_ISOLATE_CMD_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/rdma_isolate.h>

#include "names_gen.h"
#include "nl.h"
#include "print.h"

/* also the exit status */
enum {
	CMD_DONE = 0,
	CMD_REFUSED = 1,
	CMD_USAGE = 2,
};

enum arg_kind {
	ARG_DEV,
	ARG_TEXT,
	ARG_PEER,
	ARG_WORD,
	ARG_COUNT,
	ARG_RATE,
	ARG_SIZE,
	ARG_TIME,
	ARG_FLAG,
};

/**
 * struct arg - a key and the value behind it; of ARG_FLAG the key alone
 * @key: the word
 * @kind: how the value is read
 * @attr: attribute of the request, 0 when it is not sent
 * @must: the verb does nothing without it
 * @off: the value may be off, which is 0
 * @automatic: the value may be auto, which is auto_number()
 * @min: smallest value, or shortest text
 * @max: largest value, or longest text, without the final NUL
 * @words: of ARG_WORD
 * @doc: one line
 */
struct arg {
	const char *key;
	enum arg_kind kind;
	uint16_t attr;
	bool must;
	bool off;
	bool automatic;
	uint64_t min;
	uint64_t max;
	const struct name_enum *words;
	const char *doc;
};

/* What stands for auto: RDMA_ISOLATE_AUTO is a rate that can be meant */
static inline uint64_t auto_number(const struct arg *arg)
{
	return arg->kind == ARG_RATE ? RDMA_ISOLATE_RATE_AUTO : RDMA_ISOLATE_AUTO;
}

enum { ARGS_MAX = 14 };

/**
 * struct value - what was given for the struct arg of the same place
 * @text: as it was given, of ARG_FLAG the key, NULL when it was not
 * @number: its meaning, unless it is a text
 */
struct value {
	const char *text;
	uint64_t number;
};

/**
 * struct call - a command to run
 * @nl: the kernel, NULL if the object is offline
 * @out: for the answer
 * @args: table of the verb
 * @values: what was given
 */
struct call {
	struct nl *nl;
	struct printer *out;
	const struct arg *args;
	struct value values[ARGS_MAX];
};

/**
 * struct verb - what can be done with an object
 * @name: the word; "" for the one verb of an object that needs none
 * @doc: one line
 * @args: what it takes, ends with an empty one
 * @check: is what was given complete, CMD_DONE or tells why not; or NULL
 * @run: do it, CMD_DONE or CMD_REFUSED after telling why
 */
struct verb {
	const char *name;
	const char *doc;
	const struct arg *args;
	int (*check)(const struct call *call);
	int (*run)(struct call *call);
};

/**
 * struct object - what the tool knows about
 * @name: the word
 * @doc: one line
 * @verbs: the first is the default, ends with an empty one
 * @stream: its output has no end
 * @offline: it does without the module, and finds the kernel itself
 * @fleeting: what it does is over by itself, so a batch cannot take it back
 */
struct object {
	const char *name;
	const char *doc;
	const struct verb *verbs;
	bool stream;
	bool offline;
	bool fleeting;
};

/* the verbs whose commands a file of settings is made of */
extern const struct verb * const dev_set_verb;
extern const struct verb * const rule_add_verb;

/* Say so if a call has turned cutting off */
void warn_no_chunk(const struct call *call);

extern const struct object dev_object;
extern const struct object flow_object;
extern const struct object group_object;
extern const struct object budget_object;
extern const struct object path_object;
extern const struct object rule_object;
extern const struct object stat_object;
extern const struct object monitor_object;
extern const struct object top_object;
extern const struct object explain_object;
extern const struct object doctor_object;
extern const struct object calibrate_object;

/* Value of the argument of this key, whose text is NULL if not given */
const struct value *call_value(const struct call *call, const char *key);

/* Begin a request with all attributes that were given */
struct nlmsghdr *call_request(struct call *call, const struct name_set *set,
			      uint8_t cmd, bool dump);

/**
 * struct field - a column of the output
 * @attr: attribute of the answer, 0 is the end
 * @key: key of the text output; JSON has the name of the attribute
 * @format: how the value is shown
 */
struct field {
	uint16_t attr;
	const char *key;
	enum format format;
};

/* Print the fields that are there, in an object that was begun */
void print_fields(struct printer *out, const struct name_set *set,
		  const struct field *fields,
		  const struct nlattr * const *attrs);

/* Print the counters of a message, by the names that the kernel gives them */
void print_counters(struct printer *out, const struct nlmsghdr *nlh,
		    uint16_t counter);

/* The value of one of them, 0 if it is not there */
uint64_t find_counter(const struct nlmsghdr *nlh, uint16_t counter, const char *name);

/* What is shown of an object */
extern const struct field dev_fields[];
extern const struct field flow_fields[];
extern const struct field budget_fields[];
extern const struct field group_fields[];
extern const struct field rule_fields[];

/* How many queue pairs are from before the load, or a negative errno */
int flow_count_older(struct nl *nl);

/* Print what is wrong with a command line and return CMD_USAGE */
int usage_error(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/**
 * struct command - a command line that was understood
 * @object: what it is about
 * @verb: what to do with it, NULL to explain it
 * @call: what was given
 */
struct command {
	const struct object *object;
	const struct verb *verb;
	struct call call;
};

/* Read "OBJECT [VERB [KEY VALUE]...]", whose texts the command keeps */
int cmd_parse(int argc, char **argv, struct command *cmd);

/* Run it */
int cmd_run(struct command *cmd, struct printer *out);

/* Print what may follow these words */
int cmd_complete(int argc, char **argv);

void cmd_help(FILE *file);
/* Is a word that may stand behind an object a call for help? */
bool cmd_is_help(const char *word);
/* Does an object have no other help than that of all? */
bool cmd_has_no_help(const char *name);
/* Refuse an object that may not stand in a file: it says which may. */
int cmd_refuse_in_file(const char *name);

#endif /* RDMA_ISOLATE_CMD_H */
