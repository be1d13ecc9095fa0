// SPDX-License-Identifier: GPL-2.0
/*
 * The OpenMetrics text of rdma-isolated, by the rules of OpenMetrics 1.0; and that the
 * manual page and the dashboard have its names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metrics.h"
#include "names_gen.h"

#define PAGE "../../Documentation/man/rdma-isolated.8"
#define DASHBOARD "../agent/grafana-dashboard.json"
#define COUNTERS "../../kmod/stats.c"
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define PREFIX "rdma_isolate_"
#define SET(array, from) snprintf(array, sizeof(array), "%s", from)

enum { TEXT = 4 << 20, FAMILIES = 128, NAME = 80 };

/* A family as the text has it */
struct family {
	char name[NAME];
	char type[NAME];
	char unit[NAME];
	bool help;
	unsigned int samples;
};

static char text[TEXT];
static struct family families[FAMILIES];
static unsigned int num_families;

static const char *render_as(const struct metrics *m, size_t len, bool openmetrics)
{
	struct metrics_pos pos = { .openmetrics = openmetrics };
	char *piece = malloc(len);
	size_t n, at = 0;

	assert_non_null(piece);
	while ((n = metrics_text(m, &pos, piece, len))) {
		assert_in_range(n, 1, len);
		assert_in_range(at + n, 0, TEXT - 1);
		assert_int_equal(piece[n - 1], '\n');
		memcpy(text + at, piece, n);
		at += n;
	}
	assert_int_equal(metrics_text(m, &pos, piece, len), 0);
	free(piece);
	text[at] = 0;
	return text;
}

static const char *render(const struct metrics *m, size_t len)
{
	return render_as(m, len, true);
}

/* --- the rules --- */

static bool is_word(const char *word, const char *const *list)
{
	while (*list && strcmp(*list, word))
		list++;
	return *list;
}

static void check_meta(char *line)
{
	static const char *const types[] = {
		"gauge", "counter", "info", "stateset", "summary", NULL,
	};
	char what[NAME], name[NAME], rest[NAME];
	struct family *f;
	unsigned int i;

	if (sscanf(line, "# %79s %79s %79s", what, name, rest) != 3)
		fail_msg("%s", line);
	if (!strcmp(what, "TYPE")) {
		/* A family is there once, and in one piece. */
		for (i = 0; i < num_families; i++)
			assert_string_not_equal(families[i].name, name);
		assert_in_range(num_families, 0, FAMILIES - 1);
		f = &families[num_families++];
		memset(f, 0, sizeof(*f));
		SET(f->name, name);
		SET(f->type, rest);
		assert_true(is_word(f->type, types));
		assert_int_equal(strspn(name, NAME_CHARS), strlen(name));
		assert_int_equal(strncmp(name, PREFIX, strlen(PREFIX)), 0);
		return;
	}
	assert_true(num_families);
	f = &families[num_families - 1];
	assert_string_equal(f->name, name);
	assert_int_equal(f->samples, 0);
	assert_false(f->help);
	if (!strcmp(what, "UNIT")) {
		assert_int_equal(*f->unit, 0);
		SET(f->unit, rest);
		assert_true(strlen(name) > strlen(rest) + 1);
		assert_int_equal(name[strlen(name) - strlen(rest) - 1], '_');
		assert_string_equal(name + strlen(name) - strlen(rest), rest);
		assert_string_not_equal(f->type, "info");
		assert_string_not_equal(f->type, "stateset");
		return;
	}
	assert_string_equal(what, "HELP");
	assert_null(strchr(line, '\\'));
	f->help = true;
}

