// SPDX-License-Identifier: GPL-2.0
/*
 * What the ends have done:
 *
 *	cat /sys/kernel/debug/nullrdma/null0
 *
 * A line is NAME VALUE. The times of the last message are those of the wire, which the
 * clock of the CPU may be behind: "late_ns" says how far it was.
 *
 * Owns the files. Process context, nr_engine.lock while it reads.
 */

#include <linux/debugfs.h>
#include <linux/kernel.h>
#include <linux/seq_file.h>

#include "nullrdma.h"
#include "show.h"

static struct dentry *dir;

static int end_show(struct seq_file *s, void *unused)
{
	static const char * const name[NR_KINDS] = { "write", "read", "send", "other" };
	struct nr_end *end = s->private;
	struct nr_count count[NR_KINDS];
	u64 lost, not_ready, events;
	int i;

	spin_lock_irq(&nr_engine.lock);
	memcpy(count, end->count, sizeof(count));
	lost = end->lost;
	not_ready = end->not_ready;
	events = end->events;
	spin_unlock_irq(&nr_engine.lock);
	for (i = 0; i < NR_KINDS; i++) {
		seq_printf(s, "%s_messages %llu\n", name[i], count[i].messages);
		seq_printf(s, "%s_bytes %llu\n", name[i], count[i].bytes);
		seq_printf(s, "%s_last_bytes %llu\n", name[i], count[i].last_bytes);
		seq_printf(s, "%s_last_ns %llu\n", name[i], count[i].last_ns);
		seq_printf(s, "%s_late_ns %llu\n", name[i], count[i].late_ns);
	}
	seq_printf(s, "lost %llu\n", lost);
	seq_printf(s, "not_ready %llu\n", not_ready);
	seq_printf(s, "events %llu\n", events);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(end);

void nr_show_ends(void)
{
	char name[16];
	int i;

	dir = debugfs_create_dir(KBUILD_MODNAME, NULL);
	for (i = 0; i < nr_num_ends; i++) {
		snprintf(name, sizeof(name), "null%d", i);
		debugfs_create_file(name, 0400, dir, nr_ends[i], &end_fops);
	}
}

void nr_hide_ends(void)
{
	debugfs_remove_recursive(dir);
}
