// SPDX-License-Identifier: GPL-2.0
/*
 * The record. See peer_record.h.
 *
 * The tag is BLAKE2b, of libsodium, with the key if there is one.
 */
#include <endian.h>
#include <string.h>

#include <sodium.h>

#include "minmax.h"
#include "peer_record.h"

enum {
	TAG_BYTES = 16,
	/* Unit of rates, bytes per second: 32 bits reach to 4 TB/s. */
	RATE_UNIT = 1000,
	/* Unit of times, ns: 32 bits reach to 4294 s. */
	TIME_UNIT = 1000,
};

#define MAGIC 0x52495352u /* RISR */

enum {
	WANTS_TO = 1,
	WANTS_FROM = 2,
	CUT = 4,
	MISSES = 8,
};

/* As it is written; all in little-endian order */
struct wire {
	uint32_t magic;
	uint16_t version;
	uint16_t flags;
	uint8_t to[16];
	uint64_t epoch;
	uint64_t seq;
	uint16_t latency_to;
	uint16_t bulk_to;
	uint16_t latency_from;
	uint16_t bulk_from;
	uint32_t used_to;
	uint32_t used_from;
	uint32_t may_send;
	uint32_t may_read;
	uint32_t window;
	uint32_t current99;
	uint32_t target99;
	uint32_t lease;
	uint8_t tag[TAG_BYTES];
};

_Static_assert(sizeof(struct wire) == RECORD_BYTES, "a record has 96 bytes");

static uint16_t to_count(uint32_t num)
{
	return htole16(min_u64(num, UINT16_MAX));
}

/* Rounded up, so that what is not 0 is not told as 0. The largest is without a limit. */
static uint32_t to_units(uint64_t value, uint64_t unit)
{
	return htole32(min_u64(value / unit + !!(value % unit), UINT32_MAX));
}

static uint64_t from_rate(uint32_t rate)
{
	return le32toh(rate) == UINT32_MAX ? RECORD_UNLIMITED : (uint64_t)le32toh(rate) * RATE_UNIT;
}

static uint64_t from_time(uint32_t time)
{
	return (uint64_t)le32toh(time) * TIME_UNIT;
}

static void make_tag(const struct wire *w, const uint8_t *key, uint8_t *tag)
{
	crypto_generichash(tag, TAG_BYTES, (const uint8_t *)w, offsetof(struct wire, tag), key,
			   key ? RECORD_KEY : 0);
}

void peer_record_write(const struct peer_record *r, const uint8_t *key, uint8_t *bytes)
{
	struct wire w = {
		.magic = htole32(MAGIC),
		.version = htole16(RECORD_VERSION),
		.flags = htole16((r->wants_to ? WANTS_TO : 0) | (r->wants_from ? WANTS_FROM : 0) |
				 (r->cut ? CUT : 0) | (r->misses ? MISSES : 0)),
		.epoch = htole64(r->epoch),
		.seq = htole64(r->seq),
		.latency_to = to_count(r->latency_to),
		.bulk_to = to_count(r->bulk_to),
		.latency_from = to_count(r->latency_from),
		.bulk_from = to_count(r->bulk_from),
		.used_to = to_units(r->used_to, RATE_UNIT),
		.used_from = to_units(r->used_from, RATE_UNIT),
		.may_send = to_units(r->may_send, RATE_UNIT),
		.may_read = to_units(r->may_read, RATE_UNIT),
		.window = to_units(r->window_ns, TIME_UNIT),
		.current99 = to_units(r->current99_ns, TIME_UNIT),
		.target99 = to_units(r->target99_ns, TIME_UNIT),
		.lease = to_units(r->lease_ns, TIME_UNIT),
	};

	memcpy(w.to, r->to, sizeof(w.to));
	make_tag(&w, key, w.tag);
	memcpy(bytes, &w, sizeof(w));
}

/* What is wrong with a record; a version of its own may have a tag of its own. */
static const char *find_wrong(const struct wire *w, const uint8_t *key, const uint8_t *to,
			      uint64_t epoch)
{
	uint8_t tag[TAG_BYTES];

	if (le32toh(w->magic) != MAGIC)
		return "not a record";
	if (le16toh(w->version) != RECORD_VERSION)
		return "a record of another version";
	make_tag(w, key, tag);
	if (sodium_memcmp(tag, w->tag, sizeof(tag)))
		return "a record that is damaged, or of an agent with another key";
	if (memcmp(w->to, to, sizeof(w->to)))
		return "a record for another host";
	if (le64toh(w->epoch) != epoch)
		return "a record of another connection";
	return NULL;
}

static void take(const struct wire *w, struct peer_record *r)
{
	uint16_t flags = le16toh(w->flags);

	*r = (struct peer_record) {
		.epoch = le64toh(w->epoch),
		.seq = le64toh(w->seq),
		.latency_to = le16toh(w->latency_to),
		.bulk_to = le16toh(w->bulk_to),
		.latency_from = le16toh(w->latency_from),
		.bulk_from = le16toh(w->bulk_from),
		.used_to = from_rate(w->used_to),
		.used_from = from_rate(w->used_from),
		.may_send = from_rate(w->may_send),
		.may_read = from_rate(w->may_read),
		.wants_to = flags & WANTS_TO,
		.wants_from = flags & WANTS_FROM,
		.cut = flags & CUT,
		.misses = flags & MISSES,
		.window_ns = from_time(w->window),
		.current99_ns = from_time(w->current99),
		.target99_ns = from_time(w->target99),
		.lease_ns = from_time(w->lease),
	};
	memcpy(r->to, w->to, sizeof(r->to));
}

bool peer_record_read(const uint8_t *bytes, const uint8_t *key, const uint8_t *to, uint64_t epoch,
		      uint64_t seq, struct peer_record *r, const char **wrong)
{
	struct wire w;

	memcpy(&w, bytes, sizeof(w));
	*wrong = NULL;
	/* Nothing was written so far. */
	if (!w.magic && !w.seq)
		return false;
	*wrong = find_wrong(&w, key, to, epoch);
	if (*wrong || le64toh(w.seq) <= seq)
		return false;
	take(&w, r);
	return true;
}