/* Up to what follows the closing brace */
static char *check_labels(char *at, const struct family *f)
{
	unsigned int own = 0;
	char name[NAME];
	size_t n;

	for (;;) {
		n = strspn(at, NAME_CHARS);
		assert_in_range(n, 1, NAME - 1);
		memcpy(name, at, n);
		name[n] = 0;
		own += !strcmp(name, !strcmp(f->type, "stateset") ? f->name : "quantile");
		at += n;
		assert_int_equal(strncmp(at, "=\"", 2), 0);
		for (at += 2; *at != '"'; at++) {
			assert_in_range(*at, ' ', '~');
			if (*at == '\\')
				assert_non_null(strchr("\\\"n", *++at));
		}
		if (*++at != ',')
			break;
		at++;
	}
	assert_int_equal(own, !strcmp(f->type, "stateset") || !strcmp(f->type, "summary"));
	assert_int_equal(*at, '}');
	return at + 1;
}

static void check_sample(char *line)
{
	struct family *f;
	size_t n = strcspn(line, "{ ");
	const char *suffix;
	char *end;
	double val;

	assert_true(num_families);
	f = &families[num_families - 1];
	suffix = line + strlen(f->name);
	assert_true(f->help);
	f->samples++;
	assert_int_equal(strncmp(line, f->name, strlen(f->name)), 0);
	n -= strlen(f->name);
	if (!strcmp(f->type, "counter"))
		assert_true(n == 6 && !strncmp(suffix, "_total", n));
	else if (!strcmp(f->type, "info"))
		assert_true(n == 5 && !strncmp(suffix, "_info", n));
	else
		assert_int_equal(n, 0);
	line += strlen(f->name) + n;
	if (*line == '{')
		line = check_labels(line + 1, f);
	assert_int_equal(*line++, ' ');
	assert_in_range(*line, '0', '9');
	val = strtod(line, &end);
	assert_int_equal(*end, 0);
	assert_true(val >= 0);
	if (!strcmp(f->type, "info"))
		assert_true(val == 1);
	if (!strcmp(f->type, "stateset"))
		assert_true(val == 0 || val == 1);
}

static void check_rules(const char *all)
{
	char *copy = strdup(all), *line, *end;

	assert_non_null(copy);
	num_families = 0;
	for (line = copy; strcmp(line, "# EOF\n"); line = end + 1) {
		end = strchr(line, '\n');
		assert_non_null(end);
		*end = 0;
		if (*line == '#')
			check_meta(line);
		else
			check_sample(line);
	}
	free(copy);
}

/* --- what it is made from --- */

static void add_counters(struct metrics *m, struct metrics_dev *dev)
{
	FILE *f = fopen(COUNTERS, "r");
	char line[256], name[64];
	uint64_t n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " [RISO_STAT_%*[^]]] = \"%63[^\"]\"", name) == 1)
			metrics_count(m, dev, name, ++n * 1000);
	fclose(f);
	assert_in_range(n, 20, METRICS_COUNTERS);
	assert_int_equal(m->num_counters, n);
}

