// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the library exports: the functions of libibverbs and libmlx5 that are to be seen, and
 * dlopen().
 *
 * The functions carry the versions of their libraries (shim.map), so references to those
 * are bound to us when we are preloaded. Who asks dlopen() for libibverbs gets a handle of
 * librdma_isolate_verbs.so, which leads to us first, and to libibverbs for what we do not have.
 * With libmlx5 it is librdma_isolate_mlx5.so. We are linked with neither, as a program may have
 * none, or one of its own.
 *
 * Owns the filling of shim_real and shim_mlx5_real: the first call fills a table, and all read it
 * without a lock after.
 *
 * Everything here runs in threads of the program.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "class.h"
#include "cq.h"
#include "ctx.h"
#include "event.h"
#include "mlx5.h"
#include "poller.h"
#include "qp.h"
#include "rdma_isolate.h"
#include "shim.h"

#define EXPORT __attribute__((visibility("default")))

/* For dlopen(), which is not written in C. */
void *(*shim_real_dlopen)(const char *name, int flags);
const char *shim_dlopen_name(const char *name, int flags);

static bool filled, mlx5_filled;

#define REAL(name, version)						\
	__atomic_store_n(&shim_real.name,				\
			 dlvsym(verbs, "ibv_" #name, "IBVERBS_" version), \
			 __ATOMIC_RELAXED)

static void find_dlopen(void)
{
	if (!__atomic_load_n(&shim_real_dlopen, __ATOMIC_RELAXED))
		__atomic_store_n(&shim_real_dlopen, dlsym(RTLD_NEXT, "dlopen"),
				 __ATOMIC_RELAXED);
}

/**
 * struct copy - a library to look for among those that are loaded
 * @name: how its file name begins; a copy may be called libibverbs-7f3ad3f8.so.1
 * @path: the path of its file
 */
struct copy {
	const char *name;
	char path[PATH_MAX];
};

static int note_copy(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *base = strrchr(info->dlpi_name, '/');
	struct copy *c = arg;

	(void)size;
	if (strncmp(base ? base + 1 : info->dlpi_name, c->name, strlen(c->name)))
		return 0;
	snprintf(c->path, sizeof(c->path), "%s", info->dlpi_name);
	return 1;
}

static void *find_copy(const char *name)
{
	struct copy c = { .name = name };

	return dl_iterate_phdr(note_copy, &c) ?
	       shim_real_dlopen(c.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* The program's libibverbs: next in line, or loaded by a library that keeps it for itself. */
static void *find_verbs(void)
{
	if (dlvsym(RTLD_NEXT, "ibv_open_device", "IBVERBS_1.1"))
		return RTLD_NEXT;
	find_dlopen();
	return find_copy("libibverbs") ?: shim_real_dlopen("libibverbs.so.1", RTLD_LAZY);
}

/* The copy of libibverbs that was found first. Another thread may find one that came later. */
static void *choose_verbs(void)
{
	static void *chosen;
	void *verbs = __atomic_load_n(&chosen, __ATOMIC_RELAXED), *first = NULL;

	if (!verbs)
		verbs = find_verbs();
	if (!verbs || __atomic_compare_exchange_n(&chosen, &first, verbs, false,
						  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return verbs;
	return first;
}

/*
 * Fill the table; false if the program has no libibverbs yet. Threads that do so at once write the
 * same. None may wait for another: that may be in dlopen(), and in the constructor of a library.
 */
static bool fill_real(void)
{
	void *verbs = choose_verbs();

	if (!verbs)
		return false;
	REAL(open_device, "1.1");
	REAL(import_device, "1.10");
	REAL(close_device, "1.1");
	REAL(get_device_name, "1.1");
	REAL(query_device, "1.1");
	REAL(create_qp, "1.1");
	REAL(destroy_qp, "1.1");
	REAL(modify_qp, "1.1");
	REAL(query_qp, "1.1");
	REAL(qp_to_qp_ex, "1.6");
	REAL(create_cq, "1.1");
	REAL(resize_cq, "1.1");
	REAL(destroy_cq, "1.1");
	REAL(get_cq_event, "1.1");
	REAL(ack_cq_events, "1.1");
	/* Pairs with the acquire in init(). */
	__atomic_store_n(&filled, true, __ATOMIC_RELEASE);
	return true;
}

/*
 * Fill the table; false and EOPNOTSUPP if there is no libibverbs yet. Weak references of a
 * program lead to us also then.
 */
static bool init(void)
{
	static bool told;

	/* Pairs with the release in fill_real(). */
	if (__atomic_load_n(&filled, __ATOMIC_ACQUIRE) || fill_real())
		return true;
	if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		shim_warn("the program's libibverbs is not found: calls fail");
	errno = EOPNOTSUPP;
	return false;
}

/*
 * The program's libmlx5. A provider has the same file under another name, and may be there already
 * when the program's own is a different one. So the name that programs are linked with is first.
 */
static void *find_mlx5(void)
{
	void *mlx5;

	if (dlvsym(RTLD_NEXT, "mlx5dv_query_device", "MLX5_1.0"))
		return RTLD_NEXT;
	find_dlopen();
	mlx5 = shim_real_dlopen("libmlx5.so.1", RTLD_LAZY | RTLD_NOLOAD);
	return mlx5 ?: find_copy("libmlx5");
}

#define REAL_MLX5(member, name, version)					\
	__atomic_store_n(&shim_mlx5_real.member,				\
			 dlvsym(mlx5, "mlx5dv_" #name, "MLX5_" version),	\
			 __ATOMIC_RELAXED)

/*
 * Fill the table of libmlx5; false if the program has no libmlx5 yet. Threads may do so at once, as
 * with fill_real().
 */
static bool fill_mlx5(void)
{
	void *mlx5 = find_mlx5();

	if (!mlx5)
		return false;
	REAL_MLX5(open_device, open_device, "1.7");
	REAL_MLX5(create_qp, create_qp, "1.3");
	REAL_MLX5(create_cq, create_cq, "1.1");
	REAL_MLX5(init_obj, init_obj, "1.2");
	REAL_MLX5(init_obj_1_0, init_obj, "1.0");
	/* Pairs with the acquire in init_mlx5(). */
	__atomic_store_n(&mlx5_filled, true, __ATOMIC_RELEASE);
	return true;
}

/* Without libmlx5 the table stays empty. */
static void init_mlx5(void)
{
	/* Pairs with the release in fill_mlx5(). */
	if (__atomic_load_n(&mlx5_filled, __ATOMIC_ACQUIRE) || fill_mlx5())
		init();
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	if (!init() || shim_is_refused())
		return NULL;
	return shim_open_device(device);
}

EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	if (!init() || shim_is_refused())
		return NULL;
	return shim_import_device(cmd_fd);
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	if (!init() || shim_is_refused())
		return -1;
	return shim_close_device(context);
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *attr)
{
	if (!init() || shim_is_refused())
		return NULL;
	return shim_create_qp(pd, attr);
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	if (!init() || shim_is_refused())
		return errno;
	return shim_destroy_qp(qp);
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	if (!init() || shim_is_refused())
		return errno;
	return shim_modify_qp(qp, attr, mask);
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr)
{
	if (!init())
		return errno;
	return shim_query_qp(qp, attr, mask, init_attr);
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
				    void *cq_context,
				    struct ibv_comp_channel *channel,
				    int comp_vector)
{
	if (!init() || shim_is_refused())
		return NULL;
	return shim_create_cq(context, cqe, cq_context, channel, comp_vector);
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	if (!init() || shim_is_refused())
		return errno;
	return shim_resize_cq(cq, cqe);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	if (!init() || shim_is_refused())
		return errno;
	return shim_destroy_cq(cq);
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context)
{
	if (!init())
		return -1;
	return shim_get_cq_event(channel, cq, cq_context);
}

EXPORT struct ibv_context *mlx5dv_open_device(struct ibv_device *device,
					      struct mlx5dv_context_attr *attr)
{
	init_mlx5();
	if (shim_is_refused())
		return NULL;
	return shim_mlx5_open_device(device, attr);
}

EXPORT struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context,
				       struct ibv_qp_init_attr_ex *attr,
				       struct mlx5dv_qp_init_attr *mlx5_attr)
{
	init_mlx5();
	if (shim_is_refused())
		return NULL;
	return shim_mlx5_create_qp(context, attr, mlx5_attr);
}

EXPORT struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context,
					  struct ibv_cq_init_attr_ex *attr,
					  struct mlx5dv_cq_init_attr *mlx5_attr)
{
	init_mlx5();
	if (shim_is_refused())
		return NULL;
	return shim_mlx5_create_cq(context, attr, mlx5_attr);
}

/* mlx5dv_init_obj() has two versions. A program that an old libmlx5 was linked to has the first. */
int shim_init_obj_1_2(struct mlx5dv_obj *obj, uint64_t type);
int shim_init_obj_1_0(struct mlx5dv_obj *obj, uint64_t type);

EXPORT __attribute__((symver("mlx5dv_init_obj@@MLX5_1.2")))
int shim_init_obj_1_2(struct mlx5dv_obj *obj, uint64_t type)
{
	init_mlx5();
	if (shim_is_refused())
		return EDEADLK;
	return shim_mlx5_init_obj(shim_mlx5_real.init_obj, obj, type);
}

EXPORT __attribute__((symver("mlx5dv_init_obj@MLX5_1.0")))
int shim_init_obj_1_0(struct mlx5dv_obj *obj, uint64_t type)
{
	init_mlx5();
	if (shim_is_refused())
		return EDEADLK;
	return shim_mlx5_init_obj(shim_mlx5_real.init_obj_1_0, obj, type);
}

EXPORT int rdma_isolate_set_class(struct ibv_qp *qp, enum riso_class class_id)
{
	if (shim_is_refused())
		return EDEADLK;
	return shim_set_class(qp, class_id);
}

EXPORT int rdma_isolate_over_target(struct ibv_qp *qp)
{
	return shim_over_target(qp);
}

/**
 * struct lead - a library that programs open with dlopen(), and what they get instead
 * @name: the library
 * @file: what leads to the shim, and to @name behind it
 * @suits: may it take the place of @name? Asked when it is loaded
 * @path: where @file is, NULL as long as it cannot take the place of @name
 */
struct lead {
	const char *name;
	const char *file;
	bool (*suits)(void);
	const char *path;
};

/* A program that looks for what an old libmlx5 does not have would find ours. */
static bool suits_mlx5(void)
{
	return fill_mlx5() && shim_mlx5_real.open_device && shim_mlx5_real.create_qp &&
	       shim_mlx5_real.create_cq && shim_mlx5_real.init_obj;
}

static bool suits_verbs(void)
{
	return true;
}

static struct lead leads[] = {
	{ .name = "libibverbs.so", .file = "librdma_isolate_verbs.so", .suits = suits_verbs },
	{ .name = "libmlx5.so", .file = "librdma_isolate_mlx5.so", .suits = suits_mlx5 },
};

/* Also by the name of the file that libibverbs.so.1 is a link to. */
static bool leads_to(const struct lead *l, const char *name)
{
	size_t len = strlen(l->name);
	const char *base;

	if (!name)
		return false;
	base = strrchr(name, '/');
	base = base ? base + 1 : name;
	return !strncmp(base, l->name, len) && (!base[len] || base[len] == '.');
}

/*
 * Where the lead is. It may be missing, or the library that it leads to: that may be found later,
 * as when the program has loaded it from a path of its own. Threads that look at once find the
 * same, and none waits for another, as with fill_real().
 */
static const char *find_path(struct lead *l)
{
	/* Pairs with the release below. */
	const char *known = __atomic_load_n(&l->path, __ATOMIC_ACQUIRE);
	char path[PATH_MAX], *copy;
	const char *slash;
	Dl_info info;

	if (known)
		return known;
	if (!dladdr(&shim_real, &info))
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	snprintf(path, sizeof(path), "%.*s%s",
		 slash ? (int)(slash + 1 - info.dli_fname) : 0, info.dli_fname, l->file);
	if (!shim_real_dlopen(path, RTLD_LAZY)) {
		shim_debug("%s is opened without the shim: what leads to it is not found",
			   l->name);
		return NULL;
	}
	copy = l->suits() ? strdup(path) : NULL;
	if (copy && !__atomic_compare_exchange_n(&l->path, &known, copy, false,
						 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		free(copy);
		return known;
	}
	return copy;
}

/**
 * shim_dlopen_name - what dlopen() is to open
 * @name: what the program asks for
 * @flags: as the program gives them
 *
 * Return: @name, or what leads to the shim in place of @name; shim_real_dlopen is set.
 */
__attribute__((used)) const char *shim_dlopen_name(const char *name, int flags)
{
	struct lead *l = leads, *end = leads + sizeof(leads) / sizeof(*leads);

	find_dlopen();
	while (l < end && !leads_to(l, name))
		l++;
	if (l == end)
		return name;
	/* What is not there yet is not to be loaded. */
	if ((flags & RTLD_NOLOAD) && !shim_real_dlopen(name, flags))
		return name;
	return find_path(l) ?: name;
}

/*
 * The real dlopen() searches where its caller would, and knows that by the address that
 * it returns to. So ours leaves it the stack as it found it, and jumps there.
 */
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	push %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call shim_dlopen_name\n"
	"	pop %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	mov %rax, %rdi\n"
	"	jmp *shim_real_dlopen(%rip)\n"
	"	.cfi_endproc\n"
	".size dlopen, . - dlopen\n"
	".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
	".globl dlopen\n"
	".type dlopen, %function\n"
	"dlopen:\n"
	"	.cfi_startproc\n"
	"	hint #34\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	mov x29, sp\n"
	"	str w1, [sp, #16]\n"
	"	bl shim_dlopen_name\n"
	"	ldr w1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	.cfi_restore 30\n"
	"	.cfi_restore 29\n"
	"	.cfi_def_cfa_offset 0\n"
	"	adrp x16, shim_real_dlopen\n"
	"	ldr x16, [x16, #:lo12:shim_real_dlopen]\n"
	"	br x16\n"
	"	.cfi_endproc\n"
	".size dlopen, . - dlopen\n"
	".popsection\n");
#else
/* A tail call, if the compiler makes one of it */
EXPORT void *dlopen(const char *name, int flags)
{
	name = shim_dlopen_name(name, flags);
	return shim_real_dlopen(name, flags);
}
#endif
