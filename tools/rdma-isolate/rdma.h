/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the RDMA core itself says about the queue pairs of a device, those that
 * the module does not know among them. Errors are told to stderr here.
 */
#ifndef RDMA_ISOLATE_RDMA_H
#define RDMA_ISOLATE_RDMA_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/rdma_isolate.h>

/**
 * struct rdma_qp - a queue pair
 * @dev: its device
 * @qpn: its number there
 * @type: as the kernel numbers it
 * @state: as the kernel numbers it
 * @pid: of the task that has created it; 0 for one of the kernel, or when the
 *	task is gone
 * @ulp: kernel module that owns it, or ""
 * @known: for the caller
 */
struct rdma_qp {
	char dev[RDMA_ISOLATE_DEV_NAME_MAX + 1];
	uint32_t qpn;
	uint8_t type;
	uint8_t state;
	uint32_t pid;
	char ulp[RDMA_ISOLATE_ULP_NAME_MAX + 1];
	bool known;
};

/**
 * struct rdma_qps - queue pairs of any devices
 * @qp: the first of them, in no order
 * @n: how many there are
 */
struct rdma_qps {
	struct rdma_qp *qp;
	unsigned int n;
};

struct mnl_socket;

/**
 * rdma_open - begin to ask the RDMA core
 *
 * Return: the socket, which mnl_socket_close() closes; NULL after telling what
 * is wrong.
 */
struct mnl_socket *rdma_open(void);

/**
 * rdma_list - add the queue pairs of a device
 * @sock: from rdma_open()
 * @dev: its name
 * @index: its number
 * @qps: added to; &rdma_qps.qp is the caller's to free
 *
 * Return: 0, or a negative errno after telling what the kernel said.
 */
int rdma_list(struct mnl_socket *sock, const char *dev, uint32_t index,
	      struct rdma_qps *qps);

/* The queue pair of this number and device, or NULL */
struct rdma_qp *rdma_find(const struct rdma_qps *qps, const char *dev,
			  uint32_t qpn);

#endif /* RDMA_ISOLATE_RDMA_H */
