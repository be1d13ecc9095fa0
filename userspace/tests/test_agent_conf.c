// SPDX-License-Identifier: GPL-2.0
/*
 * The file and the command line of rdma-isolated.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf.h"

#define SAMPLE "../agent/rdma-isolated.conf"
#define PAGE "../../Documentation/man/rdma-isolated.8"
#define ADDRESS "an address of IPv4, or of IPv6 that is not link-local; not of multicast"
#define PEERS ADDRESS ", nor 0.0.0.0 or ::; up to 16, none of them twice"
#define NAME "a name of 1 to 63 characters, without blanks and /=[];"
#define SECTIONS "[agent], once, and [device NAME], once for each device"
#define HEADING(text) text ": allowed are " SECTIONS "; NAME is " NAME
#define NEITHER "neither [SECTION] nor KEY = VALUE"
#define NAME_63 "n23456789012345678901234567890123456789012345678901234567890123"

#define X98 NAME_63 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define NOT_AGENT " here: allowed are listen port ref-period spin window" \
	" short-window lease law metrics metrics-listen"
#define NOT_DEV " here: allowed are peer unattainable delta not-local"

#define US 1000
#define S UINT64_C(1000000000)

static char path[64] = "/tmp/test_agent_conf.XXXXXX";
static char said[16384];

/* Every key, with a value that is no default. */
static const char good[] =
	"; \xc3\xa4ll of them\n"
	"# \xc3\xbc and \x01 and what " X98 X98 X98 "\n"
	"\n"
	"[agent] ; of the host\n"
	"listen = 192.0.2.7\r\n"
	"  port=4791\t; what RoCE has\n"
	"\tref-period = 1.5ms\n"
	"spin = 20us\n"
	"window = 1000000\n"
	"short-window = 10000\n"
	"lease = 1min\n"
	"law = paper\n"
	"metrics = 9090\n"
	"[device mlx5_0]\n"
	"peer = 192.0.2.1\n"
	"peer = 2001:db8::1\n"
	"unattainable = give-up\n"
	"delta = 60min\n"
	"not-local = stay\n"
	"  [device  " NAME_63 "]\n"
	"[device rxe0]\n"
	"peer = 192.0.2.1";

static void write_file(const char *text, size_t len)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void write_text(const char *text)
{
	write_file(text, strlen(text));
}

static bool load(struct conf *conf, const char *text)
{
	struct conf_args args = { .file = path, .named = true };

	write_text(text);
	*said = 0;
	return conf_load(conf, &args, said, CONF_ERROR_LEN);
}

static void load_good(struct conf *conf, const char *text)
{
	if (!load(conf, text))
		fail_msg("%s", said);
}

static void check_addr(const union conf_addr *addr, const char *text)
{
	char buf[INET6_ADDRSTRLEN];
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;
	const void *from = family == AF_INET ? (void *)&addr->v4.sin_addr :
					       (void *)&addr->v6.sin6_addr;

	assert_int_equal(addr->sa.sa_family, family);
	assert_non_null(inet_ntop(family, from, buf, sizeof(buf)));
	assert_string_equal(buf, text);
	assert_int_equal(addr->v4.sin_port, 0);
}

static void check_default_agent(const struct conf *conf)
{
	check_addr(&conf->listen, "::");
	assert_int_equal(conf->port, 18516);
	assert_int_equal(conf->ref_period_ns, 500 * US);
	assert_int_equal(conf->spin_ns, 0);
	assert_int_equal(conf->window, 10000);
	assert_int_equal(conf->short_window, 200);
	assert_int_equal(conf->lease_ns, S);
	assert_int_equal(conf->law, CONF_LAW_DEFAULT);
	assert_int_equal(conf->metrics, 0);
}

static void check_default_dev(const struct conf_dev *dev, const char *name)
{
	assert_string_equal(dev->name, name);
	assert_int_equal(dev->unattainable, CONF_KEEP);
	assert_int_equal(dev->delta_ns, 5 * S);
	assert_int_equal(dev->not_local, CONF_RECOVER);
}

