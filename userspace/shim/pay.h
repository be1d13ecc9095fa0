/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Payment and room for pieces. See pay.c.
 */
#ifndef SHIM_PAY_H
#define SHIM_PAY_H

#include <stdbool.h>
#include <stdint.h>

struct shim_qp;
struct shim_rec;

/**
 * struct shim_piece - the work request that goes out next
 * @rec: its record
 * @chunk: size that messages are cut to
 * @len: bytes
 * @cost: cost bytes
 * @last: the message ends with it
 * @cut: it is not the whole message
 */
struct shim_piece {
	struct shim_rec *rec;
	uint32_t chunk;
	uint32_t len;
	uint64_t cost;
	bool last;
	bool cut;
};

enum pay {
	PAY_NOT,
	PAY_GRANT,
	PAY_DEBT,
	PAY_NOTHING,
};

uint64_t shim_sum_cost(const struct shim_qp *f, const struct shim_rec *rec);
void shim_add_cost(struct shim_qp *f, int dir, int64_t cost);
void shim_set_full(struct shim_qp *f, bool full);
void shim_forget_paid(struct shim_qp *f, const struct shim_rec *rec);
void shim_get_piece(const struct shim_qp *f, bool open, struct shim_piece *p);
enum pay shim_choose_pay(struct shim_qp *f, const struct shim_piece *p, bool open,
			 uint64_t now);
bool shim_has_room(const struct shim_qp *f, const struct shim_piece *p, bool open);
uint16_t shim_get_slot_flags(const struct shim_qp *f, const struct shim_piece *p, bool open);
bool shim_pay_part(struct shim_qp *f, const struct shim_piece *p);

#endif /* SHIM_PAY_H */
