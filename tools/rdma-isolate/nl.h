/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Requests to the kernel. Errors are told to stderr here.
 */
#ifndef RDMA_ISOLATE_NL_H
#define RDMA_ISOLATE_NL_H

#include <stdbool.h>
#include <stdint.h>

#include <libmnl/libmnl.h>

#include "names_gen.h"

struct nl;

/**
 * typedef nl_reply_fn - called for each message of the answer
 * @attrs: by number, NULL for those that are not there
 * @nlh: the message, for attributes that are there more than once
 * @data: of the caller
 */
typedef void (*nl_reply_fn)(const struct nlattr * const *attrs,
			    const struct nlmsghdr *nlh, void *data);

/* enough for the attributes of every object */
enum { NL_ATTRS_MAX = 32 };

#define NL_NOT_HERE	"does not answer in this network namespace"

/* How to get from a container or another network namespace to where it answers */
#define NL_ELSEWHERE	"run this on the host, or with nsenter --net=/proc/1/ns/net"

/* Is the module there, wherever it answers, and not about to go? */
bool nl_module_loaded(void);

/**
 * nl_open - find the family
 *
 * Return: the socket, or NULL after telling what is wrong: errno is ENOENT if the module
 * is not there, or not in this network namespace.
 */
struct nl *nl_open(void);
void nl_close(struct nl *nl);

/**
 * nl_request - begin a request, which nl_send() sends
 * @nl: the socket
 * @cmd: what to ask
 * @dump: for all objects
 *
 * Return: where attributes are put.
 */
struct nlmsghdr *nl_request(struct nl *nl, uint8_t cmd, bool dump);

/* A number, as wide as the spec has its attribute */
static inline void nl_put_number(struct nlmsghdr *nlh, const struct name_set *set,
				 uint16_t attr, uint64_t number)
{
	if (set->attrs[attr].type == NAME_U32)
		mnl_attr_put_u32(nlh, attr, number);
	else
		mnl_attr_put_u64(nlh, attr, number);
}

static inline uint64_t nl_get_number(const struct nlattr *attr, const struct name_set *set)
{
	return set->attrs[mnl_attr_get_type(attr)].type == NAME_U32 ?
	       mnl_attr_get_u32(attr) : mnl_attr_get_u64(attr);
}

/* The same of one that may be missing, 0 then */
static inline uint64_t nl_number(const struct nlattr * const *attrs, uint16_t attr,
				 const struct name_set *set)
{
	return attrs[attr] ? nl_get_number(attrs[attr], set) : 0;
}

/**
 * nl_send - send the request and read the answer
 * @nl: the socket
 * @set: attributes of the request and of the answer
 * @reply: called for each message of the answer, or NULL
 * @data: for @reply
 *
 * Return: 0, or a negative errno after telling what the kernel said.
 */
int nl_send(struct nl *nl, const struct name_set *set, nl_reply_fn reply,
	    void *data);

/* As nl_send(), but a caller without CAP_NET_ADMIN is not told, and gets -EPERM */
int nl_send_if_allowed(struct nl *nl, const struct name_set *set, nl_reply_fn reply, void *data);

/* As nl_send() in parts, for who does other things meanwhile: */

/* Send the request; 0, or a negative errno after telling what is wrong */
int nl_begin(struct nl *nl);

/**
 * nl_part - wait for some of the answer, and read it
 * @nl: the socket
 * @set: as of nl_send()
 * @reply: as of nl_send()
 * @data: as of nl_send()
 *
 * Return: 1 if there is more, 0 at the end, or a negative errno as nl_send().
 */
int nl_part(struct nl *nl, const struct name_set *set, nl_reply_fn reply, void *data);

/**
 * nl_subscribe - hear of events from now on
 * @nl: a socket that no request is sent on any more
 *
 * Return: 0, or a negative errno after telling what is wrong.
 */
int nl_subscribe(struct nl *nl);

/**
 * nl_wait - wait for an event, whichever it is
 * @nl: the socket
 * @timeout_ms: how long at most
 *
 * Events that the socket had no room for count too.
 */
void nl_wait(struct nl *nl, int timeout_ms);

/**
 * typedef nl_event_fn - called for each event
 * @cmd: RDMA_ISOLATE_CMD_*_NTF
 * @nlh: the message, for nl_event_attrs()
 * @data: of the caller
 */
typedef void (*nl_event_fn)(uint8_t cmd, const struct nlmsghdr *nlh,
			    void *data);

/* For who waits for other things as well */
int nl_fd(const struct nl *nl);

/**
 * nl_events - wait for an event, and hear those that come with it
 * @nl: a socket of nl_subscribe()
 * @event: called for each
 * @data: for @event
 *
 * Return: 0, 1 when events were lost, or a negative errno, -ENOENT when the module was
 * unloaded; each but 0 was told.
 */
int nl_events(struct nl *nl, nl_event_fn event, void *data);

/**
 * nl_event_attrs - call a reply function with the attributes of an event
 * @nlh: the event
 * @set: its attributes
 * @reply: called once
 * @data: for @reply
 */
void nl_event_attrs(const struct nlmsghdr *nlh, const struct name_set *set,
		    nl_reply_fn reply, void *data);

#endif /* RDMA_ISOLATE_NL_H */
