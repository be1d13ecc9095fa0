// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * rperf: how long a small message takes (probe.c), and large ones or many to
 * take it beside (load.c).
 *
 * The ends are two processes, of two hosts (server and client, parameters come
 * from the client), or forked here with --peer for two devices of one host.
 * They exchange what they need, one line of text each, over a stream socket.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rperf.h"

enum { DEFAULT_PORT = 18600 };

const char * const load_names[LOADS] = {
	[LOAD_NONE] = "none",
	[LOAD_WRITE] = "write",
	[LOAD_READ] = "read",
	[LOAD_SEND] = "send",
};

static int dial(const struct params *p, bool listening)
{
	struct addrinfo hints = {
		.ai_family = AF_INET,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = listening ? AI_PASSIVE : 0,
	};
	struct addrinfo *ai;
	char port[16];
	int fd, conn, one = 1, err;

	snprintf(port, sizeof(port), "%d", p->port);
	err = getaddrinfo(p->host, port, &hints, &ai);
	if (err)
		die("%s: %s", p->host, gai_strerror(err));
	fd = socket(ai->ai_family, ai->ai_socktype, 0);
	if (fd < 0)
		die("socket: %s", strerror(errno));
	if (!listening) {
		if (connect(fd, ai->ai_addr, ai->ai_addrlen))
			die("%s port %s: %s (is \"rperf --dev DEV\" running there?)",
			    p->host, port, strerror(errno));
		freeaddrinfo(ai);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1))
		die("port %s: %s", port, strerror(errno));
	freeaddrinfo(ai);
	printf("listening on port %s\n", port);
	fflush(stdout);
	conn = accept(fd, NULL, NULL);
	if (conn < 0)
		die("accept: %s", strerror(errno));
	close(fd);
	return conn;
}

/* What the two ends do together, as the client wants it. */
static void put_job(const struct params *p, int fd)
{
	put_line(fd, "rperf2 %u %u %u %u %u\n", p->load, p->size, p->qps,
		 p->depth, p->verify);
}

static void get_job(struct params *p, int fd)
{
	unsigned int load, verify, max;
	char line[LINE_LEN];

	get_line(fd, line);
	if (sscanf(line, "rperf2 %u %u %u %u %u", &load, &p->size, &p->qps,
		   &p->depth, &verify) != 5 || load >= LOADS)
		die("not an rperf at the other end, or another version");
	max = load ? MAX_LOAD_SIZE : MAX_PROBE_SIZE;
	if (!p->size || p->size > max || !p->qps || p->qps > MAX_QPS ||
	    !p->depth || p->depth > MAX_DEPTH)
		die("the other end wants what is not possible: %s", line);
	p->load = load;
	p->verify = verify;
}

static void serve(const char *dev, int gid, int fd)
{
	struct params p = { .dev = dev, .gid = gid };

	whoami = "server: ";
	get_job(&p, fd);
	if (p.load)
		load_serve(&p, fd);
	else
		probe_serve(&p, fd);
	exit(0);
}

static void measure(const struct params *p, int fd)
{
	put_job(p, fd);
	if (p->load)
		load_run(p, fd);
	else
		probe_run(p, fd);
	close(fd);
}

