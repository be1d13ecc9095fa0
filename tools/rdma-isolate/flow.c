// SPDX-License-Identifier: GPL-2.0
/*
 * Flows: one for each queue pair. The module knows those that were created while
 * it was loaded; the others come from the RDMA core.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <linux/rdma_isolate.h>

#include "cmd.h"
#include "error.h"
#include "rdma.h"

const struct field flow_fields[] = {
	{ RDMA_ISOLATE_A_FLOW_DEV, "dev", FMT_STRING },
	{ RDMA_ISOLATE_A_FLOW_QPN, "qpn", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_CLASS, "class", FMT_WORD },
	{ RDMA_ISOLATE_A_FLOW_MANAGED, "managed", FMT_BOOL },
	{ RDMA_ISOLATE_A_FLOW_REASON, "reason", FMT_WHY },
	{ RDMA_ISOLATE_A_FLOW_QP_TYPE, "qp-type", FMT_QP_TYPE },
	{ RDMA_ISOLATE_A_FLOW_QP_STATE, "qp-state", FMT_QP_STATE },
	{ RDMA_ISOLATE_A_FLOW_ERROR, "error", FMT_WORD },
	{ RDMA_ISOLATE_A_FLOW_OVER_TARGET, "over-target", FMT_BOOL },
	{ RDMA_ISOLATE_A_FLOW_AROUND, "around", FMT_BOOL },
	{ RDMA_ISOLATE_A_FLOW_ULP, "ulp", FMT_STRING },
	{ RDMA_ISOLATE_A_FLOW_PEER, "peer", FMT_STRING },
	{ RDMA_ISOLATE_A_FLOW_PID, "pid", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_COMM, "comm", FMT_STRING },
	{ RDMA_ISOLATE_A_FLOW_UID, "uid", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_CGROUP, "cgroup", FMT_DETAIL | FMT_STRING },
	{ RDMA_ISOLATE_A_FLOW_RULE_ID, "rule-id", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_WEIGHT, "weight", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_TX_BYTES, "tx-bytes", FMT_DETAIL | FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_RX_BYTES, "rx-bytes", FMT_DETAIL | FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_WRS, "wrs", FMT_DETAIL | FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_CHUNKS, "chunks", FMT_DETAIL | FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_SPLITS, "splits", FMT_DETAIL | FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_QUEUED, "queued", FMT_DETAIL | FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_WAIT_NS, "wait", FMT_DETAIL | FMT_TIME },
	{ RDMA_ISOLATE_A_FLOW_HELD, "held", FMT_DETAIL | FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_GROUP, "group", FMT_COUNT },
	{ RDMA_ISOLATE_A_FLOW_RNR_TIMER, "rnr-timer", FMT_DETAIL | FMT_COUNT },
	{ }
};

enum {
	SORT_BYTES,
	SORT_OPS,
	SORT_WAIT,
};

static const struct name_value sort_values[] = {
	[SORT_BYTES] = { "bytes", "tx-bytes and rx-bytes" },
	[SORT_OPS] = { "ops", "wrs" },
	[SORT_WAIT] = { "wait", "wait" },
};

static const struct name_enum sorts = {
	sort_values, sizeof(sort_values) / sizeof(*sort_values),
};

static const struct arg show_args[] = {
	{
		.key = "dev",
		.kind = ARG_DEV,
		.attr = RDMA_ISOLATE_A_FLOW_DEV,
		.max = RDMA_ISOLATE_DEV_NAME_MAX,
		.doc = "only flows of this device",
	},
	{
		.key = "qpn",
		.kind = ARG_COUNT,
		.max = 0xffffff,
		.doc = "only this queue pair, needs dev",
	},
	{
		.key = "sort",
		.kind = ARG_WORD,
		.words = &sorts,
		.doc = "those with the most bytes, work requests or wait first",
	},
	{
		.key = "limit",
		.kind = ARG_COUNT,
		.min = 1,
		.max = UINT32_MAX,
		.doc = "no more flows than this",
	},
	{ }
};

/* as the kernel numbers types of queue pairs */
enum {
	QP_SMI = 0,
	QP_GSI = 1,
};

