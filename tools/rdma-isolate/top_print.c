// SPDX-License-Identifier: GPL-2.0
/*
 * How samples of top are shown, as lines of text and as JSON.
 */
#include <inttypes.h>

#include "top.h"
#include "units.h"

/* room for the names of all classes, and for a number */
enum { WORDS_LEN = 48 };

/* A part of a bar is cut out of the middle: full on its left, empty on its right. */
enum { BAR = 20 };

static const char bar[] = "####################....................";

/* The name of a value, or the number that a newer kernel means */
static const char *word(const struct name_enum *words, uint32_t val, char *buf)
{
	if (val < words->n)
		return words->values[val].name;
	snprintf(buf, WORDS_LEN, "%" PRIu32, val);
	return buf;
}

/* "latency+bandwidth"; "-" if there is no flow */
static const char *classes(uint32_t bits, char *buf)
{
	unsigned int i, len = 0;

	for (i = 0; i < name_class.n; i++)
		if (bits & (1u << i))
			len += snprintf(buf + len, WORDS_LEN - len, "%s%s",
					len ? "+" : "",
					name_class.values[i].name);
	return len ? buf : "-";
}

/* A task may have given itself any name, with commands to the terminal in it. */
static void print_plain(FILE *file, const char *text)
{
	for (; *text; text++)
		fputc(*text >= ' ' && *text <= '~' ? *text : '?', file);
}

static void print_rates(FILE *file, const struct top_dev *dev)
{
	uint64_t used = top_part(dev->safe_util, dev->max_rate);
	char safe[UNITS_LEN], max[UNITS_LEN], buf[WORDS_LEN];

	print_plain(file, dev->name);
	fprintf(file,
		" %s: SafeUtil %s of MaxRate %s, %" PRIu64 ".%02" PRIu64 "%% [%.*s]\n",
		word(&name_state, dev->state, buf),
		rate_format_short(dev->safe_util, safe),
		rate_format_short(dev->max_rate, max), used / 100, used % 100,
		BAR, bar + BAR - used * BAR / 10000);
}

static void print_agent(FILE *file, const struct top_dev *dev)
{
	char target[UNITS_LEN], current[UNITS_LEN], lease[UNITS_LEN];
	char buf[WORDS_LEN];

	fprintf(file, "  Current99 %s of Target99 %s",
		dev->current99_ns ? time_format(dev->current99_ns, current) :
				    "-",
		dev->target99_ns == RDMA_ISOLATE_AUTO ? "auto" :
		time_format(dev->target99_ns, target));
	if (dev->agent_pid)
		fprintf(file, ", %s; agent %" PRIu32,
			word(&name_ctrl_state, dev->ctrl_state, buf),
			dev->agent_pid);
	else
		fputs("; no agent", file);
	if (dev->lease_ns)
		fprintf(file, ", lease %s", time_format(dev->lease_ns, lease));
	fprintf(file, "; groups L %" PRIu32 " B %" PRIu32 " T %" PRIu32 "\n",
		dev->latency_groups, dev->bandwidth_groups,
		dev->throughput_groups);
}

/* 1/100 percent */
static void print_share(FILE *file, uint64_t val)
{
	fprintf(file, " %4" PRIu64 ".%02" PRIu64 "%%", val / 100, val % 100);
}

static void print_row(FILE *file, const struct top_group *group)
{
	char rate[UNITS_LEN], class[WORDS_LEN];

	fprintf(file, "%7" PRIu32, group->id);
	print_share(file, group->share);
	fprintf(file, " %11s", rate_format_short(group->rate, rate));
	print_share(file, group->wait);
	fprintf(file, "  %-10s  ", classes(group->classes, class));
	print_plain(file, group->who);
	fputc('\n', file);
}

static void print_path(FILE *file, const struct top_path *path)
{
	char rate[UNITS_LEN], limit[UNITS_LEN], lease[UNITS_LEN], dir[WORDS_LEN];

	fprintf(file, "%7s", word(&name_dir, path->dir, dir));
	print_share(file, path->used);
	fprintf(file, " %11s %11s %8" PRIu64 "  %-10s  ", rate_format_short(path->rate, rate),
		path->limit ? rate_format_short(path->limit, limit) : "off", path->waited,
		path->lease_ns ? time_format(path->lease_ns, lease) : "-");
	print_plain(file, path->peer);
	fputc('\n', file);
}

