// SPDX-License-Identifier: GPL-2.0
/*
 * Generic netlink by libmnl: finds the family, sends one request at a time,
 * tells what the extended ack says and which word of the request it means.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/rdma_isolate.h>

#include "error.h"
#include "nl.h"

enum {
	/* a request is small, an answer is at most what the kernel sends */
	REQUEST_SIZE = 1024,
	ANSWER_SIZE = 32768,
};

struct nl {
	struct mnl_socket *sock;
	uint16_t family;
	uint32_t events;
	uint32_t seq;
	bool changed;
	bool may_be_refused;
	union {
		char request[REQUEST_SIZE];
		struct nlmsghdr header;
	};
	char answer[ANSWER_SIZE];
};

struct attrs {
	const struct nlattr *tb[NL_ATTRS_MAX];
};

static int collect_attr(const struct nlattr *attr, void *data)
{
	uint16_t type = mnl_attr_get_type(attr);
	struct attrs *attrs = data;

	if (type < NL_ATTRS_MAX)
		attrs->tb[type] = attr;
	return MNL_CB_OK;
}

/* Attributes that are too short for what the spec says are not shown. */
static void drop_malformed(struct attrs *attrs, const struct name_set *set)
{
	static const enum mnl_attr_data_type types[] = {
		[NAME_PAD] = MNL_TYPE_UNSPEC,
		[NAME_STRING] = MNL_TYPE_NUL_STRING,
		[NAME_U32] = MNL_TYPE_U32,
		[NAME_U64] = MNL_TYPE_U64,
		[NAME_NEST] = MNL_TYPE_NESTED,
	};
	unsigned int i;

	for (i = 0; i < NL_ATTRS_MAX; i++)
		if (attrs->tb[i] &&
		    (i > set->max ||
		     mnl_attr_validate(attrs->tb[i],
				       types[set->attrs[i].type]) < 0))
			attrs->tb[i] = NULL;
}

/* " (1 to 10000)", from the policy that the kernel refused by */
static void print_policy(const struct nlattr *nest)
{
	const struct nlattr *min, *max, *len;
	struct attrs policy = {};

	mnl_attr_parse_nested(nest, collect_attr, &policy);
	min = policy.tb[NL_POLICY_TYPE_ATTR_MIN_VALUE_U];
	max = policy.tb[NL_POLICY_TYPE_ATTR_MAX_VALUE_U];
	len = policy.tb[NL_POLICY_TYPE_ATTR_MAX_LENGTH];

	if (min && max && mnl_attr_get_u64(max) != UINT64_MAX)
		fprintf(stderr, " (%" PRIu64 " to %" PRIu64 ")",
			mnl_attr_get_u64(min), mnl_attr_get_u64(max));
	else if (min)
		fprintf(stderr, " (%" PRIu64 " or more)",
			mnl_attr_get_u64(min));
	else if (len)
		fprintf(stderr, " (at most %" PRIu32 " bytes)",
			mnl_attr_get_u32(len));
}

static const char *word_of(const struct name_enum *words,
			   const struct nlattr *attr)
{
	uint32_t val = mnl_attr_get_u32(attr);

	return val < words->n ? words->values[val].name : "?";
}

/* "safe_util 0: ", the attribute of the request at an offset */
static void print_culprit(struct nl *nl, const struct name_set *set,
			  uint32_t offset)
{
	const struct nlattr *attr;
	uint16_t type;

	mnl_attr_for_each(attr, &nl->header, sizeof(struct genlmsghdr)) {
		if ((uint32_t)((const char *)attr - nl->request) != offset)
			continue;
		type = mnl_attr_get_type(attr);
		if (type > set->max)
			return;
		fprintf(stderr, "%s ", set->attrs[type].name);
		if (set->attrs[type].type == NAME_STRING)
			fprintf(stderr, "%s: ", mnl_attr_get_str(attr));
		else if (set->attrs[type].words)
			fprintf(stderr, "%s: ",
				word_of(set->attrs[type].words, attr));
		else
			fprintf(stderr, "%" PRIu64 ": ",
				nl_get_number(attr, set));
		return;
	}
}

/* The module has a text for each of its refusals; this one is the family's. */
static bool is_unloaded(int err)
{
	/* After it has gone, and for dumps while it goes */
	return err == ENOENT || err == EPROTONOSUPPORT;
}

