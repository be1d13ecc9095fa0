// SPDX-License-Identifier: GPL-2.0
/*
 * What listeners have to be told of soon.
 *
 * Owns &riso_dev.news, under &riso_dev.lock: whoever posts or completes puts flows there,
 * in any context, and notify.c tells of them later, where it may sleep.
 */

#include "news.h"
#include "work.h"

/**
 * riso_news_owe - note that listeners have to be told of a flow soon
 * @f: the flow
 *
 * Context: under &riso_dev.lock.
 */
void riso_news_owe(struct riso_flow *f)
{
	struct riso_dev *rd = f->rd;

	lockdep_assert_held(&rd->lock);
	if (list_empty(&f->news) && f->who.pid)
		list_add_tail(&f->news, &rd->news);
	else if (list_empty(&f->news))
		list_add(&f->news, &rd->news);
	riso_work_settle(rd);
}

/**
 * riso_news_failed - a work request of a flow has failed
 * @f: the flow
 * @status: how
 *
 * Remembers the first, which listeners are told of soon.
 *
 * Context: under &riso_dev.lock.
 */
void riso_news_failed(struct riso_flow *f, enum ib_wc_status status)
{
	lockdep_assert_held(&f->rd->lock);
	if (f->error != IB_WC_SUCCESS || status == IB_WC_WR_FLUSH_ERR)
		return;
	WRITE_ONCE(f->error, status);
	riso_news_owe(f);
}