static void fill(struct metrics *m)
{
	struct metrics_dev *d = metrics_add_dev(m, "mlx5_0");
	struct metrics_peer *p = metrics_add_peer(m, "mlx5_0");
	struct metrics_path *l = metrics_add_path(m, "mlx5_0");
	struct metrics_group *g = metrics_add_group(m, "mlx5_0");

	d->state = RISO_DEV_ENABLE;
	d->ctrl_state = RISO_CTRL_STATE_TRACKING;
	d->max_rate = 12500000000;
	d->safe_util = 9000000001;
	d->pace[0] = 8;
	d->pace[1] = 9;
	d->target99_ns = 20000;
	d->current99_ns = 4000000123;
	d->lease_ns = 999000000;
	d->groups[RISO_CLASS_LATENCY] = 1;
	d->groups[RISO_CLASS_BANDWIDTH] = 2;
	d->groups[RISO_CLASS_THROUGHPUT] = 3;
	d->flows[RISO_CLASS_BANDWIDTH] = 4;
	d->tx_bytes[RISO_CLASS_BANDWIDTH] = UINT64_MAX;
	d->rx_bytes[RISO_CLASS_LATENCY] = 5;
	d->managed_flows = 6;
	d->held = 7;
	d->late = (struct metrics_times){ true, { 1000, 2000, 3000 } };
	add_counters(m, d);
	SET(p->name, "2001:db8::1");
	p->connected = true;
	p->sent = 11;
	p->lost = 1;
	p->times = (struct metrics_times){ true, { 10000, 20000, 1000000000 } };
	SET(l->peer, "::ffff:192.0.2.3");
	l->limit = 12500000;
	l->lease_ns = 800000000;
	l->bytes = 21;
	l->waits = 22;
	l = metrics_add_path(m, "mlx5_0");
	SET(l->peer, "::ffff:192.0.2.3");
	l->dir = RISO_PATH_RX;
	g->id = 17;
	SET(g->comm, "a\"b\\c\nd\xfc\x01");
	g->pid = 4711;
	g->weight = 100;
	g->flows = 12;
	g->held = 13;
	g->avg[0] = 10000;
	g->avg[1] = 5;
	g->tx_bytes = 14;
	g->rx_bytes = 15;
	g->wrs = 16;
	g->used_ns = 1;
	g->stall_ns = 3600000000000;
	g->wait_ns[0] = 17;
	g->wait_ns[1] = 18;
	g->wait_ns[2] = 19;
	g->wait_ns[3] = 20;
	g = metrics_add_group(m, "mlx5_0");
	g->id = 18;
	SET(g->ulp, "nvme_rdma");
	SET(g->peer, "::ffff:192.0.2.1");
	/* One that the agent does not know, of a module that has counted nothing */
	metrics_add_dev(m, "rxe0");
}

static void has(const char *line)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "\n" PREFIX "%s\n", line);
	if (!strstr(text, whole))
		fail_msg("there is no %s", line);
}

static void has_not(const char *line)
{
	char whole[512];

	snprintf(whole, sizeof(whole), "\n" PREFIX "%s", line);
	if (strstr(text, whole))
		fail_msg("there is %s", line);
}

/* --- tests --- */

