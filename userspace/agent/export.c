// SPDX-License-Identifier: GPL-2.0
/*
 * Metrics over HTTP, by libmicrohttpd, in the loop.
 *
 * The loop also times reference messages, so nothing here takes long at once: one part
 * of an answer of the module, or one piece of text to one client. Clients that come
 * while the module is asked wait, and get the same. What is held is bounded: by
 * CONNECTIONS, METRICS_GROUPS, REQUEST, and the limits that the module has for peers of a
 * device; a client that does nothing is sent away.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/genetlink.h>

#include "export.h"
#include "loop.h"
#include "nl.h"

enum {
	CONNECTIONS = 8,
	/* What a client may send, and what is sent at once, in bytes */
	REQUEST = 16384,
	TIMEOUT_S = 10,
	TEXT = 2 * METRICS_PIECE,
};

#define OPENMETRICS "application/openmetrics-text"
#define OPENMETRICS_TYPE OPENMETRICS "; version=1.0.0; charset=utf-8"
#define PROMETHEUS_TYPE "text/plain; version=0.0.4; charset=utf-8"
#define PAGE_TYPE "text/html; charset=utf-8"

static const char page[] = "<!DOCTYPE html>\n<title>rdma-isolated</title>\n"
	"<h1>rdma-isolated</h1>\n<p><a href=\"/metrics\">Metrics</a></p>\n";

/**
 * struct scrape - all that was asked for at one time
 * @users: clients that it is sent to, and 1 while the module is asked
 * @failed: there is no answer
 * @metrics: what is known
 */
struct scrape {
	unsigned int users;
	bool failed;
	struct metrics metrics;
};

/**
 * struct client - one that waits, or that an answer is sent to
 * @connection: its connection
 * @scrape: what it gets
 * @pos: up to here it was made text
 * @text: that
 * @len: length of it
 * @at: how much of that was sent
 */
struct client {
	struct MHD_Connection *connection;
	struct scrape *scrape;
	struct metrics_pos pos;
	char text[TEXT];
	size_t len;
	size_t at;
};

static void on_socket(struct source *s);
static void on_answer(struct source *s);

static struct MHD_Daemon *daemon_now;
static int listener = -1;
static struct source sockets = { .fd = -1, .ready = on_socket };
static struct source timer = { .fd = -1 };
static struct source answer = { .fd = -1, .ready = on_answer };
static struct nl *module;
static void (*add_own)(struct metrics *m);
static struct client *waiting[CONNECTIONS];
static struct scrape *scrape;
static size_t step;

/* --- what the module says --- */

static const char *text(const struct nlattr * const *attrs, uint16_t attr)
{
	return attrs[attr] ? mnl_attr_get_str(attrs[attr]) : "";
}

static void on_dev(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
		   void *data)
{
	const struct name_set *set = &name_set_dev;
	struct metrics_dev *d = metrics_add_dev(data, text(attrs, RDMA_ISOLATE_A_DEV_DEV));

	(void)nlh;
	if (!d)
		return;
	d->state = nl_number(attrs, RDMA_ISOLATE_A_DEV_STATE, set);
	d->max_rate = nl_number(attrs, RDMA_ISOLATE_A_DEV_MAX_RATE, set);
	d->managed_flows = nl_number(attrs, RDMA_ISOLATE_A_DEV_MANAGED_FLOWS, set);
	d->held = nl_number(attrs, RDMA_ISOLATE_A_DEV_HELD_WRS, set);
}

