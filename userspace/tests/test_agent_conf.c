// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try what the file of rdma-isolated may say, and what is said of a wrong one.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf.h"
#include "conffile.h"
#include "secret.h"

#define SECTIONS "[agent], once, and [device NAME], once for each device"
#define HEADING(text) text ": allowed are " SECTIONS "; NAME is " CONFFILE_NAME
#define NEITHER "neither [SECTION] nor KEY = VALUE"

#define NOT_AGENT " here: allowed are listen port ref-period spin window" \
	" short-window lease law metrics metrics-listen secret"
#define NOT_DEV " here: allowed are peer unattainable delta not-local"

static void defaults(void **state)
{
	struct conf conf = { };
	(void)state;

	conffile_load_good(&conf, "");
	conffile_check_default_agent(&conf);
	assert_int_equal(conf.n_devs, 0);
	conffile_load_good(&conf, "[agent]");
	conffile_check_default_agent(&conf);
	conffile_load_good(&conf, "# nothing\n\n\t\n[device a]\n");
	conffile_check_default_agent(&conf);
	assert_int_equal(conf.n_devs, 1);
	conffile_check_default_dev(conf.dev, "a");
	conf_free(&conf);
	conf_free(&conf);
}

static void every_key(void **state)
{
	struct conf conf = { };
	(void)state;

	conffile_load_good(&conf, conffile_good);
	conffile_check_good(&conf);
	conf_free(&conf);
}

static void least_values(void **state)
{
	struct conf conf = { };
	(void)state;

	conffile_load_good(&conf, "[device a]\ndelta = 100ms\n[agent]\nlisten = 2001:db8::5\n"
			   "port = 1\nref-period = 100us\nwindow = 100\nshort-window = 20\n"
			   "lease = 10ms\nlaw = default\nmetrics = 1\nspin = 1us\n");
	conffile_check_addr(&conf.listen, "2001:db8::5");
	assert_int_equal(conf.port, 1);
	assert_int_equal(conf.ref_period_ns, 100 * US);
	assert_int_equal(conf.spin_ns, US);
	assert_int_equal(conf.window, 100);
	assert_int_equal(conf.short_window, 20);
	assert_int_equal(conf.lease_ns, S / 100);
	assert_int_equal(conf.metrics, 1);
	assert_int_equal(conf.dev->delta_ns, S / 10);

	conffile_load_good(&conf, "[agent]\nlisten = 0.0.0.0\nport = 65535\nref-period = 1s\n"
			   "metrics = 65535\nshort-window = 101\nwindow = 102\n");
	conffile_check_addr(&conf.listen, "0.0.0.0");
	assert_int_equal(conf.port, 65535);
	assert_int_equal(conf.ref_period_ns, S);
	assert_int_equal(conf.metrics, 65535);
	conffile_load_good(&conf, "[agent]\nmetrics = off\nspin = 100us\n");
	assert_int_equal(conf.metrics, 0);
	assert_int_equal(conf.spin_ns, 100 * US);
	conffile_load_good(&conf, "[agent]\nspin = off\n");
	assert_int_equal(conf.spin_ns, 0);
	assert_int_equal(conf.metrics_listen.sa.sa_family, AF_INET);
	assert_int_equal(ntohl(conf.metrics_listen.v4.sin_addr.s_addr), INADDR_LOOPBACK);
	conffile_load_good(&conf, "[agent]\nmetrics-listen = ::\n");
	assert_int_equal(conf.metrics_listen.sa.sa_family, AF_INET6);
	conffile_load_good(&conf, "[agent]\nmetrics-listen = 192.0.2.7\n");
	assert_int_equal(ntohl(conf.metrics_listen.v4.sin_addr.s_addr), 0xc0000207);
	conf_free(&conf);
}

struct bad {
	const char *text;
	unsigned int line;
	const char *error;
};

