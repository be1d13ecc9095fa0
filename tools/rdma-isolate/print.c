// SPDX-License-Identifier: GPL-2.0
/*
 * Text is "KEY VALUE KEY VALUE ..." with one object a line, and values that
 * can be given back; JSON is an array of objects. An object may have lists.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include <linux/rdma_isolate.h>

#include "print.h"
#include "units.h"

/* enum ib_qp_type and enum ib_qp_state of the kernel */
static const char * const qp_types[] = {
	"SMI", "GSI", "RC", "UC", "UD", "RAW_IPV6", "RAW_ETHERTYPE", NULL,
	"RAW_PACKET", "XRC_INI", "XRC_TGT",
};

static const char * const qp_states[] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};

enum {
	QP_TYPES = sizeof(qp_types) / sizeof(*qp_types),
	QP_STATES = sizeof(qp_states) / sizeof(*qp_states),
};

/* length of the UTF-8 character that text begins with, 0 if it is none */
static size_t utf8_len(const unsigned char *text)
{
	size_t len, i;

	if (text[0] < 0x80)
		return 1;
	else if (text[0] >= 0xc2 && text[0] < 0xe0)
		len = 2;
	else if (text[0] >= 0xe0 && text[0] < 0xf0)
		len = 3;
	else if (text[0] >= 0xf0 && text[0] < 0xf5)
		len = 4;
	else
		return 0;

	for (i = 1; i < len; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;

	/* too long, surrogates, beyond the last */
	if ((text[0] == 0xe0 && text[1] < 0xa0) ||
	    (text[0] == 0xed && text[1] >= 0xa0) ||
	    (text[0] == 0xf0 && text[1] < 0x90) ||
	    (text[0] == 0xf4 && text[1] >= 0x90))
		return 0;
	return len;
}

/* Names of tasks are any bytes: what is no UTF-8 is shown as Latin-1. */
static void print_quoted(FILE *file, const char *val)
{
	const unsigned char *c = (const unsigned char *)val;
	size_t len;

	fputc('"', file);
	while (*c) {
		len = utf8_len(c);
		if (*c == '"' || *c == '\\')
			fprintf(file, "\\%c", *c);
		else if (*c < 0x20 || *c == 0x7f || !len)
			fprintf(file, "\\u%04x", *c);
		else if (*c == 0xc2 && c[1] < 0xa0)
			fprintf(file, "\\u%04x", c[1]);
		else
			fwrite(c, len, 1, file);
		c += len ?: 1;
	}
	fputc('"', file);
}

/* Text is quoted when it would not stay one word. */
static bool is_word(const char *val)
{
	if (!*val)
		return false;
	for (; *val; val++)
		if (!isgraph((unsigned char)*val) || *val == '"' ||
		    *val == '\\')
			return false;
	return true;
}

static void print_key(struct printer *out, const char *text_key,
		      const char *key)
{
	if (out->json) {
		if (out->values++)
			fputs(out->in_item && out->pretty ? ", " : ",",
			      out->file);
		if (out->pretty && !out->in_item)
			fputs("\n        ", out->file);
		fprintf(out->file, "\"%s\":%s", key, out->pretty ? " " : "");
		return;
	}

	if (out->values++)
		fputs(out->pretty && !out->in_item ? "\n    " : " ",
		      out->file);
	fprintf(out->file, "%s ", text_key);
}

void print_begin(struct printer *out)
{
	out->objects = 0;
	if (out->json && !out->stream)
		fputc('[', out->file);
}

void print_end(struct printer *out)
{
	if (!out->json || out->stream)
		return;
	if (out->pretty && out->objects)
		fputc('\n', out->file);
	fputs("]\n", out->file);
}

void print_object_begin(struct printer *out)
{
	out->values = 0;
	if (!out->json) {
		out->objects++;
		return;
	}

	if (out->objects++ && !out->stream)
		fputc(',', out->file);
	if (out->pretty && !out->stream)
		fputs("\n    ", out->file);
	fputc('{', out->file);
}

void print_object_end(struct printer *out)
{
	if (out->json && out->pretty)
		fputs(out->stream ? "\n" : "\n    ", out->file);
	if (out->json)
		fputc('}', out->file);
	if (!out->json || out->stream)
		fputc('\n', out->file);
	if (out->stream)
		fflush(out->file);
}

void print_list_begin(struct printer *out, const char *key)
{
	out->items = 0;
	if (!out->json)
		return;
	print_key(out, key, key);
	fputc('[', out->file);
}

void print_item_begin(struct printer *out, const char *text_key)
{
	if (!out->json) {
		if (out->values++)
			fputs(out->pretty ? "\n    " : " ", out->file);
		fputs(text_key, out->file);
	} else {
		if (out->items++)
			fputs(out->pretty ? ", " : ",", out->file);
		fputc('{', out->file);
		out->values = 0;
	}
	out->in_item = true;
}

void print_item_end(struct printer *out)
{
	if (out->json)
		fputc('}', out->file);
	out->in_item = false;
}

void print_list_end(struct printer *out)
{
	if (out->json)
		fputc(']', out->file);
	out->values = 1;
}

void print_string(struct printer *out, const char *text_key, const char *key,
		  const char *val)
{
	print_key(out, text_key, key);
	if (out->json || !is_word(val))
		print_quoted(out->file, val);
	else
		fputs(val, out->file);
}

static void print_share(FILE *file, uint64_t val)
{
	fprintf(file, "%" PRIu64 ".%02" PRIu64, val / 100, val % 100);
}

void print_number(struct printer *out, const char *text_key, const char *key,
		  enum format fmt, const struct name_enum *words, uint64_t val)
{
	const char *word = NULL;
	char buf[UNITS_LEN];

	switch (fmt) {
	case FMT_WORD:
		if (val < words->n)
			word = words->values[val].name;
		break;
	case FMT_WHY:
		if (!val && !out->json)
			return;
		if (val < words->n)
			word = out->json ? words->values[val].name :
					   words->values[val].doc;
		break;
	case FMT_QP_TYPE:
		if (val < QP_TYPES)
			word = qp_types[val];
		break;
	case FMT_QP_STATE:
		if (val < QP_STATES)
			word = qp_states[val];
		break;
	case FMT_COUNT_OFF:
		if (!val && !out->json)
			word = "off";
		break;
	case FMT_COUNT_AUTO:
	case FMT_SIZE_AUTO:
	case FMT_TIME_AUTO:
		if (val == RDMA_ISOLATE_AUTO)
			word = "auto";
		break;
	default:
		break;
	}

	if (word) {
		print_string(out, text_key, key, word);
		return;
	}

	print_key(out, text_key, key);
	if (out->json) {
		if (fmt == FMT_BOOL)
			fputs(val ? "true" : "false", out->file);
		else if (fmt == FMT_SHARE)
			print_share(out->file, val);
		else
			fprintf(out->file, "%" PRIu64, val);
		return;
	}

	switch (fmt) {
	case FMT_RATE:
		fputs(rate_format(val, buf), out->file);
		break;
	case FMT_SIZE:
	case FMT_SIZE_AUTO:
		fputs(val ? size_format(val, buf) : "off", out->file);
		break;
	case FMT_TIME:
	case FMT_TIME_AUTO:
		fputs(time_format(val, buf), out->file);
		break;
	case FMT_SHARE:
		print_share(out->file, val);
		fputc('%', out->file);
		break;
	case FMT_BOOL:
		fputs(val ? "yes" : "no", out->file);
		break;
	default:
		fprintf(out->file, "%" PRIu64, val);
	}
}
