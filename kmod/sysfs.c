// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of a device as files: /sys/class/infiniband/DEV/rdma_isolate/, which
 * Documentation/ABI/sysfs-class-infiniband-rdma_isolate describes.
 *
 * Owns the attribute group. Text is translated here, nothing is decided: ranges
 * belong to riso_dev_set(), as for netlink.
 *
 * Files are read and written in process context. sysfs holds a reference to a file
 * while one of the functions below runs for it, and that is outside of all our
 * locks: a store takes &riso_dev.control inside, and the group is removed,
 * which waits for those that run, with none of our locks held. So a device that
 * still has its files has its &struct riso_dev, too.
 */

#include <linux/capability.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/sysfs.h>
#include <rdma/ib_verbs.h>

#include "dev.h"
#include "settings.h"
#include "sysfs.h"

/* By &enum riso_dev_state. */
static const char * const states[] = {
	[RISO_DEV_IDLE] = "idle",
	[RISO_DEV_OBSERVE] = "observe",
	[RISO_DEV_ENABLE] = "enable",
	[RISO_DEV_DRAINING] = "draining",
	[RISO_DEV_GONE] = "gone",
};

/* By &enum riso_mode. */
static const char * const modes[] = {
	[RISO_MODE_DISABLE] = "disable",
	[RISO_MODE_OBSERVE] = "observe",
	[RISO_MODE_ENABLE] = "enable",
};

/**
 * struct setting - a number of &struct riso_cfg
 * @attr: its file
 * @bit: RISO_SET_* of it
 * @offset: where it is
 * @wide: it is a u64, else a u32
 * @automatic: it may be auto, which is RISO_AUTO, and RDMA_ISOLATE_RATE_AUTO of a u64
 */
struct setting {
	struct device_attribute attr;
	u32 bit;
	size_t offset;
	bool wide;
	bool automatic;
};

static struct riso_dev *dev_of(struct device *dev)
{
	return riso_dev_of(rdma_device_to_ibdev(dev));
}

/* What is written has to be text, all of it: the parsers stop at a NUL. */
static int check_write(const char *buf, size_t count)
{
	if (!capable(CAP_NET_ADMIN))
		return -EPERM;
	return strlen(buf) == count ? 0 : -EINVAL;
}

static ssize_t state_show(struct device *dev, struct device_attribute *attr,
			  char *buf)
{
	struct riso_dev_info info;

	riso_dev_fill_info(dev_of(dev), &info);
	return sysfs_emit(buf, "%s\n", states[info.state]);
}

static DEVICE_ATTR_RO(state);

static ssize_t mode_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct riso_dev_info info;

	riso_dev_fill_info(dev_of(dev), &info);
	return sysfs_emit(buf, "%s\n", modes[riso_mode_of(info.state)]);
}

static ssize_t mode_store(struct device *dev, struct device_attribute *attr,
			  const char *buf, size_t count)
{
	struct riso_change chg = { .mask = RISO_SET_MODE };
	int err = check_write(buf, count);
	int mode;

	if (err)
		return err;
	mode = sysfs_match_string(modes, buf);
	if (mode < 0)
		return mode;
	chg.mode = mode;
	err = riso_dev_set(dev_of(dev), &chg, NULL);
	return err ?: count;
}

static DEVICE_ATTR_RW(mode);

static ssize_t current99_ns_show(struct device *dev, struct device_attribute *attr,
				 char *buf)
{
	struct riso_budget budget;

	riso_settings_budget(dev_of(dev), &budget);
	return sysfs_emit(buf, "%llu\n", budget.steer.current99_ns);
}

static DEVICE_ATTR_RO(current99_ns);

static ssize_t lease_ns_show(struct device *dev, struct device_attribute *attr,
			     char *buf)
{
	struct riso_budget budget;

	riso_settings_budget(dev_of(dev), &budget);
	return sysfs_emit(buf, "%llu\n", budget.lease_ns);
}

static DEVICE_ATTR_RO(lease_ns);

static ssize_t setting_show(struct device *dev, struct device_attribute *attr,
			    char *buf)
{
	struct setting *s = container_of(attr, struct setting, attr);
	struct riso_dev_info info;
	void *val = (void *)&info.cfg + s->offset;

	riso_dev_fill_info(dev_of(dev), &info);
	if (s->wide)
		return sysfs_emit(buf, "%llu\n", *(u64 *)val);
	if (s->automatic && *(u32 *)val == RISO_AUTO)
		return sysfs_emit(buf, "auto\n");
	return sysfs_emit(buf, "%u\n", *(u32 *)val);
}