static const struct bad bads[] = {
	{ "port = 1\n", 1, "port is in no section: allowed are " SECTIONS },
	{ "[agent]\nprot = 1\n", 2, "there is no key prot" NOT_AGENT },
	{ "[agent]\npeer = 192.0.2.1\n", 2, "there is no key peer" NOT_AGENT },
	{ "[agent]\n[device a]\n\nport = 1\n", 4, "there is no key port" NOT_DEV },
	{ "[agent]\n= 1\n", 2, "there is no key " NOT_AGENT },
	{ "[agent]\nport = 1\nport = 1\n", 3,
	  "port is there already: allowed is one in a section" },
	{ "[device a]\ndelta = 1s\n[device b]\ndelta = 1s\ndelta = 1s\n", 5,
	  "delta is there already: allowed is one in a section" },

	{ "[agnet]", 1, HEADING("[agnet]") },
	{ "[]", 1, HEADING("[]") },
	{ "[agent x]", 1, HEADING("[agent x]") },
	{ "[ agent]", 1, HEADING("[ agent]") },
	{ "[agent]\n[device a]\n[agent]\nport = 1\n", 3, HEADING("[agent]") },
	{ "[device]", 1, HEADING("[device]") },
	{ "[device ]", 1, HEADING("[device ]") },
	{ "[devices a]", 1, HEADING("[devices a]") },
	{ "[device a b]", 1, HEADING("[device a b]") },
	{ "[device a/b]", 1, HEADING("[device a/b]") },
	{ "[device a=b]", 1, HEADING("[device a=b]") },
	{ "[device " CONFFILE_NAME_63 "4]", 1, HEADING("[device " CONFFILE_NAME_63 "4]") },
	{ "[device a]\n\n[device b]\n[device a]\n", 4, HEADING("[device a]") },
	{ "[agent", 1, NEITHER },
	{ "[agent] port = 1", 1, NEITHER },
	{ "\n[agent]\nport\n", 3, NEITHER },
	{ "[agent]\nport\nprot = 1\n", 2, NEITHER },
	{ "[agent]\nport ; = 1\n[agnet]\n", 2, NEITHER },
	{ "[agent]\nlisten =\n", 2, "listen = : allowed is " CONFFILE_ADDRESS },
	{ "[agent]\nport = 1\n  2\n", 3, NEITHER },

	{ "\xef\xbb\xbf[agent]", 1,
	  "character 0xef: allowed is ASCII, except in comments" },
	{ "[agent]\nlaw = d\x01", 2,
	  "character 0x01: allowed is ASCII, except in comments" },
	{ "[agent]\nport=1" CONFFILE_X98 CONFFILE_X98, 2,
	  "the line is too long: allowed are 198 characters" },

	{ "[agent]\nlisten = host\n", 2, "listen = host: allowed is " CONFFILE_ADDRESS },
	{ "[agent]\nlisten = 192.0.2\n", 2, "listen = 192.0.2: allowed is " CONFFILE_ADDRESS },
	{ "[agent]\nlisten = fe80::1\n", 2, "listen = fe80::1: allowed is " CONFFILE_ADDRESS },
	{ "[agent]\nlisten = ff02::1\n", 2, "listen = ff02::1: allowed is " CONFFILE_ADDRESS },
	{ "[agent]\nlisten = 224.0.0.1\n", 2,
	  "listen = 224.0.0.1: allowed is " CONFFILE_ADDRESS },
	{ "[agent]\nport = 0\n", 2, "port = 0: allowed is 1 to 65535" },
	{ "[agent]\nport = 65536\n", 2, "port = 65536: allowed is 1 to 65535" },
	{ "[agent]\nport = -1\n", 2, "port = -1: allowed is 1 to 65535" },
	{ "[agent]\nport = 0x10\n", 2, "port = 0x10: allowed is 1 to 65535" },
	{ "[agent]\nport = 18446744073709551617\n", 2,
	  "port = 18446744073709551617: allowed is 1 to 65535" },
	{ "[agent]\nref-period = 99us\n", 2,
	  "ref-period = 99us: allowed is 100us to 1s" },
	{ "[agent]\nref-period = 1001ms\n", 2,
	  "ref-period = 1001ms: allowed is 100us to 1s" },
	{ "[agent]\nref-period = 500\n", 2,
	  "ref-period = 500: allowed is 100us to 1s" },
	{ "[agent]\nspin = 101us\n", 2, "spin = 101us: allowed is off or 1us to 100us" },
	{ "[agent]\nspin = 0us\n", 2, "spin = 0us: allowed is off or 1us to 100us" },
	{ "[agent]\nwindow = 99\n", 2, "window = 99: allowed is 100 to 1000000" },
	{ "[agent]\nwindow = 1000001\n", 2,
	  "window = 1000001: allowed is 100 to 1000000" },
	{ "[agent]\nwindow = 1s\n", 2, "window = 1s: allowed is 100 to 1000000" },
	{ "[agent]\nshort-window = 19\n", 2,
	  "short-window = 19: allowed is 20 to 10000" },
	{ "[agent]\nshort-window = 10001\n", 2,
	  "short-window = 10001: allowed is 20 to 10000" },
	{ "[agent]\nshort-window = 10000\nport = 1\n", 2,
	  "short-window is 10000: allowed is less than window, 10000" },
	{ "[agent]\nwindow = 200\n", 2,
	  "short-window is 200: allowed is less than window, 200" },
	{ "[agent]\nshort-window = 5000\n\nwindow = 4000\n[device a]\n", 4,
	  "short-window is 5000: allowed is less than window, 4000" },
	{ "[agent]\nlease = 9ms\n", 2, "lease = 9ms: allowed is 10ms to 1min" },
	{ "[agent]\nlease = 60.000001s\n", 2,
	  "lease = 60.000001s: allowed is 10ms to 1min" },
	{ "[agent]\nlaw = Paper\n", 2, "law = Paper: allowed is default or paper" },
	{ "[agent]\nlaw = 1\n", 2, "law = 1: allowed is default or paper" },
	{ "[agent]\nlaw = 0\n", 2, "law = 0: allowed is default or paper" },
	{ "[agent]\nmetrics = on\n", 2, "metrics = on: allowed is off or 1 to 65535" },
	{ "[agent]\nmetrics-listen = here\n", 2,
	  "metrics-listen = here: allowed is " CONFFILE_ADDRESS },
	{ "[agent]\nsecret = nowhere\n", 2,
	  "secret = nowhere: it does not begin with /; allowed is " SECRET_ALLOWED },
	{ "[agent]\nsecret = /nowhere\n", 2,
	  "secret = /nowhere: No such file or directory; allowed is " SECRET_ALLOWED },
	{ "[agent]\nmetrics = 0\n", 2, "metrics = 0: allowed is off or 1 to 65535" },
	{ "[agent]\nmetrics = 65536\n", 2,
	  "metrics = 65536: allowed is off or 1 to 65535" },
	{ "[device a]\npeer = b\n", 2,
	  "peer = b: it is no such address; allowed is " CONFFILE_PEERS },
	{ "[device a]\npeer = ::\n", 2,
	  "peer = ::: it is no such address; allowed is " CONFFILE_PEERS },
	{ "[device a]\npeer = 0.0.0.0\n", 2,
	  "peer = 0.0.0.0: it is no such address; allowed is " CONFFILE_PEERS },
	{ "[device a]\npeer = ::ffff:192.0.2\n", 2,
	  "peer = ::ffff:192.0.2: it is no such address; allowed is " CONFFILE_PEERS },
	{ "[device a]\npeer = 192.0.2.1\npeer = ::FFFF:192.0.2.1\n", 3,
	  "peer = ::FFFF:192.0.2.1: it is there already; allowed is " CONFFILE_PEERS },
	{ "[device a]\npeer = 1.1.1.1\npeer = 1.1.1.2\npeer = 1.1.1.1\n", 4,
	  "peer = 1.1.1.1: it is there already; allowed is " CONFFILE_PEERS },
	{ "[device a]\npeer = 2001:db8::1\npeer = 2001:0db8::01\n", 3,
	  "peer = 2001:0db8::01: it is there already; allowed is " CONFFILE_PEERS },
	{ "[device a]\nunattainable = give\n", 2,
	  "unattainable = give: allowed is keep or give-up" },
	{ "[device a]\ndelta = 99ms\n", 2, "delta = 99ms: allowed is 100ms to 60min" },
	{ "[device a]\ndelta = 61min\n", 2,
	  "delta = 61min: allowed is 100ms to 60min" },
	{ "[device a]\nnot-local = keep\n", 2,
	  "not-local = keep: allowed is recover or stay" },
	{ }
};

