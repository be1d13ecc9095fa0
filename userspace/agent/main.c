// SPDX-License-Identifier: GPL-2.0
/*
 * rdma-isolated: one process that steers all devices of a host.
 *
 * Owns what it was told to do, the devices that are steered, and the two sockets to
 * the module: one for requests, one for events. Everything happens in the loop, one
 * thing after the other.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "check.h"
#include "cm.h"
#include "conf.h"
#include "export.h"
#include "loop.h"
#include "marks.h"
#include "notify.h"
#include "serve.h"
#include "steer.h"

/**
 * struct device - one that is steered
 * @list: in the list of devices
 * @steer: its controller
 * @conf: how it is steered
 * @is: what the module says of it: a word
 * @there: it was in the last list
 */
struct device {
	LIST_ENTRY(device) list;
	struct steer *steer;
	struct conf_dev conf;
	const char *is;
	bool there;
};

static LIST_HEAD(, device) devices = LIST_HEAD_INITIALIZER(devices);
static struct conf conf;
static struct conf_args args;
static struct nl *requests, *events;
static int status;

/*
 * Without the module there is nothing to do, which is no failure. After another error
 * whoever has started it may want to do so again.
 */
static void give_up(int err)
{
	if (err != -ENOENT)
		status = CONF_FAILED;
	loop_stop();
}

static void forget(struct device *d)
{
	steer_close(d->steer);
	LIST_REMOVE(d, list);
	free(d);
}

static struct device *find(const char *name)
{
	struct device *d;

	LIST_FOREACH(d, &devices, list)
		if (!strcmp(d->conf.name, name))
			return d;
	return NULL;
}

static const char *word(const struct nlattr *attr, const struct name_enum *words)
{
	uint32_t val = attr ? mnl_attr_get_u32(attr) : UINT32_MAX;

	return val < words->n ? words->values[val].name : "?";
}

static struct device *device_open(const char *name)
{
	const struct conf_dev *wanted = conf_dev(&conf, name);
	struct device *d = wanted ? calloc(1, sizeof(*d)) : NULL;

	if (d) {
		d->conf = *wanted;
		d->steer = steer_open(requests, &conf, &d->conf);
		if (d->steer) {
			LIST_INSERT_HEAD(&devices, d, list);
			return d;
		}
		free(d);
	}
	if (wanted)
		log_line("%s: out of memory", name);
	return NULL;
}

static void on_device(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
		      void *data)
{
	const char *name = attrs[RDMA_ISOLATE_A_DEV_DEV] ?
			   mnl_attr_get_str(attrs[RDMA_ISOLATE_A_DEV_DEV]) : "";
	struct device *d = find(name);

	(void)nlh;
	(void)data;
	/* It tells of its end while it is in the list yet. */
	if (attrs[RDMA_ISOLATE_A_DEV_STATE] &&
	    mnl_attr_get_u32(attrs[RDMA_ISOLATE_A_DEV_STATE]) == RISO_DEV_GONE)
		return;
	if (d)
		steer_look(d->steer);
	else
		d = device_open(name);
	if (!d)
		return;
	d->there = true;
	d->is = word(attrs[RDMA_ISOLATE_A_DEV_STATE], &name_state);
	if (!strcmp(d->is, name_state.values[RISO_DEV_ENABLE].name))
		d->is = word(attrs[RDMA_ISOLATE_A_DEV_CTRL], &name_ctrl);
}

static void on_budget(const struct nlattr * const *attrs, const struct nlmsghdr *nlh,
		      void *data)
{
	struct device *d = attrs[RDMA_ISOLATE_A_BUDGET_DEV] ?
			   find(mnl_attr_get_str(attrs[RDMA_ISOLATE_A_BUDGET_DEV])) : NULL;

	(void)nlh;
	(void)data;
	/* One that it steers */
	if (d && d->is == name_ctrl.values[RISO_CTRL_AUTO].name)
		d->is = word(attrs[RDMA_ISOLATE_A_BUDGET_CTRL_STATE], &name_ctrl_state);
}

/* "mlx5_1 mlx5_2": logged once each time that others are missing */
static void tell_missing(void)
{
	static char told[256];
	char text[256] = "";
	size_t n = 0;
	unsigned int i;

	for (i = 0; i < conf.n_devs && n < sizeof(text); i++)
		if (!find(conf.dev[i].name))
			n += snprintf(text + n, sizeof(text) - n, " %s",
				      conf.dev[i].name);
	if (*text && strcmp(text, told))
		log_line("there is no such RDMA device now:%s", text);
	memcpy(told, text, sizeof(told));
}