static void usage(FILE *to)
{
	fprintf(to,
		"usage: rperf --dev DEV [--gid N] [--port PORT]			(server)\n"
		"       rperf --dev DEV [OPTION]... HOST			(client)\n"
		"       rperf --dev DEV --peer DEV [OPTION]...		(both ends here)\n"
		"\n"
		"  -d, --dev DEV        RDMA device\n"
		"  -g, --gid N          its GID index (default: the first IPv4 one of RoCE v2)\n"
		"  -P, --peer DEV       the device of the other end, in this host\n"
		"  -G, --peer-gid N     and its GID index\n"
		"  -p, --port PORT      TCP port to meet on (default %d)\n"
		"  -s, --size BYTES     of a message, or with k, M or G (default 16, up to %d;\n"
		"                       for a load 1M, up to 1G)\n"
		"  -t, --seconds SEC    end after that much time\n"
		"  -j, --json           the result as JSON\n"
		"\n"
		"A small message there and back, how long it takes:\n"
		"  -n, --samples N      round trips (default 1000; 0 with --seconds: no limit)\n"
		"  -i, --interval USEC  pause between two round trips (default none)\n"
		"  -w, --warmup N       round trips before the first sample (default 100)\n"
		"  -W, --watch FILE     read at the first and after the last sample, for -j\n"
		"  -l, --log FILE       a line for each sample: its end by CLOCK_MONOTONIC,\n"
		"                       and half its round trip, in ns\n"
		"\n"
		"Or a load, until the time is over or SIGTERM comes; SIGUSR1 prints what was\n"
		"done so far and counts anew:\n"
		"  -L, --load OP        write to the other end, read from it, or send\n"
		"  -q, --qps N          queue pairs (default 1)\n"
		"  -D, --depth N        messages outstanding on each (default 4, or one batch)\n"
		"  -b, --batch N        messages posted in one call, the last one signaled\n"
		"                       (default 1)\n"
		"  -A, --api post|wr    post lists, or the ibv_wr_* builders (default post)\n"
		"  -V, --verify         check the data at the end\n"
		"  -R, --ready FILE     make this file when messages arrive\n",
		DEFAULT_PORT, MAX_PROBE_SIZE);
}

static void __attribute__((noreturn, format(printf, 1, 2)))
usage_error(const char *fmt, ...)
{
	va_list ap;

	fputs("rperf: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

static uint64_t number(const char *what, const char *text, uint64_t min,
		       uint64_t max)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || n < min || n > max)
		usage_error("%s: %s is not a number from %" PRIu64 " to %"
			    PRIu64, what, text, min, max);
	return n;
}

static unsigned int size(const char *text)
{
	unsigned int shift = 0;
	uint64_t n;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (end != text && *end)
		shift = *end == 'k' ? 10 : *end == 'M' ? 20 :
			*end == 'G' ? 30 : 0;
	if (errno || end == text || *text == '-' || end[shift ? 1 : 0] || !n ||
	    n > (uint64_t)MAX_LOAD_SIZE >> shift)
		usage_error("--size: %s is not a size from 1 to 1G", text);
	return n << shift;
}

static enum load load(const char *text)
{
	enum load l;

	for (l = LOAD_NONE + 1; l < LOADS; l++)
		if (!strcmp(text, load_names[l]))
			return l;
	usage_error("--load: %s is not write, read or send", text);
}