static void check_error(unsigned int line, const char *text)
{
	char want[1024];

	snprintf(want, sizeof(want), "%s:%u: %s", conffile_path, line, text);
	assert_string_equal(conffile_said, want);
}

/* What is wrong changes nothing. */
static void errors(void **state)
{
	struct conf conf = { };
	const struct bad *bad;
	(void)state;

	conffile_load_good(&conf, conffile_good);
	for (bad = bads; bad->text; bad++) {
		if (conffile_load(&conf, bad->text))
			fail_msg("taken:\n%s", bad->text);
		check_error(bad->line, bad->error);
		conffile_check_good(&conf);
	}
	conf_free(&conf);
}

static void many_peers(void **state)
{
	char text[1024] = "[device a]\n";
	struct conf conf = { };
	int i;
	(void)state;

	for (i = 0; i < CONF_PEERS_MAX; i++)
		sprintf(text + strlen(text), "peer = 192.0.2.%d\n", i);
	conffile_load_good(&conf, text);
	assert_int_equal(conf.dev->n_peers, CONF_PEERS_MAX);
	conffile_check_addr(&conf.dev->peer[CONF_PEERS_MAX - 1], "192.0.2.15");
	strcat(text, "peer = 192.0.2.99\n");
	assert_false(conffile_load(&conf, text));
	check_error(CONF_PEERS_MAX + 2,
		    "peer = 192.0.2.99: there are 16 already; allowed is " CONFFILE_PEERS);
	conf_free(&conf);
}

