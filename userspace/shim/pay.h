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
struct shim_slot;

/**
 * struct shim_piece - the work request that goes out next
 * @rec: record of the message
 * @chunk: bytes of each piece of the message but the last, 0 if it is not cut
 * @dir: direction of the data, enum riso_user_dir
 * @book: number of the book that it counts in
 * @fetch: it takes one of the queue pair's max_rd_atomic
 * @len: bytes of the piece
 * @cost: cost bytes of the piece
 * @free: its path is open, so it goes out, whatever holds for others of the flow
 * @last: the message ends with the piece
 * @cut: the piece is not the whole message
 */
struct shim_piece {
	struct shim_rec *rec;
	uint32_t chunk;
	uint16_t dir;
	uint16_t book;
	bool fetch;
	uint32_t len;
	uint64_t cost;
	bool free;
	bool last;
	bool cut;
};

/**
 * enum pay - how a piece is paid for
 * @PAY_NOT: it is not, and has to wait
 * @PAY_GRANT: with what is left of the grants
 * @PAY_DEBT: it goes out without a grant, and the kernel is told so
 * @PAY_NOTHING: nothing is charged, as nobody is paced
 */
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
void shim_get_piece(const struct shim_qp *f, bool open, bool device_open, struct shim_piece *p);
void shim_get_next_piece(const struct shim_qp *f, bool open, struct shim_piece *p);
enum pay shim_choose_pay(struct shim_qp *f, const struct shim_piece *p, uint64_t now);
void shim_keep_spare(struct shim_qp *f);
bool shim_has_room(const struct shim_qp *f, const struct shim_piece *p, bool open);
uint16_t shim_get_slot_flags(const struct shim_qp *f, const struct shim_piece *p, bool open);
void shim_time_piece(struct shim_qp *f, const struct shim_slot *slot);
void shim_measure_path(struct shim_qp *f, const struct shim_slot *slot);
bool shim_pay_part(struct shim_qp *f, const struct shim_piece *p);

#endif /* SHIM_PAY_H */