static void values(void **state)
{
	struct metrics m = { 0 };
	(void)state;

	fill(&m);
	check_rules(render(&m, 1 << 16));
	has("agent_info{version=\"test\"} 1");
	has("groups_left_out 0");
	has("device_state{dev=\"mlx5_0\",rdma_isolate_device_state=\"enable\"} 1");
	has("device_state{dev=\"mlx5_0\",rdma_isolate_device_state=\"idle\"} 0");
	has("device_state{dev=\"rxe0\",rdma_isolate_device_state=\"idle\"} 1");
	has("ctrl_state{dev=\"mlx5_0\",rdma_isolate_ctrl_state=\"tracking\"} 1");
	has("ctrl_state{dev=\"mlx5_0\",rdma_isolate_ctrl_state=\"no-peer\"} 0");
	has("max_rate_bytes_per_second{dev=\"mlx5_0\"} 12500000000");
	has("safe_util_bytes_per_second{dev=\"mlx5_0\"} 9000000001");
	has("pace_bytes_per_second{dev=\"mlx5_0\",direction=\"tx\"} 8");
	has("pace_bytes_per_second{dev=\"mlx5_0\",direction=\"rx\"} 9");
	has("target99_seconds{dev=\"mlx5_0\"} 0.000020000");
	has("current99_seconds{dev=\"mlx5_0\"} 4.000000123");
	has_not("target99_seconds{dev=\"rxe0\"}");
	has_not("current99_seconds{dev=\"rxe0\"}");
	has("lease_seconds{dev=\"mlx5_0\"} 0.999000000");
	has("lease_seconds{dev=\"rxe0\"} 0.000000000");
	has("active_groups{dev=\"mlx5_0\",class=\"latency\"} 1");
	has("active_groups{dev=\"mlx5_0\",class=\"bandwidth\"} 2");
	has("active_groups{dev=\"mlx5_0\",class=\"throughput\"} 3");
	has("flows{dev=\"mlx5_0\",class=\"bandwidth\"} 4");
	has("flows_tx_bytes{dev=\"mlx5_0\",class=\"bandwidth\"} 18446744073709551615");
	has("flows_rx_bytes{dev=\"mlx5_0\",class=\"latency\"} 5");
	has("managed_flows{dev=\"mlx5_0\"} 6");
	has("held_work_requests{dev=\"mlx5_0\"} 7");
	has("agent_late_seconds{dev=\"mlx5_0\",quantile=\"0.99\"} 0.000002000");
	has_not("agent_late_seconds{dev=\"rxe0\"");
	has("peer_connected{dev=\"mlx5_0\",peer=\"2001:db8::1\"} 1");
	has("reference_messages_total{dev=\"mlx5_0\",peer=\"2001:db8::1\"} 11");
	has("reference_messages_lost_total{dev=\"mlx5_0\",peer=\"2001:db8::1\"} 1");
#define LATENCY "reference_latency_seconds{dev=\"mlx5_0\",peer=\"2001:db8::1\",quantile="
	has(LATENCY "\"0.5\"} 0.000010000");
	has(LATENCY "\"0.999\"} 1.000000000");
#define TX "{dev=\"mlx5_0\",peer=\"::ffff:192.0.2.3\",direction=\"tx\"}"
#define RX "{dev=\"mlx5_0\",peer=\"::ffff:192.0.2.3\",direction=\"rx\"}"
	has("path_limit_bytes_per_second" TX " 12500000");
	has_not("path_limit_bytes_per_second" RX);
	has("path_lease_seconds" TX " 0.800000000");
	has("path_lease_seconds" RX " 0.000000000");
	has("path_bytes_total" TX " 21");
	has("path_waits_total" TX " 22");
	has("path_waits_total" RX " 0");
#define INFO(id) "group_info{dev=\"mlx5_0\",group=\"" #id "\",ulp="
	has(INFO(17) "\"\",peer=\"\",comm=\"a\\\"b\\\\c\\nd??\",pid=\"4711\"} 1");
	has(INFO(18) "\"nvme_rdma\",peer=\"::ffff:192.0.2.1\",comm=\"\",pid=\"\"} 1");
	has("group_weight{dev=\"mlx5_0\",group=\"17\"} 100");
	has("group_flows{dev=\"mlx5_0\",group=\"17\"} 12");
	has("group_held_work_requests{dev=\"mlx5_0\",group=\"17\"} 13");
	has("group_tx_bytes_total{dev=\"mlx5_0\",group=\"17\"} 14");
	has("group_rx_bytes_total{dev=\"mlx5_0\",group=\"17\"} 15");
	has("group_work_requests_total{dev=\"mlx5_0\",group=\"17\"} 16");
	has("group_device_seconds_total{dev=\"mlx5_0\",group=\"17\"} 0.000000001");
	has("group_stall_seconds_total{dev=\"mlx5_0\",group=\"17\"} 3600.000000000");
	has("group_wait_seconds_total{dev=\"mlx5_0\",group=\"17\",reason=\"clock\"} 0.000000017");
	has("group_wait_seconds_total{dev=\"mlx5_0\",group=\"17\",reason=\"window\"} 0.000000018");
	has("group_wait_seconds_total{dev=\"mlx5_0\",group=\"17\",reason=\"own\"} 0.000000019");
	has("group_wait_seconds_total{dev=\"mlx5_0\",group=\"17\",reason=\"path\"} 0.000000020");
	has("group_pressure_ratio{dev=\"mlx5_0\",group=\"17\",window=\"10s\"} 1.0000");
	has("group_pressure_ratio{dev=\"mlx5_0\",group=\"17\",window=\"60s\"} 0.0005");
	has("stat_wr_queued_total{dev=\"mlx5_0\"} 1000");
	has("stat_late_seconds{dev=\"mlx5_0\"} 0.000021000");
	has("stat_chunk_bytes_total{dev=\"mlx5_0\"} 6000");
	has("stat_chunk_bytes_total{dev=\"rxe0\"} 0");
	metrics_free(&m);
}