/* A line may be as long as libinih takes it, and no NUL hides its end. */
static void lines(void **state)
{
	static const char nul[] = "[agent]\nport = 1\0000\n";
	struct conf_args args = { .file = conffile_path };
	struct conf conf = { };
	char text[256];
	(void)state;

	snprintf(text, sizeof(text), "[agent]\n%-198s\n", "port = 7");
	conffile_load_good(&conf, text);
	assert_int_equal(conf.port, 7);
	snprintf(text, sizeof(text), "[agent]\n%-199s\n", "port = 7");
	assert_false(conffile_load(&conf, text));
	check_error(2, "the line is too long: allowed are 198 characters");
	conffile_write(nul, sizeof(nul) - 1);
	assert_false(conf_load(&conf, &args, conffile_said, CONF_ERROR_LEN));
	check_error(2, "character 0x00: allowed is ASCII, except in comments");
	conf_free(&conf);
}

static void missing(void **state)
{
	struct conf_args args = { .file = "/nonexistent.conf" };
	struct conf conf = { };
	(void)state;

	assert_true(conf_load(&conf, &args, conffile_said, CONF_ERROR_LEN));
	conffile_check_default_agent(&conf);
	assert_int_equal(conf.n_devs, 0);
	args.named = true;
	assert_false(conf_load(&conf, &args, conffile_said, CONF_ERROR_LEN));
	assert_string_equal(conffile_said, "/nonexistent.conf: No such file or directory");
	/* there, and not to be read */
	args = (struct conf_args){ .file = "/proc/version/x" };
	assert_false(conf_load(&conf, &args, conffile_said, CONF_ERROR_LEN));
	assert_string_equal(conffile_said, "/proc/version/x: Not a directory");
	args.file = "/";
	assert_false(conf_load(&conf, &args, conffile_said, CONF_ERROR_LEN));
	assert_string_equal(conffile_said, "/: Is a directory");
	conffile_check_default_agent(&conf);
	conf_free(&conf);
}

