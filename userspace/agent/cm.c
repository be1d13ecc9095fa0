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
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/*
 * One at a time: completions that come meanwhile are looked at before the next, or what
 * many connections take would be part of a latency. An id cannot be destroyed while an
 * event of it is held: copy that first.
 */
static void on_channel(struct source *s)
{
	struct rdma_cm_event *got;
	struct cm_event e = { 0 };
	struct cm_user *user;

	(void)s;
	if (rdma_get_cm_event(channel, &got))
		return;
	cm_hear(&e, got);
	user = got->id->context;
	rdma_ack_cm_event(got);
	user->event(user, &e);
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

/* libibverbs goes on calling a device what it was called when it was first seen. */
bool cm_is_called(struct ibv_context *ctx, const char *name)
{
	char path[sizeof("/sys/class/infiniband_verbs//ibdev") + IBV_SYSFS_NAME_MAX];
	char is[IBV_SYSFS_NAME_MAX + 1] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/%s/ibdev",
		 ctx->device->dev_name);
	file = fopen(path, "re");
	if (!file)
		return !strcmp(ibv_get_device_name(ctx->device), name);
	if (fgets(is, sizeof(is), file))
		is[strcspn(is, "\n")] = 0;
	fclose(file);
	return !strcmp(is, name);
}

struct ibv_context *cm_device(const char *name)
{
	struct ibv_context **list = rdma_get_devices(NULL), *found = NULL;
	int i;

	/* Without a device there is no list, and none that could be freed. */
	if (!list)
		return NULL;
	for (i = 0; list[i] && !found; i++)
		if (cm_is_called(list[i], name))
			found = list[i];
	rdma_free_devices(list);
	return found;
}

/* The address from which the host would send to @dst */
static bool by_route(const union conf_addr *dst, union conf_addr *src)
{
	int fd = socket(dst->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(*src);
	bool found;

	found = fd >= 0 && !connect(fd, &dst->sa, sizeof(*dst)) &&
		!getsockname(fd, &src->sa, &len);
	if (fd >= 0)
		close(fd);
	return found;
}

static bool is_of(const struct ibv_gid_entry *gid, sa_family_t family,
		  union conf_addr *addr)
{
	static const uint8_t v4[12] = { [10] = 0xff, [11] = 0xff };
	bool is_v4 = !memcmp(gid->gid.raw, v4, sizeof(v4));

	memset(addr, 0, sizeof(*addr));
	addr->sa.sa_family = family;
	if (family == AF_INET)
		memcpy(&addr->v4.sin_addr, gid->gid.raw + sizeof(v4), 4);
	else
		memcpy(&addr->v6.sin6_addr, gid->gid.raw, 16);
	/* A link-local one says nothing of the link. */
	return family == AF_INET ? is_v4 : !is_v4 && gid->gid.raw[0] != 0xfe;
}

static bool is_same(const union conf_addr *a, const union conf_addr *b)
{
	if (a->sa.sa_family == AF_INET)
		return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
	return !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr));
}

/* The table is as large as that of any device: none can be had of a larger one. */
bool cm_source(const char *dev, const union conf_addr *dst, union conf_addr *src)
{
	static struct ibv_gid_entry gids[GIDS];
	struct ibv_context *ctx = cm_device(dev);
	ssize_t n = ctx ? ibv_query_gid_table(ctx, gids, GIDS, 0) : 0;
	union conf_addr route, addr;
	bool has_route = by_route(dst, &route);
	bool found = false;
	ssize_t i;

	for (i = 0; i < n; i++) {
		if (!is_of(&gids[i], dst->sa.sa_family, &addr))
			continue;
		if (!found)
			*src = addr;
		found = true;
		if (has_route && is_same(&addr, &route)) {
			*src = addr;
			break;
		}
	}
	return found;
}

/* What a request to connect carries besides the addresses of rdma_cm */
_Static_assert(sizeof(struct cm_hello) <= 56, "a hello fits in a request to connect");

void cm_say(struct cm_hello *h, uint64_t addr, uint32_t rkey, const struct talk_place *place)
{
	*h = (struct cm_hello) {
		.magic = htonl(CM_MAGIC),
		.version = htons(CM_VERSION),
		.rkey = htonl(rkey),
		.size = htonl(rkey ? CM_MEMORY : 0),
		.addr = htobe64(addr),
	};
	if (!place)
		return;
	h->slot_addr = htobe64(place->addr);
	h->slot_rkey = htonl(place->rkey);
	h->epoch = htobe64(place->epoch);
}

void cm_place(const struct cm_hello *h, struct talk_place *place)
{
	*place = (struct talk_place) {
		.addr = be64toh(h->slot_addr),
		.rkey = ntohl(h->slot_rkey),
		.epoch = be64toh(h->epoch),
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
