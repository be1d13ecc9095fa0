/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the provider was given. Any context.
 */
#ifndef RISO_TEST_LAYER_SEEN_H
#define RISO_TEST_LAYER_SEEN_H

#include <linux/atomic.h>

extern atomic64_t layer_posts;
extern atomic64_t layer_refused;
extern atomic64_t layer_preemptible;
extern atomic64_t layer_sends;
extern atomic64_t layer_late_sends;
extern atomic64_t layer_notifies;
extern atomic64_t layer_dying;
/* queue pairs whose creation waits */
extern atomic_t layer_creating;

#endif /* RISO_TEST_LAYER_SEEN_H */