static void on_budget(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
		      void *data)
{
	const struct name_set *set = &name_set_budget;
	struct metrics_dev *d = metrics_find_dev(data, text(attrs, RDMA_ISOLATE_A_BUDGET_DEV));

	(void)nlh;
	if (!d)
		return;
	d->safe_util = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_SAFE_UTIL, set);
	d->pace[0] = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_TX_PACE, set);
	d->pace[1] = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_RX_PACE, set);
	d->lease_ns = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_LEASE_NS, set);
	d->ctrl_state = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_CTRL_STATE, set);
	d->target99_ns = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_TARGET99_NS, set);
	d->current99_ns = nl_number(attrs, RDMA_ISOLATE_A_BUDGET_CURRENT99_NS, set);
	d->groups[RISO_CLASS_LATENCY] =
		nl_number(attrs, RDMA_ISOLATE_A_BUDGET_LATENCY_GROUPS, set);
	d->groups[RISO_CLASS_THROUGHPUT] =
		nl_number(attrs, RDMA_ISOLATE_A_BUDGET_THROUGHPUT_GROUPS, set);
	d->groups[RISO_CLASS_BANDWIDTH] =
		nl_number(attrs, RDMA_ISOLATE_A_BUDGET_BANDWIDTH_GROUPS, set);
}

/**
 * struct counter - one of the module
 * @name: its name
 * @val: its value
 */
struct counter {
	const char *name;
	uint64_t val;
};

static int on_counter(const struct nlattr *attr, void *data)
{
	struct counter *c = data;

	if (mnl_attr_get_type(attr) == RDMA_ISOLATE_A_COUNTER_NAME &&
	    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
		c->name = mnl_attr_get_str(attr);
	if (mnl_attr_get_type(attr) == RDMA_ISOLATE_A_COUNTER_VALUE &&
	    mnl_attr_validate(attr, MNL_TYPE_U64) >= 0)
		c->val = mnl_attr_get_u64(attr);
	return MNL_CB_OK;
}

static void on_stat(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
		    void *data)
{
	struct metrics_dev *d = metrics_find_dev(data, text(attrs, RDMA_ISOLATE_A_STAT_DEV));
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct genlmsghdr)) {
		struct counter c = { 0 };

		if (!d || mnl_attr_get_type(attr) != RDMA_ISOLATE_A_STAT_COUNTER)
			continue;
		mnl_attr_parse_nested(attr, on_counter, &c);
		if (c.name)
			metrics_count(data, d, c.name, c.val);
	}
}

static void on_flow(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
		    void *data)
{
	const struct name_set *set = &name_set_flow;
	struct metrics_dev *d = metrics_find_dev(data, text(attrs, RDMA_ISOLATE_A_FLOW_DEV));
	uint64_t class = nl_number(attrs, RDMA_ISOLATE_A_FLOW_CLASS, set);

	(void)nlh;
	if (!d || class >= METRICS_CLASSES ||
	    nl_number(attrs, RDMA_ISOLATE_A_FLOW_REASON, set) == RISO_REASON_REFERENCE)
		return;
	d->flows[class]++;
	d->tx_bytes[class] += nl_number(attrs, RDMA_ISOLATE_A_FLOW_TX_BYTES, set);
	d->rx_bytes[class] += nl_number(attrs, RDMA_ISOLATE_A_FLOW_RX_BYTES, set);
}