static void print_paths(FILE *file, const struct top_dev *dev, unsigned int rows)
{
	unsigned int i;

	if (dev->num_paths)
		fputs("    DIR     USED        RATE       LIMIT    WAITS  LEASE       PEER\n",
		      file);
	for (i = 0; i < dev->num_paths && i < rows; i++)
		print_path(file, &dev->paths[i]);
}

unsigned int top_rows(const struct top_sample *sample, unsigned int lines)
{
	unsigned int used, rows, i, more = 1;

	used = TOP_LINES + sample->n * TOP_DEV_LINES;
	for (i = 0; i < sample->n; i++)
		used += sample->devs[i].num_paths ? TOP_PATH_LINES : 0;
	for (rows = 0; more; rows++) {
		more = 0;
		for (i = 0; i < sample->n; i++)
			more += (sample->devs[i].n > rows) + (sample->devs[i].num_paths > rows);
		used += more;
		if (used > lines)
			break;
	}
	return rows;
}

void top_print(FILE *file, const struct top_sample *sample, unsigned int rows)
{
	const struct top_dev *dev;
	unsigned int i;

	for (dev = sample->devs; dev < sample->devs + sample->n; dev++) {
		print_rates(file, dev);
		print_agent(file, dev);
		fputs("  GROUP    SHARE        RATE     WAIT  CLASS       WHO\n",
		      file);
		for (i = 0; i < dev->n && i < rows; i++)
			print_row(file, &dev->groups[i]);
		print_paths(file, dev, rows);
		fputc('\n', file);
	}
}

static void print_count(struct printer *out, const char *key, uint64_t val)
{
	print_number(out, key, key, FMT_COUNT, NULL, val);
}

static void print_json_row(struct printer *out, const struct top_group *group)
{
	char class[WORDS_LEN];

	print_item_begin(out, "group");
	print_count(out, "id", group->id);
	print_string(out, "who", "who", group->who);
	if (group->classes)
		print_string(out, "class", "class",
			     classes(group->classes, class));
	print_number(out, "share", "share", FMT_SHARE, NULL, group->share);
	print_count(out, "rate", group->rate);
	print_number(out, "wait", "wait", FMT_SHARE, NULL, group->wait);
	print_item_end(out);
}

static void print_json_path(struct printer *out, const struct top_path *path)
{
	print_item_begin(out, "path");
	print_string(out, "peer", "peer", path->peer);
	print_number(out, "dir", "dir", FMT_WORD, &name_dir, path->dir);
	print_number(out, "used", "used", FMT_SHARE, NULL, path->used);
	print_count(out, "rate", path->rate);
	print_count(out, "limit", path->limit);
	print_count(out, "waits", path->waited);
	print_count(out, "lease_ns", path->lease_ns);
	print_item_end(out);
}

static void print_json_paths(struct printer *out, const struct top_dev *dev)
{
	unsigned int i;

	print_list_begin(out, "path");
	for (i = 0; i < dev->num_paths; i++)
		print_json_path(out, &dev->paths[i]);
	print_list_end(out);
}

static void print_json_dev(struct printer *out, const struct top_dev *dev,
			   const struct top_sample *sample)
{
	unsigned int i;

	print_object_begin(out);
	print_string(out, "dev", "dev", dev->name);
	print_count(out, "interval_ns", sample->interval_ns);
	print_number(out, "state", "state", FMT_WORD, &name_state, dev->state);
	print_count(out, "max_rate", dev->max_rate);
	print_count(out, "safe_util", dev->safe_util);
	print_number(out, "target99_ns", "target99_ns", FMT_TIME_AUTO, NULL,
		     dev->target99_ns);
	print_count(out, "current99_ns", dev->current99_ns);
	print_number(out, "ctrl_state", "ctrl_state", FMT_WORD,
		     &name_ctrl_state, dev->ctrl_state);
	print_count(out, "agent_pid", dev->agent_pid);
	print_count(out, "lease_ns", dev->lease_ns);
	print_count(out, "latency_groups", dev->latency_groups);
	print_count(out, "bandwidth_groups", dev->bandwidth_groups);
	print_count(out, "throughput_groups", dev->throughput_groups);
	print_list_begin(out, "group");
	for (i = 0; i < dev->n; i++)
		print_json_row(out, &dev->groups[i]);
	print_list_end(out);
	if (sample->has_paths)
		print_json_paths(out, dev);
	print_object_end(out);
}

void top_print_json(struct printer *out, const struct top_sample *sample)
{
	unsigned int i;

	for (i = 0; i < sample->n; i++)
		print_json_dev(out, &sample->devs[i], sample);
}
