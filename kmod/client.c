// SPDX-License-Identifier: GPL-2.0
/*
 * Devices come and go: the client of the RDMA core.
 *
 * Owns the order in which a device is taken up and let go: first what can fail, then its
 * files, then that everybody knows of it; its files go first. The RDMA core serialises the
 * calls for a device, and they may sleep. Events of a port come in any context.
 */

#include <rdma/ib_verbs.h>

#include "client.h"
#include "dev.h"
#include "sysfs.h"

static void port_event(struct ib_event_handler *handler, struct ib_event *event)
{
	switch (event->event) {
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
		riso_dev_read_port(container_of(handler, struct riso_dev, port_events));
		break;
	default:
		break;
	}
}

static int add_one(struct ib_device *ibdev)
{
	struct riso_dev *rd = riso_dev_create(ibdev);
	int err;

	if (IS_ERR(rd)) {
		err = PTR_ERR(rd);
		goto warn;
	}
	err = riso_sysfs_add(rd);
	if (err)
		goto err_discard;
	riso_dev_publish(rd);
	INIT_IB_EVENT_HANDLER(&rd->port_events, ibdev, port_event);
	ib_register_event_handler(&rd->port_events);
	/* The port may have changed since its rate was read first. */
	riso_dev_read_port(rd);
	return 0;

err_discard:
	riso_dev_discard(rd);
warn:
	dev_warn(&ibdev->dev, "not managed: error %d\n", err);
	return err;
}

static void remove_one(struct ib_device *ibdev, void *data)
{
	struct riso_dev *rd = data;

	/* Now, as an orphan outlives its ib_device; and not under control: stores take it. */
	riso_sysfs_remove(rd);
	ib_unregister_event_handler(&rd->port_events);
	riso_dev_remove(rd);
}

static void rename_one(struct ib_device *ibdev, void *data)
{
	riso_dev_renamed(data);
}

static struct ib_client riso_client = {
	.name = KBUILD_MODNAME,
	.add = add_one,
	.remove = remove_one,
	.rename = rename_one,
};

/**
 * riso_client_init - take up all devices, now and as they appear
 *
 * Context: may sleep.
 * Return: 0 or a negative errno.
 */
int riso_client_init(void)
{
	return riso_dev_init(&riso_client);
}

/**
 * riso_client_exit - leave all devices as they were
 *
 * Context: may sleep for seconds.
 */
void riso_client_exit(void)
{
	riso_dev_exit();
}
