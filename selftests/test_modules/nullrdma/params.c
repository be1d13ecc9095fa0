// SPDX-License-Identifier: GPL-2.0
/*
 * The parameters of the module.
 *
 * Owns their values. The kernel's lock of parameters lets one write at a time run, in
 * process context. Readers in any context see the old value or the new one.
 */

#include <linux/cpumask.h>
#include <linux/kernel.h>
#include <linux/kstrtox.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "dev.h"
#include "params.h"

char *nr_netdevs[NR_MAX_ENDS];
int nr_num_netdevs;
module_param_array_named(ends, nr_netdevs, charp, &nr_num_netdevs, 0444);
MODULE_PARM_DESC(ends, "netdevs, one for each end: their addresses become its GIDs");

/* 25 Gbit/s: what a CPU that counts instructions can keep busy */
struct nr_list nr_rate_mbps = { 1, 1, 3200000, { 25000 } };
/* 1 us: a cable and a switch; with 0, an acknowledgment needs no event of its own */
struct nr_list nr_delay_ns = { 1, 0, 1000000000, { 1000 } };
struct nr_list nr_link = { 1, 0, 1, { 1 } };
struct nr_list nr_port_speed = { 1, 0, NR_SPEED_FITS, { NR_SPEED_FITS } };

u32 nr_doorbell_ns = 300;
module_param_named(doorbell_ns, nr_doorbell_ns, uint, 0644);
MODULE_PARM_DESC(doorbell_ns,
		 "ns from a post until the adapter knows of it: a write over PCIe and the fetch of the work request (default 300)");

u32 nr_moder_us;
module_param_named(moder_us, nr_moder_us, uint, 0644);
MODULE_PARM_DESC(moder_us,
		 "us that the event of a CQ may be delayed: what adapters do to take fewer interrupts, 8 to 32 there (default 0)");

u32 nr_moder_count = 32;
module_param_named(moder_count, nr_moder_count, uint, 0644);
MODULE_PARM_DESC(moder_count,
		 "completions after which the event of a CQ is not delayed any more: adapters bound the batch as well (default 32)");

u32 nr_quantum = 4096;
module_param_named(quantum, nr_quantum, uint, 0444);
MODULE_PARM_DESC(quantum,
		 "bytes that a queue pair may send before the next one has its turn, with sched=rr: about an MTU in adapters (default 4096)");

u32 nr_timeout_ms;
module_param_named(timeout_ms, nr_timeout_ms, uint, 0644);
MODULE_PARM_DESC(timeout_ms,
		 "ms until a message that nobody answers is sent again: for tests that cannot wait for what the ULP asks for (default 0: what the ULP asks for)");

bool nr_instant;
module_param_named(instant, nr_instant, bool, 0444);
MODULE_PARM_DESC(instant,
		 "WRITEs end as they are posted: for what posters do to each other, where nobody waits for events (default 0)");

bool nr_copy = true;
module_param_named(copy, nr_copy, bool, 0644);
MODULE_PARM_DESC(copy,
		 "move payloads larger than small: an adapter does so without the CPU, so measure with 0 where nobody looks at the data (default 1)");

u32 nr_small = 4096;
module_param_named(small, nr_small, uint, 0644);
MODULE_PARM_DESC(small,
		 "bytes up to which a payload is moved even with copy=0: NVMe looks at 4096 when it connects, and at less later (default 4096)");

static char *sched = "fifo";
module_param(sched, charp, 0444);
MODULE_PARM_DESC(sched,
		 "who sends next: fifo, the order of posts, the worst for small messages; rr, queue pairs take turns, as many adapters do (default fifo)");
bool nr_rr;

int nr_cpu = -1;
module_param_named(cpu, nr_cpu, int, 0444);
MODULE_PARM_DESC(cpu,
		 "CPU of the events, that of completions: another one than that of the posts, as where an adapter's vectors are spread (default: the last one)");

u32 nr_get_param(const struct nr_list *list, int end)
{
	u32 num = READ_ONCE(list->num);

	return READ_ONCE(list->val[min_t(u32, end, num - 1)]);
}

static int set_list(const char *val, const struct kernel_param *kp)
{
	struct nr_list *list = kp->arg;
	char *copy, *rest, *word;
	u32 num = 0, v[NR_MAX_ENDS];
	int err = 0;

	copy = kstrdup(val, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	rest = strim(copy);
	while (!err && (word = strsep(&rest, ","))) {
		if (num == NR_MAX_ENDS)
			err = -ENOSPC;
		else
			err = kstrtou32(word, 0, &v[num]);
		if (!err && (v[num] < list->min || v[num] > list->max))
			err = -ERANGE;
		num++;
	}
	kfree(copy);
	if (err)
		return err;
	for (u32 i = 0; i < num; i++)
		WRITE_ONCE(list->val[i], v[i]);
	WRITE_ONCE(list->num, num);
	nr_apply_params();
	return 0;
}

static int get_list(char *buf, const struct kernel_param *kp)
{
	const struct nr_list *list = kp->arg;
	int len = 0;

	for (u32 i = 0; i < list->num; i++)
		len += sysfs_emit_at(buf, len, "%s%u", i ? "," : "", list->val[i]);
	return len + sysfs_emit_at(buf, len, "\n");
}

static const struct kernel_param_ops list_ops = {
	.set = set_list,
	.get = get_list,
};

module_param_cb(rate_mbps, &list_ops, &nr_rate_mbps, 0644);
MODULE_PARM_DESC(rate_mbps,
		 "Mbit/s that the wire of each end carries: 25000, 100000 or 400000 for what users own (default 25000)");

module_param_cb(delay_ns, &list_ops, &nr_delay_ns, 0644);
MODULE_PARM_DESC(delay_ns,
		 "ns that a bit takes from each end to any other: 5000 in a rack, 100000 in a cluster (default 1000)");

module_param_cb(link, &list_ops, &nr_link, 0644);
MODULE_PARM_DESC(link,
		 "0 takes the port of an end down, 1 leaves it to the netdev: a cable that is pulled (default 1)");

module_param_cb(port_speed, &list_ops, &nr_port_speed, 0644);
MODULE_PARM_DESC(port_speed,
		 "speed that the port of each end tells, as a bit of the InfiniBand specification, with one lane: for ports that do not tell what they can; 0 is no speed, 65536 the one that fits rate_mbps (default 65536)");

int nr_check_params(void)
{
	if (nr_num_netdevs < 2)
		return -EINVAL;
	if (!strcmp(sched, "rr"))
		nr_rr = true;
	else if (strcmp(sched, "fifo"))
		return -EINVAL;
	if (nr_quantum < 256 || nr_quantum > 1U << 20)
		return -EINVAL;
	if (nr_cpu < 0)
		nr_cpu = cpumask_last(cpu_online_mask);
	return nr_cpu < nr_cpu_ids && cpu_online(nr_cpu) ? 0 : -EINVAL;
}
