/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A module and peers that do what a test says, at a time that the test says, for the tests
 * of steer.c.
 */
#ifndef RISO_TEST_FAKE_STEER_H
#define RISO_TEST_FAKE_STEER_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange.h"
#include "steer.h"

#define FAKE_PERIOD (MS / 2)
#define FAKE_MAX_RATE UINT64_C(1000000000)
#define FAKE_OWN_UTIL UINT64_C(800000000)
#define FAKE_AUTO_CHUNK UINT32_C(8192)
#define FAKE_TARGET UINT64_C(50000)
#define US UINT64_C(1000)

enum { FAKE_OTHER = 77, FAKE_PEERS = 2 };

/* What was lent */
struct fake_lent {
	uint64_t lease_ns;
	uint64_t safe_util;
	uint32_t chunk;
	uint32_t pid;
	uint32_t state;
	uint64_t target99_ns;
	uint64_t current99_ns;
	uint32_t peer_latency;
};

/* What is there, and what was done. */
struct fake_steer {
	uint64_t now;
	struct source *timer;
	uint64_t at;
	unsigned int logged;
	/* the module */
	bool enabled;
	uint32_t ctrl;
	uint64_t target99;
	uint32_t chunk;
	uint32_t groups[3];
	struct fake_lent lent;
	uint64_t lease_end;
	bool alive;
	unsigned int asked;
	unsigned int sets;
	/* what was lent: the first, and since when and how often it was less than before */
	struct fake_lent first;
	uint64_t less_ns;
	uint64_t least_gap_ns;
	/* the peers: when the message that is out completes */
	struct probe *peers[FAKE_PEERS];
	uint64_t done[FAKE_PEERS];
	bool hangs;
	uint64_t (*latency)(unsigned int peer);
	/* what other agents say: peers that a miss is the fault of, what they ask for and miss */
	bool elsewhere[FAKE_PEERS];
	uint32_t peer_latency;
	uint64_t reserved;
	/* they miss their target while so much is lent */
	uint64_t complaint_util;
	struct {
		uint64_t current99_ns;
		uint64_t target99_ns;
		bool not_local;
	} noted[FAKE_PEERS];
	bool shared;
	/* how long it takes to read lists, every 20 ms, 0 for a quiet host; how often they were */
	uint64_t list_ns;
	unsigned int lists;
	unsigned int lists_while_out;
};

extern struct fake_steer fake;
extern struct conf fake_conf;
extern struct conf_dev fake_dev;
extern struct nl fake_nl;
extern struct steer *fake_st;

uint64_t fake_in_force(void);
uint32_t fake_chunk_in_force(void);
void fake_run(uint64_t ns);
void fake_groups(uint32_t l, uint32_t b, uint32_t t);
void fake_connect_all(void);
void fake_start(uint32_t l, uint32_t b, uint32_t t);

/* Latencies */
uint64_t fake_short_one(unsigned int peer);
uint64_t fake_always_long(unsigned int peer);
uint64_t fake_half_as_long(unsigned int peer);

/* Before and after each case */
int fake_set_up(void **state);
int fake_all_ends(void **state);

#define FAKE_CASE(name) \
	cmocka_unit_test_setup_teardown(name, fake_set_up, fake_all_ends)

#endif /* RISO_TEST_FAKE_STEER_H */
