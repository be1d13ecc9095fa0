/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of system rdma_isolate. Names, fields and their order are documented
 * and stable; see Documentation/ABI/tracepoints.rst.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rdma_isolate

#if !defined(RISO_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RISO_TRACE_H

#include <linux/ktime.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "dev.h"
#include "flow.h"
#include "grant.h"
#include "tag.h"

#ifndef RISO_TRACE_DEV_LEN
#define RISO_TRACE_DEV_LEN 32
#define riso_trace_dev(to, rd) \
	strscpy(to, (rd)->ibdev->name, RISO_TRACE_DEV_LEN)
#endif

DECLARE_EVENT_CLASS(riso_flow,
	TP_PROTO(const struct riso_flow *f, u32 reason),
	TP_ARGS(f, reason),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u32, qpn)
		__field(u32, class)
		__field(u32, reason)
		__array(char, ulp, RISO_ULP_LEN)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, f->rd);
		__entry->qpn = f->qpn;
		__entry->class = f->class;
		__entry->reason = reason;
		memcpy(__entry->ulp, f->who.ulp, RISO_ULP_LEN);
	),
	TP_printk("dev=%s qpn=%u class=%u reason=%u ulp=%s", __entry->dev,
		  __entry->qpn, __entry->class, __entry->reason, __entry->ulp)
);

DEFINE_EVENT(riso_flow, flow_create,
	TP_PROTO(const struct riso_flow *f, u32 reason),
	TP_ARGS(f, reason)
);

DEFINE_EVENT(riso_flow, flow_destroy,
	TP_PROTO(const struct riso_flow *f, u32 reason),
	TP_ARGS(f, reason)
);

TRACE_EVENT(wr_queue,
	TP_PROTO(const struct riso_flow *f, u64 wr_id, u32 opcode, u32 bytes,
		 u32 held),
	TP_ARGS(f, wr_id, opcode, bytes, held),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u32, qpn)
		__field(u32, opcode)
		__field(u64, wr_id)
		__field(u32, bytes)
		__field(u32, held)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, f->rd);
		__entry->qpn = f->qpn;
		__entry->opcode = opcode;
		__entry->wr_id = wr_id;
		__entry->bytes = bytes;
		__entry->held = held;
	),
	TP_printk("dev=%s qpn=%u opcode=%u wr_id=%llu bytes=%u held=%u",
		  __entry->dev, __entry->qpn, __entry->opcode, __entry->wr_id,
		  __entry->bytes, __entry->held)
);

TRACE_EVENT(wr_split,
	TP_PROTO(const struct riso_flow *f, u64 wr_seq, u64 wr_id, u32 bytes,
		 u32 chunk),
	TP_ARGS(f, wr_seq, wr_id, bytes, chunk),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u32, qpn)
		__field(u64, wr_seq)
		__field(u64, wr_id)
		__field(u32, bytes)
		__field(u32, chunk)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, f->rd);
		__entry->qpn = f->qpn;
		__entry->wr_seq = wr_seq;
		__entry->wr_id = wr_id;
		__entry->bytes = bytes;
		__entry->chunk = chunk;
	),
	TP_printk("dev=%s qpn=%u wr_seq=%llu wr_id=%llu bytes=%u chunk=%u",
		  __entry->dev, __entry->qpn, __entry->wr_seq, __entry->wr_id,
		  __entry->bytes, __entry->chunk)
);

TRACE_EVENT(chunk_post,
	TP_PROTO(const struct riso_flow *f, u64 wr_seq, u32 bytes, u32 dir,
		 u64 wait_ns, u32 offset, u32 wr_bytes),
	TP_ARGS(f, wr_seq, bytes, dir, wait_ns, offset, wr_bytes),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u32, qpn)
		__field(u64, wr_seq)
		__field(u32, bytes)
		__field(u32, dir)
		__field(u64, wait_ns)
		__field(u32, offset)
		__field(u32, wr_bytes)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, f->rd);
		__entry->qpn = f->qpn;
		__entry->wr_seq = wr_seq;
		__entry->bytes = bytes;
		__entry->dir = dir;
		__entry->wait_ns = wait_ns;
		__entry->offset = offset;
		__entry->wr_bytes = wr_bytes;
	),
	TP_printk("dev=%s qpn=%u wr_seq=%llu bytes=%u dir=%s wait_ns=%llu offset=%u wr_bytes=%u",
		  __entry->dev, __entry->qpn, __entry->wr_seq, __entry->bytes,
		  __entry->dir ? "rx" : "tx", __entry->wait_ns,
		  __entry->offset, __entry->wr_bytes)
);

TRACE_EVENT(chunk_complete,
	TP_PROTO(const struct riso_flow *f, u64 wr_seq, u32 chunks),
	TP_ARGS(f, wr_seq, chunks),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u32, qpn)
		__field(u64, wr_seq)
		__field(u32, chunks)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, f->rd);
		__entry->qpn = f->qpn;
		__entry->wr_seq = wr_seq;
		__entry->chunks = chunks;
	),
	TP_printk("dev=%s qpn=%u wr_seq=%llu chunks=%u", __entry->dev,
		  __entry->qpn, __entry->wr_seq, __entry->chunks)
);

