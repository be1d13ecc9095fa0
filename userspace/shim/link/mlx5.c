// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * librdma_isolate_mlx5.so: what a program gets that opens libmlx5 with dlopen().
 *
 * It has nothing of its own. A look-up in a handle of it finds the functions of the shim first, and
 * those of libmlx5 behind it, as librdma_isolate_verbs.so does for libibverbs.
 */