static void check_good(const struct conf *conf)
{
	const struct conf_dev *dev = conf->dev;

	check_addr(&conf->listen, "192.0.2.7");
	assert_int_equal(conf->port, 4791);
	assert_int_equal(conf->ref_period_ns, 1500 * US);
	assert_int_equal(conf->spin_ns, 20 * US);
	assert_int_equal(conf->window, 1000000);
	assert_int_equal(conf->short_window, 10000);
	assert_int_equal(conf->lease_ns, 60 * S);
	assert_int_equal(conf->law, CONF_LAW_PAPER);
	assert_int_equal(conf->metrics, 9090);

	assert_int_equal(conf->n_devs, 3);
	assert_string_equal(dev->name, "mlx5_0");
	assert_int_equal(dev->n_peers, 2);
	check_addr(&dev->peer[0], "192.0.2.1");
	check_addr(&dev->peer[1], "2001:db8::1");
	assert_int_equal(dev->unattainable, CONF_GIVE_UP);
	assert_int_equal(dev->delta_ns, 3600 * S);
	assert_int_equal(dev->not_local, CONF_STAY);
	check_default_dev(++dev, NAME_63);
	assert_int_equal(dev->n_peers, 0);
	check_default_dev(++dev, "rxe0");
	assert_int_equal(dev->n_peers, 1);
	check_addr(&dev->peer[0], "192.0.2.1");
}

static void defaults(void **state)
{
	struct conf conf = { };
	(void)state;

	load_good(&conf, "");
	check_default_agent(&conf);
	assert_int_equal(conf.n_devs, 0);
	load_good(&conf, "[agent]");
	check_default_agent(&conf);
	load_good(&conf, "# nothing\n\n\t\n[device a]\n");
	check_default_agent(&conf);
	assert_int_equal(conf.n_devs, 1);
	check_default_dev(conf.dev, "a");
	conf_free(&conf);
	conf_free(&conf);
}

static void every_key(void **state)
{
	struct conf conf = { };
	(void)state;

	load_good(&conf, good);
	check_good(&conf);
	conf_free(&conf);
}

