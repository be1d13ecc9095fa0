/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The one way out: text and JSON leave through the same calls.
 */
#ifndef RDMA_ISOLATE_PRINT_H
#define RDMA_ISOLATE_PRINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "names_gen.h"

/**
 * enum format - how a value is shown
 * @FMT_STRING: as it is
 * @FMT_COUNT: a number
 * @FMT_COUNT_OFF: a number, 0 is off
 * @FMT_COUNT_AUTO: a number, RDMA_ISOLATE_AUTO is auto
 * @FMT_RATE: bytes per second; JSON has the plain number
 * @FMT_SIZE: bytes, 0 is off; JSON has the plain number
 * @FMT_SIZE_AUTO: bytes, 0 is off, RDMA_ISOLATE_AUTO is auto
 * @FMT_TIME: nanoseconds; JSON has the plain number
 * @FMT_TIME_AUTO: nanoseconds, RDMA_ISOLATE_AUTO is auto
 * @FMT_SHARE: 1/100 percent; JSON has percent
 * @FMT_BOOL: yes and no; JSON has true and false
 * @FMT_WORD: enumerator of the attribute
 * @FMT_WHY: the same, text has its meaning, and nothing when it is the first
 * @FMT_QP_TYPE: as the kernel numbers it
 * @FMT_QP_STATE: as the kernel numbers it
 * @FMT_DETAIL: added to one of these: text has it with -d only
 */
enum format {
	FMT_STRING,
	FMT_COUNT,
	FMT_COUNT_OFF,
	FMT_COUNT_AUTO,
	FMT_RATE,
	FMT_SIZE,
	FMT_SIZE_AUTO,
	FMT_TIME,
	FMT_TIME_AUTO,
	FMT_SHARE,
	FMT_BOOL,
	FMT_WORD,
	FMT_WHY,
	FMT_QP_TYPE,
	FMT_QP_STATE,
	FMT_DETAIL = 0x100,
};

/**
 * struct printer - where and how output goes
 * @file: where to
 * @json: as an array of objects
 * @stream: JSON objects one a line, without an array, each written at once
 * @pretty: one value a line
 * @details: text with details, which JSON always has
 * @objects: how many were begun
 * @values: how many of the current object or item were begun
 * @items: how many of the current list were begun
 * @in_item: an item is being printed
 */
struct printer {
	FILE *file;
	bool json;
	bool stream;
	bool pretty;
	bool details;
	unsigned int objects;
	unsigned int values;
	unsigned int items;
	bool in_item;
};

static inline bool print_has_details(const struct printer *out)
{
	return out->json || out->details;
}

void print_begin(struct printer *out);
void print_end(struct printer *out);
void print_object_begin(struct printer *out);
void print_object_end(struct printer *out);

/* A list within an object: JSON an array of objects, in text its key before each */
void print_list_begin(struct printer *out, const char *key);
void print_item_begin(struct printer *out, const char *text_key);
void print_item_end(struct printer *out);
void print_list_end(struct printer *out);

/* text_key is the key of the text output, key that of JSON */
void print_string(struct printer *out, const char *text_key, const char *key,
		  const char *val);
void print_number(struct printer *out, const char *text_key, const char *key,
		  enum format fmt, const struct name_enum *words,
		  uint64_t val);

#endif /* RDMA_ISOLATE_PRINT_H */
