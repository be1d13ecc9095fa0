// SPDX-License-Identifier: GPL-2.0
/*
 * Settings of a device: what is allowed, and what they begin with.
 *
 * Owns nothing: it checks a change and says what was wrong, and returns the settings that
 * follow. Who calls it puts them in force.
 */

#include <linux/minmax.h>
#include <linux/netlink.h>
#include <rdma/ib_verbs.h>

#include "../uapi/linux/rdma_isolate.h"
#include "config.h"
#include "core/port.h"

static bool is_rate(u64 rate)
{
	return rate >= RDMA_ISOLATE_RATE_MIN && rate <= RDMA_ISOLATE_RATE_MAX;
}

/**
 * riso_config_merge - apply a change to settings
 * @cfg: the settings; they count only if 0 is returned
 * @chg: the change
 * @guess: what MaxRate auto is, of riso_config_guess()
 * @extack: says what was wrong and what is allowed
 *
 * Return: 0 or -ERANGE.
 */
int riso_config_merge(struct riso_cfg *cfg, const struct riso_change *chg, u64 guess,
		      struct netlink_ext_ack *extack)
{
	const struct riso_cfg *new = &chg->cfg;
	bool follow = cfg->safe_util == cfg->max_rate;
	bool automatic = false;

	if (chg->mask & RISO_SET_MAX_RATE) {
		automatic = new->max_rate == RDMA_ISOLATE_RATE_AUTO;
		if (!automatic && !is_rate(new->max_rate)) {
			NL_SET_ERR_MSG(extack,
				       "max-rate is 100000 to 1000000000000 bytes per second, or auto");
			return -ERANGE;
		}
		cfg->max_rate = automatic ? guess : new->max_rate;
		cfg->calibrated = !automatic;
		if (follow)
			cfg->safe_util = cfg->max_rate;
	}
	if (chg->mask & RISO_SET_SAFE_UTIL) {
		if (new->safe_util != RDMA_ISOLATE_RATE_AUTO && !is_rate(new->safe_util)) {
			NL_SET_ERR_MSG(extack,
				       "safe-util is 100000 to 1000000000000 bytes per second, or auto");
			return -ERANGE;
		}
		cfg->safe_util = new->safe_util ?: cfg->max_rate;
	}
	if (cfg->safe_util > cfg->max_rate) {
		if (automatic)
			NL_SET_ERR_MSG(extack,
				       "with max-rate auto safe-util may not be above what the port tells");
		else
			NL_SET_ERR_MSG(extack, "safe-util may not be above max-rate");
		return -ERANGE;
	}
	if (chg->mask & RISO_SET_MAX_OPS)
		cfg->max_ops = new->max_ops;
	if (chg->mask & RISO_SET_CHUNK_BYTES) {
		if (new->chunk_bytes && new->chunk_bytes != RISO_AUTO &&
		    (new->chunk_bytes < RDMA_ISOLATE_CHUNK_MIN ||
		     new->chunk_bytes > RDMA_ISOLATE_CHUNK_MAX)) {
			NL_SET_ERR_MSG(extack,
				       "chunk-bytes is 1024 to 1048576 bytes, 0 for off, or auto");
			return -ERANGE;
		}
		cfg->chunk_bytes = new->chunk_bytes;
	}
	if (chg->mask & RISO_SET_TOKEN_BYTES) {
		if (new->token_bytes < RDMA_ISOLATE_CHUNK_MIN) {
			NL_SET_ERR_MSG(extack,
				       "token-bytes is at least 1024 bytes, or auto");
			return -ERANGE;
		}
		cfg->token_bytes = new->token_bytes;
	}
	if (chg->mask & RISO_SET_TOKEN_OPS) {
		if (!new->token_ops) {
			NL_SET_ERR_MSG(extack,
				       "token-ops is at least 1 message, or auto");
			return -ERANGE;
		}
		cfg->token_ops = new->token_ops;
	}
	if (chg->mask & RISO_SET_INFLIGHT_BYTES) {
		if (new->inflight_bytes &&
		    new->inflight_bytes < RDMA_ISOLATE_INFLIGHT_MIN) {
			NL_SET_ERR_MSG(extack,
				       "inflight-bytes is at least 1024 bytes, 0 for off, or auto");
			return -ERANGE;
		}
		cfg->inflight_bytes = new->inflight_bytes;
	}
	if (chg->mask & RISO_SET_HISTOGRAM)
		cfg->histogram = new->histogram;
	if (chg->mask & RISO_SET_TARGET99_NS) {
		if (new->target99_ns != RISO_AUTO &&
		    (!new->target99_ns || new->target99_ns > RDMA_ISOLATE_TARGET99_MAX)) {
			NL_SET_ERR_MSG(extack, "target99 is 1 ns to 4 s, or auto");
			return -ERANGE;
		}
		cfg->target99_ns = new->target99_ns;
	}
	if (chg->mask & RISO_SET_CTRL)
		cfg->ctrl = new->ctrl;
	if (chg->mask & RISO_SET_SHARE)
		cfg->share = new->share;
	return 0;
}

/**
 * riso_config_read_port - the rate of a port, as the device tells
 * @ibdev: the device
 *
 * It is a guess, not a measurement.
 *
 * Context: may sleep.
 * Return: bytes per second, or 0 while the port is down or tells nothing that can be.
 */
u64 riso_config_read_port(struct ib_device *ibdev)
{
	struct ib_port_attr attr;

	if (ib_query_port(ibdev, 1, &attr) || attr.state != IB_PORT_ACTIVE)
		return 0;
	/* A speed that is newer than the table may be more than anybody can set. */
	return min_t(u64, RDMA_ISOLATE_RATE_MAX,
		     riso_port_rate(attr.active_speed, ib_width_enum_to_int(attr.active_width)));
}

/**
 * riso_config_guess - MaxRate as long as nobody sets it
 * @rd: the device
 *
 * Context: &riso_dev.control, or nobody else knows the device yet.
 * Return: what the port tells, or more if that was delivered, bytes per second.
 */
u64 riso_config_guess(const struct riso_dev *rd)
{
	/* Until a port tells its rate, it shall not be held back by a guess. */
	return rd->port_rate ? max(rd->port_rate, rd->proven_rate) : RDMA_ISOLATE_RATE_MAX;
}

/**
 * riso_config_follow_port - let MaxRate be the guess, unless somebody has set it
 * @cfg: the settings
 * @rate: the guess, bytes per second
 *
 * SafeUtil that is MaxRate follows. Another one was set by somebody who believes that the port
 * can do as much: MaxRate stays above it.
 *
 * Return: true if MaxRate has changed.
 */
bool riso_config_follow_port(struct riso_cfg *cfg, u64 rate)
{
	bool follow = cfg->safe_util == cfg->max_rate;

	if (cfg->calibrated || rate == cfg->max_rate || (!follow && rate <= cfg->safe_util))
		return false;
	cfg->max_rate = rate;
	if (follow)
		cfg->safe_util = rate;
	return true;
}

/**
 * riso_config_begin - the settings of a device that nobody has configured
 * @rate: the guess, bytes per second
 *
 * Return: the settings.
 */
struct riso_cfg riso_config_begin(u64 rate)
{
	return (struct riso_cfg) {
		.max_rate = rate,
		.safe_util = rate,
		.chunk_bytes = RISO_AUTO,
		.token_bytes = RISO_AUTO,
		.token_ops = RISO_AUTO,
		.inflight_bytes = RISO_AUTO,
		.target99_ns = RISO_AUTO,
	};
}
