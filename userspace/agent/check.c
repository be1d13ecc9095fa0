// SPDX-License-Identifier: GPL-2.0
/*
 * What --check says of settings that are right: which hosts are measured with, and what their
 * agents and this one decide for each other.
 */
#include "check.h"
#include "minmax.h"
#include "talk.h"
#include "units.h"

static void explain_peers(FILE *file, const struct conf *conf, const struct conf_dev *dev)
{
	char name[INET6_ADDRSTRLEN], lease[UNITS_LEN];
	unsigned int i;

	fprintf(file, "%s: measures with", dev->name);
	for (i = 0; i < dev->n_peers; i++)
		fprintf(file, "%s %s", i ? "," : "", conf_addr_name(&dev->peer[i], name));
	fprintf(file, " at port %ju\n", (uintmax_t)conf->port);
	fprintf(file,
		"  The agents there are told what this host sends to them and reads from them.\n"
		"  While latency flows go to or from a host, its agent decides how much\n"
		"  of that may be. This agent sets that as a limit (rdma-isolate path show),\n"
		"  with a lease of %s.\n",
		time_format(min_u64(conf->lease_ns, TALK_LEASE_MAX), lease));
}

/* What holds for all devices */
static void explain_others(FILE *file, const struct conf *conf)
{
	char name[INET6_ADDRSTRLEN];

	fprintf(file, "other hosts: may measure with this one at %s port %ju\n",
		conf_addr_name(&conf->listen, name), (uintmax_t)conf->port);
	fputs("  While latency flows go to or from this host, this agent decides how much\n"
	      "  they may send to it and read from it.\n", file);
	fprintf(file, "secret: %s\n", conf->has_secret ?
		"agents are believed if they have the same one, so each host needs the file" :
		"none, so all agents that reach this one are believed");
}

void check_explain(FILE *file, const struct conf *conf)
{
	unsigned int i;

	for (i = 0; i < conf->n_devs; i++)
		if (conf->dev[i].n_peers)
			explain_peers(file, conf, &conf->dev[i]);
	if (conf->n_devs)
		explain_others(file, conf);
}
