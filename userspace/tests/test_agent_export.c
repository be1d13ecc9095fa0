// SPDX-License-Identifier: GPL-2.0
/*
 * Metrics of rdma-isolated over HTTP: what clients get, and that none of them keeps the
 * loop. The module is made up here; the loop runs in a process of its own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <linux/rdma_isolate.h>

#include "export.h"
#include "loop.h"
#include "nl.h"

enum { ANSWER = 4 << 20, GROUPS = 3000, GROUPS_OF_PART = 50, MANY = 30 };

/* What the module takes for a part */
#define PART_NS 100000

#define GET "GET /metrics HTTP/1.1\r\nHost: h\r\n" ACCEPT "\r\n"
#define TYPE "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"
#define OLD_TYPE "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
/* As Prometheus asks for it */
#define ACCEPT "Accept: Application/OpenMetrics-text;version=1.0.0,text/plain;q=0.5,*/*;q=0.1\r\n"

/* What both processes see */
static struct {
	uint64_t longest_ns;
	unsigned int dumps;
	unsigned int open;
	bool ready;
	bool fails;
} *shared;

static char answer[ANSWER];
/* Not what the default is */
static const in_addr_t own_address = INADDR_LOOPBACK + 1;
static in_addr_t dialed;
static bool widened;
static uint16_t port;
static pid_t child;

/* --- a module --- */

struct nl {
	int fd;
	uint8_t cmd;
	unsigned int part;
	char buf[1024];
};

struct nl *nl_open(void)
{
	struct nl *nl = calloc(1, sizeof(*nl));

	if (nl)
		nl->fd = eventfd(1, 0);
	shared->open++;
	return nl;
}

void nl_close(struct nl *nl)
{
	close(nl->fd);
	free(nl);
	shared->open--;
}

int nl_fd(const struct nl *nl)
{
	return nl->fd;
}

struct nlmsghdr *nl_request(struct nl *nl, uint8_t cmd, bool dump)
{
	if (!dump)
		abort();
	nl->cmd = cmd;
	nl->part = 0;
	return mnl_nlmsg_put_header(nl->buf);
}

int nl_begin(struct nl *nl)
{
	(void)nl;
	shared->dumps++;
	return 0;
}

static void one(struct nl *nl, nl_reply_fn reply, void *data, uint16_t dev, uint16_t id,
		uint32_t val)
{
	const struct nlattr *attrs[NL_ATTRS_MAX] = { NULL }, *attr;
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(nl->buf);

	mnl_attr_put_strz(nlh, dev, "rxe0");
	if (id)
		mnl_attr_put_u32(nlh, id, val);
	mnl_attr_for_each(attr, nlh, 0)
		attrs[mnl_attr_get_type(attr)] = attr;
	reply(attrs, nlh, data);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

int nl_part(struct nl *nl, const struct name_set *set, nl_reply_fn reply, void *data)
{
	uint64_t end = cpu_ns() + PART_NS;
	unsigned int i;

	(void)set;
	while (cpu_ns() < end)
		;
	if (shared->fails)
		return -EIO;
	switch (nl->cmd) {
	case RDMA_ISOLATE_CMD_DEV_GET:
		one(nl, reply, data, RDMA_ISOLATE_A_DEV_DEV, 0, 0);
		return 0;
	case RDMA_ISOLATE_CMD_FLOW_GET:
		one(nl, reply, data, RDMA_ISOLATE_A_FLOW_DEV, RDMA_ISOLATE_A_FLOW_CLASS,
		    RISO_CLASS_BANDWIDTH);
		one(nl, reply, data, RDMA_ISOLATE_A_FLOW_DEV, RDMA_ISOLATE_A_FLOW_REASON,
		    RISO_REASON_REFERENCE);
		return 0;
	case RDMA_ISOLATE_CMD_GROUP_GET:
		for (i = 0; i < GROUPS_OF_PART; i++)
			one(nl, reply, data, RDMA_ISOLATE_A_GROUP_DEV, RDMA_ISOLATE_A_GROUP_ID,
			    nl->part * GROUPS_OF_PART + i);
		return ++nl->part < GROUPS / GROUPS_OF_PART;
	case RDMA_ISOLATE_CMD_PATH_GET:
		for (i = 0; i < 3; i++)
			one(nl, reply, data, RDMA_ISOLATE_A_PATH_DEV, RDMA_ISOLATE_A_PATH_DIR, i);
		return 0;
	default:
		return 0;
	}
}

/* --- the loop --- */

static struct source beat = { .fd = -1 };
static uint64_t beat_ns;

/* Every ms: what was done since tells how long the loop was kept, on a busy machine too. */
static void on_beat(struct source *s)
{
	uint64_t now = cpu_ns();

	if (!timer_fired(s))
		return;
	if (now - beat_ns > shared->longest_ns)
		shared->longest_ns = now - beat_ns;
	beat_ns = now;
	timer_set(s, now_ns() + MS);
}

static void own(struct metrics *m)
{
	struct metrics_peer *p = metrics_add_peer(m, "rxe0");

	p->sent = 99;
}

static union conf_addr addr_of(in_addr_t address, uint16_t at)
{
	return (union conf_addr) { .v4 = {
		.sin_family = AF_INET, .sin_port = htons(at),
		.sin_addr.s_addr = htonl(address),
	} };
}

/* A socket at some port of own_address; @at is the port */
static int take_port(uint16_t *at)
{
	union conf_addr addr = addr_of(own_address, 0);
	socklen_t len = sizeof(addr.v4);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(fd, &addr.sa, len) || getsockname(fd, &addr.sa, &len))
		return -1;
	*at = ntohs(addr.v4.sin_port);
	return fd;
}