static ssize_t setting_store(struct device *dev, struct device_attribute *attr,
			     const char *buf, size_t count)
{
	struct setting *s = container_of(attr, struct setting, attr);
	struct riso_change chg = { .mask = s->bit };
	u64 automatic = s->wide ? RDMA_ISOLATE_RATE_AUTO : RISO_AUTO;
	void *val = (void *)&chg.cfg + s->offset;
	int err = check_write(buf, count);
	u64 number;

	if (err)
		return err;
	if (s->automatic && sysfs_streq(buf, "auto")) {
		number = automatic;
	} else {
		err = kstrtou64(buf, 10, &number);
		if (err)
			return err;
		/* The number that stands for auto is none. */
		if ((s->automatic && number == automatic) || (!s->wide && number > U32_MAX))
			return -ERANGE;
	}
	if (s->wide)
		*(u64 *)val = number;
	else
		*(u32 *)val = number;
	err = riso_dev_set(dev_of(dev), &chg, NULL);
	return err ?: count;
}

static struct setting settings[] = {
	{
		.attr = __ATTR(safe_util, 0644, setting_show, setting_store),
		.bit = RISO_SET_SAFE_UTIL,
		.offset = offsetof(struct riso_cfg, safe_util),
		.wide = true,
		.automatic = true,
	},
	{
		.attr = __ATTR(max_rate, 0644, setting_show, setting_store),
		.bit = RISO_SET_MAX_RATE,
		.offset = offsetof(struct riso_cfg, max_rate),
		.wide = true,
		.automatic = true,
	},
	{
		.attr = __ATTR(max_ops, 0644, setting_show, setting_store),
		.bit = RISO_SET_MAX_OPS,
		.offset = offsetof(struct riso_cfg, max_ops),
		.wide = true,
	},
	{
		.attr = __ATTR(chunk_bytes, 0644, setting_show, setting_store),
		.bit = RISO_SET_CHUNK_BYTES,
		.offset = offsetof(struct riso_cfg, chunk_bytes),
		.automatic = true,
	},
	{
		.attr = __ATTR(token_bytes, 0644, setting_show, setting_store),
		.bit = RISO_SET_TOKEN_BYTES,
		.offset = offsetof(struct riso_cfg, token_bytes),
		.automatic = true,
	},
	{
		.attr = __ATTR(token_ops, 0644, setting_show, setting_store),
		.bit = RISO_SET_TOKEN_OPS,
		.offset = offsetof(struct riso_cfg, token_ops),
		.automatic = true,
	},
	{
		.attr = __ATTR(inflight_bytes, 0644, setting_show, setting_store),
		.bit = RISO_SET_INFLIGHT_BYTES,
		.offset = offsetof(struct riso_cfg, inflight_bytes),
		.automatic = true,
	},
	{
		.attr = __ATTR(target99_ns, 0644, setting_show, setting_store),
		.bit = RISO_SET_TARGET99_NS,
		.offset = offsetof(struct riso_cfg, target99_ns),
		.automatic = true,
	},
};

static struct attribute *attrs[] = {
	&dev_attr_mode.attr,
	&dev_attr_state.attr,
	&dev_attr_current99_ns.attr,
	&dev_attr_lease_ns.attr,
	&settings[0].attr.attr,
	&settings[1].attr.attr,
	&settings[2].attr.attr,
	&settings[3].attr.attr,
	&settings[4].attr.attr,
	&settings[5].attr.attr,
	&settings[6].attr.attr,
	&settings[7].attr.attr,
	NULL,
};

/* Each setting has a file, beside four others and the end of the list. */
static_assert(ARRAY_SIZE(attrs) == ARRAY_SIZE(settings) + 5);

static const struct attribute_group group = {
	.name = KBUILD_MODNAME,
	.attrs = attrs,
};

/**
 * riso_sysfs_add - show the files of a device
 * @rd: a device that riso_dev_of() finds
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int riso_sysfs_add(struct riso_dev *rd)
{
	return sysfs_create_group(&rd->ibdev->dev.kobj, &group);
}

/**
 * riso_sysfs_remove - take the files of a device away
 * @rd: a device that has them
 *
 * Returns when nobody reads or writes one any more.
 *
 * Context: may sleep, under no lock of ours.
 */
void riso_sysfs_remove(struct riso_dev *rd)
{
	sysfs_remove_group(&rd->ibdev->dev.kobj, &group);
}
