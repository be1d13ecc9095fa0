// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * librdma_isolate_verbs.so: what a program gets that opens libibverbs with dlopen().
 *
 * It has nothing of its own. A look-up in a handle of it finds the functions of the shim first, and
 * those of libibverbs behind it. The shim itself is not linked with libibverbs, so that it can be
 * loaded into each program, also in an image that has no libibverbs or another one.
 */