static void run_loop(void)
{
	union conf_addr addr = addr_of(own_address, port);
	uint16_t taken;

	if (loop_open() || timer_open(&beat, on_beat) || export_open(&addr, own))
		exit(2);
	/* A port that somebody has: the one before is not left for it. */
	if (listen(take_port(&taken), 1))
		exit(3);
	addr = addr_of(INADDR_ANY, taken);
	if (export_open(&addr, own) != -EADDRINUSE)
		exit(4);
	addr = addr_of(INADDR_ANY, port);
	if (widened && export_open(&addr, own))
		exit(5);
	beat_ns = cpu_ns();
	timer_set(&beat, now_ns() + MS);
	__atomic_store_n(&shared->ready, true, __ATOMIC_RELEASE);
	loop_run();
	exit(0);
}

static int dial(void)
{
	struct sockaddr_in addr = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(dialed),
	};
	struct timeval wait = { .tv_sec = 8 };
	int fd = socket(AF_INET, SOCK_STREAM, 0), i;

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	for (i = 0; !__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE); i++) {
		assert_in_range(i, 0, 500);
		usleep(10000);
	}
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static int start_child(void **state)
{
	int fd = take_port(&port);

	(void)state;
	if (fd < 0)
		return -1;
	close(fd);
	dialed = own_address;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fflush(NULL);
	child = fork();
	if (!child)
		run_loop();
	return child < 0;
}

static int start_widened(void **state)
{
	widened = true;
	return start_child(state);
}

static int stop_child(void **state)
{
	(void)state;
	kill(child, SIGTERM);
	waitpid(child, NULL, 0);
	return 0;
}

/* --- clients --- */

static const char *hear(int fd)
{
	size_t at = 0;
	ssize_t n;

	while ((n = recv(fd, answer + at, ANSWER - 1 - at, 0)) > 0)
		at += n;
	assert_int_equal(n, 0);
	answer[at] = 0;
	close(fd);
	return answer;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void expect(const char *request, const char *status)
{
	int fd = dial();

	say(fd, request);
	hear(fd);
	if (strncmp(answer, status, strlen(status)))
		fail_msg("%s: %s", request, answer);
	assert_true(strstr(answer, "Connection: close\r\n"));
}

/* --- tests --- */

static void metrics(void **state)
{
	(void)state;

	expect("GET /metrics HTTP/1.0\r\n" ACCEPT "\r\n", "HTTP/1.1 200 ");
	assert_non_null(strstr(answer, TYPE));
	assert_non_null(strstr(answer, "\r\n\r\n# TYPE rdma_isolate_agent info\n"));
	assert_non_null(strstr(answer, "_flows{dev=\"rxe0\",class=\"bandwidth\"} 1\n"));
	assert_non_null(strstr(answer, "_flows{dev=\"rxe0\",class=\"latency\"} 0\n"));
	assert_non_null(strstr(answer, "_messages_total{dev=\"rxe0\",peer=\"\"} 99\n"));
	assert_non_null(strstr(answer, "_groups_left_out 1976\n"));
	assert_non_null(strstr(answer, "_group_flows{dev=\"rxe0\",group=\"1023\"} 0\n"));
	assert_non_null(strstr(answer, "_path_waits_total{dev=\"rxe0\",peer=\"\",dir"));
	assert_string_equal(answer + strlen(answer) - 6, "# EOF\n");
	expect(GET, "HTTP/1.1 200 ");
	assert_non_null(strstr(answer, "# EOF\n\r\n0\r\n"));
	assert_int_equal(shared->open, 0);
}

/* Who does not ask for OpenMetrics gets what each version of Prometheus knows. */
static void not_asked(void **state)
{
	static const char * const accept[] = {
		"", "Accept: */*\r\n", "Accept: text/plain;version=0.0.4\r\n",
	};
	char request[256];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(accept) / sizeof(*accept); i++) {
		snprintf(request, sizeof(request), "GET /metrics HTTP/1.0\r\n%s\r\n",
			 accept[i]);
		expect(request, "HTTP/1.1 200 ");
		assert_non_null(strstr(answer, OLD_TYPE));
		assert_non_null(strstr(answer,
				       "\r\n\r\n# TYPE rdma_isolate_agent_info gauge\n"));
		assert_null(strstr(answer, "# EOF"));
		assert_null(strstr(answer, "# UNIT"));
	}
}