TRACE_EVENT(wr_complete,
	TP_PROTO(const struct riso_dev *rd, const struct riso_slots *s,
		 const struct riso_slot *slot, u32 status),
	TP_ARGS(rd, s, slot, status),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u32, qpn)
		__field(u32, status)
		__field(u64, wr_seq)
		__field(u64, wr_id)
		__field(u64, took_ns)
		__field(u32, class)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, rd);
		__entry->qpn = s->qpn;
		__entry->status = status;
		__entry->wr_seq = slot->seq;
		__entry->wr_id = slot->wr_id;
		__entry->took_ns = ktime_get_ns() - slot->queued_ns;
		__entry->class = s->class;
	),
	TP_printk("dev=%s qpn=%u status=%u wr_seq=%llu wr_id=%llu took_ns=%llu class=%u",
		  __entry->dev, __entry->qpn, __entry->status, __entry->wr_seq,
		  __entry->wr_id, __entry->took_ns, __entry->class)
);

TRACE_EVENT(user_grant,
	TP_PROTO(const struct riso_process *pr, const struct riso_process_path *ud, u64 bytes),
	TP_ARGS(pr, ud, bytes),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(pid_t, pid)
		__field(u32, dir)
		__field(u32, seq)
		__field(u64, bytes)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, pr->rd);
		__entry->pid = pr->group->who.pid;
		__entry->dir = ud->dir;
		__entry->seq = ud->seq;
		__entry->bytes = bytes;
	),
	TP_printk("dev=%s pid=%d dir=%s seq=%u bytes=%llu", __entry->dev,
		  __entry->pid, __entry->dir ? "rx" : "tx", __entry->seq,
		  __entry->bytes)
);

TRACE_EVENT(token_grant,
	TP_PROTO(const struct riso_flow *f, u32 dir, u64 bytes),
	TP_ARGS(f, dir, bytes),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u32, qpn)
		__field(u32, dir)
		__field(u64, bytes)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, f->rd);
		__entry->qpn = f->qpn;
		__entry->dir = dir;
		__entry->bytes = bytes;
	),
	TP_printk("dev=%s qpn=%u dir=%s bytes=%llu", __entry->dev,
		  __entry->qpn, __entry->dir ? "rx" : "tx", __entry->bytes)
);

TRACE_EVENT(throttle,
	TP_PROTO(const struct riso_flow *f, u32 dir, u64 clock_ns, u64 inflight,
		 u64 limit, u32 cause),
	TP_ARGS(f, dir, clock_ns, inflight, limit, cause),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u32, qpn)
		__field(u32, dir)
		__field(u64, clock_ns)
		__field(u64, inflight)
		__field(u64, limit)
		__field(u32, cause)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, f->rd);
		__entry->qpn = f->qpn;
		__entry->dir = dir;
		__entry->clock_ns = clock_ns;
		__entry->inflight = inflight;
		__entry->limit = limit;
		__entry->cause = cause;
	),
	TP_printk("dev=%s qpn=%u dir=%s clock_ns=%llu inflight=%llu limit=%llu cause=%u",
		  __entry->dev, __entry->qpn, __entry->dir ? "rx" : "tx",
		  __entry->clock_ns, __entry->inflight, __entry->limit,
		  __entry->cause)
);

TRACE_EVENT(budget_update,
	TP_PROTO(const struct riso_dev *rd),
	TP_ARGS(rd),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u64, max_rate)
		__field(u64, max_ops)
		__field(u64, safe_util)
		__field(u32, chunk_bytes)
		__field(u32, inflight_bytes)
		__field(u32, latency_flows)
		__field(u32, target99_ns)
		__field(u64, current99_ns)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, rd);
		__entry->max_rate = rd->cfg.max_rate;
		__entry->max_ops = rd->cfg.max_ops;
		__entry->safe_util = rd->cfg.safe_util;
		__entry->chunk_bytes = rd->chunk;
		__entry->inflight_bytes = rd->cfg.inflight_bytes;
		__entry->latency_flows = rd->latency_flows;
		__entry->target99_ns = rd->steer.target99_ns;
		__entry->current99_ns = rd->steer.current99_ns;
	),
	TP_printk("dev=%s max_rate=%llu max_ops=%llu safe_util=%llu chunk_bytes=%u inflight_bytes=%u latency_flows=%u target99_ns=%u current99_ns=%llu",
		  __entry->dev, __entry->max_rate, __entry->max_ops,
		  __entry->safe_util, __entry->chunk_bytes,
		  __entry->inflight_bytes, __entry->latency_flows,
		  __entry->target99_ns, __entry->current99_ns)
);

TRACE_EVENT(budget_expire,
	TP_PROTO(const struct riso_dev *rd),
	TP_ARGS(rd),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u64, safe_util)
		__field(u32, chunk_bytes)
		__field(u32, inflight_bytes)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, rd);
		__entry->safe_util = rd->own.safe_util;
		__entry->chunk_bytes = rd->chunk;
		__entry->inflight_bytes = rd->own.inflight_bytes;
	),
	TP_printk("dev=%s safe_util=%llu chunk_bytes=%u inflight_bytes=%u",
		  __entry->dev, __entry->safe_util, __entry->chunk_bytes,
		  __entry->inflight_bytes)
);

TRACE_EVENT(timer_fire,
	TP_PROTO(const struct riso_dev *rd, u64 late_ns),
	TP_ARGS(rd, late_ns),
	TP_STRUCT__entry(
		__array(char, dev, RISO_TRACE_DEV_LEN)
		__field(u64, late_ns)
	),
	TP_fast_assign(
		riso_trace_dev(__entry->dev, rd);
		__entry->late_ns = late_ns;
	),
	TP_printk("dev=%s late_ns=%llu", __entry->dev, __entry->late_ns)
);

#endif /* RISO_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
