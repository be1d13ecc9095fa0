// SPDX-License-Identifier: GPL-2.0
/*
 * Events of connections, cm.c, in the loop: however many there are, nobody else waits
 * for more than one of them. librdmacm is made up here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "cm.h"
#include "loop.h"

enum { MANY = 1000 };

static struct rdma_event_channel channel;
static struct rdma_cm_id id;
static struct rdma_cm_event event = { .id = &id };
static struct source other;
static unsigned int held, handled, handled_before;

struct rdma_event_channel *rdma_create_event_channel(void)
{
	channel.fd = eventfd(MANY, EFD_SEMAPHORE);
	return &channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *c)
{
	close(c->fd);
}

int rdma_get_cm_event(struct rdma_event_channel *c, struct rdma_cm_event **got)
{
	eventfd_t one;

	if (eventfd_read(c->fd, &one))
		return -1;
	held++;
	*got = &event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *got)
{
	assert_ptr_equal(got, &event);
	held--;
	return 0;
}

int rdma_create_id(struct rdma_event_channel *c, struct rdma_cm_id **got, void *context,
		   enum rdma_port_space space)
{
	(void)c;
	(void)got;
	(void)context;
	(void)space;
	return -1;
}

struct ibv_context **rdma_get_devices(int *num)
{
	(void)num;
	return NULL;
}

void rdma_free_devices(struct ibv_context **list)
{
	(void)list;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	(void)device;
	return "";
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries,
			     size_t max, uint32_t flags, size_t size)
{
	(void)ctx;
	(void)entries;
	(void)max;
	(void)flags;
	(void)size;
	return 0;
}

/* After each of them something else is there to be done. */
static void on_event(struct cm_user *user, const struct cm_event *e)
{
	(void)user;
	assert_ptr_equal(e->id, &id);
	assert_int_equal(held, 0);
	assert_int_equal(eventfd_write(other.fd, 1), 0);
	if (++handled == MANY)
		loop_stop();
}

static void on_other(struct source *s)
{
	eventfd_t times;

	assert_int_equal(eventfd_read(s->fd, &times), 0);
	assert_in_range(handled - handled_before, 0, 1);
	handled_before = handled;
}

static void in_turns(void **state)
{
	struct cm_user user = { .event = on_event };

	(void)state;
	id.context = &user;
	assert_int_equal(loop_open(), 0);
	other.fd = eventfd(1, 0);
	other.ready = on_other;
	assert_int_equal(loop_add(&other), 0);
	assert_int_equal(cm_open(), 0);
	loop_run();
	assert_int_equal(handled, MANY);
	assert_in_range(handled_before, MANY - 1, MANY);
	cm_close();
	close(other.fd);
	loop_close();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_turns),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("agent_events", tests, NULL, NULL);
}
