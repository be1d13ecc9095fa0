// SPDX-License-Identifier: GPL-2.0
/*
 * The settings of rdma-isolated: the file and the command line.
 *
 * Two tables have all keys; what is read, and what errors say is allowed, comes from
 * them.
 *
 * libinih takes lines apart, but cuts the names of sections short, does not tell of
 * one without keys, and takes a line that begins with a blank for more of the one
 * before. So read_line() deals with headings and blanks before it gives it a line.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf.h"
#include "secret.h"
#include "units.h"

#define BLANKS " \t\r"
#define US UINT64_C(1000)
#define MS (1000 * US)
#define S (1000 * MS)

#define ADDRESS_ALLOWED \
	"an address of IPv4, or of IPv6 that is not link-local; not of multicast"
#define PEER_ALLOWED \
	ADDRESS_ALLOWED ", nor 0.0.0.0 or ::; up to 16, none of them twice"
/* In front of an IPv4 address, it makes an IPv6 one */
#define MAPPED "::ffff:"
#define DEV_ALLOWED "a name of 1 to 63 characters, without blanks and /=[];"

#define HELP \
	"usage: rdma-isolated [OPTION]...\n" \
	"  --config FILE       settings, instead of " CONF_FILE "\n" \
	"  --check             only say whether the settings are right\n" \
	"  --dev DEV           only this device; may be repeated\n" \
	"  --peer DEV=ADDRESS  instead of its peers in the file; may be repeated\n" \
	"  --listen ADDRESS, --port NUMBER, --ref-period TIME, --law default|paper,\n" \
	"  --metrics off|PORT  instead of what the file says\n" \
	"  --help or -h, --version or -V\n"

#define NOTHING "neither [SECTION] nor KEY = VALUE"
#define SECTIONS "[agent], once, and [device NAME], once for each device"

typedef bool (*parse_fn)(const char *text, uint64_t *val);

enum kind { NUMBER, TIME, LISTEN, PEER, SECRET };

struct key {
	const char *name;
	const char *allowed;	/* what is below, for errors */
	enum kind kind;
	size_t at;		/* in its struct; an uint64_t for NUMBER and TIME */
	uint64_t min, max;	/* no numbers at all without max */
	const char *words[2];	/* are allowed, too, and mean 0 and 1 */
};

#define AGENT(field) .at = offsetof(struct conf, field)
#define DEV(field) .at = offsetof(struct conf_dev, field)

static const struct key agent_keys[] = {
	{ "listen", ADDRESS_ALLOWED, LISTEN, AGENT(listen) },
	{ "port", "1 to 65535", NUMBER, AGENT(port), 1, 65535 },
	{ "ref-period", "100us to 1s", TIME, AGENT(ref_period_ns), 100 * US, S },
	{ "spin", "off or 1us to 100us", TIME, AGENT(spin_ns), US, 100 * US, { "off" } },
	{ "window", "100 to 1000000", NUMBER, AGENT(window), 100, 1000000 },
	{ "short-window", "20 to 10000", NUMBER, AGENT(short_window), 20, 10000 },
	{ "lease", "10ms to 1min", TIME, AGENT(lease_ns), 10 * MS, 60 * S },
	{ "law", "default or paper", NUMBER, AGENT(law),
	  .words = { "default", "paper" } },
	{ "metrics", "off or 1 to 65535", NUMBER, AGENT(metrics), 1, 65535, { "off" } },
	{ "metrics-listen", ADDRESS_ALLOWED, LISTEN, AGENT(metrics_listen) },
	{ "secret", SECRET_ALLOWED, SECRET, .at = 0 },
	{ }
};

_Static_assert(sizeof(agent_keys) / sizeof(*agent_keys) == CONF_AGENT_KEYS + 1,
	       "conf_args.set has one for each");

static const struct key dev_keys[] = {
	{ "peer", PEER_ALLOWED, PEER, .at = 0 },
	{ "unattainable", "keep or give-up", NUMBER, DEV(unattainable),
	  .words = { "keep", "give-up" } },
	{ "delta", "100ms to 60min", TIME, DEV(delta_ns), 100 * MS, 3600 * S },
	{ "not-local", "recover or stay", NUMBER, DEV(not_local),
	  .words = { "recover", "stay" } },
	{ }
};

static const struct conf conf_default = {
	.listen.v6 = { .sin6_family = AF_INET6 },
	.port = 18516,
	.ref_period_ns = 500 * US,
	.window = 10000,
	.short_window = 200,
	.lease_ns = S,
};

/* Where in a file we are */
struct parser {
	FILE *in;
	const char *name;
	unsigned int line;
	unsigned int window_line;	/* the last one about windows */
	struct conf *conf;
	const struct key *keys;		/* of this section, NULL without one */
	void *section;			/* its place in conf */
	unsigned int given;		/* which of keys were there */
	bool agent;			/* its section was there */
	bool wrong;			/* and the error says what */
	char *error;
	size_t len;
};