static void on_group(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
		     void *data)
{
	const struct name_set *set = &name_set_group;
	struct metrics_group *g = metrics_add_group(data,
						    text(attrs, RDMA_ISOLATE_A_GROUP_DEV));

	(void)nlh;
	if (!g)
		return;
	g->id = nl_number(attrs, RDMA_ISOLATE_A_GROUP_ID, set);
	snprintf(g->ulp, sizeof(g->ulp), "%s",
		 text(attrs, RDMA_ISOLATE_A_GROUP_ULP));
	snprintf(g->peer, sizeof(g->peer), "%s",
		 text(attrs, RDMA_ISOLATE_A_GROUP_PEER));
	snprintf(g->comm, sizeof(g->comm), "%s",
		 text(attrs, RDMA_ISOLATE_A_GROUP_COMM));
	g->pid = nl_number(attrs, RDMA_ISOLATE_A_GROUP_PID, set);
	g->weight = nl_number(attrs, RDMA_ISOLATE_A_GROUP_WEIGHT, set);
	g->flows = nl_number(attrs, RDMA_ISOLATE_A_GROUP_FLOWS, set);
	g->held = nl_number(attrs, RDMA_ISOLATE_A_GROUP_HELD, set);
	g->avg[0] = nl_number(attrs, RDMA_ISOLATE_A_GROUP_AVG10, set);
	g->avg[1] = nl_number(attrs, RDMA_ISOLATE_A_GROUP_AVG60, set);
	g->avg[2] = nl_number(attrs, RDMA_ISOLATE_A_GROUP_AVG300, set);
	g->tx_bytes = nl_number(attrs, RDMA_ISOLATE_A_GROUP_TX_BYTES, set);
	g->rx_bytes = nl_number(attrs, RDMA_ISOLATE_A_GROUP_RX_BYTES, set);
	g->wrs = nl_number(attrs, RDMA_ISOLATE_A_GROUP_WRS, set);
	g->used_ns = nl_number(attrs, RDMA_ISOLATE_A_GROUP_USED_NS, set);
	g->stall_ns = nl_number(attrs, RDMA_ISOLATE_A_GROUP_STALL_NS, set);
	g->wait_ns[0] = nl_number(attrs, RDMA_ISOLATE_A_GROUP_CLOCK_NS, set);
	g->wait_ns[1] = nl_number(attrs, RDMA_ISOLATE_A_GROUP_WINDOW_NS, set);
	g->wait_ns[2] = nl_number(attrs, RDMA_ISOLATE_A_GROUP_OWN_NS, set);
	g->wait_ns[3] = nl_number(attrs, RDMA_ISOLATE_A_GROUP_PATH_NS, set);
}

static void on_path(const struct nlattr * const *attrs, const struct nlmsghdr *nlh, void *data)
{
	const struct name_set *set = &name_set_path;
	uint64_t dir = nl_number(attrs, RDMA_ISOLATE_A_PATH_DIR, set);
	struct metrics_path *p;

	(void)nlh;
	if (dir > RISO_PATH_RX)
		return;
	p = metrics_add_path(data, text(attrs, RDMA_ISOLATE_A_PATH_DEV));
	if (!p)
		return;
	snprintf(p->peer, sizeof(p->peer), "%s", text(attrs, RDMA_ISOLATE_A_PATH_PEER));
	p->dir = dir;
	p->limit = nl_number(attrs, RDMA_ISOLATE_A_PATH_RATE, set);
	p->lease_ns = nl_number(attrs, RDMA_ISOLATE_A_PATH_LEASE_NS, set);
	p->bytes = nl_number(attrs, RDMA_ISOLATE_A_PATH_BYTES, set);
	p->waits = nl_number(attrs, RDMA_ISOLATE_A_PATH_WAITS, set);
}

/* What is asked for, one after the other; devices are first. */
static const struct {
	uint8_t cmd;
	const struct name_set *set;
	nl_reply_fn reply;
} steps[] = {
	{ RDMA_ISOLATE_CMD_DEV_GET, &name_set_dev, on_dev },
	{ RDMA_ISOLATE_CMD_BUDGET_GET, &name_set_budget, on_budget },
	{ RDMA_ISOLATE_CMD_STAT_GET, &name_set_stat, on_stat },
	{ RDMA_ISOLATE_CMD_FLOW_GET, &name_set_flow, on_flow },
	{ RDMA_ISOLATE_CMD_GROUP_GET, &name_set_group, on_group },
	{ RDMA_ISOLATE_CMD_PATH_GET, &name_set_path, on_path },
};

enum { STEPS = sizeof(steps) / sizeof(*steps) };

static void leave(struct scrape *sc)
{
	if (--sc->users)
		return;
	metrics_free(&sc->metrics);
	free(sc);
}

static void serve(void);