/* Nothing is known; the text ends. */
static void nothing(void **state)
{
	struct metrics m = { 0 };
	(void)state;

	check_rules(render(&m, METRICS_PIECE));
	has("groups_left_out 0");
	metrics_free(&m);
}

/* However much is made at once, it is the same text. */
static size_t strip_comments(char *to, const char *from)
{
	size_t n = 0, len;

	for (; *from; from += len) {
		len = strcspn(from, "\n") + 1;
		if (*from == '#')
			continue;
		memcpy(to + n, from, len);
		n += len;
	}
	to[n] = 0;
	return n;
}

/*
 * The text of Prometheus: the same samples; each family has the name of its samples and
 * one of three types.
 */
static void prometheus(void **state)
{
	static const char *const types[] = { "gauge", "counter", "summary", NULL };
	static char new_samples[TEXT], old_samples[TEXT];
	char family[NAME] = "", name[NAME], type[NAME], *line, *end;
	struct metrics m = { 0 };
	(void)state;

	fill(&m);
	assert_in_range(strip_comments(new_samples, render(&m, TEXT)), 1000, TEXT);
	strip_comments(old_samples, render_as(&m, TEXT, false));
	assert_string_equal(new_samples, old_samples);
	for (line = text; *line; line = end + 1) {
		end = strchr(line, '\n');
		*end = 0;
		if (sscanf(line, "# TYPE %79s %79s", name, type) == 2) {
			SET(family, name);
			assert_true(is_word(type, types));
			assert_int_equal(!strcmp(type, "counter"),
					 !!strstr(name, "_total"));
		} else if (*line == '#') {
			if (sscanf(line, "# HELP %79s", name) != 1)
				fail();
			assert_string_equal(name, family);
		} else {
			snprintf(name, sizeof(name), "%.*s",
				 (int)strcspn(line, "{ "), line);
			assert_string_equal(name, family);
		}
	}
	metrics_free(&m);
}

static void pieces(void **state)
{
	struct metrics m = { 0 };
	size_t len;
	char *whole;
	(void)state;

	fill(&m);
	whole = strdup(render(&m, TEXT));
	assert_non_null(whole);
	for (len = METRICS_PIECE; len < METRICS_PIECE + 300; len++)
		assert_string_equal(render(&m, len), whole);
	free(whole);
	metrics_free(&m);
}

