/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Devices come and go. See client.c.
 */
#ifndef RISO_CLIENT_H
#define RISO_CLIENT_H

int riso_client_init(void);
void riso_client_exit(void);

#endif /* RISO_CLIENT_H */
