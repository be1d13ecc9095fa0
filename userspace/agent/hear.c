// SPDX-License-Identifier: GPL-2.0
/*
 * What other agents tell about a device, as far as it is believed.
 *
 * Reads records where other agents write them (talk.c has whether one is genuine), and bounds what
 * they claim. Of several connections of a host the newest counts. Owns the list of callers of a
 * step; their connections are those of serve.c, which may end between steps. Runs in the thread of
 * the agent, as part of exchange_step().
 */
#include <arpa/inet.h>
#include <string.h>

#include "hear.h"
#include "loop.h"
#include "minmax.h"
#include "serve.h"

/* What is wrong with records is logged once in as long. */
#define WRONG_NS (60 * SEC)
/* Which device it is that peers are connected to is looked up once in as long. */
#define DEVICE_NS SEC

enum {
	/* No host counts for more groups than that: it may say what it likes. */
	CLAIM_MAX = 16,
};

void hear_record(struct hear *h, struct rdma_cm_id *id, struct talk *talk, uint64_t now)
{
	char from[INET6_ADDRSTRLEN];
	uint8_t here[SURVEY_ADDR], there[SURVEY_ADDR];
	const char *wrong;

	survey_address(rdma_get_local_addr(id), here);
	wrong = talk_hear(talk, here, conf_secret(h->conf), now);
	if (!wrong || now < h->wrong_ns)
		return;
	survey_address(rdma_get_peer_addr(id), there);
	log_line("%s: host %s has told %s", h->dev,
		 inet_ntop(AF_INET6, there, from, sizeof(from)), wrong);
	h->wrong_ns = now + WRONG_NS;
}

static uint32_t claim(uint32_t groups)
{
	return min_u64(groups, CLAIM_MAX);
}

static bool has_called(const struct hear *h, const struct caller *c)
{
	unsigned int i;

	for (i = 0; i < h->num; i++)
		if (!memcmp(h->caller[i].addr, c->addr, sizeof(c->addr)))
			return true;
	return false;
}

/* The last connection of a host to an address comes first, and no other counts. */
static void hear_caller(void *arg, struct rdma_cm_id *id, struct talk *talk)
{
	struct hear *h = arg;
	struct caller c = { .talk = talk, .id = id };
	uint64_t now = now_ns();

	if (id->verbs != h->device)
		return;
	hear_record(h, id, talk, now);
	survey_address(rdma_get_peer_addr(id), c.addr[0]);
	survey_address(rdma_get_local_addr(id), c.addr[1]);
	if (!talk_holds(talk, now) || h->num == CALLERS || has_called(h, &c))
		return;
	c.record = talk->last;
	c.record.latency_to = claim(c.record.latency_to);
	c.record.bulk_to = claim(c.record.bulk_to);
	c.record.bulk_from = claim(c.record.bulk_from);
	c.record.used_to = min_u64(c.record.used_to, RDMA_ISOLATE_RATE_MAX);
	c.record.used_from = min_u64(c.record.used_from, RDMA_ISOLATE_RATE_MAX);
	h->latency += c.record.latency_to;
	h->caller[h->num++] = c;
}

void hear_callers(struct hear *h, uint64_t now)
{
	h->latency = 0;
	h->num = 0;
	if (now >= h->device_ns) {
		h->device = cm_device(h->dev);
		h->device_ns = now + DEVICE_NS;
	}
	serve_talk(hear_caller, h);
}

bool hear_has(const struct hear *h, const struct talk *talk)
{
	unsigned int i;

	for (i = 0; i < h->num; i++)
		if (h->caller[i].talk == talk)
			return true;
	return false;
}

void hear_forget_callers(struct hear *h)
{
	h->num = 0;
}