/* What the module has not said yet goes with the socket. */
static void end(void)
{
	loop_remove(&answer);
	if (module)
		nl_close(module);
	module = NULL;
}

/* Those who wait get what there is. */
static void finish(bool failed)
{
	size_t i;

	end();
	if (!failed)
		add_own(&scrape->metrics);
	scrape->failed = failed;
	for (i = 0; i < CONNECTIONS; i++)
		if (waiting[i])
			MHD_resume_connection(waiting[i]->connection);
	memset(waiting, 0, sizeof(waiting));
	leave(scrape);
	scrape = NULL;
}

static bool ask(void)
{
	nl_request(module, steps[step].cmd, true);
	return !nl_begin(module);
}

static void on_answer(struct source *s)
{
	int more = nl_part(module, steps[step].set, steps[step].reply, &scrape->metrics);

	(void)s;
	if (more > 0 || (!more && ++step < STEPS && ask()))
		return;
	finish(more < 0 || step < STEPS);
	serve();
}

static bool begin(void)
{
	scrape = calloc(1, sizeof(*scrape));
	if (!scrape)
		return false;
	scrape->users = 1;
	step = 0;
	module = nl_open();
	answer.fd = module ? nl_fd(module) : -1;
	if (module && !loop_add(&answer) && ask())
		return true;
	end();
	free(scrape);
	scrape = NULL;
	return false;
}

/* --- what clients get --- */

static enum MHD_Result send_page(struct MHD_Connection *connection)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(strlen(page), (void *)page,
								 MHD_RESPMEM_PERSISTENT);
	enum MHD_Result res;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, PAGE_TYPE);
	res = MHD_queue_response(connection, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return res;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned int status)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(0, "", MHD_RESPMEM_PERSISTENT);
	enum MHD_Result res;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(r, MHD_HTTP_HEADER_ALLOW, MHD_HTTP_METHOD_GET);
	res = MHD_queue_response(connection, status, r);
	MHD_destroy_response(r);
	return res;
}

static ssize_t more_text(void *data, uint64_t pos, char *buf, size_t max)
{
	struct client *c = data;

	(void)pos;
	if (c->at == c->len) {
		c->len = metrics_text(&c->scrape->metrics, &c->pos, c->text, sizeof(c->text));
		c->at = 0;
	}
	if (!c->len)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (max > c->len - c->at)
		max = c->len - c->at;
	memcpy(buf, c->text + c->at, max);
	c->at += max;
	return max;
}

static enum MHD_Result reply(struct client *c)
{
	struct MHD_Response *r;
	enum MHD_Result res;

	if (c->scrape->failed)
		return refuse(c->connection, MHD_HTTP_SERVICE_UNAVAILABLE);
	r = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, TEXT, more_text, c, NULL);
	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE,
				c->pos.openmetrics ? OPENMETRICS_TYPE : PROMETHEUS_TYPE);
	res = MHD_queue_response(c->connection, MHD_HTTP_OK, r);
	MHD_destroy_response(r);
	return res;
}

static enum MHD_Result wait_for_scrape(struct client *c)
{
	size_t i;

	if (!scrape && !begin())
		return refuse(c->connection, MHD_HTTP_SERVICE_UNAVAILABLE);
	for (i = 0; i < CONNECTIONS && waiting[i]; i++)
		;
	if (i == CONNECTIONS)
		return MHD_NO;
	waiting[i] = c;
	c->scrape = scrape;
	scrape->users++;
	MHD_suspend_connection(c->connection);
	return MHD_YES;
}

/* Who does not ask for it may not know what is new in it. */
static bool wants_openmetrics(struct MHD_Connection *connection)
{
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_ACCEPT);

	return accept && strcasestr(accept, OPENMETRICS);
}

