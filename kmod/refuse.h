/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Work requests that the provider refuses. See refuse.c.
 */
#ifndef RISO_REFUSE_H
#define RISO_REFUSE_H

struct work_struct;

void riso_refuse_work(struct work_struct *work);

#endif /* RISO_REFUSE_H */
