// SPDX-License-Identifier: GPL-2.0
/*
 * These functions open a device and get what its queue pairs need.
 */
#include <errno.h>
#include <string.h>

#include "../verbs.h"
#include "mix.h"

/* A domain of one thread, where the provider has them. */
static void alloc_domain(struct mix_end *e)
{
	struct ibv_td_init_attr td = {};
	struct ibv_parent_domain_init_attr attr = { .pd = e->pd };

	e->domain = NULL;
	e->td = ibv_alloc_td(e->ctx, &td);
	attr.td = e->td;
	if (e->td)
		e->domain = ibv_alloc_parent_domain(e->ctx, &attr);
}

void mix_open_end(struct mix_end *e, const char *name)
{
	struct ibv_device_attr attr;

	e->ctx = open_device(name);
	if (ibv_query_device(e->ctx, &attr) ||
	    ibv_query_port(e->ctx, 1, &e->port))
		mix_fail("%s: %s", name, strerror(errno));
	e->rd_atomic = attr.max_qp_rd_atom < attr.max_qp_init_rd_atom ?
		       attr.max_qp_rd_atom : attr.max_qp_init_rd_atom;
	e->gid_index = ipv4_gid(e->ctx, e->port.gid_tbl_len);
	if (e->gid_index < 0)
		mix_fail("no GID of an IPv4 address");
	e->pd = ibv_alloc_pd(e->ctx);
	if (!e->pd || ibv_query_gid(e->ctx, 1, e->gid_index, &e->gid))
		mix_fail("%s: %s", name, strerror(errno));
	alloc_domain(e);
}