/* What the kernel said: the attributes at the end of a refusal, if any */
static void print_refusal(struct nl *nl, const struct name_set *set,
			  const struct nlmsghdr *nlh, size_t skip, int err)
{
	const struct nlattr *text, *offset;
	struct attrs ext = {};

	if (nlh->nlmsg_flags & NLM_F_ACK_TLVS)
		mnl_attr_parse(nlh, skip, collect_attr, &ext);
	if (nl->may_be_refused && err == EPERM)
		return;
	text = ext.tb[NLMSGERR_ATTR_MSG];
	offset = ext.tb[NLMSGERR_ATTR_OFFS];

	error_begin();
	if (offset && mnl_attr_validate(offset, MNL_TYPE_U32) >= 0)
		print_culprit(nl, set, mnl_attr_get_u32(offset));
	if (text && mnl_attr_validate(text, MNL_TYPE_NUL_STRING) >= 0)
		fputs(mnl_attr_get_str(text), stderr);
	else if (err == EBUSY && nl->header.nlmsg_flags & NLM_F_DUMP)
		/* Linux 6.1 has no text where a dump begins. */
		fputs("a user without CAP_NET_ADMIN may make 100 requests a second", stderr);
	else if (is_unloaded(err))
		fputs("module " RDMA_ISOLATE_FAMILY_NAME " was unloaded", stderr);
	else
		fputs(strerror(err), stderr);
	if (ext.tb[NLMSGERR_ATTR_POLICY])
		print_policy(ext.tb[NLMSGERR_ATTR_POLICY]);
	fputc('\n', stderr);
}

static int socket_error(const char *what)
{
	int err = errno;

	error("netlink: %s: %s", what, strerror(err));
	return -err;
}

void nl_event_attrs(const struct nlmsghdr *nlh, const struct name_set *set,
		    nl_reply_fn reply, void *data)
{
	struct attrs attrs = {};

	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), collect_attr, &attrs);
	drop_malformed(&attrs, set);
	reply(attrs.tb, nlh, data);
}

/* 1 to go on, 0 at the end, negative errno when refused */
static int read_message(struct nl *nl, const struct name_set *set,
			const struct nlmsghdr *nlh, nl_reply_fn reply,
			void *data)
{
	const struct nlmsgerr *refusal = mnl_nlmsg_get_payload(nlh);
	size_t skip;

	switch (nlh->nlmsg_type) {
	case NLMSG_ERROR:
		if (!refusal->error)
			return 0;
		skip = sizeof(*refusal);
		if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
			skip += mnl_nlmsg_get_payload_len(&refusal->msg);
		print_refusal(nl, set, nlh, skip, -refusal->error);
		return is_unloaded(-refusal->error) ? -ENOENT : refusal->error;
	case NLMSG_DONE:
		nl->changed = nlh->nlmsg_flags & NLM_F_DUMP_INTR;
		if (mnl_nlmsg_get_payload_len(nlh) < sizeof(int) ||
		    refusal->error >= 0)
			return 0;
		print_refusal(nl, set, nlh, sizeof(int), -refusal->error);
		return refusal->error;
	}

	if (nlh->nlmsg_type < NLMSG_MIN_TYPE || !reply)
		return 1;

	nl_event_attrs(nlh, set, reply, data);
	return 1;
}

struct nlmsghdr *nl_request(struct nl *nl, uint8_t cmd, bool dump)
{
	struct genlmsghdr *genl;
	struct nlmsghdr *nlh;

	nlh = mnl_nlmsg_put_header(nl->request);
	nlh->nlmsg_type = nl->family;
	nlh->nlmsg_flags = NLM_F_REQUEST | (dump ? NLM_F_DUMP : NLM_F_ACK);
	nlh->nlmsg_seq = ++nl->seq;

	genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = RDMA_ISOLATE_FAMILY_VERSION;
	return nlh;
}

static ssize_t receive(struct nl *nl)
{
	ssize_t got;

	do {
		got = mnl_socket_recvfrom(nl->sock, nl->answer,
					  sizeof(nl->answer));
	} while (got < 0 && errno == EINTR);
	return got;
}

int nl_begin(struct nl *nl)
{
	nl->changed = false;
	return mnl_socket_sendto(nl->sock, nl->request, nl->header.nlmsg_len) < 0 ?
	       socket_error("send") : 0;
}

