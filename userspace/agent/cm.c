// SPDX-License-Identifier: GPL-2.0
/*
 * Events of the connection manager, and what agents say to each other.
 *
 * Owns the event channel of all connections of this process, in both directions.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cm.h"
#include "loop.h"

enum { GIDS = 1024 };

static struct rdma_event_channel *channel;

void cm_hear(struct cm_event *e, const struct rdma_cm_event *got)
{
	const struct rdma_conn_param *conn = &got->param.conn;

	e->type = got->event;
	e->id = got->id;
	e->status = got->status;
	e->heard = (e->type == RDMA_CM_EVENT_CONNECT_REQUEST ||
		    e->type == RDMA_CM_EVENT_ESTABLISHED ||
		    e->type == RDMA_CM_EVENT_REJECTED) &&
		   conn->private_data && conn->private_data_len >= sizeof(e->hello);
	if (e->heard)
		memcpy(&e->hello, conn->private_data, sizeof(e->hello));
}

/* An id cannot be destroyed while an event of it is held: copy that first. */
static void on_channel(struct source *s)
{
	struct rdma_cm_event *got;
	struct cm_event e = { 0 };
	struct cm_user *user;

	(void)s;
	while (!rdma_get_cm_event(channel, &got)) {
		cm_hear(&e, got);
		user = got->id->context;
		rdma_ack_cm_event(got);
		user->event(user, &e);
	}
}

static struct source source = { .fd = -1, .ready = on_channel };

int cm_open(void)
{
	channel = rdma_create_event_channel();
	if (!channel)
		return -errno;
	source.fd = channel->fd;
	fcntl(source.fd, F_SETFL, fcntl(source.fd, F_GETFL) | O_NONBLOCK);
	return loop_add(&source);
}

void cm_close(void)
{
	rdma_destroy_event_channel(channel);
}

struct rdma_cm_id *cm_id(struct cm_user *user)
{
	struct rdma_cm_id *id;

	return rdma_create_id(channel, &id, user, RDMA_PS_TCP) ? NULL : id;
}

struct ibv_context *cm_device(const char *name)
{
	struct ibv_context **list = rdma_get_devices(NULL), *found = NULL;
	int i;

	for (i = 0; list && list[i] && !found; i++)
		if (!strcmp(ibv_get_device_name(list[i]->device), name))
			found = list[i];
	rdma_free_devices(list);
	return found;
}

/* The table is as large as that of any device: none can be had of a larger one. */
bool cm_source(const char *dev, sa_family_t family, union conf_addr *src)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	static struct ibv_gid_entry gids[GIDS];
	struct ibv_context *ctx = cm_device(dev);
	ssize_t n = ctx ? ibv_query_gid_table(ctx, gids, GIDS, 0) : 0;
	ssize_t i;

	memset(src, 0, sizeof(*src));
	src->sa.sa_family = family;
	for (i = 0; i < n; i++) {
		const uint8_t *raw = gids[i].gid.raw;
		bool is_v4 = !memcmp(raw, v4, sizeof(v4));

		if (family == AF_INET && is_v4) {
			memcpy(&src->v4.sin_addr, raw + sizeof(v4), 4);
			return true;
		}
		/* A link-local one says nothing of the link. */
		if (family == AF_INET6 && !is_v4 && raw[0] != 0xfe) {
			memcpy(&src->v6.sin6_addr, raw, 16);
			return true;
		}
	}
	return false;
}

void cm_say(struct cm_hello *h, uint64_t addr, uint32_t rkey)
{
	*h = (struct cm_hello) {
		.magic = htonl(CM_MAGIC),
		.version = htons(CM_VERSION),
		.rkey = htonl(rkey),
		.size = htonl(rkey ? CM_MEMORY : 0),
		.addr = htobe64(addr),
	};
}

const char *cm_wrong(const struct cm_event *e)
{
	if (!e->heard || ntohl(e->hello.magic) != CM_MAGIC)
		return "not an agent";
	if (ntohs(e->hello.version) != CM_VERSION)
		return "an agent of another version";
	return NULL;
}
