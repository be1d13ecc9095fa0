/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The cases, by the file that has them. Each runs in process context under main.c's
 * case_lock, and returns an error if it could not go on.
 */
#ifndef RISO_TEST_ULP_CASE_H
#define RISO_TEST_ULP_CASE_H

struct ulp_ctx;

struct ulp_case {
	const char *name;
	int (*fn)(struct ulp_ctx *ctx);
	const char *help;
};

/* case_data.c */
int ulp_case_size(struct ulp_ctx *ctx);
int ulp_case_sge(struct ulp_ctx *ctx);
int ulp_case_fence(struct ulp_ctx *ctx);
int ulp_case_inline(struct ulp_ctx *ctx);
int ulp_case_atomic(struct ulp_ctx *ctx);
int ulp_case_announce(struct ulp_ctx *ctx);

/* case_mr.c */
int ulp_case_regmr(struct ulp_ctx *ctx);

/* case_queue.c */
int ulp_case_depth(struct ulp_ctx *ctx);
int ulp_case_chain(struct ulp_ctx *ctx);
int ulp_case_exactcq(struct ulp_ctx *ctx);
int ulp_case_lazy(struct ulp_ctx *ctx);
int ulp_case_overpost(struct ulp_ctx *ctx);
int ulp_case_onecq(struct ulp_ctx *ctx);
int ulp_case_srq(struct ulp_ctx *ctx);

/* case_error.c */
int ulp_case_remacc(struct ulp_ctx *ctx);
int ulp_case_locprot(struct ulp_ctx *ctx);
int ulp_case_rnr(struct ulp_ctx *ctx);
int ulp_case_drain(struct ulp_ctx *ctx);
int ulp_case_err(struct ulp_ctx *ctx);
int ulp_case_reset(struct ulp_ctx *ctx);
int ulp_case_destroy(struct ulp_ctx *ctx);
int ulp_case_peergone(struct ulp_ctx *ctx);
int ulp_case_badstate(struct ulp_ctx *ctx);

/* case_context.c */
int ulp_case_cpus(struct ulp_ctx *ctx);
int ulp_case_repost(struct ulp_ctx *ctx);
int ulp_case_errpost(struct ulp_ctx *ctx);
int ulp_case_hardirq(struct ulp_ctx *ctx);

/* case_live.c */
int ulp_case_traffic(struct ulp_ctx *ctx);

/* case_adapter.c */
int ulp_case_arm(struct ulp_ctx *ctx);
int ulp_case_dying(struct ulp_ctx *ctx);
int ulp_case_purge(struct ulp_ctx *ctx);
int ulp_case_reply(struct ulp_ctx *ctx);
int ulp_case_fulldrain(struct ulp_ctx *ctx);
int ulp_case_unknown(struct ulp_ctx *ctx);
int ulp_case_surrender(struct ulp_ctx *ctx);
int ulp_case_partial(struct ulp_ctx *ctx);

/* case_end.c */
int ulp_case_end(struct ulp_ctx *ctx);

/* case_stale.c */
int ulp_case_stale(struct ulp_ctx *ctx);

/* case_wire.c */
int ulp_case_behind(struct ulp_ctx *ctx);

#endif /* RISO_TEST_ULP_CASE_H */
