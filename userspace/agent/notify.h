/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the agent tells the service manager that has started it, if one has.
 */
#ifndef RISO_NOTIFY_H
#define RISO_NOTIFY_H

/* Tells from now on that the loop runs, if that is wanted; 0 or a negative errno */
int notify_open(void);
void notify_close(void);
void notify_ready(void);
/* Until notify_ready() */
void notify_reloading(void);
void notify_stopping(void);
/* Told if it is another one than before */
void notify_status(const char *status);

#endif /* RISO_NOTIFY_H */
