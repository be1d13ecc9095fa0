// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel ULP that checks every byte and every completion.
 *
 * It connects kernel RC queue pairs of two RDMA devices in one host, moves
 * position-dependent patterns between them, and compares:
 *
 *  - the whole of both destination buffers, guard areas included, with a
 *    model that replays the work requests in the order they were posted;
 *  - the completions with a ledger that holds one record per work request:
 *    exactly one completion for each signaled one, in order, none for an
 *    unsignaled one, and after the first error one for every one.
 *
 * The protection domains carry the name of this module, those of the idle pair made by
 * "lat-on" are called riso_test_lat.
 *
 *	echo "CASE [KEY=VALUE]..." > /sys/kernel/debug/riso_test_ulp/run
 *	cat /sys/kernel/debug/riso_test_ulp/result
 *
 * The write returns when the case has ended, with an error if it failed.
 *
 * This file owns the module, its files in debugfs, the table of the cases and the idle
 * pair. A case runs under case_lock, in the process that writes. Devices come and go in
 * the context of the RDMA core, which may sleep.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>
#include <rdma/ib_verbs.h>

#include "args.h"
#include "buffer.h"
#include "case.h"
#include "ctx.h"
#include "endpoint.h"
#include "fail.h"
#include "model.h"
#include "ulp.h"

#define ULP_LAT_NAME	"riso_test_lat"

/* A case runs under it. It protects the memory in buffer.c and what follows. */
static DEFINE_MUTEX(case_lock);
static struct ulp_ctx *lat;
static struct dentry *dir;

static const struct ulp_case cases[] = {
	{ "size", ulp_case_size, "messages of one size" },
	{ "sge", ulp_case_sge, "1 to max SGEs of odd lengths" },
	{ "chain", ulp_case_chain, "WRITE, READ and SEND in one chain" },
	{ "fence", ulp_case_fence, "READ, then fenced WRITE or SEND of it" },
	{ "inline", ulp_case_inline, "inline data between large requests" },
	{ "regmr", ulp_case_regmr, "REG_MR and invalidation between data" },
	{ "atomic", ulp_case_atomic, "atomics between data" },
	{ "exactcq", ulp_case_exactcq, "a CQ of exactly the needed depth" },
	{ "announce", ulp_case_announce, "data is there before its SEND" },
	{ "lazy", ulp_case_lazy, "nobody polls before the peer has all" },
	{ "depth", ulp_case_depth, "a queue full of large messages" },
	{ "remacc", ulp_case_remacc, "remote access error in mid-message" },
	{ "locprot", ulp_case_locprot, "bad key in the last SGE" },
	{ "rnr", ulp_case_rnr, "SEND without a receive" },
	{ "drain", ulp_case_drain, "ib_drain_qp with messages waiting" },
	{ "err", ulp_case_err, "modify to ERR with messages waiting" },
	{ "reset", ulp_case_reset, "modify to RESET and use again" },
	{ "destroy", ulp_case_destroy, "destroy with messages waiting" },
	{ "peergone", ulp_case_peergone, "the peer's QP goes away" },
	{ "badstate", ulp_case_badstate, "post in states that refuse" },
	{ "overpost", ulp_case_overpost, "more than the queue holds" },
	{ "cpus", ulp_case_cpus, "threads on several CPUs, QPs" },
	{ "repost", ulp_case_repost, "posts from completion handlers" },
	{ "errpost", ulp_case_errpost, "modify to ERR meanwhile" },
	{ "hardirq", ulp_case_hardirq, "posts from hard interrupts" },
	{ "onecq", ulp_case_onecq, "several QPs on one CQ, both ways" },
	{ "srq", ulp_case_srq, "a shared receive queue" },
	{ "traffic", ulp_case_traffic, "traffic until \"stop\"" },
	{ "arm", ulp_case_arm, "the answer to req_notify_cq is ignored" },
	{ "dying", ulp_case_dying, "a QP is destroyed while its error is found" },
	{ "purge", ulp_case_purge, "completions go with their QP" },
	{ "reply", ulp_case_reply, "a WRITE and its SEND, one chunk" },
	{ "fulldrain", ulp_case_fulldrain, "ib_drain_sq, the queue being full" },
	{ "unknown", ulp_case_unknown, "an operation of the device's own" },
	{ "surrender", ulp_case_surrender, "the same, while pieces are out" },
	{ "end", ulp_case_end, "SENDs wait when their QP ends" },
	{ "partial", ulp_case_partial, "a chain of which a part is refused" },
	{ "behind", ulp_case_behind, "a SEND behind large messages of others" },
	{ "stale", ulp_case_stale, "a completion outlives its QP in a poll" },
};

/* The idle pair of another owner, which a rule can make a latency flow. */
static int lat_on(const struct ulp_args *arg)
{
	struct ulp_ctx *ctx;
	int err;

	if (lat)
		return -EEXIST;
	ctx = ulp_alloc_ctx(arg, ULP_LAT_NAME);
	if (IS_ERR(ctx))
		return PTR_ERR(ctx);
	err = ulp_connect(ctx);
	if (err) {
		ulp_finish(ctx);
		ulp_free_ctx(ctx);
		return err;
	}
	lat = ctx;
	return 0;
}

static void lat_off(void)
{
	if (!lat)
		return;
	ulp_finish(lat);
	if (lat->failed)
		pr_err("latency pair: %s", lat->log);
	ulp_free_ctx(lat);
	lat = NULL;
}

