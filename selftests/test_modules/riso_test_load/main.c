// SPDX-License-Identifier: GPL-2.0
/*
 * A kernel ULP that loads an adapter, and measures it.
 *
 * It keeps large messages of some queue pairs in the air, and sends a small one every now and
 * then. It tells how much of the large ones was delivered in each of some windows of time, how
 * long the CPU was idle, and how long the small ones took. A signal to the process that writes
 * ends a run. Or it tells what a post and a poll cost, or with size=BYTES all of a message. On a
 * machine that counts instructions, a nanosecond is one. Or it tells how many small messages
 * several CPUs post.
 *
 * The protection domains of large messages are called riso_load0 and riso_load1, that of
 * small ones riso_load_small, so that rules tell them apart.
 *
 *	echo "load|cost|posts [KEY=VALUE]..." > /sys/kernel/debug/riso_test_load/run
 *	cat /sys/kernel/debug/riso_test_load/result
 *
 * This file owns the module, its files in debugfs, and a run from the beginning to the end.
 * run_lock lets one run at a time be, in the process that writes, and protects the result.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "load.h"

static DEFINE_MUTEX(run_lock);
static struct dentry *dir;

static void free_load(struct load *l)
{
	u32 i;

	for (i = 0; i < l->nbulk; i++)
		load_free_qp(&l->bulk[i]);
	for (i = 0; i < l->nidle; i++)
		load_free_qp(&l->idle[i]);
	/* Others may use its CQ. */
	load_free_qp(&l->small);
	kvfree(l->idle);
	kvfree(l->bulk);
	kvfree(l->samples);
	load_free_end(&l->a);
	load_free_end(&l->b);
	kfree(l);
}

static struct load *make_load(const struct load_args *arg)
{
	struct load *l = kzalloc(sizeof(*l), GFP_KERNEL);
	u32 size;
	int err;

	if (!l)
		return ERR_PTR(-ENOMEM);
	l->arg = *arg;
	size = max3(arg->len, arg->small, arg->size);
	l->samples = kvcalloc(LOAD_MAX_SAMPLES, sizeof(*l->samples), GFP_KERNEL);
	l->bulk = kvcalloc(arg->groups * arg->qps, sizeof(*l->bulk), GFP_KERNEL);
	l->idle = kvcalloc(arg->idle + arg->mute, sizeof(*l->idle), GFP_KERNEL);
	err = !l->samples || !l->bulk || !l->idle ? -ENOMEM :
	      load_setup_end(&l->a, arg->dev, size) ? :
	      load_setup_end(&l->b, arg->peer, size);
	if (!err)
		return l;
	free_load(l);
	return ERR_PTR(err);
}

static int parse(struct load_args *arg, char *line)
{
	const struct {
		const char *key;
		u32 *val;
		u32 max;
	} num[] = {
		{ "read", &arg->read, 1 },
		{ "len", &arg->len, LOAD_LEN_MAX },
		{ "qps", &arg->qps, LOAD_MAX_QPS },
		{ "depth", &arg->depth, LOAD_MAX_DEPTH },
		{ "depth2", &arg->depth2, LOAD_MAX_DEPTH },
		{ "groups", &arg->groups, 2 },
		{ "rdatomic", &arg->rdatomic, 255 },
		{ "small", &arg->small, SZ_4K },
		{ "every_us", &arg->every_us, USEC_PER_SEC },
		{ "wait_ms", &arg->wait_ms, 60000 },
		{ "window_ms", &arg->window_ms, 60000 },
		{ "windows", &arg->windows, LOAD_MAX_WINDOWS },
		{ "shared", &arg->shared, 1 },
		{ "managed", &arg->managed, 1 },
		{ "chain", &arg->chain, 16 },
		{ "size", &arg->size, LOAD_LEN_MAX },
		{ "count", &arg->count, LOAD_COSTS },
		{ "idle", &arg->idle, LOAD_MAX_IDLE },
		{ "mute", &arg->mute, LOAD_MAX_QPS },
	};
	char *word;
	int i, err;

	while ((word = strsep(&line, "\n "))) {
		char *key = strsep(&word, "=");

		if (!*key)
			continue;
		if (!word)
			return -EINVAL;
		if (!strcmp(key, "dev") || !strcmp(key, "peer")) {
			if (strscpy(*key == 'd' ? arg->dev : arg->peer, word,
				    sizeof(arg->dev)) < 0)
				return -EINVAL;
			continue;
		}
		for (i = 0; i < ARRAY_SIZE(num); i++)
			if (!strcmp(key, num[i].key))
				break;
		if (i == ARRAY_SIZE(num))
			return -EINVAL;
		err = kstrtou32(word, 0, num[i].val);
		if (err || *num[i].val > num[i].max)
			return -EINVAL;
	}
	if (!arg->len || !arg->qps || !arg->groups || !arg->chain || !arg->rdatomic ||
	    !arg->window_ms || !arg->count)
		return -EINVAL;
	return 0;
}

static int run_line(char *line)
{
	struct load_args arg = {
		.dev = "null0",
		.peer = "null1",
		.len = SZ_1M,
		.qps = 1,
		.depth = 8,
		.depth2 = 8,
		.groups = 1,
		.rdatomic = 16,
		.small = 64,
		.window_ms = 100,
		.windows = 1,
		.chain = 1,
		.count = 1,
	};
	char *what = strsep(&line, "\n ");
	bool cost = !strcmp(what, "cost"), posts = !strcmp(what, "posts");
	struct load *l;
	int err;

	if (!cost && !posts && strcmp(what, "load"))
		return -ENOENT;
	err = parse(&arg, line);
	if (err)
		return err;
	l = make_load(&arg);
	if (IS_ERR(l))
		return PTR_ERR(l);
	load_init_traffic(l);
	err = load_setup_idle(l);
	if (!err && cost)
		err = arg.size ? load_run_busy(l) : load_run_cost(l);
	else if (!err)
		err = posts ? load_run_posts(l) : load_run_traffic(l);
	if (err == -ETIMEDOUT)
		pr_err("%d messages have not ended\n", atomic_read(&l->out));
	free_load(l);
	return err;
}

static ssize_t run_write(struct file *file, const char __user *ubuf, size_t len, loff_t *ppos)
{
	char *line;
	int err;

	if (len > SZ_1K)
		return -EINVAL;
	line = memdup_user_nul(ubuf, len);
	if (IS_ERR(line))
		return PTR_ERR(line);
	mutex_lock(&run_lock);
	*load_result = 0;
	err = run_line(strim(line));
	mutex_unlock(&run_lock);
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
	mutex_lock(&run_lock);
	seq_puts(s, load_result);
	mutex_unlock(&run_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(result);

static int __init load_init(void)
{
	dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("run", 0200, dir, NULL, &run_fops);
	debugfs_create_file("result", 0400, dir, NULL, &result_fops);
	return 0;
}

static void __exit load_exit(void)
{
	debugfs_remove_recursive(dir);
}

module_init(load_init);
module_exit(load_exit);

MODULE_DESCRIPTION("RDMA kernel ULP that loads an adapter and measures it");
MODULE_LICENSE("GPL");
