// SPDX-License-Identifier: GPL-2.0
/*
 * rdma-isolate: shows and sets what the module rdma_isolate does.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd.h"

int main(int argc, char **argv)
{
	struct printer out = { .file = stdout };
	int status, opt;

	if (argc > 1 && !strcmp(argv[1], "complete"))
		return cmd_complete(argc - 2, argv + 2);

	/* options come first, as the + says */
	while ((opt = getopt(argc, argv, "+jpVh")) != -1) {
		switch (opt) {
		case 'j':
			out.json = true;
			break;
		case 'p':
			out.pretty = true;
			break;
		case 'V':
			puts("rdma-isolate " VERSION);
			return CMD_DONE;
		case 'h':
			cmd_help(stdout);
			return CMD_DONE;
		default:
			return usage_error("options are -j, -p, -V and -h");
		}
	}

	if (optind == argc) {
		cmd_help(stderr);
		return CMD_USAGE;
	}
	if (!strcmp(argv[optind], "help")) {
		cmd_help(stdout);
		return CMD_DONE;
	}

	status = cmd_run(argc - optind, argv + optind, &out);
	if (fflush(stdout) || ferror(stdout)) {
		perror("rdma-isolate: write");
		return CMD_REFUSED;
	}
	return status;
}