static int run_case(const struct ulp_case *tc, const struct ulp_args *arg)
{
	struct ulp_ctx *ctx;
	int err;

	ctx = ulp_alloc_ctx(arg, KBUILD_MODNAME);
	if (IS_ERR(ctx)) {
		scnprintf(ulp_result, ULP_LOG_SIZE, "FAIL %s: setup failed\n",
			  tc->name);
		return PTR_ERR(ctx);
	}
	err = tc->fn(ctx);
	ulp_finish(ctx);
	if (!ctx->failed && !err)
		ulp_verify(ctx);
	if (ctx->failed)
		err = -EIO;
	scnprintf(ulp_result, ULP_LOG_SIZE,
		  "%s %s: %d, requests %d, completions %d, bytes %lld\n%s",
		  err ? "FAIL" : "PASS", tc->name, err,
		  atomic_read(&ctx->nrecs), atomic_read(&ctx->ncomp),
		  (long long)atomic64_read(&ctx->bytes), ctx->log);
	ulp_free_ctx(ctx);
	return err;
}

static int run_line(char *line)
{
	struct ulp_args arg = {
		.op = "write",
		.len = 100003,
		.depth = 62,
		.sge = 4,
		.qps = 1,
		.threads = 4,
		.rdatomic = 16,
		.batch = ULP_MAX_BATCH,
		.signal = 2,
		.timeout = 60,
	};
	int i, err;

	err = ulp_parse_args(&arg, line);
	if (err) {
		scnprintf(ulp_result, ULP_LOG_SIZE, "FAIL: bad arguments\n");
		return err;
	}
	if (!strcmp(arg.name, "lat-on"))
		return lat_on(&arg);
	if (!strcmp(arg.name, "lat-off")) {
		lat_off();
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		if (!strcmp(arg.name, cases[i].name))
			return run_case(&cases[i], &arg);
	scnprintf(ulp_result, ULP_LOG_SIZE, "FAIL: no case %s\n", arg.name);
	return -ENOENT;
}

static ssize_t run_write(struct file *file, const char __user *ubuf, size_t len,
			 loff_t *ppos)
{
	char *line;
	int err;

	if (len > SZ_4K)
		return -EINVAL;
	line = memdup_user_nul(ubuf, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	if (!strcmp(strim(line), "stop")) {
		WRITE_ONCE(ulp_stop, true);
		wake_up_all(&ulp_wq);
		mutex_lock(&case_lock);
		WRITE_ONCE(ulp_stop, false);
		mutex_unlock(&case_lock);
		err = 0;
	} else {
		mutex_lock(&case_lock);
		err = run_line(strim(line));
		mutex_unlock(&case_lock);
	}
	kfree(line);
	return err ? : len;
}

static const struct file_operations run_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = run_write,
	.llseek = noop_llseek,
};

static int result_show(struct seq_file *s, void *unused)
{
	mutex_lock(&case_lock);
	seq_puts(s, ulp_result);
	mutex_unlock(&case_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int cases_show(struct seq_file *s, void *unused)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		seq_printf(s, "%-10s %s\n", cases[i].name, cases[i].help);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cases);

static struct ib_client client;

static int add_one(struct ib_device *dev)
{
	struct ulp_dev *rdev;

	rdev = kzalloc(sizeof(*rdev), GFP_KERNEL);
	if (!rdev)
		return -ENOMEM;
	rdev->dev = dev;
	mutex_lock(&ulp_devs_lock);
	list_add_tail(&rdev->node, &ulp_devs);
	mutex_unlock(&ulp_devs_lock);
	ib_set_client_data(dev, &client, rdev);
	return 0;
}

/* The case that uses the device has to end before it goes. */
static void remove_one(struct ib_device *dev, void *client_data)
{
	struct ulp_dev *rdev = client_data;
	bool used;

	mutex_lock(&ulp_devs_lock);
	list_del(&rdev->node);
	used = rdev->users;
	mutex_unlock(&ulp_devs_lock);
	if (used) {
		WRITE_ONCE(ulp_leaving, dev);
		wake_up_all(&ulp_wq);
		mutex_lock(&case_lock);
		if (lat && (lat->a.dev == dev || lat->b.dev == dev))
			lat_off();
		WRITE_ONCE(ulp_leaving, NULL);
		mutex_unlock(&case_lock);
	}
	kfree(rdev);
}

static struct ib_client client = {
	.name = KBUILD_MODNAME,
	.add = add_one,
	.remove = remove_one,
};

static int __init ulp_init(void)
{
	int err;

	err = ulp_alloc_bufs();
	if (err)
		goto free;
	err = ib_register_client(&client);
	if (err)
		goto free;
	dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("run", 0200, dir, NULL, &run_fops);
	debugfs_create_file("result", 0400, dir, NULL, &result_fops);
	debugfs_create_file("cases", 0400, dir, NULL, &cases_fops);
	return 0;
free:
	ulp_free_bufs();
	return err;
}

static void __exit ulp_exit(void)
{
	debugfs_remove_recursive(dir);
	mutex_lock(&case_lock);
	lat_off();
	mutex_unlock(&case_lock);
	ib_unregister_client(&client);
	ulp_free_bufs();
}

module_init(ulp_init);
module_exit(ulp_exit);

MODULE_DESCRIPTION("RDMA kernel ULP that checks every byte and completion");
MODULE_LICENSE("GPL");
