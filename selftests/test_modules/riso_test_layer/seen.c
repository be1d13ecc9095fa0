// SPDX-License-Identifier: GPL-2.0
/*
 * What the provider was given, for the parameter "seen" and for riso_test_ulp.
 *
 * Owns the counters. They are atomic: any context changes and reads them.
 */

#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sysfs.h>

#include "../riso_test_layer.h"
#include "seen.h"

atomic64_t layer_posts;
atomic64_t layer_refused;
atomic64_t layer_preemptible;
atomic64_t layer_sends;
atomic64_t layer_late_sends;
atomic64_t layer_notifies;
atomic64_t layer_dying;
atomic_t layer_creating;

/**
 * riso_test_layer_read - what the provider was given until now
 * @seen: filled in
 */
void riso_test_layer_read(struct riso_test_seen *seen)
{
	*seen = (struct riso_test_seen) {
		.posts = atomic64_read(&layer_posts),
		.refused = atomic64_read(&layer_refused),
		.preemptible = atomic64_read(&layer_preemptible),
		.sends = atomic64_read(&layer_sends),
		.late_sends = atomic64_read(&layer_late_sends),
		.notifies = atomic64_read(&layer_notifies),
		.dying = atomic64_read(&layer_dying),
	};
}
EXPORT_SYMBOL_GPL(riso_test_layer_read);

static int get_seen(char *buf, const struct kernel_param *kp)
{
	struct riso_test_seen seen;

	riso_test_layer_read(&seen);
	return sysfs_emit(buf, "posts %llu refused %llu preemptible %llu\n"
			  "sends %llu late_sends %llu notifies %llu dying %llu creating %d\n",
			  seen.posts, seen.refused, seen.preemptible, seen.sends,
			  seen.late_sends, seen.notifies, seen.dying,
			  atomic_read(&layer_creating));
}

static const struct kernel_param_ops seen_ops = { .get = get_seen };

module_param_cb(seen, &seen_ops, NULL, 0444);
MODULE_PARM_DESC(seen, "what the provider was given");
