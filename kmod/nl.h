/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the netlink family share. The rest of the module includes nl_event.h,
 * and main.c netlink.h.
 */
#ifndef RISO_NL_H
#define RISO_NL_H

#include <net/genetlink.h>

struct riso_dev;
union ib_gid;

/*
 * Puts the attributes of @what, which belongs to the device named @dev, into a message.
 * What it has put when there is no room for all is taken out again by its caller.
 */
typedef int (*riso_nl_fill_fn)(struct sk_buff *skb, const char *dev, const void *what);

/* Dumps what one device has; returns 0 when that is all, else a negative errno. */
typedef int (*riso_nl_dump_fn)(struct sk_buff *skb, struct netlink_callback *cb,
			       struct riso_dev *rd);

/* netlink.c */
extern struct genl_family riso_nl_family;

int riso_nl_check_admin(struct sk_buff *skb, struct genl_info *info);
int riso_nl_check_rate(struct sk_buff *skb, struct netlink_ext_ack *extack);
int riso_nl_check_plain_dump(struct netlink_callback *cb);
struct riso_dev *riso_nl_find_dev(const struct nlattr *name,
				  struct netlink_ext_ack *extack);
int riso_nl_put_part(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
		     riso_nl_fill_fn fill, const char *dev, const void *what);
int riso_nl_reply(struct genl_info *info, u8 cmd, riso_nl_fill_fn fill,
		  const char *dev, const void *what);
int riso_nl_dump_of_devs(struct sk_buff *skb, struct netlink_callback *cb,
			 const struct nlattr *name, const struct nlattr *surplus,
			 riso_nl_dump_fn dump_one);

/* nl_msg.c */
int riso_nl_put_counter(struct sk_buff *skb, int attr, const char *name, u64 val);
int riso_nl_put_text(struct sk_buff *skb, int attr, const char *text);
int riso_nl_put_peer(struct sk_buff *skb, int attr, const union ib_gid *gid);
int riso_nl_read_peer(const struct nlattr *attr, union ib_gid *gid,
		      struct netlink_ext_ack *extack);
int riso_nl_put_msg(struct sk_buff *skb, u32 portid, u32 seq, int flags, u8 cmd,
		    riso_nl_fill_fn fill, const char *dev, const void *what);
int riso_nl_fill_dev(struct sk_buff *skb, const char *dev, const void *what);
int riso_nl_fill_budget(struct sk_buff *skb, const char *dev, const void *what);
int riso_nl_fill_flow(struct sk_buff *skb, const char *dev, const void *what);
int riso_nl_fill_group(struct sk_buff *skb, const char *dev, const void *what);

/* nl_event.c */
void riso_nl_watch_changes(struct netlink_callback *cb);
void riso_nl_start_events(void);
void riso_nl_stop_events(void);

#endif /* RISO_NL_H */
