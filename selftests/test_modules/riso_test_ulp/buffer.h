/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Memory that lives as long as the module. Process context, under main.c's case_lock.
 */
#ifndef RISO_TEST_ULP_BUFFER_H
#define RISO_TEST_ULP_BUFFER_H

struct ulp_buf;
struct ulp_ctx;
struct ulp_ep;

/* what source a, destination a, source b and destination b hold at first */
extern void *ulp_patterns[4];
/* what the case that ran last has found, ULP_LOG_SIZE bytes at most */
extern char *ulp_result;

void ulp_unmap_buf(struct ulp_ep *ep, struct ulp_buf *buf);
int ulp_setup_bufs(struct ulp_ctx *ctx);
void ulp_free_bufs(void);
int ulp_alloc_bufs(void);

#endif /* RISO_TEST_ULP_BUFFER_H */
