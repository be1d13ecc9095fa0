// SPDX-License-Identifier: GPL-2.0
/*
 * rdma_isolate: performance isolation for RDMA devices.
 *
 * Brings the parts up and takes them down again; decides nothing.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "chardev.h"
#include "client.h"
#include "netlink.h"
#include "rule.h"

static int __init riso_init(void)
{
	int err;

	err = riso_client_init();
	if (err)
		return err;
	err = riso_nl_init();
	if (err)
		goto err_dev;
	err = riso_chardev_init();
	if (err)
		goto err_nl;
	return 0;

err_nl:
	riso_nl_exit();
err_dev:
	riso_client_exit();
	return err;
}

static void __exit riso_exit(void)
{
	riso_chardev_exit();
	riso_nl_exit();
	riso_client_exit();
	riso_rule_exit();
}

module_init(riso_init);
module_exit(riso_exit);

MODULE_DESCRIPTION("Performance isolation for RDMA devices");
MODULE_AUTHOR("rdma_isolate maintainers");
MODULE_VERSION(RISO_VERSION);
MODULE_LICENSE("GPL");