/* devices whose flows are shown */
struct devs {
	struct dev {
		char name[RDMA_ISOLATE_DEV_NAME_MAX + 1];
		uint32_t index;
	} *dev;
	unsigned int n;
	bool no_memory;
};

/* a flow that is not shown before all are known */
struct row {
	uint64_t key;
	unsigned int place;
	struct nlmsghdr *nlh;
};

/**
 * struct show - what is being shown
 * @out: where, NULL to count only
 * @qpn: the one number that is wanted, if it has a text
 * @sort: by what, if it has a text
 * @limit: how many are wanted
 * @shown: how many flows were
 * @older: how many of them are from before the load
 * @before: what the RDMA core had listed before the module was asked
 * @row: those to be sorted
 * @rows: how many
 * @no_memory: and there was no room for another
 */
struct show {
	struct printer *out;
	const struct value *qpn;
	const struct value *sort;
	unsigned int limit;
	unsigned int shown;
	unsigned int older;
	struct rdma_qps before;
	struct row *row;
	unsigned int rows;
	bool no_memory;
};

static void add_dev(const struct nlattr * const *attrs,
		    const struct nlmsghdr *nlh, void *data)
{
	struct devs *devs = data;
	struct dev *dev;

	(void)nlh;
	if (!attrs[RDMA_ISOLATE_A_DEV_DEV] || !attrs[RDMA_ISOLATE_A_DEV_INDEX])
		return;
	dev = realloc(devs->dev, (devs->n + 1) * sizeof(*dev));
	if (!dev) {
		devs->no_memory = true;
		return;
	}
	devs->dev = dev;
	dev += devs->n++;
	snprintf(dev->name, sizeof(dev->name), "%s",
		 mnl_attr_get_str(attrs[RDMA_ISOLATE_A_DEV_DEV]));
	dev->index = mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_INDEX]);
}

static int find_devs(struct nl *nl, const char *name, struct devs *devs)
{
	struct nlmsghdr *nlh;
	int err;

	nlh = nl_request(nl, RDMA_ISOLATE_CMD_DEV_GET, !name);
	if (name)
		mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_DEV_DEV, name);
	err = nl_send(nl, &name_set_dev, add_dev, devs);
	if (!err && devs->no_memory) {
		error("%s", strerror(ENOMEM));
		err = -ENOMEM;
	}
	return err;
}

static int list_all(struct mnl_socket *sock, const struct devs *devs,
		    struct rdma_qps *qps)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < devs->n && !err; i++)
		err = rdma_list(sock, devs->dev[i].name, devs->dev[i].index,
				qps);
	return err;
}

static bool is_wanted(const struct show *show, uint32_t qpn)
{
	return !show->qpn->text || show->qpn->number == qpn;
}

static uint64_t count_of(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_u64(attr) : 0;
}

static uint64_t key_of(const struct value *sort,
		       const struct nlattr * const *attrs)
{
	switch (sort->number) {
	case SORT_BYTES:
		return count_of(attrs[RDMA_ISOLATE_A_FLOW_TX_BYTES]) +
		       count_of(attrs[RDMA_ISOLATE_A_FLOW_RX_BYTES]);
	case SORT_OPS:
		return count_of(attrs[RDMA_ISOLATE_A_FLOW_WRS]);
	default:
		return count_of(attrs[RDMA_ISOLATE_A_FLOW_WAIT_NS]);
	}
}

static void add_row(struct show *show, const struct nlattr * const *attrs,
		    const struct nlmsghdr *nlh)
{
	struct row *row;

	row = realloc(show->row, (show->rows + 1) * sizeof(*row));
	if (!row) {
		show->no_memory = true;
		return;
	}
	show->row = row;
	row += show->rows;
	row->key = key_of(show->sort, attrs);
	row->place = show->rows;
	row->nlh = malloc(nlh->nlmsg_len);
	if (!row->nlh) {
		show->no_memory = true;
		return;
	}
	memcpy(row->nlh, nlh, nlh->nlmsg_len);
	show->rows++;
}