/* "mlx5_0 tracking, mlx5_1 not there": those that are to be steered */
static void tell_status(void)
{
	char text[256];
	size_t n = 0;
	unsigned int i;

	snprintf(text, sizeof(text), "no device in the settings");
	for (i = 0; i < conf.n_devs && n < sizeof(text); i++) {
		const struct device *d = find(conf.dev[i].name);

		n += snprintf(text + n, sizeof(text) - n, "%s%s %s", i ? ", " : "",
			      conf.dev[i].name, d ? d->is : "not there");
	}
	notify_status(text);
}

/* How often to look for devices although nobody has told of any */
#define LOOK_NS (10 * SEC)

static struct source alone = { .fd = -1 };

/* See which devices there are, and how they are; again soon if there are none. */
static void look(void)
{
	struct device *d, *next;
	int err;

	LIST_FOREACH(d, &devices, list)
		d->there = false;
	nl_request(requests, RDMA_ISOLATE_CMD_DEV_GET, true);
	err = nl_send(requests, &name_set_dev, on_device, NULL);
	if (err) {
		give_up(err);
		return;
	}
	nl_request(requests, RDMA_ISOLATE_CMD_BUDGET_GET, true);
	err = nl_send(requests, &name_set_budget, on_budget, NULL);
	if (err)
		give_up(err);
	for (d = LIST_FIRST(&devices); d; d = next) {
		next = LIST_NEXT(d, list);
		if (!d->there)
			forget(d);
	}
	tell_missing();
	tell_status();
	timer_set(&alone, now_ns() + (LIST_EMPTY(&devices) ? SEC : LOOK_NS));
}

/* Nobody tells that the module has gone, which may have come back as another family. */
static void on_alone(struct source *s)
{
	if (timer_fired(s))
		look();
}

static void on_module_event(uint8_t cmd, const struct nlmsghdr *nlh, void *data)
{
	(void)nlh;
	if (cmd == RDMA_ISOLATE_CMD_CTRL_NTF || cmd == RDMA_ISOLATE_CMD_DEV_NTF)
		*(bool *)data = true;
}

static void on_module(struct source *s)
{
	bool news = false;
	int lost;

	(void)s;
	lost = nl_events(events, on_module_event, &news);
	if (lost < 0)
		give_up(lost);
	/* It may have been one of those. */
	if (news || lost > 0)
		look();
}

static void add_metrics(struct metrics *m)
{
	struct device *d;

	LIST_FOREACH(d, &devices, list)
		steer_metrics(d->steer, m);
}

/* At the port of these settings; 0 or a negative errno, after telling what is wrong */
static int open_metrics(const struct conf *c)
{
	union conf_addr addr = c->metrics_listen;
	char name[INET6_ADDRSTRLEN];
	int err;

	if (!c->metrics) {
		export_close();
		return 0;
	}
	/* IPv4 and IPv6 have the port at the same place. */
	addr.v4.sin_port = htons(c->metrics);
	err = export_open(&addr, add_metrics);
	if (err)
		log_line("metrics: %s port %ju: %s", conf_addr_name(&addr, name),
			 (uintmax_t)c->metrics, strerror(-err));
	return err;
}

