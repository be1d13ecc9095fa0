// SPDX-License-Identifier: GPL-2.0
/*
 * The secret that agents of a cluster share.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "secret.h"

/* NULL, or why nobody should rely on what the file has */
static const char *doubt(int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "it is no regular file";
	if (st.st_uid && st.st_uid != geteuid())
		return "its owner is neither root nor who runs this";
	return st.st_mode & 0077 ? "its group or others have rights to it" : NULL;
}

static const char *read_key(int fd, uint8_t *key)
{
	const char *wrong = doubt(fd);
	uint8_t bytes[SECRET_MAX + 1];
	ssize_t n;

	if (wrong)
		return wrong;
	n = read(fd, bytes, sizeof(bytes));
	if (n < 0)
		return strerror(errno);
	if (n >= SECRET_MIN && n <= SECRET_MAX)
		crypto_generichash(key, RECORD_KEY, bytes, n, NULL, 0);
	else
		wrong = n < SECRET_MIN ? "it is too short" : "it is too long";
	sodium_memzero(bytes, sizeof(bytes));
	return wrong;
}

const char *secret_read(const char *path, uint8_t *key)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *wrong;

	if (fd < 0)
		return strerror(errno);
	wrong = read_key(fd, key);
	close(fd);
	return wrong;
}