__attribute__((format(printf, 2, 3)))
static void wrong(struct parser *p, const char *format, ...)
{
	va_list args;
	size_t n;

	p->wrong = true;
	snprintf(p->error, p->len, "%s:%u: ", p->name, p->line);
	n = strlen(p->error);
	va_start(args, format);
	vsnprintf(p->error + n, p->len - n, format, args);
	va_end(args);
}

static const struct key *key_find(const struct key *key, const char *name)
{
	while (key->name && strcmp(key->name, name))
		key++;
	return key->name ? key : NULL;
}

static bool addr_parse(const char *text, union conf_addr *to)
{
	struct in6_addr *v6 = &to->v6.sin6_addr;

	memset(to, 0, sizeof(*to));
	to->sa.sa_family = AF_INET;
	if (inet_pton(AF_INET, text, &to->v4.sin_addr) == 1)
		return !IN_MULTICAST(ntohl(to->v4.sin_addr.s_addr));
	/* "flow show" prints IPv4 so. */
	if (!strncasecmp(text, MAPPED, strlen(MAPPED)) &&
	    inet_pton(AF_INET, text + strlen(MAPPED), &to->v4.sin_addr) == 1)
		return !IN_MULTICAST(ntohl(to->v4.sin_addr.s_addr));
	to->sa.sa_family = AF_INET6;
	return inet_pton(AF_INET6, text, v6) == 1 && !IN6_IS_ADDR_MULTICAST(v6) &&
	       !IN6_IS_ADDR_LINKLOCAL(v6) && !IN6_IS_ADDR_V4MAPPED(v6);
}

const char *conf_addr_name(const union conf_addr *addr, char *name)
{
	return inet_ntop(addr->sa.sa_family, addr->sa.sa_family == AF_INET ?
			 (const void *)&addr->v4.sin_addr : (const void *)&addr->v6.sin6_addr,
			 name, INET6_ADDRSTRLEN);
}

/* NULL, or what is wrong with an address */
static const char *peer_add(struct conf_dev *dev, const char *text)
{
	union conf_addr *new = &dev->peer[dev->n_peers], *peer;

	if (dev->n_peers == CONF_PEERS_MAX)
		return "there are 16 already";
	if (!addr_parse(text, new) ||
	    (new->sa.sa_family == AF_INET ? !new->v4.sin_addr.s_addr :
	     IN6_IS_ADDR_UNSPECIFIED(&new->v6.sin6_addr)))
		return "it is no such address";
	for (peer = dev->peer; peer < new; peer++)
		if (!memcmp(peer, new, sizeof(*new)))
			return "it is there already";
	dev->n_peers++;
	return NULL;
}

/* NULL, or what is wrong with a file */
static const char *secret_set(struct conf *conf, const char *text)
{
	conf->has_secret = strcmp(text, "off");
	if (!conf->has_secret)
		return NULL;
	/* The unit does not run where --check does. */
	return *text == '/' ? secret_read(text, conf->secret) : "it does not begin with /";
}

/* False when the value is not allowed; @why has more of that, or is as it was. */
static bool key_set(const struct key *key, const char *text, void *section, const char **why)
{
	parse_fn parse = key->kind == TIME ? time_parse : count_parse;
	uint64_t val;

	if (key->kind == PEER || key->kind == SECRET) {
		*why = key->kind == PEER ? peer_add(section, text) : secret_set(section, text);
		return !*why;
	}
	if (key->kind == LISTEN)
		return addr_parse(text, section + key->at);
	for (val = 0; val < 2; val++)
		if (key->words[val] && !strcmp(text, key->words[val]))
			break;
	if (val == 2 && (!key->max || !parse(text, &val) || val < key->min ||
			 val > key->max))
		return false;
	*(uint64_t *)(section + key->at) = val;
	return true;
}

static bool is_dev_name(const char *name)
{
	return *name && strlen(name) <= RDMA_ISOLATE_DEV_NAME_MAX &&
	       !strpbrk(name, BLANKS "/=[];");
}

struct conf_dev *conf_dev(const struct conf *conf, const char *name)
{
	unsigned int i;

	for (i = 0; i < conf->n_devs; i++)
		if (!strcmp(conf->dev[i].name, name))
			return &conf->dev[i];
	return NULL;
}

/* The one that is there, or a new one; the others may move. */
static struct conf_dev *dev_get(struct conf *conf, const char *name)
{
	struct conf_dev *dev = conf_dev(conf, name);

