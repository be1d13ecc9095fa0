/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parameters of the module, as the other parts read them.
 *
 * Any context reads them without a lock. Writes to the files in sysfs change them one by
 * one.
 */
#ifndef NULLRDMA_PARAMS_H
#define NULLRDMA_PARAMS_H

#include "nullrdma.h"

/**
 * struct nr_list - a parameter with a value for each end
 * @num: values that were given; the last one is that of all further ends
 * @min: smallest value
 * @max: largest value
 * @val: values
 */
struct nr_list {
	u32 num;
	u32 min;
	u32 max;
	u32 val[NR_MAX_ENDS];
};

/* no speed that a port can tell: it tells the one that fits its rate */
#define NR_SPEED_FITS	0x10000

extern struct nr_list nr_rate_mbps;
extern struct nr_list nr_delay_ns;
extern struct nr_list nr_link;
extern struct nr_list nr_port_speed;
extern char *nr_netdevs[NR_MAX_ENDS];
extern int nr_num_netdevs;
extern u32 nr_doorbell_ns;
extern u32 nr_moder_us;
extern u32 nr_moder_count;
extern u32 nr_quantum;
extern u32 nr_timeout_ms;
extern u32 nr_small;
extern bool nr_instant;
extern bool nr_copy;
extern bool nr_rr;
extern int nr_cpu;

u32 nr_get_param(const struct nr_list *list, int end);
int nr_check_params(void);

#endif /* NULLRDMA_PARAMS_H */
