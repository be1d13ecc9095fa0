/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A file of settings for the tests of conf.c: a text that has every key, what is said of a
 * wrong one, and checks of what was read.
 */
#ifndef RISO_TEST_CONFFILE_H
#define RISO_TEST_CONFFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "conf.h"

#define CONFFILE_ADDRESS "an address of IPv4, or of IPv6 that is not link-local; not of multicast"
#define CONFFILE_PEERS CONFFILE_ADDRESS ", nor 0.0.0.0 or ::; up to 16, none of them twice"
#define CONFFILE_NAME "a name of 1 to 63 characters, without blanks and /=[];"
#define CONFFILE_NAME_63 "n23456789012345678901234567890123456789012345678901234567890123"

#define CONFFILE_X98 CONFFILE_NAME_63 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

#define US 1000
#define S UINT64_C(1000000000)

/* The file, and what a call says of it or of the command line */
extern char conffile_path[64];
extern char conffile_said[16384];

/* Every key, with a value that is no default. */
static const char conffile_good[] =
	"; \xc3\xa4ll of them\n"
	"# \xc3\xbc and \x01 and what " CONFFILE_X98 CONFFILE_X98 CONFFILE_X98 "\n"
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
	"  [device  " CONFFILE_NAME_63 "]\n"
	"[device rxe0]\n"
	"peer = 192.0.2.1";

/* Before and after all cases of a program */
int conffile_make(void **state);
int conffile_remove(void **state);

void conffile_write(const char *text, size_t len);
void conffile_write_text(const char *text);
bool conffile_load(struct conf *conf, const char *text);
void conffile_load_good(struct conf *conf, const char *text);

void conffile_check_addr(const union conf_addr *addr, const char *text);
void conffile_check_default_agent(const struct conf *conf);
void conffile_check_default_dev(const struct conf_dev *dev, const char *name);
void conffile_check_good(const struct conf *conf);

#endif /* RISO_TEST_CONFFILE_H */
