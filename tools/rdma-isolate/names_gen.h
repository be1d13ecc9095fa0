/* SPDX-License-Identifier: GPL-2.0 */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/specs/rdma_isolate.yaml */
/* by tools/regen.sh */

#ifndef RDMA_ISOLATE_NAMES_GEN_H
#define RDMA_ISOLATE_NAMES_GEN_H

enum name_type {
	NAME_PAD,
	NAME_STRING,
	NAME_U32,
	NAME_U64,
	NAME_NEST,
};

/* an enumerator: its word and what it means */
struct name_value {
	const char *name;
	const char *doc;
};

/* an enum, its values count from 0 */
struct name_enum {
	const struct name_value *values;
	unsigned int n;
};

/* an attribute; its number is its place in the set */
struct name_attr {
	const char *name;
	enum name_type type;
	const struct name_enum *words;
};

/* the attributes of an object */
struct name_set {
	const struct name_attr *attrs;
	unsigned int max;
};

/* version of the JSON output */
#define NAME_JSON "1"

extern const struct name_enum name_state;
extern const struct name_enum name_mode;
extern const struct name_enum name_class;
extern const struct name_enum name_reason;
extern const struct name_enum name_believed_from;
extern const struct name_enum name_switch;
extern const struct name_enum name_dir;
extern const struct name_enum name_size;
extern const struct name_enum name_error;
extern const struct name_enum name_fault;
extern const struct name_enum name_ctrl;
extern const struct name_enum name_share;
extern const struct name_enum name_ctrl_state;
extern const struct name_set name_set_dev;
extern const struct name_set name_set_flow;
extern const struct name_set name_set_rule;
extern const struct name_set name_set_stat;
extern const struct name_set name_set_counter;
extern const struct name_set name_set_group;
extern const struct name_set name_set_behind;
extern const struct name_set name_set_budget;
extern const struct name_set name_set_hist;
extern const struct name_set name_set_path;

#endif /* RDMA_ISOLATE_NAMES_GEN_H */
