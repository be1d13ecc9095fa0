// SPDX-License-Identifier: GPL-2.0
/*
 * What rdma-isolated --check says of settings that are right.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "check.h"
#include "conffile.h"
#include "printed.h"
#include "secret.h"

static void expect(const char *settings, const char *want)
{
	struct conf conf = { };
	FILE *file = tmpfile();
	char got[4096];

	assert_non_null(file);
	conffile_load_good(&conf, settings);
	check_explain(file, &conf);
	read_printed(file, got, sizeof(got));
	assert_string_equal(got, want);
	conf_free(&conf);
}

#define OF_PEERS \
	"  The agents there are told what this host sends to them and reads from them.\n" \
	"  While latency flows go to or from a host, its agent decides how much\n" \
	"  of that may be. This agent sets that as a limit (rdma-isolate path show),\n" \
	"  with a lease of "
#define OF_OTHERS \
	"  While latency flows go to or from this host, this agent decides how much\n" \
	"  they may send to it and read from it.\n"
#define NO_SECRET "secret: none, so all agents that reach this one are believed\n"
#define SECRET "secret: agents are believed if they have the same one, so each host needs the file\n"

static void no_device(void **state)
{
	(void)state;
	expect("", "");
}

static void no_peer(void **state)
{
	(void)state;
	expect("[device rxe0]\n",
	       "other hosts: may measure with this one at :: port 18516\n" OF_OTHERS NO_SECRET);
}

static void several_peers(void **state)
{
	(void)state;
	expect("[agent]\nport = 7\nlisten = 192.0.2.9\nlease = 1min\n[device rxe0]\n"
	       "[device mlx5_0]\npeer = 192.0.2.1\npeer = 2001:db8::1\n"
	       "[device mlx5_1]\npeer = 192.0.2.1\n",
	       "mlx5_0: measures with 192.0.2.1, 2001:db8::1 at port 7\n"
	       OF_PEERS "10s.\n"
	       "mlx5_1: measures with 192.0.2.1 at port 7\n"
	       OF_PEERS "10s.\n"
	       "other hosts: may measure with this one at 192.0.2.9 port 7\n" OF_OTHERS NO_SECRET);
}

static void a_secret(void **state)
{
	char path[] = "/tmp/agent_check.XXXXXX", bytes[SECRET_MIN] = "", settings[256];
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	close(fd);
	snprintf(settings, sizeof(settings),
		 "[agent]\nsecret = %s\n[device rxe0]\npeer = 192.0.2.1\n", path);
	expect(settings,
	       "rxe0: measures with 192.0.2.1 at port 18516\n" OF_PEERS "1s.\n"
	       "other hosts: may measure with this one at :: port 18516\n" OF_OTHERS SECRET);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_device),
		cmocka_unit_test(no_peer),
		cmocka_unit_test(several_peers),
		cmocka_unit_test(a_secret),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_check", tests, conffile_make, conffile_remove);
}
