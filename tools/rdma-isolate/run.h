/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Runs a program with the verbs shim, and finds what lies beside the tool.
 */
#ifndef RDMA_ISOLATE_RUN_H
#define RDMA_ISOLATE_RUN_H

#include <stdbool.h>

/**
 * find_beside - find a file that belongs to the tool
 * @place: where it may be, from the tool's directory; the last is NULL
 * @path: set to its path, PATH_MAX bytes
 *
 * Return: whether it is there.
 */
bool find_beside(const char * const *place, char *path);

/* Become "run [--class CLASS] -- PROGRAM [ARGUMENT]...", or tell why not */
int run_program(int argc, char **argv);

#endif /* RDMA_ISOLATE_RUN_H */