/* What a device that is kept when the file is read again does not see */
static void same_laws(void **state)
{
	struct conf a = { }, b;
	uint64_t *seen[] = {
		&b.ref_period_ns, &b.spin_ns, &b.window, &b.short_window, &b.lease_ns,
		&b.law,
	};
	size_t i;
	(void)state;

	conffile_load_good(&a, conffile_good);
	for (i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
		b = a;
		assert_true(conf_same_law(&a, &b));
		++*seen[i];
		assert_false(conf_same_law(&a, &b));
	}
	b = a;
	b.metrics = 0;
	b.n_devs = 0;
	assert_true(conf_same_law(&a, &b));
	conf_free(&a);
}

static bool same_dev(const char *text)
{
	struct conf a = { }, b = { };
	bool same;

	conffile_load_good(&a, conffile_good);
	conffile_load_good(&b, text);
	same = conf_same_dev(conf_dev(&a, "mlx5_0"), &b.dev[0]);
	conf_free(&a);
	conf_free(&b);
	return same;
}

static void same_devs(void **state)
{
	(void)state;
#define P "peer = 192.0.2.1\npeer = 2001:db8::1\n"
#define U "unattainable = give-up\n"
#define D "delta = 60min\n"
#define N "not-local = stay\n"
	assert_true(same_dev("[device mlx5_0]\n" N D U P));
	assert_false(same_dev("[device mlx5_1]\n" P U D N));
	assert_false(same_dev("[device mlx5_0]\npeer = 192.0.2.1\n" U D N));
	assert_false(same_dev("[device mlx5_0]\n" P "peer = 192.0.2.3\n" U D N));
	assert_false(same_dev("[device mlx5_0]\npeer = 192.0.2.1\n"
			      "peer = 2001:db8::2\n" U D N));
	assert_false(same_dev("[device mlx5_0]\n" P D N));
	assert_false(same_dev("[device mlx5_0]\n" P U N));
	assert_false(same_dev("[device mlx5_0]\n" P U D));
#undef P
#undef U
#undef D
#undef N
}

/* The error is cut, and ends. */
static void short_buffers(void **state)
{
	struct conf_args args = { .file = conffile_path };
	struct conf conf = { };
	char error[80];
	size_t len;
	(void)state;

	conffile_write_text("[x]");
	for (len = 1; len < sizeof(error); len++) {
		memset(error, '?', sizeof(error));
		assert_false(conf_load(&conf, &args, error, len));
		assert_int_equal(strlen(error), len - 1);
	}
}

/* Whatever the file is: settings in their ranges, or an error and the old ones. */
static void check_any(const char *text, size_t len)
{
	struct conf_args args = { .file = conffile_path };
	struct conf conf = { .port = 3 };
	char error[CONF_ERROR_LEN] = "";

	conffile_write(text, len);
	if (conf_load(&conf, &args, error, sizeof(error))) {
		assert_in_range(conf.port, 1, 65535);
		assert_in_range(conf.window, 100, 1000000);
		assert_in_range(conf.short_window, 20, conf.window - 1);
		assert_in_range(conf.lease_ns, S / 100, 60 * S);
		assert_string_equal(error, "");
	} else {
		assert_int_equal(conf.port, 3);
		assert_null(conf.dev);
		assert_memory_equal(error, conffile_path, strlen(conffile_path));
		assert_non_null(strstr(error, ": "));
	}
	conf_free(&conf);
}