static const struct option options[] = {
	{ "dev", required_argument, NULL, 'd' },
	{ "gid", required_argument, NULL, 'g' },
	{ "peer", required_argument, NULL, 'P' },
	{ "peer-gid", required_argument, NULL, 'G' },
	{ "port", required_argument, NULL, 'p' },
	{ "size", required_argument, NULL, 's' },
	{ "seconds", required_argument, NULL, 't' },
	{ "json", no_argument, NULL, 'j' },
	{ "samples", required_argument, NULL, 'n' },
	{ "interval", required_argument, NULL, 'i' },
	{ "warmup", required_argument, NULL, 'w' },
	{ "watch", required_argument, NULL, 'W' },
	{ "log", required_argument, NULL, 'l' },
	{ "load", required_argument, NULL, 'L' },
	{ "qps", required_argument, NULL, 'q' },
	{ "depth", required_argument, NULL, 'D' },
	{ "batch", required_argument, NULL, 'b' },
	{ "api", required_argument, NULL, 'A' },
	{ "verify", no_argument, NULL, 'V' },
	{ "ready", required_argument, NULL, 'R' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static const char *option_name(int opt)
{
	const struct option *o;

	for (o = options; o->val != opt;)
		o++;
	return o->name;
}

/* What was given has to be of use. */
static void check_params(struct params *p, int of_probe, int of_load)
{
	unsigned int max = p->load ? MAX_LOAD_SIZE : MAX_PROBE_SIZE;

	if (p->load && of_probe)
		usage_error("--%s does not go with --load",
			    option_name(of_probe));
	if (!p->load && of_load)
		usage_error("--%s needs --load", option_name(of_load));
	if (!p->size)
		p->size = p->load ? 1 << 20 : 16;
	if (p->size > max)
		usage_error("--size: %u is more than %u", p->size, max);
	if (!p->depth)
		p->depth = p->batch > 4 ? p->batch : 4 - 4 % p->batch;
	if (p->depth % p->batch)
		usage_error("--depth %u is not a multiple of --batch %u",
			    p->depth, p->batch);
}

static void parse(int argc, char **argv, struct params *p)
{
	int opt, of_probe = 0, of_load = 0;
	char *end;

	while ((opt = getopt_long(argc, argv,
				  "d:g:P:G:p:s:t:jn:i:w:W:l:L:q:D:b:A:VR:h",
				  options, NULL)) != -1) {
		if (strchr("niwWl", opt))
			of_probe = opt;
		if (strchr("qDbAVR", opt))
			of_load = opt;
		switch (opt) {
		case 'd':
			p->dev = optarg;
			break;
		case 'g':
			p->gid = number("--gid", optarg, 0, 65535);
			break;
		case 'P':
			p->peer = optarg;
			break;
		case 'G':
			p->peer_gid = number("--peer-gid", optarg, 0, 65535);
			break;
		case 'p':
			p->port = number("--port", optarg, 1, 65535);
			break;
		case 's':
			p->size = size(optarg);
			break;
		case 't':
			p->seconds = strtod(optarg, &end);
			if (*end || !(p->seconds > 0 && p->seconds < 1e6))
				usage_error("--seconds: %s is not a time", optarg);
			break;
		case 'j':
			p->json = true;
			break;
		case 'n':
			p->samples = number("--samples", optarg, 0, 100000000);
			break;
		case 'i':
			p->interval_us = number("--interval", optarg, 0, 999999);
			break;
		case 'w':
			p->warmup = number("--warmup", optarg, 0, 100000000);
			break;
		case 'W':
			if (p->nwatch == MAX_WATCH)
				usage_error("at most %d times --watch", MAX_WATCH);
			p->watch[p->nwatch++] = optarg;
			break;
		case 'l':
			p->log = optarg;
			break;
		case 'L':
			p->load = load(optarg);
			break;
		case 'q':
			p->qps = number("--qps", optarg, 1, MAX_QPS);
			break;
		case 'D':
			p->depth = number("--depth", optarg, 1, MAX_DEPTH);
			break;
		case 'b':
			p->batch = number("--batch", optarg, 1, MAX_DEPTH);
			break;
		case 'A':
			p->builders = !strcmp(optarg, "wr");
			if (!p->builders && strcmp(optarg, "post"))
				usage_error("--api: %s is not post or wr", optarg);
			break;
		case 'V':
			p->verify = true;
			break;
		case 'R':
			p->ready = optarg;
			break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind < argc)
		p->host = argv[optind++];
	if (optind < argc || !p->dev || (p->host && p->peer) ||
	    (!p->load && !p->samples && !(p->seconds > 0))) {
		usage(stderr);
		exit(2);
	}
	check_params(p, of_probe, of_load);
}

int main(int argc, char **argv)
{
	struct params p = {
		.gid = -1,
		.peer_gid = -1,
		.port = DEFAULT_PORT,
		.qps = 1,
		.batch = 1,
		.samples = 1000,
		.warmup = 100,
	};
	int sv[2], status;
	pid_t child;

	parse(argc, argv, &p);
	signal(SIGPIPE, SIG_IGN);
	if (!p.peer && !p.host)
		serve(p.dev, p.gid, dial(&p, true));
	if (!p.peer) {
		measure(&p, dial(&p, false));
		return 0;
	}

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sv))
		die("socketpair: %s", strerror(errno));
	child = fork();
	if (child < 0)
		die("fork: %s", strerror(errno));
	if (!child) {
		close(sv[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(p.peer, p.peer_gid, sv[1]);
	}
	close(sv[1]);
	measure(&p, sv[0]);
	fflush(stdout);
	if (waitpid(child, &status, 0) != child || status)
		die("the other end failed");
	return 0;
}