/* Settings that are read again may name all addresses where it was one, of the same port. */
static void more_addresses(void **state)
{
	(void)state;

	expect(GET, "HTTP/1.1 200 ");
	dialed = INADDR_LOOPBACK;
	expect(GET, "HTTP/1.1 200 ");
}

static void page(void **state)
{
	(void)state;

	expect("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 200 ");
	assert_non_null(strstr(answer, "Content-Type: text/html"));
	assert_non_null(strstr(answer, "<a href=\"/metrics\">"));
	assert_int_equal(shared->dumps, 0);
}

static void refused(void **state)
{
	static char long_line[32768];
	(void)state;

	expect("GET /metricsx HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 404 ");
	expect("POST /metrics HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n",
	       "HTTP/1.1 405 ");
	expect("HEAD /metrics HTTP/1.1\r\nHost: h\r\n\r\n", "HTTP/1.1 405 ");
	expect("GET /metrics HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ");
	memset(long_line, 'x', sizeof(long_line) - 1);
	memcpy(long_line, "GET /", 5);
	expect(long_line, "HTTP/1.1 414 ");
	assert_int_equal(shared->dumps, 0);
}

static void module_fails(void **state)
{
	(void)state;

	shared->fails = true;
	expect(GET, "HTTP/1.1 503 ");
	assert_int_equal(shared->open, 0);
	shared->fails = false;
	expect(GET, "HTTP/1.1 200 ");
}

/* Those who ask at the same time get the same, and all of them get it. */
static void at_once(void **state)
{
	int fd[MANY], i;
	(void)state;

	for (i = 0; i < MANY; i++) {
		fd[i] = dial();
		say(fd[i], GET);
	}
	for (i = 0; i < MANY; i++) {
		hear(fd[i]);
		assert_int_equal(strncmp(answer, "HTTP/1.1 200 ", 13), 0);
		assert_non_null(strstr(answer, "# EOF\n"));
	}
	assert_in_range(shared->dumps, 6, 6 * MANY - 1);
	assert_int_equal(shared->open, 0);
}

/* Clients that send half a request, do not read, or go: the loop goes on. */
static void slow(void **state)
{
	int fd[6], i;
	(void)state;

	for (i = 0; i < 6; i++) {
		int small = 1024;

		fd[i] = dial();
		setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		say(fd[i], i < 3 ? GET : "GET /metr");
	}
	for (i = 0; i < MANY; i++) {
		int gone = dial();

		say(gone, GET);
		close(gone);
	}
	expect(GET, "HTTP/1.1 200 ");
	/* Half a ms, and the one between beats; 10 if all were asked and made at once */
	assert_in_range(shared->longest_ns, 1, 4 * MS);
	for (i = 0; i < 6; i++)
		close(fd[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(metrics, start_child, stop_child),
		cmocka_unit_test_setup_teardown(not_asked, start_child, stop_child),
		cmocka_unit_test_setup_teardown(page, start_child, stop_child),
		cmocka_unit_test_setup_teardown(refused, start_child, stop_child),
		cmocka_unit_test_setup_teardown(module_fails, start_child, stop_child),
		cmocka_unit_test_setup_teardown(at_once, start_child, stop_child),
		cmocka_unit_test_setup_teardown(slow, start_child, stop_child),
		cmocka_unit_test_setup_teardown(more_addresses, start_widened, stop_child),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_export", tests, NULL, NULL);
}
