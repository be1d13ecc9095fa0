/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What --check says of settings that are right.
 */
#ifndef RISO_CHECK_H
#define RISO_CHECK_H

#include <stdio.h>

#include "conf.h"

/* Explain what agents of several hosts will do with the settings; nothing without a device. */
void check_explain(FILE *file, const struct conf *conf);

#endif /* RISO_CHECK_H */
