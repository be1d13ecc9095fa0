/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A module, a clock and other agents that do what a test says, for the tests of exchange.c, hear.c
 * and survey.c.
 */
#ifndef RISO_TEST_FAKE_EXCHANGE_H
#define RISO_TEST_FAKE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "exchange.h"
#include "loop.h"

#define FAKE_RATE UINT64_C(50000000)
#define FAKE_LEASE SEC
#define FAKE_STEP (20 * MS)

enum { FAKE_PEERS = 2, FAKE_GUESTS = 9, FAKE_FLOWS = 9, FAKE_GROUPS = 8, FAKE_RTS = 3 };

/* What the module says of a path, and what was set there */
struct fake_path {
	uint64_t rate;
	uint64_t cut;
	uint64_t lease;
	uint64_t bytes;
	uint64_t waits;
	bool there;
};

struct fake_flow {
	const char *peer;
	uint32_t group;
	uint32_t class;
	uint32_t pid;
	uint32_t state;
};

struct fake_group {
	uint64_t used_ns;
	uint64_t read;
};

/* What is there, and what was done. */
struct fake_exchange {
	uint64_t now;
	unsigned int logged;
	/* the module: whose limits it refuses, how often it was asked for paths, and for flows */
	struct fake_path path[FAKE_PEERS][2];
	struct fake_flow flow[FAKE_FLOWS];
	unsigned int flows;
	struct fake_group group[FAKE_GROUPS];
	bool refuses[FAKE_PEERS];
	unsigned int sets;
	unsigned int asked;
	unsigned int listed;
	/* peers, and what they were told */
	struct probe probe[FAKE_PEERS];
	struct peer_record said[FAKE_PEERS];
	unsigned int num_said;
	/* who has connected, the last one first, and the devices where */
	struct rdma_cm_id guest_id[FAKE_GUESTS];
	struct talk guest[FAKE_GUESTS];
	unsigned int guests;
	struct ibv_context device, other;
	/* of records */
	const char *wrong;
};

extern struct fake_exchange fake;
extern struct conf fake_conf;
extern struct exchange *fake_ex;
extern struct exchange_view fake_view;
extern const char * const fake_peer_name[FAKE_PEERS];

/* exchange_step() now */
uint64_t fake_step(void);
/* For so long; the first path and group go on at so many bytes per second. */
void fake_run(uint64_t ns, uint64_t to_first, uint64_t all);
void fake_add_flow(const char *peer, uint32_t group, uint32_t class);
/* The agent at a peer answers that: what comes in there is too much, or not. */
void fake_answers(unsigned int i, uint64_t may_send, bool full);
/* A guest tells that. */
void fake_tells(unsigned int i, struct peer_record r);
/* What it may send, no more than the link can take */
uint64_t fake_may_send(unsigned int i);
/* The address that a guest comes from */
void fake_guest_comes_from(unsigned int i, const char *name);
/* The address of this host that it has connected to: it ends in 1 */
void fake_guest_goes_to(unsigned int i, const char *name);

/* Before and after each case */
int fake_set_up(void **state);
int fake_all_ends(void **state);

#define FAKE_CASE(name) \
	cmocka_unit_test_setup_teardown(name, fake_set_up, fake_all_ends)

#endif /* RISO_TEST_FAKE_EXCHANGE_H */