/* The most first, and those with as much as they came */
static int compare_rows(const void *a, const void *b)
{
	const struct row *one = a, *two = b;

	if (one->key != two->key)
		return one->key < two->key ? 1 : -1;
	return one->place < two->place ? -1 : 1;
}

static void print_flow(const struct nlattr * const *attrs,
		       const struct nlmsghdr *nlh, void *data)
{
	struct show *show = data;

	if (show->shown == show->limit)
		return;
	print_object_begin(show->out);
	print_fields(show->out, &name_set_flow, flow_fields, attrs);
	if (print_has_details(show->out))
		print_counters(show->out, nlh, RDMA_ISOLATE_A_FLOW_SIZE);
	print_object_end(show->out);
	show->shown++;
}

static int show_rows(struct show *show)
{
	unsigned int i;

	if (show->no_memory) {
		error("%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	if (show->rows)
		qsort(show->row, show->rows, sizeof(*show->row), compare_rows);
	for (i = 0; i < show->rows; i++)
		nl_event_attrs(show->row[i].nlh, &name_set_flow, print_flow,
			       show);
	return 0;
}

static void free_rows(struct show *show)
{
	while (show->rows)
		free(show->row[--show->rows].nlh);
	free(show->row);
}

static void show_flow(const struct nlattr * const *attrs,
		      const struct nlmsghdr *nlh, void *data)
{
	struct show *show = data;
	struct rdma_qp *qp;
	uint32_t qpn;

	if (!attrs[RDMA_ISOLATE_A_FLOW_DEV] || !attrs[RDMA_ISOLATE_A_FLOW_QPN])
		return;
	qpn = mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_FLOW_QPN]);
	qp = rdma_find(&show->before,
		       mnl_attr_get_str(attrs[RDMA_ISOLATE_A_FLOW_DEV]), qpn);
	if (qp)
		qp->known = true;
	if (!show->out || !is_wanted(show, qpn))
		return;
	if (show->sort->text)
		add_row(show, attrs, nlh);
	else
		print_flow(attrs, nlh, show);
}

/* The RDMA core tells the task, the module the process that it belongs to. */
static uint32_t process_of(uint32_t task)
{
	uint32_t pid = task;
	char line[256];
	FILE *file;

	snprintf(line, sizeof(line), "/proc/%" PRIu32 "/status", task);
	file = fopen(line, "r");
	if (!file)
		return pid;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Tgid: %" SCNu32, &pid) == 1)
			break;
	fclose(file);
	return pid;
}

static void show_process(struct printer *out, uint32_t pid)
{
	char line[64];
	FILE *file;

	print_number(out, "pid", "pid", FMT_COUNT, NULL, pid);
	snprintf(line, sizeof(line), "/proc/%" PRIu32 "/comm", pid);
	file = fopen(line, "r");
	if (!file)
		return;
	if (fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		print_string(out, "comm", "comm", line);
	}
	fclose(file);
}

/* The core makes these before it tells the module of a device. */
static bool is_special(const struct rdma_qp *qp)
{
	return qp->type == QP_SMI || qp->type == QP_GSI;
}

static void show_unknown(struct printer *out, const struct rdma_qp *qp)
{
	print_object_begin(out);
	print_string(out, "dev", "dev", qp->dev);
	print_number(out, "qpn", "qpn", FMT_COUNT, NULL, qp->qpn);
	print_number(out, "managed", "managed", FMT_BOOL, NULL, false);
	print_number(out, "reason", "reason", FMT_WHY, &name_reason,
		     is_special(qp) ? RISO_REASON_SPECIAL_QP :
				      RISO_REASON_BEFORE_LOAD);
	print_number(out, "qp-type", "qp_type", FMT_QP_TYPE, NULL, qp->type);
	print_number(out, "qp-state", "qp_state", FMT_QP_STATE, NULL,
		     qp->state);
	if (*qp->ulp)
		print_string(out, "ulp", "ulp", qp->ulp);
	if (qp->pid)
		show_process(out, process_of(qp->pid));
	print_object_end(out);
}

