/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tells the module which queue pairs post around the shim.
 */
#ifndef RISO_MARKS_H
#define RISO_MARKS_H

struct nl;

/* Look every ten seconds from now on; 0 or a negative errno */
int marks_open(struct nl *nl);
void marks_close(void);

#endif /* RISO_MARKS_H */