static void any_bytes(void **state)
{
	static const char some[] = "[]=;#\n\r\t agentdvic0";
	char text[sizeof(conffile_good)];
	size_t len, at;
	int i;
	(void)state;

	srandom(1);
	for (len = 0; len < sizeof(conffile_good); len++)
		check_any(conffile_good, len);
	for (i = 0; i < 3000; i++) {
		memcpy(text, conffile_good, sizeof(text));
		for (at = 0; at < 1 + (size_t)i % 4; at++)
			text[random() % (sizeof(text) - 1)] = random();
		check_any(text, sizeof(text) - 1);
	}
	for (i = 0; i < 3000; i++) {
		len = random() % sizeof(text);
		for (at = 0; at < len; at++)
			text[at] = i % 2 ? random() : some[random() % strlen(some)];
		check_any(text, len);
	}
}

/* A file of so many equal bytes */
static const char *write_secret(char byte, size_t len, mode_t mode)
{
	static char path[] = "/tmp/agent_conf.secret";
	static char bytes[SECRET_MAX + 1];
	int fd;

	unlink(path);
	fd = open(path, O_CREAT | O_WRONLY, mode);
	assert_true(fd >= 0);
	memset(bytes, byte, sizeof(bytes));
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static bool load_secret(struct conf *conf, const char *path)
{
	char text[256];

	snprintf(text, sizeof(text), "[agent]\nsecret = %s\n", path);
	return conffile_load(conf, text);
}

/* It is refused, for that reason. */
static void refuse_secret(const char *path, const char *why)
{
	struct conf conf = { };
	char said[256];

	assert_false(load_secret(&conf, path));
	snprintf(said, sizeof(said), "secret = %s: %s; allowed is ", path, why);
	if (!strstr(conffile_said, said))
		fail_msg("%s", conffile_said);
	conf_free(&conf);
}

/* Agents with the same file have the same key, and no others. */
static void secrets(void **state)
{
	struct conf a = { }, b = { };
	const char *path;

	(void)state;
	conffile_load_good(&a, "[agent]\nsecret = off\n");
	assert_false(a.has_secret);
	path = write_secret('a', SECRET_MIN, 0400);
	assert_true(load_secret(&a, path));
	assert_true(a.has_secret);
	write_secret('a', SECRET_MIN, 0600);
	assert_true(load_secret(&b, path));
	assert_true(conf_same_law(&a, &b));
	write_secret('b', SECRET_MAX, 0600);
	assert_true(load_secret(&b, path));
	assert_false(conf_same_law(&a, &b));
	unlink(path);
	conf_free(&a);
	conf_free(&b);
}

static void refuses_secrets(void **state)
{
	const char *path = write_secret('a', SECRET_MIN - 1, 0600);

	(void)state;
	refuse_secret(path, "it is too short");
	write_secret('a', SECRET_MAX + 1, 0600);
	refuse_secret(path, "it is too long");
	write_secret('a', SECRET_MIN, 0640);
	refuse_secret(path, "its group or others have rights to it");
	write_secret('a', SECRET_MIN, 0602);
	refuse_secret(path, "its group or others have rights to it");
	/* Only root can give a file away. */
	write_secret('a', SECRET_MIN, 0600);
	if (!chown(path, 65534, -1))
		refuse_secret(path, "its owner is neither root nor who runs this");
	unlink(path);
	refuse_secret(path, "No such file or directory");
	assert_int_equal(mkfifo(path, 0600), 0);
	refuse_secret(path, "it is no regular file");
	unlink(path);
	refuse_secret("/tmp", "it is no regular file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(every_key),
		cmocka_unit_test(least_values),
		cmocka_unit_test(errors),
		cmocka_unit_test(many_peers),
		cmocka_unit_test(lines),
		cmocka_unit_test(missing),
		cmocka_unit_test(same_laws),
		cmocka_unit_test(same_devs),
		cmocka_unit_test(short_buffers),
		cmocka_unit_test(secrets),
		cmocka_unit_test(refuses_secrets),
		cmocka_unit_test(any_bytes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_conf", tests, conffile_make, conffile_remove);
}
