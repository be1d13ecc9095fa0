/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Settings that are kept for the next boot.
 */
#ifndef RDMA_ISOLATE_CONFIG_KEEP_H
#define RDMA_ISOLATE_CONFIG_KEEP_H

#include "cmd.h"

/**
 * config_keep - run a "dev set", and have it again at each boot
 * @dir: where the file is that keeps it, made if it is not there
 * @name: the file's, before the device's; what it had is replaced
 * @cmd: the command
 *
 * Nothing is done when it is at odds with other files of the directory, or the kernel
 * refuses it.
 *
 * Return: CMD_DONE, or another status after telling what is wrong.
 */
int config_keep(const char *dir, const char *name, struct command *cmd);

#endif /* RDMA_ISOLATE_CONFIG_KEEP_H */