	if (dev)
		return dev;
	dev = reallocarray(conf->dev, conf->n_devs + 1, sizeof(*dev));
	if (!dev) {
		perror("rdma-isolated");
		exit(1);
	}
	conf->dev = dev;
	dev += conf->n_devs++;
	*dev = (struct conf_dev){ .delta_ns = 5 * S };
	snprintf(dev->name, sizeof(dev->name), "%s", name);
	return dev;
}

static void heading(struct parser *p, char *text)
{
	char *end = strchr(text, ']');
	const char *rest = end ? end + 1 + strspn(end + 1, BLANKS) : text;
	const char *name;

	if (*rest && *rest != ';')
		return wrong(p, NOTHING);
	*end = 0;
	name = text + strcspn(text, BLANKS);
	name += strspn(name, BLANKS);
	p->given = 0;
	if (!strcmp(text, "[agent") && !p->agent) {
		p->agent = true;
		p->keys = agent_keys;
		p->section = p->conf;
	} else if (!strncmp(text, "[device ", 8) && is_dev_name(name) &&
		   !conf_dev(p->conf, name)) {
		p->keys = dev_keys;
		p->section = dev_get(p->conf, name);
	} else {
		wrong(p, "%s]: allowed are %s; NAME is %s", text, SECTIONS,
		      DEV_ALLOWED);
	}
}

/* As fgets(), for libinih: an empty line for each comment and heading */
static char *read_line(char *line, int size, void *parser)
{
	struct parser *p = parser;
	bool comment = false;
	int c, n = 0;

	if (p->wrong)
		return NULL;
	p->line++;
	while ((c = getc(p->in)) != EOF && c != '\n') {
		comment = comment || (!n && (c == '#' || c == ';'));
		if (comment || (!n && c && strchr(BLANKS, c)))
			continue;
		if (c != '\t' && c != '\r' && (c < ' ' || c > '~'))
			wrong(p, "character 0x%02x: allowed is ASCII, except in comments",
			      c);
		else if (n == size - 2)
			wrong(p, "the line is too long: allowed are %d characters", n);
		if (p->wrong)
			return NULL;
		line[n++] = c;
	}
	if (c == EOF && !n)
		return NULL;
	line[n] = 0;
	if (*line == '[') {
		heading(p, line);
		n = 0;
	}
	line[n++] = '\n';
	line[n] = 0;
	return line;
}

/* For libinih, which counts the lines with a 0 as wrong */
static int file_key(void *parser, const char *section, const char *name,
		    const char *text)
{
	struct parser *p = parser;
	const struct key *key = p->keys ? key_find(p->keys, name) : NULL;
	unsigned int bit = key ? 1u << (key - p->keys) : 0;
	const char *why = NULL;
	char list[128] = "";

	(void)section;
	if (!p->keys) {
		wrong(p, "%s is in no section: allowed are %s", name, SECTIONS);
	} else if (!key) {
		for (key = p->keys; key->name; key++)
			sprintf(list + strlen(list), " %s", key->name);
		wrong(p, "there is no key %s here: allowed are%s", name, list);
	} else if (key->kind != PEER && p->given & bit) {
		wrong(p, "%s is there already: allowed is one in a section", name);
	} else if (!key_set(key, text, p->section, &why)) {
		wrong(p, "%s = %s: %s%sallowed is %s", name, text, why ? why : "",
		      why ? "; " : "", key->allowed);
	}
	p->given |= bit;
	if (strstr(name, "window"))
		p->window_line = p->line;
	return !p->wrong;
}

static bool file_read(struct parser *p)
{
	int bad = ini_parse_stream(read_line, p, file_key, p);

	if (ferror(p->in) || bad < 0) {
		snprintf(p->error, p->len, "%s: %s", p->name, strerror(errno));
		return false;
	}
	/* libinih goes on after a line that it does not understand. */
	if (bad && (unsigned int)bad < p->line) {
		p->line = bad;
		wrong(p, NOTHING);
	}
	if (!p->wrong && p->conf->short_window >= p->conf->window) {
		p->line = p->window_line;
		wrong(p, "short-window is %ju: allowed is less than window, %ju",
		      (uintmax_t)p->conf->short_window, (uintmax_t)p->conf->window);
	}
	return !p->wrong;
}

/* The command line wins. */
static void merge(struct conf *conf, const struct conf_args *args)
{
	const struct conf_dev *over = args->over.dev;
	const char *why = NULL;
	struct conf_dev *dev;
	unsigned int i, n = 0;

	for (i = 0; i < CONF_AGENT_KEYS; i++)
		if (args->set[i])
			key_set(&agent_keys[i], args->set[i], conf, &why);
	for (i = 0; i < conf->n_devs; i++)
		if (!args->only || conf_dev(&args->over, conf->dev[i].name))
			conf->dev[n++] = conf->dev[i];
	conf->n_devs = n;
	for (i = 0; i < args->over.n_devs; i++, over++) {
		dev = dev_get(conf, over->name);
		if (!over->n_peers)
			continue;
		memcpy(dev->peer, over->peer, sizeof(dev->peer));
		dev->n_peers = over->n_peers;
	}
}

