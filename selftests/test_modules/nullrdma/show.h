/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the ends have done, in debugfs. It sleeps.
 */
#ifndef NULLRDMA_SHOW_H
#define NULLRDMA_SHOW_H

void nr_show_ends(void);
void nr_hide_ends(void);

#endif /* NULLRDMA_SHOW_H */
