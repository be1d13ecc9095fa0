/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Threads of which one runs at a time. They take turns wherever they lock, unlock or
 * sleep, in an order that is random and is the same for the same seed.
 *
 * The test is linked with --wrap for the functions that coop.c has. Threads that
 * coop_run() did not start call the real ones.
 */
#ifndef RISO_TEST_COOP_H
#define RISO_TEST_COOP_H

#include <stdint.h>

enum { COOP_THREADS = 8 };

/**
 * coop_run - run threads until all have returned
 * @seed: where the random order begins, not 0
 * @fn: what each thread does; called with its number
 * @num: how many, at most COOP_THREADS
 */
void coop_run(uint64_t seed, void (*fn)(unsigned int thread), unsigned int num);

/**
 * coop_yield - another thread may have a turn
 */
void coop_yield(void);

#endif /* RISO_TEST_COOP_H */
