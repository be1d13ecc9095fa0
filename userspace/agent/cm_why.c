// SPDX-License-Identifier: GPL-2.0
/*
 * Events of the connection manager in the words of whoever reads a log.
 */
#include <stddef.h>

#include "cm.h"

/* IBTA, 12.6.7.2: the service ID that was asked for is not there. */
enum { REJ_INVALID_SERVICE_ID = 8 };

#define NOBODY "nobody listens there; is rdma-isolated running?"

static const char *why_rejected(const struct cm_event *e)
{
	const char *wrong = e->heard ? cm_wrong(e) : NULL;

	if (e->status == REJ_INVALID_SERVICE_ID)
		return NOBODY;
	return wrong ? wrong : "refused, the agent there says why in its log";
}

const char *cm_why(const struct cm_event *e)
{
	switch (e->type) {
	case RDMA_CM_EVENT_ADDR_ERROR:
		return "no host has this address, or there is no route to it";
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return "there is no route to it";
	case RDMA_CM_EVENT_UNREACHABLE:
		return "no answer";
	case RDMA_CM_EVENT_CONNECT_ERROR:
		return "the connection cannot be made";
	case RDMA_CM_EVENT_REJECTED:
		return why_rejected(e);
	case RDMA_CM_EVENT_DISCONNECTED:
		return "it has ended the connection";
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return "the device has gone";
	case RDMA_CM_EVENT_ADDR_CHANGE:
		return "the device has another address now";
	default:
		return "the connection has ended";
	}
}
