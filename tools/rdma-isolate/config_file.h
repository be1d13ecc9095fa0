/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of a directory want.
 */
#ifndef RDMA_ISOLATE_CONFIG_FILE_H
#define RDMA_ISOLATE_CONFIG_FILE_H

#include "config_item.h"

/* where the settings are that come at boot */
#define CONFIG_DIR "/etc/rdma-isolate.d"

/**
 * config_read_file - add what one file wants
 * @name: the file, "-" is standard input
 * @config: gets it
 *
 * Return: CMD_DONE, or another status after telling what is wrong.
 */
int config_read_file(const char *name, struct config *config);

/**
 * config_check_devs - check devices once all lines about them are known
 * @devs: the devices
 *
 * Return: the file with the last line about the first device that is wrong, after telling
 * what is wrong; or NULL.
 */
const char *config_check_devs(const struct items *devs);

/* Mark a file of the directory as left out */
void config_leave_out(struct config *config, const char *file, enum config_left why);

/**
 * config_read_files - read all files that are not left out, in place of what was read
 * @config: has the files; a file that is wrong becomes left out
 *
 * Return: CMD_DONE, or the status of the first file that is wrong, after telling what is
 * wrong with each.
 */
int config_read_files(struct config *config);

/**
 * config_read_dir - read what all files of a directory want
 * @dir: the directory, which need not be there
 * @config: gets what those files want that have nothing wrong in them
 *
 * Return: CMD_DONE, or the status of the first file that is left out, after telling what
 * is wrong with each.
 */
int config_read_dir(const char *dir, struct config *config);

/**
 * config_check_command - check a command together with the files of a directory
 * @dir: the directory
 * @instead: the file whose content the command replaces
 * @cmd: the command
 *
 * Files that are wrong by themselves are told of and left out.
 *
 * Return: CMD_DONE, or another status after telling what is wrong.
 */
int config_check_command(const char *dir, const char *instead, const struct command *cmd);

#endif /* RDMA_ISOLATE_CONFIG_FILE_H */