int nl_part(struct nl *nl, const struct name_set *set, nl_reply_fn reply, void *data)
{
	const struct nlmsghdr *nlh;
	ssize_t got;
	int left;
	int err;

	got = receive(nl);
	if (got < 0)
		return socket_error("receive");

	left = got;
	nlh = (const struct nlmsghdr *)nl->answer;
	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		if (nlh->nlmsg_seq != nl->seq)
			continue;
		err = read_message(nl, set, nlh, reply, data);
		if (err <= 0)
			return err;
	}
	return 1;
}

int nl_send(struct nl *nl, const struct name_set *set, nl_reply_fn reply,
	    void *data)
{
	int err = nl_begin(nl);

	if (err)
		return err;
	do
		err = nl_part(nl, set, reply, data);
	while (err > 0);
	if (nl->changed)
		error("the list changed while it was read, changes may be missing");
	return err;
}

int nl_send_if_allowed(struct nl *nl, const struct name_set *set, nl_reply_fn reply, void *data)
{
	int err;

	nl->may_be_refused = true;
	err = nl_send(nl, set, reply, data);
	nl->may_be_refused = false;
	return err;
}

/* A family, and one of its multicast groups: what their names stand for now */
struct family {
	const char *name;
	const char *group_name;
	uint16_t id;
	uint32_t group;
};

static int find_group(const struct nlattr *attr, void *data)
{
	struct family *family = data;
	struct attrs group = {};

	mnl_attr_parse_nested(attr, collect_attr, &group);
	if (group.tb[CTRL_ATTR_MCAST_GRP_NAME] &&
	    group.tb[CTRL_ATTR_MCAST_GRP_ID] &&
	    !strcmp(mnl_attr_get_str(group.tb[CTRL_ATTR_MCAST_GRP_NAME]),
		    family->group_name))
		family->group =
			mnl_attr_get_u32(group.tb[CTRL_ATTR_MCAST_GRP_ID]);
	return MNL_CB_OK;
}

static int read_family(const struct nlmsghdr *nlh, void *data)
{
	struct family *family = data;
	struct attrs attrs = {};

	mnl_attr_parse(nlh, sizeof(struct genlmsghdr), collect_attr, &attrs);
	if (attrs.tb[CTRL_ATTR_FAMILY_ID])
		family->id = mnl_attr_get_u16(attrs.tb[CTRL_ATTR_FAMILY_ID]);
	if (attrs.tb[CTRL_ATTR_MCAST_GROUPS])
		mnl_attr_parse_nested(attrs.tb[CTRL_ATTR_MCAST_GROUPS],
				      find_group, family);
	return MNL_CB_OK;
}

/* 0, or a negative errno that nobody was told */
static int find_family(struct nl *nl, struct family *family)
{
	struct nlmsghdr *nlh;
	ssize_t got;
	int err;

	nlh = nl_request(nl, CTRL_CMD_GETFAMILY, false);
	nlh->nlmsg_type = GENL_ID_CTRL;
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, family->name);
	if (mnl_socket_sendto(nl->sock, nlh, nlh->nlmsg_len) < 0)
		return -errno;

	do {
		got = mnl_socket_recvfrom(nl->sock, nl->answer,
					  sizeof(nl->answer));
		if (got < 0)
			return -errno;
		err = mnl_cb_run(nl->answer, got, nl->seq,
				 mnl_socket_get_portid(nl->sock), read_family,
				 family);
	} while (err > MNL_CB_STOP);
	return err < 0 ? -errno : 0;
}

bool nl_module_loaded(void)
{
	FILE *file = fopen("/sys/module/" RDMA_ISOLATE_FAMILY_NAME "/initstate", "re");
	char state[sizeof("live")] = "";

	if (file) {
		if (!fgets(state, sizeof(state), file))
			*state = 0;
		fclose(file);
	}
	return !strcmp(state, "live");
}

/* In another network namespace than that of the host the family is not to be found. */
static void tell_missing(void)
{
	if (nl_module_loaded())
		error("module %s is loaded, but " NL_NOT_HERE ": " NL_ELSEWHERE,
		      RDMA_ISOLATE_FAMILY_NAME);
	else
		error("module %s is not loaded: modprobe %s",
		      RDMA_ISOLATE_FAMILY_NAME, RDMA_ISOLATE_FAMILY_NAME);
}