static void least_values(void **state)
{
	struct conf conf = { };
	(void)state;

	load_good(&conf, "[device a]\ndelta = 100ms\n[agent]\nlisten = 2001:db8::5\n"
		  "port = 1\nref-period = 100us\nwindow = 100\nshort-window = 20\n"
		  "lease = 10ms\nlaw = default\nmetrics = 1\nspin = 1us\n");
	check_addr(&conf.listen, "2001:db8::5");
	assert_int_equal(conf.port, 1);
	assert_int_equal(conf.ref_period_ns, 100 * US);
	assert_int_equal(conf.spin_ns, US);
	assert_int_equal(conf.window, 100);
	assert_int_equal(conf.short_window, 20);
	assert_int_equal(conf.lease_ns, S / 100);
	assert_int_equal(conf.metrics, 1);
	assert_int_equal(conf.dev->delta_ns, S / 10);

	load_good(&conf, "[agent]\nlisten = 0.0.0.0\nport = 65535\nref-period = 1s\n"
		  "metrics = 65535\nshort-window = 101\nwindow = 102\n");
	check_addr(&conf.listen, "0.0.0.0");
	assert_int_equal(conf.port, 65535);
	assert_int_equal(conf.ref_period_ns, S);
	assert_int_equal(conf.metrics, 65535);
	load_good(&conf, "[agent]\nmetrics = off\nspin = 100us\n");
	assert_int_equal(conf.metrics, 0);
	assert_int_equal(conf.spin_ns, 100 * US);
	load_good(&conf, "[agent]\nspin = off\n");
	assert_int_equal(conf.spin_ns, 0);
	assert_int_equal(conf.metrics_listen.sa.sa_family, AF_INET);
	assert_int_equal(ntohl(conf.metrics_listen.v4.sin_addr.s_addr), INADDR_LOOPBACK);
	load_good(&conf, "[agent]\nmetrics-listen = ::\n");
	assert_int_equal(conf.metrics_listen.sa.sa_family, AF_INET6);
	load_good(&conf, "[agent]\nmetrics-listen = 192.0.2.7\n");
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
	{ "[device " NAME_63 "4]", 1, HEADING("[device " NAME_63 "4]") },
	{ "[device a]\n\n[device b]\n[device a]\n", 4, HEADING("[device a]") },
	{ "[agent", 1, NEITHER },
	{ "[agent] port = 1", 1, NEITHER },
	{ "\n[agent]\nport\n", 3, NEITHER },
	{ "[agent]\nport\nprot = 1\n", 2, NEITHER },
	{ "[agent]\nport ; = 1\n[agnet]\n", 2, NEITHER },
	{ "[agent]\nlisten =\n", 2, "listen = : allowed is " ADDRESS },
	{ "[agent]\nport = 1\n  2\n", 3, NEITHER },

	{ "\xef\xbb\xbf[agent]", 1,
	  "character 0xef: allowed is ASCII, but in comments" },
	{ "[agent]\nlaw = d\x01", 2,
	  "character 0x01: allowed is ASCII, but in comments" },
	{ "[agent]\nport=1" X98 X98, 2,
	  "the line is too long: allowed are 198 characters" },

	{ "[agent]\nlisten = host\n", 2, "listen = host: allowed is " ADDRESS },
	{ "[agent]\nlisten = 192.0.2\n", 2, "listen = 192.0.2: allowed is " ADDRESS },
	{ "[agent]\nlisten = fe80::1\n", 2, "listen = fe80::1: allowed is " ADDRESS },
	{ "[agent]\nlisten = ff02::1\n", 2, "listen = ff02::1: allowed is " ADDRESS },
	{ "[agent]\nlisten = 224.0.0.1\n", 2,
	  "listen = 224.0.0.1: allowed is " ADDRESS },
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
	  "metrics-listen = here: allowed is " ADDRESS },
	{ "[agent]\nmetrics = 0\n", 2, "metrics = 0: allowed is off or 1 to 65535" },
	{ "[agent]\nmetrics = 65536\n", 2,
	  "metrics = 65536: allowed is off or 1 to 65535" },
	{ "[device a]\npeer = b\n", 2, "peer = b: allowed is " PEERS },
	{ "[device a]\npeer = ::\n", 2, "peer = ::: allowed is " PEERS },
	{ "[device a]\npeer = 0.0.0.0\n", 2, "peer = 0.0.0.0: allowed is " PEERS },
	{ "[device a]\npeer = ::ffff:192.0.2\n", 2,
	  "peer = ::ffff:192.0.2: allowed is " PEERS },
	{ "[device a]\npeer = 192.0.2.1\npeer = ::FFFF:192.0.2.1\n", 3,
	  "peer = ::FFFF:192.0.2.1: allowed is " PEERS },
	{ "[device a]\npeer = 1.1.1.1\npeer = 1.1.1.2\npeer = 1.1.1.1\n", 4,
	  "peer = 1.1.1.1: allowed is " PEERS },
	{ "[device a]\npeer = 2001:db8::1\npeer = 2001:0db8::01\n", 3,
	  "peer = 2001:0db8::01: allowed is " PEERS },
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

	snprintf(want, sizeof(want), "%s:%u: %s", path, line, text);
	assert_string_equal(said, want);
}

