/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The secret that agents of a cluster share.
 */
#ifndef RISO_SECRET_H
#define RISO_SECRET_H

#include <stdint.h>

#include "peer_record.h"

enum {
	/* Bytes of a file that is one: fewer can be guessed, and more are not meant. */
	SECRET_MIN = 32,
	SECRET_MAX = 4096,
};

#define SECRET_ALLOWED \
	"off or a file of 32 to 4096 bytes, of root or who runs this, that nobody else may use"

/**
 * secret_read - make a key of what a file has
 * @path: the file
 * @key: RECORD_KEY bytes, filled in
 *
 * Return: NULL, or what keeps the file from being what SECRET_ALLOWED says.
 */
const char *secret_read(const char *path, uint8_t *key);

#endif /* RISO_SECRET_H */