struct nl *nl_open(void)
{
	struct family family = {
		.name = RDMA_ISOLATE_FAMILY_NAME,
		.group_name = RDMA_ISOLATE_MCGRP_EVENTS,
	};
	struct nl *nl;
	int one = 1;
	int err;

	nl = calloc(1, sizeof(*nl));
	if (!nl) {
		err = socket_error("memory");
		goto out;
	}

	nl->sock = mnl_socket_open(NETLINK_GENERIC);
	if (!nl->sock) {
		err = socket_error("open");
		goto free_nl;
	}
	if (mnl_socket_bind(nl->sock, 0, MNL_SOCKET_AUTOPID) < 0) {
		err = socket_error("bind");
		goto close_sock;
	}
	/* without these a refusal has no text, and repeats the request */
	mnl_socket_setsockopt(nl->sock, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(nl->sock, NETLINK_CAP_ACK, &one, sizeof(one));

	nl->seq = time(NULL);
	err = find_family(nl, &family);
	if (err == -ENOENT) {
		tell_missing();
		goto close_sock;
	}
	if (err) {
		errno = -err;
		socket_error("find family");
		goto close_sock;
	}
	nl->family = family.id;
	nl->events = family.group;
	return nl;

close_sock:
	mnl_socket_close(nl->sock);
free_nl:
	free(nl);
out:
	errno = -err;
	return NULL;
}

void nl_close(struct nl *nl)
{
	mnl_socket_close(nl->sock);
	free(nl);
}

static int join(struct nl *nl, uint32_t group)
{
	if (mnl_socket_setsockopt(nl->sock, NETLINK_ADD_MEMBERSHIP, &group,
				  sizeof(group)) < 0) {
		if (errno != EPERM)
			return socket_error("listen");
		error("CAP_NET_ADMIN is needed");
		return -EPERM;
	}
	return 0;
}

/* Whoever is only in the group of events does not hear that the group goes. */
int nl_subscribe(struct nl *nl)
{
	struct family control = { .name = "nlctrl", .group_name = "notify" };
	int err = find_family(nl, &control);

	if (err) {
		errno = -err;
		return socket_error("find nlctrl");
	}
	err = join(nl, control.group);
	return err ? err : join(nl, nl->events);
}

/* Does it say that the module goes? */
static bool is_end(const struct nl *nl, const struct nlmsghdr *nlh)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);
	struct attrs attrs = {};

	if (nlh->nlmsg_type != GENL_ID_CTRL || genl->cmd != CTRL_CMD_DELFAMILY)
		return false;
	mnl_attr_parse(nlh, sizeof(*genl), collect_attr, &attrs);
	return attrs.tb[CTRL_ATTR_FAMILY_ID] &&
	       mnl_attr_get_u16(attrs.tb[CTRL_ATTR_FAMILY_ID]) == nl->family;
}

void nl_wait(struct nl *nl, int timeout_ms)
{
	struct pollfd fd = {
		.fd = mnl_socket_get_fd(nl->sock),
		.events = POLLIN,
	};

	if (poll(&fd, 1, timeout_ms) > 0)
		mnl_socket_recvfrom(nl->sock, nl->answer, sizeof(nl->answer));
}

int nl_fd(const struct nl *nl)
{
	return mnl_socket_get_fd(nl->sock);
}

int nl_events(struct nl *nl, nl_event_fn event, void *data)
{
	const struct nlmsghdr *nlh;
	ssize_t got;
	int left;

	got = receive(nl);
	if (got < 0 && errno == ENOBUFS) {
		error("events were lost, they came faster than they were read");
		return 1;
	}
	if (got < 0)
		return socket_error("receive");
	left = got;
	nlh = (const struct nlmsghdr *)nl->answer;
	for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		const struct genlmsghdr *genl = mnl_nlmsg_get_payload(nlh);

		if (mnl_nlmsg_get_payload_len(nlh) < sizeof(*genl))
			continue;
		if (nlh->nlmsg_type == nl->family)
			event(genl->cmd, nlh, data);
		if (is_end(nl, nlh)) {
			error("module %s was unloaded", RDMA_ISOLATE_FAMILY_NAME);
			return -ENOENT;
		}
	}
	return 0;
}
