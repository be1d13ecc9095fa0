/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What listeners have to be told of soon. See news.c.
 */
#ifndef RISO_NEWS_H
#define RISO_NEWS_H

#include "flow.h"

void riso_news_owe(struct riso_flow *f);
void riso_news_failed(struct riso_flow *f, enum ib_wc_status status);

#endif /* RISO_NEWS_H */
