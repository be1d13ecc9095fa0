/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runs a program with the verbs shim.
 */
#ifndef RDMA_ISOLATE_RUN_H
#define RDMA_ISOLATE_RUN_H

/* Become "run [--class CLASS] -- PROGRAM [ARGUMENT]...", or tell why not */
int run_program(int argc, char **argv);

#endif /* RDMA_ISOLATE_RUN_H */
