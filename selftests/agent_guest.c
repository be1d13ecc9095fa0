// SPDX-License-Identifier: GPL-2.0
/*
 * agent_guest agent|version|garbage|nothing ADDRESS PORT COUNT [SECONDS]
 *
 * Connects to an agent, as many times at once, and says what an agent says, or one of
 * another version, or something else, or nothing. Prints how many were accepted, how
 * many were refused, and how many failed. Keeps silent for as many seconds after that.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/types.h>
#include <rdma/rdma_cma.h>

/* As userspace/agent/cm.h has it */
struct hello {
	__be32 magic;
	__be16 version;
	__be16 pad;
	__be32 rest[10];
};

static struct hello agent = { .rest = { 0 } };
static const char garbage[200] = "GET / HTTP/1.0\r\n\r\n";
static struct rdma_conn_param param = {
	.retry_count = 7,
	.rnr_retry_count = 7,
};

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void say(const char *what)
{
	agent.magic = htonl(0x5249534f);
	agent.version = htons(strcmp(what, "version") ? 2 : 1);
	param.private_data = &agent;
	param.private_data_len = sizeof(agent);
	if (!strcmp(what, "garbage")) {
		param.private_data = garbage;
		/* What TCP's port space leaves of it */
		param.private_data_len = 56;
	} else if (!strcmp(what, "nothing")) {
		param.private_data_len = 0;
	}
}

int main(int argc, char **argv)
{
	int count, left, accepted = 0, refused = 0, failed = 0, i, err;
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rdma_event_channel *channel;
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;

	if (argc != 5 && argc != 6) {
		fprintf(stderr, "usage: agent_guest WHAT ADDRESS PORT COUNT [SECONDS]\n");
		return 2;
	}
	say(argv[1]);
	/* There are none, nothing will be sent. The same number twice would be refused. */
	param.qp_num = (getpid() & 0xfff) << 12 | 1;
	inet_pton(AF_INET, argv[2], &to.sin_addr);
	to.sin_port = htons(atoi(argv[3]));
	count = atoi(argv[4]);
	channel = rdma_create_event_channel();
	if (!channel)
		fail("event channel");
	for (i = 0; i < count; i++)
		if (rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) ||
		    rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 10000))
			fail("address");
	for (left = count; left && !rdma_get_cm_event(channel, &event); ) {
		type = event->event;
		id = event->id;
		rdma_ack_cm_event(event);
		err = 0;
		switch (type) {
		case RDMA_CM_EVENT_ADDR_RESOLVED:
			err = rdma_resolve_route(id, 10000);
			break;
		case RDMA_CM_EVENT_ROUTE_RESOLVED:
			err = rdma_connect(id, &param);
			param.qp_num++;
			break;
		case RDMA_CM_EVENT_CONNECT_RESPONSE:
			accepted++;
			left--;
			break;
		case RDMA_CM_EVENT_REJECTED:
			refused++;
			left--;
			break;
		default:
			err = -1;
		}
		if (err) {
			failed++;
			left--;
		}
	}
	printf("accepted %d refused %d failed %d\n", accepted, refused, failed);
	fflush(stdout);
	if (argc == 6)
		sleep(atoi(argv[5]));
	return 0;
}