/* Does an address belong to this host? */
static bool is_here(const union conf_addr *addr)
{
	union conf_addr any_port = *addr;
	int fd = socket(addr->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool here;

	any_port.v4.sin_port = 0;
	here = fd >= 0 && !bind(fd, &any_port.sa, sizeof(any_port));
	if (fd >= 0)
		close(fd);
	return here;
}

static void warn_own_peers(const struct conf_dev *dev)
{
	char name[INET6_ADDRSTRLEN];
	unsigned int i;

	for (i = 0; i < dev->n_peers; i++)
		if (is_here(&dev->peer[i]) ||
		    !memcmp(&dev->peer[i], &conf.listen, sizeof(conf.listen)))
			log_line("%s: peer %s is an address of this host: no message leaves it",
				 dev->name, conf_addr_name(&dev->peer[i], name));
}

/* What is allowed, and steers nothing, or not as meant */
static void warn_useless(void)
{
	unsigned int i;

	if (!conf.n_devs)
		log_line("no device is in the settings, so none is steered");
	for (i = 0; i < conf.n_devs; i++) {
		if (!conf.dev[i].n_peers)
			log_line("%s: no peer is in the settings, so nothing is measured",
				 conf.dev[i].name);
		warn_own_peers(&conf.dev[i]);
	}
}

/* All of it, or nothing */
static void reload(void)
{
	struct conf fresh = { };
	char error[CONF_ERROR_LEN];
	struct device *d, *next;
	bool anew;

	if (!conf_load(&fresh, &args, error, sizeof(error))) {
		log_line("not reloaded: %s", error);
		return;
	}
	if (fresh.port != conf.port ||
	    memcmp(&fresh.listen, &conf.listen, sizeof(conf.listen))) {
		log_line("not reloaded: listen and port are another after a restart only");
		conf_free(&fresh);
		return;
	}
	if ((fresh.metrics != conf.metrics ||
	     memcmp(&fresh.metrics_listen, &conf.metrics_listen,
		    sizeof(conf.metrics_listen))) && open_metrics(&fresh)) {
		log_line("not reloaded");
		conf_free(&fresh);
		return;
	}
	anew = !conf_same_law(&fresh, &conf);
	conf_free(&conf);
	conf = fresh;
	for (d = LIST_FIRST(&devices); d; d = next) {
		const struct conf_dev *dev = conf_dev(&conf, d->conf.name);

		next = LIST_NEXT(d, list);
		if (!dev)
			steer_give_back(d->steer);
		/* One that stays is steered on from what was lent. */
		if (anew || !dev || !conf_same_dev(dev, &d->conf))
			forget(d);
	}
	log_line("reloaded");
	warn_useless();
	look();
}

static void on_signal(struct source *s)
{
	struct signalfd_siginfo info;

	if (read(s->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo != SIGHUP) {
		loop_stop();
		return;
	}
	notify_reloading();
	reload();
	notify_ready();
}

static struct source module = { .fd = -1, .ready = on_module };
static struct source signals = { .fd = -1, .ready = on_signal };

/* 0, or a negative errno after telling what is missing: -ENOENT if that is the module */
static int find_module(void)
{
	requests = nl_open();
	events = requests ? nl_open() : NULL;
	return events ? nl_subscribe(events) : -errno;
}

/* The connection manager has one error for a port that is taken and another's address. */
static bool start_listening(void)
{
	union conf_addr addr = conf.listen;
	char name[INET6_ADDRSTRLEN];
	const char *why;
	int err;

	addr.v4.sin_port = htons(conf.port);
	err = serve_open(&addr);
	if (!err)
		return true;
	why = strerror(-err);
	if ((err == -EADDRNOTAVAIL || err == -EADDRINUSE) && is_here(&addr))
		why = "the port is taken; is there another rdma-isolated?";
	else if (err == -EADDRNOTAVAIL)
		why = "this host does not have the address";
	log_line("cannot listen at %s port %ju: %s", conf_addr_name(&addr, name),
		 (uintmax_t)conf.port, why);
	return false;
}

/* NULL, or what is missing */
static const char *start(void)
{
	sigset_t mask;

	if (loop_open())
		return "no epoll";
	sigemptyset(&mask);
	sigaddset(&mask, SIGTERM);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGHUP);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	signals.fd = signalfd(-1, &mask, SFD_CLOEXEC);
	module.fd = nl_fd(events);
	if (loop_add(&signals) || loop_add(&module))
		return "no signals";
	if (timer_open(&alone, on_alone) || marks_open(requests) || notify_open())
		return "no timer";
	if (cm_open())
		return errno == ENODEV ? "no RDMA device yet" :
					 "no connection manager, is rdma_ucm loaded";
	return NULL;
}

/* It is started again at once for the sake of its lease. Without one it can wait. */
static int cannot_start(void)
{
	sleep(1);
	return CONF_FAILED;
}

int main(int argc, char **argv)
{
	char error[CONF_ERROR_LEN];
	const char *why;
	int usage, err;

	usage = conf_args(argc, argv, &args);
	if (usage != CONF_RUN)
		return usage;
	if (!conf_load(&conf, &args, error, sizeof(error))) {
		log_line("%s", error);
		return args.check ? CONF_FAILED : cannot_start();
	}
	warn_useless();
	if (args.check) {
		check_explain(stdout, &conf);
		puts("OK");
		return CONF_DONE;
	}
	err = find_module();
	if (err)
		return err == -ENOENT ? CONF_NO_MODULE : cannot_start();
	why = start();
	if (why) {
		log_line("%s: %s", why, strerror(errno));
		return cannot_start();
	}
	if (!start_listening() || open_metrics(&conf))
		return cannot_start();
	look();
	notify_ready();
	loop_run();
	notify_stopping();
	while (!LIST_EMPTY(&devices)) {
		steer_give_back(LIST_FIRST(&devices)->steer);
		forget(LIST_FIRST(&devices));
	}
	marks_close();
	export_close();
	serve_close();
	cm_close();
	notify_close();
	loop_close();
	nl_close(events);
	nl_close(requests);
	conf_free(&conf);
	conf_args_free(&args);
	return status;
}
