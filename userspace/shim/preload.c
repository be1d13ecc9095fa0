// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the library exports: the functions of libibverbs that are to be seen, and
 * dlopen().
 *
 * The functions carry the versions of libibverbs (shim.map), so references to those
 * are bound to us when we are preloaded. Who asks dlopen() for libibverbs gets a handle of
 * librdma_isolate_verbs.so, which leads to us first, and to libibverbs for what we do not have.
 * We are not linked with libibverbs, as a program may have none, or one of its own.
 *
 * Owns the filling of shim_real: the first call fills the table once, and all read it
 * without a lock after.
 *
 * Everything here runs in threads of the program.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "class.h"
#include "cq.h"
#include "ctx.h"
#include "event.h"
#include "poller.h"
#include "qp.h"
#include "rdma_isolate.h"
#include "shim.h"

#define EXPORT __attribute__((visibility("default")))

/* For dlopen(), which is not written in C. */
void *(*shim_real_dlopen)(const char *name, int flags);
const char *shim_dlopen_name(const char *name);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool filled;

#define REAL(name, version)						\
	(shim_real.name = dlvsym(verbs, "ibv_" #name, "IBVERBS_" version))

static void find_dlopen(void)
{
	if (!__atomic_load_n(&shim_real_dlopen, __ATOMIC_RELAXED))
		__atomic_store_n(&shim_real_dlopen, dlsym(RTLD_NEXT, "dlopen"),
				 __ATOMIC_RELAXED);
}

/* A copy may have another name, as libibverbs-7f3ad3f8.so.1. */
static int note_verbs(struct dl_phdr_info *info, size_t size, void *name)
{
	const char *base = strrchr(info->dlpi_name, '/');

	(void)size;
	if (strncmp(base ? base + 1 : info->dlpi_name, "libibverbs", strlen("libibverbs")))
		return 0;
	snprintf(name, PATH_MAX, "%s", info->dlpi_name);
	return 1;
}

/* The program's libibverbs: next in line, or loaded by a library that keeps it for itself. */
static void *find_verbs(void)
{
	char name[PATH_MAX];

	if (dlvsym(RTLD_NEXT, "ibv_open_device", "IBVERBS_1.1"))
		return RTLD_NEXT;
	find_dlopen();
	if (dl_iterate_phdr(note_verbs, name))
		return shim_real_dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
	return shim_real_dlopen("libibverbs.so.1", RTLD_LAZY);
}

static void fill_real(void)
{
	void *verbs = find_verbs();

	if (!verbs) {
		dprintf(STDERR_FILENO, "rdma_isolate: the program's libibverbs is not found\n");
		abort();
	}
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
}

static void init(void)
{
	/* Pairs with the release in fill_real(). */
	if (!__atomic_load_n(&filled, __ATOMIC_ACQUIRE))
		pthread_once(&once, fill_real);
}

/* What a signal handler calls in the middle of another call */
static bool is_refused(void)
{
	if (!shim_is_nested())
		return false;
	errno = EDEADLK;
	return true;
}

EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	init();
	if (is_refused())
		return NULL;
	return shim_open_device(device);
}

EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	init();
	if (is_refused())
		return NULL;
	return shim_import_device(cmd_fd);
}

EXPORT int ibv_close_device(struct ibv_context *context)
{
	init();
	if (is_refused())
		return -1;
	return shim_close_device(context);
}

EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
				    struct ibv_qp_init_attr *attr)
{
	init();
	if (is_refused())
		return NULL;
	return shim_create_qp(pd, attr);
}

EXPORT int ibv_destroy_qp(struct ibv_qp *qp)
{
	init();
	if (is_refused())
		return EDEADLK;
	return shim_destroy_qp(qp);
}

EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	init();
	if (is_refused())
		return EDEADLK;
	return shim_modify_qp(qp, attr, mask);
}

EXPORT int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
			struct ibv_qp_init_attr *init_attr)
{
	init();
	return shim_query_qp(qp, attr, mask, init_attr);
}

EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
				    void *cq_context,
				    struct ibv_comp_channel *channel,
				    int comp_vector)
{
	init();
	if (is_refused())
		return NULL;
	return shim_create_cq(context, cqe, cq_context, channel, comp_vector);
}

EXPORT int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	init();
	if (is_refused())
		return EDEADLK;
	return shim_resize_cq(cq, cqe);
}

EXPORT int ibv_destroy_cq(struct ibv_cq *cq)
{
	init();
	if (is_refused())
		return EDEADLK;
	return shim_destroy_cq(cq);
}

EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
			    void **cq_context)
{
	init();
	if (is_refused())
		return -1;
	return shim_get_cq_event(channel, cq, cq_context);
}

EXPORT int rdma_isolate_set_class(struct ibv_qp *qp, enum riso_class class_id)
{
	return shim_set_class(qp, class_id);
}

EXPORT int rdma_isolate_over_target(struct ibv_qp *qp)
{
	return shim_over_target(qp);
}

/* Also by the name of the file that libibverbs.so.1 is a link to. */
static bool is_verbs(const char *name)
{
	static const char verbs[] = "libibverbs.so";
	const size_t len = sizeof(verbs) - 1;
	const char *base;

	if (!name)
		return false;
	base = strrchr(name, '/');
	base = base ? base + 1 : name;
	return !strncmp(base, verbs, len) && (!base[len] || base[len] == '.');
}

static char verbs_path[PATH_MAX];
static pthread_once_t verbs_once = PTHREAD_ONCE_INIT;

/* It may be missing, or the libibverbs that it leads to: then the program gets what it asks for. */
static void find_verbs_path(void)
{
	const char *slash;
	Dl_info info;

	if (!dladdr(&shim_real, &info))
		return;
	slash = strrchr(info.dli_fname, '/');
	snprintf(verbs_path, sizeof(verbs_path), "%.*slibrdma_isolate_verbs.so",
		 slash ? (int)(slash + 1 - info.dli_fname) : 0, info.dli_fname);
	if (!shim_real_dlopen(verbs_path, RTLD_LAZY))
		*verbs_path = 0;
}

/**
 * shim_dlopen_name - what dlopen() is to open
 * @name: what the program asks for
 *
 * Return: @name, or what leads to the shim in place of libibverbs; shim_real_dlopen is set.
 */
__attribute__((used)) const char *shim_dlopen_name(const char *name)
{
	find_dlopen();
	if (!is_verbs(name))
		return name;
	pthread_once(&verbs_once, find_verbs_path);
	return *verbs_path ? verbs_path : name;
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
	name = shim_dlopen_name(name);
	return shim_real_dlopen(name, flags);
}
#endif