/* Once when the request is known, and once when it is complete. */
static enum MHD_Result on_request(void *data, struct MHD_Connection *connection,
				  const char *url, const char *method,
				  const char *version, const char *upload,
				  size_t *upload_len, void **context)
{
	struct client *c = *context;

	(void)data;
	(void)version;
	(void)upload;
	if (*upload_len)
		return MHD_NO;
	if (c)
		return c->scrape ? reply(c) : wait_for_scrape(c);
	if (strcmp(url, "/metrics") && strcmp(url, "/"))
		return refuse(connection, MHD_HTTP_NOT_FOUND);
	if (strcmp(method, MHD_HTTP_METHOD_GET))
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED);
	if (!strcmp(url, "/"))
		return send_page(connection);
	c = calloc(1, sizeof(*c));
	if (!c)
		return MHD_NO;
	c->pos.openmetrics = wants_openmetrics(connection);
	c->connection = connection;
	*context = c;
	return MHD_YES;
}

static void on_completed(void *data, struct MHD_Connection *connection, void **context,
			 enum MHD_RequestTerminationCode why)
{
	struct client *c = *context;

	(void)data;
	(void)connection;
	(void)why;
	if (c && c->scrape)
		leave(c->scrape);
	free(c);
	*context = NULL;
}

/*
 * Let libmicrohttpd do what can be done now, and say when it wants to be called. It
 * does not say so when one of too many connections has ended and it could accept again.
 */
static void serve(void)
{
	static unsigned int connections;
	unsigned int before = connections;
	MHD_UNSIGNED_LONG_LONG ms;
	uint64_t at = 0;

	MHD_run(daemon_now);
	connections = MHD_get_daemon_info(daemon_now,
					  MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
	if (MHD_get_timeout(daemon_now, &ms) == MHD_YES)
		at = now_ns() + ms * MS;
	timer_set(&timer, connections < before ? now_ns() : at);
}

static void on_socket(struct source *s)
{
	(void)s;
	serve();
}

static void on_timer(struct source *s)
{
	if (timer_fired(s))
		serve();
}

/* A socket that listens, or a negative errno */
static int listen_at(const union conf_addr *addr)
{
	socklen_t len = addr->sa.sa_family == AF_INET ? sizeof(addr->v4) : sizeof(addr->v6);
	int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int one = 1, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, &addr->sa, len) && !listen(fd, SOMAXCONN))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/*
 * A socket that listens in place of the present one. The addresses may overlap, as that of
 * the loopback does with all of them: then the old socket does not listen while the new one
 * begins to. It keeps its port, and listens again if the new one cannot.
 */
static int listen_instead(const union conf_addr *addr)
{
	int fd = listen_at(addr);

	if (fd != -EADDRINUSE || listener < 0)
		return fd;
	shutdown(listener, SHUT_RD);
	fd = listen_at(addr);
	if (fd < 0)
		listen(listener, SOMAXCONN);
	return fd;
}

int export_open(const union conf_addr *addr, void (*own)(struct metrics *m))
{
	struct MHD_Daemon *d;
	int fd = listen_instead(addr);
	int err;

	if (fd < 0)
		return fd;
	d = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
			     on_request, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
			     MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
			     MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)REQUEST,
			     MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S,
			     MHD_OPTION_STRICT_FOR_CLIENT, 1,
			     MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL,
			     MHD_OPTION_END);
	if (!d) {
		close(fd);
		if (listener >= 0)
			listen(listener, SOMAXCONN);
		return -ENOMEM;
	}
	export_close();
	add_own = own;
	daemon_now = d;
	listener = fd;
	sockets.fd = MHD_get_daemon_info(d, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	err = timer_open(&timer, on_timer);
	if (!err)
		err = loop_add(&sockets);
	if (!err)
		return 0;
	export_close();
	return err;
}

void export_close(void)
{
	if (scrape)
		finish(true);
	loop_remove(&sockets);
	timer_close(&timer);
	if (daemon_now)
		MHD_stop_daemon(daemon_now);
	daemon_now = NULL;
	listener = -1;
}