static int flow_show_check(const struct call *call)
{
	if (call_value(call, "qpn")->text && !call_value(call, "dev")->text)
		return usage_error("qpn needs dev: numbers are per device");
	return CMD_DONE;
}

/* The initial one has this inode, always. */
static bool is_initial_pid_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/pid", &st) && st.st_ino == 0xeffffffc;
}

/*
 * Does the module not know a queue pair, or does it not show it here? In a PID namespace
 * it shows those of processes that are seen there, and only they have a process then.
 */
static bool is_hidden(const struct rdma_qp *qp)
{
	return !qp->pid && !is_initial_pid_namespace();
}

/*
 * What was there before the module was asked, is still there, and is unknown to
 * it: others come and go meanwhile.
 */
static int show_others(struct show *show, struct mnl_socket *sock,
		       const struct devs *devs)
{
	struct rdma_qps now = {};
	const struct rdma_qp *qp;
	struct rdma_qp *old;
	int err;

	err = list_all(sock, devs, &now);
	for (qp = now.qp; !err && qp < now.qp + now.n; qp++) {
		old = rdma_find(&show->before, qp->dev, qp->qpn);
		if (!old || old->known || is_hidden(qp) ||
		    !is_wanted(show, qp->qpn) || show->shown == show->limit)
			continue;
		/* The core may list one twice while others come and go. */
		old->known = true;
		if (show->out)
			show_unknown(show->out, qp);
		show->shown++;
		show->older += !is_special(qp);
	}
	free(now.qp);
	return err;
}

/* All flows, or those of one device */
static int show_all(struct show *show, struct nl *nl, const char *name)
{
	struct mnl_socket *sock = NULL;
	struct devs devs = {};
	struct nlmsghdr *nlh;
	int err;
	bool all;

	err = find_devs(nl, name, &devs);
	if (err)
		goto free;
	sock = rdma_open();
	all = sock && !list_all(sock, &devs, &show->before);
	nlh = nl_request(nl, RDMA_ISOLATE_CMD_FLOW_GET, true);
	if (name)
		mnl_attr_put_strz(nlh, RDMA_ISOLATE_A_FLOW_DEV, name);
	err = nl_send(nl, &name_set_flow, show_flow, show);
	if (!err)
		err = show_rows(show);
	if (!err)
		err = all ? show_others(show, sock, &devs) : -EIO;
free:
	if (sock)
		mnl_socket_close(sock);
	free_rows(show);
	free(show->before.qp);
	free(devs.dev);
	return err;
}

static int flow_show(struct call *call)
{
	const struct value *limit = call_value(call, "limit");
	struct show show = {
		.out = call->out,
		.qpn = call_value(call, "qpn"),
		.sort = call_value(call, "sort"),
		.limit = limit->text ? limit->number : UINT_MAX,
	};

	if (show_all(&show, call->nl, call_value(call, "dev")->text))
		return CMD_REFUSED;
	if (show.qpn->text && !show.shown) {
		error("qpn %s: the device has no queue pair of this number",
		      show.qpn->text);
		return CMD_REFUSED;
	}
	return CMD_DONE;
}

int flow_count_older(struct nl *nl)
{
	static const struct value any;
	struct show show = { .qpn = &any, .sort = &any, .limit = UINT_MAX };
	int err = show_all(&show, nl, NULL);

	return err ? err : (int)show.older;
}

static const struct verb flow_verbs[] = {
	{
		"show", "Show every queue pair, and why it is not managed.",
		show_args, flow_show_check, flow_show
	},
	{ }
};

const struct object flow_object = {
	.name = "flow",
	.doc = "traffic of queue pairs",
	.verbs = flow_verbs,
};
