// SPDX-License-Identifier: GPL-2.0
/*
 * rdma-isolate: shows and sets what the module rdma_isolate does.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "batch.h"
#include "cmd.h"
#include "config_apply.h"
#include "config_file.h"
#include "config_item.h"
#include "config_read.h"
#include "run.h"
#include "unload.h"

static int check_files(void)
{
	struct config config;
	int status = config_read_dir(CONFIG_DIR, &config);

	config_free(&config);
	if (status == CMD_DONE)
		puts("OK");
	return status;
}

/* A unit knows its device by the path in sysfs. */
static int apply(const char *dev)
{
	if (dev && !strcmp(dev, "--check"))
		return check_files();
	if (dev && (*dev == '-' || !strcmp(dev, "help")))
		return usage_error("apply takes one DEV, or --check");
	if (dev && strchr(dev, '/'))
		dev = strrchr(dev, '/') + 1;
	if (dev && !*dev)
		return usage_error("DEV is the name of an RDMA device, or its path in sysfs");
	return config_apply(CONFIG_DIR, dev);
}

static int run(int argc, char **argv, const char *batch, struct printer *out)
{
	struct command cmd;
	int status;

	if (batch)
		return argc ? usage_error("nothing may follow -b FILE") :
			      batch_run(batch, out);
	if (!strcmp(argv[0], "dump"))
		return argc > 1 ? usage_error("nothing may follow dump") :
				  config_dump(out->file);
	if (!strcmp(argv[0], "sync"))
		return argc != 2 ? usage_error("sync takes one FILE") :
				   config_sync(argv[1]);
	if (!strcmp(argv[0], "apply"))
		return argc > 2 ? usage_error("apply takes one DEV, or --check") :
				  apply(argv[1]);
	if (!strcmp(argv[0], "run"))
		return run_program(argc, argv);
	if (!strcmp(argv[0], "unload"))
		return argc > 1 ? usage_error("nothing may follow unload") :
				  unload_module();

	status = cmd_parse(argc, argv, &cmd);
	return status == CMD_DONE ? cmd_run(&cmd, out) : status;
}

#define OPTIONS "-b FILE, -d, -j, -p, -V (--version) and -h (--help)"

int main(int argc, char **argv)
{
	static const struct option words[] = {
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ }
	};
	struct printer out = { .file = stdout };
	const char *batch = NULL;
	int status, opt;

	if (argc > 1 && !strcmp(argv[1], "complete"))
		return cmd_complete(argc - 2, argv + 2);

	/* options come first, as the + says */
	while ((opt = getopt_long(argc, argv, "+b:djpVh", words, NULL)) != -1) {
		switch (opt) {
		case 'b':
			batch = optarg;
			break;
		case 'd':
			out.details = true;
			break;
		case 'j':
			out.json = true;
			break;
		case 'p':
			out.pretty = true;
			break;
		case 'V':
			puts("rdma-isolate " VERSION ", JSON " NAME_JSON);
			return CMD_DONE;
		case 'h':
			cmd_help(stdout);
			return CMD_DONE;
		default:
			return usage_error("options are " OPTIONS);
		}
	}

	if (optind == argc && !batch) {
		cmd_help(stderr);
		return CMD_USAGE;
	}
	if (!batch && !strcmp(argv[optind], "help")) {
		if (argc - optind > 2)
			return usage_error("help takes one OBJECT");
		if (argc - optind == 1 || cmd_has_no_help(argv[optind + 1])) {
			cmd_help(stdout);
			return CMD_DONE;
		}
		argv[optind] = argv[optind + 1];
		argv[optind + 1] = "help";
	}

	status = run(argc - optind, argv + optind, batch, &out);
	if (fflush(stdout) || ferror(stdout)) {
		perror("rdma-isolate: write");
		return CMD_REFUSED;
	}
	return status;
}
