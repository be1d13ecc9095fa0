// SPDX-License-Identifier: GPL-2.0
/*
 * These cases try the command line of rdma-isolated, and the sample of its file.
 */
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf.h"
#include "conffile.h"

#define SAMPLE "../agent/rdma-isolated.conf"
#define PAGE "../../Documentation/man/rdma-isolated.8"

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
	len = fread(conffile_said, 1, sizeof(conffile_said) - 1, f);
	conffile_said[len] = 0;
	fclose(f);
	return status;
}

static void load_args(struct conf *conf, struct conf_args *args, const char *line)
{
	char error[CONF_ERROR_LEN];

	if (run(args, line) != CONF_RUN)
		fail_msg("%s: %s", line, conffile_said);
	assert_string_equal(conffile_said, "");
	args->file = conffile_path;
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

	conffile_write_text(conffile_good);
	load_args(&conf, &args, "");
	conffile_check_good(&conf);

	/* what is not given stays as the file has it */
	load_args(&conf, &args,
		  "--port 4 --port 5 --metrics off --law default --peer mlx5_0=::9");
	assert_int_equal(conf.port, 5);
	assert_int_equal(conf.law, CONF_LAW_DEFAULT);
	assert_int_equal(conf.metrics, 0);
	assert_int_equal(conf.window, 1000000);
	assert_int_equal(conf.n_devs, 3);
	assert_int_equal(conf.dev[0].n_peers, 1);
	conffile_check_addr(&conf.dev[0].peer[0], "::9");
	assert_int_equal(conf.dev[0].delta_ns, 3600 * S);
	assert_int_equal(conf.dev[2].n_peers, 1);
	conf_args_free(&args);

	load_args(&conf, &args,
		  "--listen ::1 --ref-period=2ms --dev rxe0 --peer b=::2 --peer b=::3");
	conffile_check_addr(&conf.listen, "::1");
	assert_int_equal(conf.ref_period_ns, 2000 * US);
	assert_int_equal(conf.law, CONF_LAW_PAPER);
	assert_int_equal(conf.port, 4791);
	assert_int_equal(conf.n_devs, 2);
	conffile_check_default_dev(&conf.dev[0], "rxe0");
	assert_int_equal(conf.dev[0].n_peers, 1);
	conffile_check_default_dev(&conf.dev[1], "b");
	assert_int_equal(conf.dev[1].n_peers, 2);
	conffile_check_addr(&conf.dev[1].peer[1], "::3");

	/* at a reload, too */
	conffile_write_text("[agent]\nlisten = 192.0.2.8\nport = 9\n");
	assert_true(conf_load(&conf, &args, conffile_said, CONF_ERROR_LEN));
	conffile_check_addr(&conf.listen, "::1");
	assert_int_equal(conf.port, 9);
	assert_int_equal(conf.n_devs, 2);
	conf_args_free(&args);

	/* those of --peer are wanted, too */
	conffile_write_text(conffile_good);
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
		{ "--listen x", "--listen x: allowed is " CONFFILE_ADDRESS },
		{ "--ref-period 2s", "--ref-period 2s: allowed is 100us to 1s" },
		{ "--law x", "--law x: allowed is default or paper" },
		{ "--metrics x", "--metrics x: allowed is off or 1 to 65535" },
		{ "--dev a/b", "--dev a/b: allowed is " CONFFILE_NAME },
		{ "--dev=", "--dev : allowed is " CONFFILE_NAME },
		{ "--dev " CONFFILE_NAME_63 "4",
		  "--dev " CONFFILE_NAME_63 "4: allowed is " CONFFILE_NAME },
		{ "--peer a", "--peer a: allowed is DEV=ADDRESS, " CONFFILE_PEERS },
		{ "--peer a=b", "--peer a=b: allowed is DEV=ADDRESS, " CONFFILE_PEERS },
		{ "--peer =1.1.1.1",
		  "--peer =1.1.1.1: allowed is DEV=ADDRESS, " CONFFILE_PEERS },
		{ "--peer a=1.1.1.1 --peer b=1.1.1.1 --peer a=1.1.1.1",
		  "--peer a=1.1.1.1: allowed is DEV=ADDRESS, " CONFFILE_PEERS },
		{ "--peer " CONFFILE_NAME_63 "4=1.1.1.1",
		  "--peer " CONFFILE_NAME_63 "4=1.1.1.1: allowed is DEV=ADDRESS, " CONFFILE_PEERS },
	};
	struct conf_args args;
	char want[512];
	size_t i;
	(void)state;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(run(&args, bad[i][0]), 2);
		snprintf(want, sizeof(want), "rdma-isolated: %s\n"
			 "rdma-isolated: --help has all options\n", bad[i][1]);
		assert_string_equal(conffile_said, want);
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
		if (!strstr(conffile_said, options[i]))
			fail_msg("help lacks %s", options[i]);
	assert_int_equal(run(&args, "-h"), 0);
	if (!strstr(conffile_said, options[0]))
		fail_msg("-h is no --help");
	assert_int_equal(run(&args, "--version"), 0);
	assert_string_equal(conffile_said, "rdma-isolated test\n");
	assert_int_equal(run(&args, "-V"), 0);
	assert_string_equal(conffile_said, "rdma-isolated test\n");
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
	char text[8192], page[32768], want[64], *line, *save = NULL, *to;
	struct conf conf = { };
	FILE *f;
	size_t keys = 0;
	(void)state;

	conffile_load_good(&conf, "");
	read_file(SAMPLE, text, sizeof(text));
	read_file(PAGE, page, sizeof(page));
	/* the page writes "-" as "\-" */
	for (line = to = page; *line; line++)
		if (*line != '\\' || line[1] != '-')
			*to++ = *line;
	*to = 0;

	f = fopen(conffile_path, "w");
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
	assert_int_equal(keys, 11 + 5);
	load_args(&conf, &(struct conf_args){ }, "");
	conffile_check_default_agent(&conf);
	assert_int_equal(conf.n_devs, 1);
	conffile_check_default_dev(&conf.dev[0], "mlx5_0");
	assert_int_equal(conf.dev->n_peers, 2);
	conf_free(&conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_args),
		cmocka_unit_test(args_win),
		cmocka_unit_test(wrong_usage),
		cmocka_unit_test(help),
		cmocka_unit_test(sample),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_args", tests, conffile_make, conffile_remove);
}