/* What is wrong changes nothing. */
static void errors(void **state)
{
	struct conf conf = { };
	const struct bad *bad;
	(void)state;

	load_good(&conf, good);
	for (bad = bads; bad->text; bad++) {
		if (load(&conf, bad->text))
			fail_msg("taken:\n%s", bad->text);
		check_error(bad->line, bad->error);
		check_good(&conf);
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
	load_good(&conf, text);
	assert_int_equal(conf.dev->n_peers, CONF_PEERS_MAX);
	check_addr(&conf.dev->peer[CONF_PEERS_MAX - 1], "192.0.2.15");
	strcat(text, "peer = 192.0.2.99\n");
	assert_false(load(&conf, text));
	check_error(CONF_PEERS_MAX + 2, "peer = 192.0.2.99: allowed is " PEERS);
	conf_free(&conf);
}

/* A line may be as long as libinih takes it, and no NUL hides its end. */
static void lines(void **state)
{
	static const char nul[] = "[agent]\nport = 1\0000\n";
	struct conf_args args = { .file = path };
	struct conf conf = { };
	char text[256];
	(void)state;

	snprintf(text, sizeof(text), "[agent]\n%-198s\n", "port = 7");
	load_good(&conf, text);
	assert_int_equal(conf.port, 7);
	snprintf(text, sizeof(text), "[agent]\n%-199s\n", "port = 7");
	assert_false(load(&conf, text));
	check_error(2, "the line is too long: allowed are 198 characters");
	write_file(nul, sizeof(nul) - 1);
	assert_false(conf_load(&conf, &args, said, CONF_ERROR_LEN));
	check_error(2, "character 0x00: allowed is ASCII, but in comments");
	conf_free(&conf);
}

static void missing(void **state)
{
	struct conf_args args = { .file = "/nonexistent.conf" };
	struct conf conf = { };
	(void)state;

	assert_true(conf_load(&conf, &args, said, CONF_ERROR_LEN));
	check_default_agent(&conf);
	assert_int_equal(conf.n_devs, 0);
	args.named = true;
	assert_false(conf_load(&conf, &args, said, CONF_ERROR_LEN));
	assert_string_equal(said, "/nonexistent.conf: No such file or directory");
	/* there, and not to be read */
	args = (struct conf_args){ .file = "/proc/version/x" };
	assert_false(conf_load(&conf, &args, said, CONF_ERROR_LEN));
	assert_string_equal(said, "/proc/version/x: Not a directory");
	args.file = "/";
	assert_false(conf_load(&conf, &args, said, CONF_ERROR_LEN));
	assert_string_equal(said, "/: Is a directory");
	check_default_agent(&conf);
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

	load_good(&a, good);
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

	load_good(&a, good);
	load_good(&b, text);
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
	struct conf_args args = { .file = path };
	struct conf conf = { };
	char error[80];
	size_t len;
	(void)state;

	write_text("[x]");
	for (len = 1; len < sizeof(error); len++) {
		memset(error, '?', sizeof(error));
		assert_false(conf_load(&conf, &args, error, len));
		assert_int_equal(strlen(error), len - 1);
	}
}

/* Whatever the file is: settings in their ranges, or an error and the old ones. */
static void check_any(const char *text, size_t len)
{
	struct conf_args args = { .file = path };
	struct conf conf = { .port = 3 };
	char error[CONF_ERROR_LEN] = "";

	write_file(text, len);
	if (conf_load(&conf, &args, error, sizeof(error))) {
		assert_in_range(conf.port, 1, 65535);
		assert_in_range(conf.window, 100, 1000000);
		assert_in_range(conf.short_window, 20, conf.window - 1);
		assert_in_range(conf.lease_ns, S / 100, 60 * S);
		assert_string_equal(error, "");
	} else {
		assert_int_equal(conf.port, 3);
		assert_null(conf.dev);
		assert_memory_equal(error, path, strlen(path));
		assert_non_null(strstr(error, ": "));
	}
	conf_free(&conf);
}

static void any_bytes(void **state)
{
	static const char some[] = "[]=;#\n\r\t agentdvic0";
	char text[sizeof(good)];
	size_t len, at;
	int i;
	(void)state;

	srandom(1);
	for (len = 0; len < sizeof(good); len++)
		check_any(good, len);
	for (i = 0; i < 3000; i++) {
		memcpy(text, good, sizeof(text));
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

/* What a command line ends with, and says */
static int run(struct conf_args *args, const char *line)
{
	char *argv[32] = { "rdma-isolated" }, *save = NULL;
	static char words[1024];
	int out = dup(1), err = dup(2), argc = 1, status;
	FILE *f = tmpfile();
	size_t len;

	snprintf(words, sizeof(words), "%s", line);
	for (argv[argc] = strtok_r(words, " ", &save); argv[argc];
	     argv[argc] = strtok_r(NULL, " ", &save))
		argc++;
	assert_non_null(f);
	fflush(stdout);
	dup2(fileno(f), 1);
	dup2(fileno(f), 2);
	optind = 0;
	status = conf_args(argc, argv, args);
	fflush(stdout);
	dup2(out, 1);
	dup2(err, 2);
	close(out);
	close(err);
	rewind(f);
	len = fread(said, 1, sizeof(said) - 1, f);
	said[len] = 0;
	fclose(f);
	return status;
}

static void load_args(struct conf *conf, struct conf_args *args, const char *line)
{
	char error[CONF_ERROR_LEN];

	if (run(args, line) != CONF_RUN)
		fail_msg("%s: %s", line, said);
	assert_string_equal(said, "");
	args->file = path;
	if (!conf_load(conf, args, error, sizeof(error)))
		fail_msg("%s: %s", line, error);
}

static void no_args(void **state)
{
	struct conf_args args;
	(void)state;

	assert_int_equal(run(&args, ""), CONF_RUN);
	assert_string_equal(args.file, "/etc/rdma-isolated.conf");
	assert_false(args.named || args.check || args.only);
	assert_int_equal(run(&args, "--check --config x"), CONF_RUN);
	assert_string_equal(args.file, "x");
	assert_true(args.named && args.check);
	assert_int_equal(run(&args, "--dev a --dev a"), CONF_RUN);
	assert_true(args.only);
	assert_int_equal(args.over.n_devs, 1);
	conf_args_free(&args);
}

static void args_win(void **state)
{
	struct conf_args args;
	struct conf conf = { };
	(void)state;

	write_text(good);
	load_args(&conf, &args, "");
	check_good(&conf);

	/* what is not given stays as the file has it */
	load_args(&conf, &args,
		  "--port 4 --port 5 --metrics off --law default --peer mlx5_0=::9");
	assert_int_equal(conf.port, 5);
	assert_int_equal(conf.law, CONF_LAW_DEFAULT);
	assert_int_equal(conf.metrics, 0);
	assert_int_equal(conf.window, 1000000);
	assert_int_equal(conf.n_devs, 3);
	assert_int_equal(conf.dev[0].n_peers, 1);
	check_addr(&conf.dev[0].peer[0], "::9");
	assert_int_equal(conf.dev[0].delta_ns, 3600 * S);
	assert_int_equal(conf.dev[2].n_peers, 1);
	conf_args_free(&args);

	load_args(&conf, &args,
		  "--listen ::1 --ref-period=2ms --dev rxe0 --peer b=::2 --peer b=::3");
	check_addr(&conf.listen, "::1");
	assert_int_equal(conf.ref_period_ns, 2000 * US);
	assert_int_equal(conf.law, CONF_LAW_PAPER);
	assert_int_equal(conf.port, 4791);
	assert_int_equal(conf.n_devs, 2);
	check_default_dev(&conf.dev[0], "rxe0");
	assert_int_equal(conf.dev[0].n_peers, 1);
	check_default_dev(&conf.dev[1], "b");
	assert_int_equal(conf.dev[1].n_peers, 2);
	check_addr(&conf.dev[1].peer[1], "::3");

	/* at a reload, too */
	write_text("[agent]\nlisten = 192.0.2.8\nport = 9\n");
	assert_true(conf_load(&conf, &args, said, CONF_ERROR_LEN));
	check_addr(&conf.listen, "::1");
	assert_int_equal(conf.port, 9);
	assert_int_equal(conf.n_devs, 2);
	conf_args_free(&args);

	/* those of --peer are wanted, too */
	write_text(good);
	load_args(&conf, &args, "--dev new --peer mlx5_0=192.0.2.3");
	assert_int_equal(conf.n_devs, 2);
	assert_string_equal(conf.dev[0].name, "mlx5_0");
	assert_string_equal(conf.dev[1].name, "new");
	conf_args_free(&args);
	conf_free(&conf);
}

static void wrong_usage(void **state)
{
	static const char * const bad[][2] = {
		{ "--prot 1", "unrecognized option '--prot'" },
		{ "--port", "option '--port' requires an argument" },
		{ "--check=1", "option '--check' doesn't allow an argument" },
		{ "-x", "invalid option -- 'x'" },
		{ "mlx5_0", "mlx5_0: allowed are options only" },
		{ "--port 0", "--port 0: allowed is 1 to 65535" },
		{ "--listen x", "--listen x: allowed is " ADDRESS },
		{ "--ref-period 2s", "--ref-period 2s: allowed is 100us to 1s" },
		{ "--law x", "--law x: allowed is default or paper" },
		{ "--metrics x", "--metrics x: allowed is off or 1 to 65535" },
		{ "--dev a/b", "--dev a/b: allowed is " NAME },
		{ "--dev=", "--dev : allowed is " NAME },
		{ "--dev " NAME_63 "4", "--dev " NAME_63 "4: allowed is " NAME },
		{ "--peer a", "--peer a: allowed is DEV=ADDRESS, " PEERS },
		{ "--peer a=b", "--peer a=b: allowed is DEV=ADDRESS, " PEERS },
		{ "--peer =1.1.1.1",
		  "--peer =1.1.1.1: allowed is DEV=ADDRESS, " PEERS },
		{ "--peer a=1.1.1.1 --peer b=1.1.1.1 --peer a=1.1.1.1",
		  "--peer a=1.1.1.1: allowed is DEV=ADDRESS, " PEERS },
		{ "--peer " NAME_63 "4=1.1.1.1",
		  "--peer " NAME_63 "4=1.1.1.1: allowed is DEV=ADDRESS, " PEERS },
	};
	struct conf_args args;
	char want[512];
	size_t i;
	(void)state;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(run(&args, bad[i][0]), 2);
		snprintf(want, sizeof(want), "rdma-isolated: %s\n"
			 "rdma-isolated: --help has all options\n", bad[i][1]);
		assert_string_equal(said, want);
		conf_args_free(&args);
	}
}

static void help(void **state)
{
	static const char * const options[] = {
		"--config FILE", "--check", "--dev DEV", "--peer DEV=ADDRESS",
		"--listen ADDRESS", "--port NUMBER", "--ref-period TIME",
		"--law default|paper", "--metrics off|PORT", "--help", "--version",
	};
	struct conf_args args;
	size_t i;
	(void)state;

	assert_int_equal(run(&args, "--help"), 0);
	for (i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (!strstr(said, options[i]))
			fail_msg("help lacks %s", options[i]);
	assert_int_equal(run(&args, "-h"), 0);
	if (!strstr(said, options[0]))
		fail_msg("-h is no --help");
	assert_int_equal(run(&args, "--version"), 0);
	assert_string_equal(said, "rdma-isolated test\n");
}

static void read_file(const char *name, char *buf, size_t size)
{
	FILE *f = fopen(name, "r");
	size_t len;

	if (!f)
		fail_msg("there is no %s", name);
	len = fread(buf, 1, size - 1, f);
	assert_true(len < size - 1);
	buf[len] = 0;
	fclose(f);
}

/* The sample with its "#" taken away says what holds without it, and has all keys. */
static void sample(void **state)
{
	char text[4096], page[32768], want[64], *line, *save = NULL, *to;
	struct conf conf = { };
	FILE *f;
	size_t keys = 0;
	(void)state;

	load_good(&conf, "");
	read_file(SAMPLE, text, sizeof(text));
	read_file(PAGE, page, sizeof(page));
	/* the page writes "-" as "\-" */
	for (line = to = page; *line; line++)
		if (*line != '\\' || line[1] != '-')
			*to++ = *line;
	*to = 0;

	f = fopen(path, "w");
	assert_non_null(f);
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		if (*line != '#')
			fail_msg("this is no comment: %s", line);
		if (!line[1] || strchr(" \t", line[1]))
			continue;
		fprintf(f, "%s\n", line + 1);
		if (line[1] == '[')
			continue;
		keys++;
		snprintf(want, sizeof(want), "\\fB%.*s\\fR = ",
			 (int)strcspn(line + 1, " "), line + 1);
		if (!strstr(page, want))
			fail_msg("the manual page lacks %s", want);
	}
	fclose(f);
	assert_int_equal(keys, 10 + 5);
	load_args(&conf, &(struct conf_args){ }, "");
	check_default_agent(&conf);
	assert_int_equal(conf.n_devs, 1);
	check_default_dev(&conf.dev[0], "mlx5_0");
	assert_int_equal(conf.dev->n_peers, 2);
	conf_free(&conf);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);
	(void)state;

	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
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
		cmocka_unit_test(any_bytes),
		cmocka_unit_test(no_args),
		cmocka_unit_test(args_win),
		cmocka_unit_test(wrong_usage),
		cmocka_unit_test(help),
		cmocka_unit_test(sample),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_conf", tests, make_file, remove_file);
}
