// SPDX-License-Identifier: GPL-2.0
/*
 * These functions write a file of settings, load it, and check what was read.
 */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conffile.h"

char conffile_path[64] = "/tmp/test_agent_conf.XXXXXX";
char conffile_said[16384];

void conffile_write(const char *text, size_t len)
{
	FILE *f = fopen(conffile_path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

void conffile_write_text(const char *text)
{
	conffile_write(text, strlen(text));
}

bool conffile_load(struct conf *conf, const char *text)
{
	struct conf_args args = { .file = conffile_path, .named = true };

	conffile_write_text(text);
	*conffile_said = 0;
	return conf_load(conf, &args, conffile_said, CONF_ERROR_LEN);
}

void conffile_load_good(struct conf *conf, const char *text)
{
	if (!conffile_load(conf, text))
		fail_msg("%s", conffile_said);
}

void conffile_check_addr(const union conf_addr *addr, const char *text)
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

void conffile_check_default_agent(const struct conf *conf)
{
	conffile_check_addr(&conf->listen, "::");
	assert_int_equal(conf->port, 18516);
	assert_int_equal(conf->ref_period_ns, 500 * US);
	assert_int_equal(conf->spin_ns, 0);
	assert_int_equal(conf->window, 10000);
	assert_int_equal(conf->short_window, 200);
	assert_int_equal(conf->lease_ns, S);
	assert_int_equal(conf->law, CONF_LAW_DEFAULT);
	assert_int_equal(conf->metrics, 0);
}

void conffile_check_default_dev(const struct conf_dev *dev, const char *name)
{
	assert_string_equal(dev->name, name);
	assert_int_equal(dev->unattainable, CONF_KEEP);
	assert_int_equal(dev->delta_ns, 5 * S);
	assert_int_equal(dev->not_local, CONF_RECOVER);
}

void conffile_check_good(const struct conf *conf)
{
	const struct conf_dev *dev = conf->dev;

	conffile_check_addr(&conf->listen, "192.0.2.7");
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
	conffile_check_addr(&dev->peer[0], "192.0.2.1");
	conffile_check_addr(&dev->peer[1], "2001:db8::1");
	assert_int_equal(dev->unattainable, CONF_GIVE_UP);
	assert_int_equal(dev->delta_ns, 3600 * S);
	assert_int_equal(dev->not_local, CONF_STAY);
	conffile_check_default_dev(++dev, CONFFILE_NAME_63);
	assert_int_equal(dev->n_peers, 0);
	conffile_check_default_dev(++dev, "rxe0");
	assert_int_equal(dev->n_peers, 1);
	conffile_check_addr(&dev->peer[0], "192.0.2.1");
}

int conffile_make(void **state)
{
	int fd = mkstemp(conffile_path);
	(void)state;

	return fd < 0 ? -1 : close(fd);
}

int conffile_remove(void **state)
{
	(void)state;
	return unlink(conffile_path);
}