/* The longest names, of characters that take two each, fit. */
static void longest(void **state)
{
	struct metrics m = { 0 };
	struct metrics_group *g;
	struct metrics_path *l;
	struct metrics_dev *d;
	char name[RDMA_ISOLATE_DEV_NAME_MAX + 1];
	(void)state;

	memset(name, '"', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	d = metrics_add_dev(&m, name);
	d->max_rate = UINT64_MAX;
	g = metrics_add_group(&m, name);
	g->id = UINT32_MAX;
	g->pid = UINT32_MAX;
	memset(g->ulp, '"', sizeof(g->ulp) - 1);
	memset(g->peer, '"', sizeof(g->peer) - 1);
	memset(g->comm, '"', sizeof(g->comm) - 1);
	memset(g->wait_ns, 0xff, sizeof(g->wait_ns));
	l = metrics_add_path(&m, name);
	memset(l->peer, '"', sizeof(l->peer) - 1);
	l->bytes = UINT64_MAX;
	check_rules(render(&m, METRICS_PIECE));
	metrics_free(&m);
}

static void too_many_groups(void **state)
{
	struct metrics m = { 0 };
	unsigned int i;
	char line[64];
	(void)state;

	for (i = 0; i < METRICS_GROUPS + 3; i++) {
		struct metrics_group *g = metrics_add_group(&m, "d");

		assert_int_equal(!g, i >= METRICS_GROUPS);
		if (g)
			g->id = i;
	}
	check_rules(render(&m, METRICS_PIECE));
	has("groups_left_out 3");
	snprintf(line, sizeof(line), "group_flows{dev=\"d\",group=\"%u\"} 0", METRICS_GROUPS - 1);
	has(line);
	metrics_free(&m);
}

/* What cannot be a name of a metric, or is too much, is not taken. */
static void odd_counters(void **state)
{
	struct metrics m = { 0 };
	struct metrics_dev *d = metrics_add_dev(&m, "d");
	char name[METRICS_COUNTER_LEN + 1];
	unsigned int i;
	(void)state;

	metrics_count(&m, d, "", 1);
	metrics_count(&m, d, "a b", 1);
	metrics_count(&m, d, "a\n", 1);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	metrics_count(&m, d, name, 1);
	assert_int_equal(m.num_counters, 0);
	name[METRICS_COUNTER_LEN - 1] = 0;
	metrics_count(&m, d, name, 1);
	metrics_count(&m, d, name, 2);
	assert_int_equal(m.num_counters, 1);
	for (i = 0; i < METRICS_COUNTERS; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		metrics_count(&m, d, name, i);
	}
	assert_int_equal(m.num_counters, METRICS_COUNTERS);
	check_rules(render(&m, METRICS_PIECE));
	has("stat_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_total{dev=\"d\"} 2");
	has("stat_n62_total{dev=\"d\"} 62");
	has_not("stat_n63_total");
	metrics_free(&m);
}

static char *read_whole(const char *path)
{
	static char buf[1 << 18];
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(buf, 1, sizeof(buf) - 1, f);
	assert_in_range(n, 1, sizeof(buf) - 2);
	buf[n] = 0;
	fclose(f);
	return buf;
}

/* Each name that the dashboard asks for is the name of a sample. */
static void dashboard(void **state)
{
	struct metrics m = { 0 };
	char *at = read_whole(DASHBOARD);
	char name[NAME];
	unsigned int found = 0;
	size_t n;
	(void)state;

	fill(&m);
	render(&m, TEXT);
	while ((at = strstr(at, PREFIX))) {
		n = strspn(at, NAME_CHARS);
		assert_in_range(n, 1, NAME - 3);
		snprintf(name, sizeof(name), "\n%.*s{", (int)n, at);
		/* or the label of a state set */
		if (!strstr(text, name)) {
			snprintf(name, sizeof(name), ",%.*s=", (int)n, at);
			if (!strstr(text, name))
				fail_msg("there is no %.*s", (int)n, at);
		}
		at += n;
		found++;
	}
	assert_in_range(found, 10, 1000);
	metrics_free(&m);
}

/* The page has each family, but those of the module's counters: there are none here. */
static void page(void **state)
{
	struct metrics m = { 0 };
	const char *all = read_whole(PAGE);
	char name[NAME + 16];
	unsigned int i;
	(void)state;

	check_rules(render(&m, TEXT));
	assert_in_range(num_families, 20, FAMILIES);
	for (i = 0; i < num_families; i++) {
		const struct family *f = &families[i];

		snprintf(name, sizeof(name), "\n.B %s%s\n", f->name + strlen(PREFIX),
			 !strcmp(f->type, "counter") ? "_total" :
			 !strcmp(f->type, "info") ? "_info" : "");
		if (!strstr(all, name))
			fail_msg("%s lacks%s", PAGE, name);
	}
	metrics_free(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(nothing),
		cmocka_unit_test(prometheus),
		cmocka_unit_test(pieces),
		cmocka_unit_test(longest),
		cmocka_unit_test(too_many_groups),
		cmocka_unit_test(odd_counters),
		cmocka_unit_test(dashboard),
		cmocka_unit_test(page),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_metrics", tests, NULL, NULL);
}
