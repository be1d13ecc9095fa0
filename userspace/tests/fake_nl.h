/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection to a module that a test plays: it has the request, and makes what is answered.
 * Link with --wrap of nl_open, nl_close and nl_request.
 */
#ifndef RISO_TEST_FAKE_NL_H
#define RISO_TEST_FAKE_NL_H

#include <stdint.h>

#include <libmnl/libmnl.h>

/* The last request, with what the program has put into it */
const struct nlmsghdr *fake_nl_request(void);
/* A message without attributes, in @buf */
struct nlmsghdr *fake_nl_message(char *buf, uint8_t cmd);

#endif /* RISO_TEST_FAKE_NL_H */