bool conf_load(struct conf *conf, const struct conf_args *args, char *error, size_t len)
{
	struct conf fresh = conf_default;
	struct parser p = {
		.name = args->file, .conf = &fresh, .error = error, .len = len,
	};
	bool good = true;

	fresh.metrics_listen.v4 = (struct sockaddr_in) {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	p.in = fopen(args->file, "re");
	if (p.in) {
		good = file_read(&p);
		fclose(p.in);
	} else if (errno != ENOENT || args->named) {
		snprintf(error, len, "%s: %s", args->file, strerror(errno));
		good = false;
	}
	if (!good) {
		conf_free(&fresh);
		return false;
	}
	merge(&fresh, args);
	conf_free(conf);
	*conf = fresh;
	return true;
}

bool conf_same_law(const struct conf *a, const struct conf *b)
{
	return a->ref_period_ns == b->ref_period_ns && a->spin_ns == b->spin_ns &&
	       a->window == b->window &&
	       a->short_window == b->short_window && a->lease_ns == b->lease_ns &&
	       a->law == b->law && a->has_secret == b->has_secret &&
	       !memcmp(a->secret, b->secret, sizeof(a->secret));
}

bool conf_same_dev(const struct conf_dev *a, const struct conf_dev *b)
{
	return !strcmp(a->name, b->name) && a->n_peers == b->n_peers &&
	       !memcmp(a->peer, b->peer, a->n_peers * sizeof(*a->peer)) &&
	       a->unattainable == b->unattainable && a->delta_ns == b->delta_ns &&
	       a->not_local == b->not_local;
}

void conf_free(struct conf *conf)
{
	free(conf->dev);
	*conf = (struct conf){ };
}

void conf_args_free(struct conf_args *args)
{
	conf_free(&args->over);
}

static int usage(const char *option, const char *text, const char *allowed)
{
	if (option)
		fprintf(stderr, "rdma-isolated: --%s %s: allowed is %s\n", option, text,
			allowed);
	fputs("rdma-isolated: --help has all options\n", stderr);
	return CONF_USAGE;
}

/* NULL when that is no name */
static struct conf_dev *dev_arg(struct conf_args *args, const char *text, size_t len)
{
	char name[RDMA_ISOLATE_DEV_NAME_MAX + 2];

	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	return is_dev_name(name) ? dev_get(&args->over, name) : NULL;
}

int conf_args(int argc, char **argv, struct conf_args *args)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'f' },
		{ "check", no_argument, NULL, 'c' },
		{ "dev", required_argument, NULL, 'd' },
		{ "peer", required_argument, NULL, 'p' },
		{ "listen", required_argument, NULL, 'k' },
		{ "port", required_argument, NULL, 'k' },
		{ "ref-period", required_argument, NULL, 'k' },
		{ "law", required_argument, NULL, 'k' },
		{ "metrics", required_argument, NULL, 'k' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ }
	};
	struct conf scratch = { };
	const char *why = NULL;
	const struct key *key;
	struct conf_dev *dev;
	size_t len;
	int opt, i;

	*args = (struct conf_args){ .file = CONF_FILE };
	while ((opt = getopt_long(argc, argv, "hV", options, &i)) != -1) {
		switch (opt) {
		case 'f':
			args->file = optarg;
			args->named = true;
			break;
		case 'c':
			args->check = true;
			break;
		case 'd':
			if (!dev_arg(args, optarg, strlen(optarg)))
				return usage("dev", optarg, DEV_ALLOWED);
			args->only = true;
			break;
		case 'p':
			len = strcspn(optarg, "=");
			dev = optarg[len] ? dev_arg(args, optarg, len) : NULL;
			if (!dev || peer_add(dev, optarg + len + 1))
				return usage("peer", optarg,
					     "DEV=ADDRESS, " PEER_ALLOWED);
			break;
		case 'k':
			key = key_find(agent_keys, options[i].name);
			if (!key_set(key, optarg, &scratch, &why))
				return usage(key->name, optarg, key->allowed);
			args->set[key - agent_keys] = optarg;
			break;
		case 'h':
			fputs(HELP, stdout);
			return CONF_DONE;
		case 'V':
			puts("rdma-isolated " VERSION);
			return CONF_DONE;
		default:	/* getopt_long() has said what is wrong. */
			return usage(NULL, NULL, NULL);
		}
	}
	if (optind == argc)
		return CONF_RUN;
	fprintf(stderr, "rdma-isolated: %s: allowed are options only\n", argv[optind]);
	return usage(NULL, NULL, NULL);
}
