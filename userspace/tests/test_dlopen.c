// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * dlopen() of a program with the verbs shim, which is built without any optimisation
 * here: what only the program's own RUNPATH leads to is found, and who asks for
 * libibverbs or libmlx5 gets the shim.
 *
 * The program runs itself with the shim. The library that it looks for is in a directory
 * that its RUNPATH names and no other path does.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void finds_by_runpath(void **state)
{
	void *handle = dlopen("probe_for_dlopen.so", RTLD_NOW);
	int (*probe)(void);

	(void)state;
	if (!handle)
		fail_msg("%s", dlerror());
	probe = dlsym(handle, "probe_for_dlopen");
	assert_non_null(probe);
	assert_int_equal(probe(), 4711);
	dlclose(handle);
}

static void keeps_errors_and_flags(void **state)
{
	(void)state;
	assert_null(dlopen("there_is_no_such.so", RTLD_NOW));
	assert_non_null(strstr(dlerror(), "there_is_no_such.so"));
	/* It is not there yet. */
	assert_null(dlopen("probe_for_dlopen.so", RTLD_NOW | RTLD_NOLOAD));
	assert_non_null(dlopen(NULL, RTLD_NOW));
}

static void *open_verbs(void *arg)
{
	(void)arg;
	usleep(100000);
	return dlopen("libibverbs.so.1", RTLD_NOW);
}

/*
 * The first two open it at once, and one of these from a constructor: the dynamic linker has a lock
 * meanwhile that the other waits for.
 */
static void is_opened_in_constructor(void **state)
{
	pthread_t thread;
	void *handle;

	(void)state;
	alarm(30);
	assert_int_equal(pthread_create(&thread, NULL, open_verbs, NULL), 0);
	assert_non_null(dlopen("verbs_in_constructor.so", RTLD_NOW));
	assert_int_equal(pthread_join(thread, &handle), 0);
	alarm(0);
	assert_non_null(handle);
}

static void is_libibverbs(void **state)
{
	void *handle = dlopen("libibverbs.so.1", RTLD_NOW);
	Dl_info info;
	void *open;

	(void)state;
	assert_non_null(handle);
	open = dlvsym(handle, "ibv_open_device", "IBVERBS_1.1");
	assert_non_null(open);
	assert_true(dladdr(open, &info));
	assert_non_null(strstr(info.dli_fname, "shim_plain.so"));
	/* What the shim does not have, and what only it has */
	assert_non_null(dlvsym(handle, "ibv_query_port", "IBVERBS_1.1"));
	assert_non_null(dlsym(handle, "rdma_isolate_set_class"));
}

/* Who only asks whether libmlx5 is there does not load it. */
static void is_libmlx5(void **state)
{
	static const char * const ours[][2] = {
		{ "mlx5dv_open_device", "MLX5_1.7" },
		{ "mlx5dv_create_qp", "MLX5_1.3" },
		{ "mlx5dv_create_cq", "MLX5_1.1" },
		{ "mlx5dv_init_obj", "MLX5_1.2" },
	};
	void *handle, *symbol;
	Dl_info info;
	size_t i;

	(void)state;
	assert_null(dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD));
	handle = dlopen("libmlx5.so.1", RTLD_NOW);
	assert_non_null(handle);
	for (i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		symbol = dlvsym(handle, ours[i][0], ours[i][1]);
		assert_non_null(symbol);
		assert_ptr_equal(dlsym(handle, ours[i][0]), symbol);
		assert_true(dladdr(symbol, &info));
		assert_non_null(strstr(info.dli_fname, "shim_plain.so"));
	}
	/* One of which libmlx5 has two versions */
	symbol = dlvsym(handle, "mlx5dv_init_obj", "MLX5_1.0");
	assert_non_null(symbol);
	assert_ptr_not_equal(symbol, dlsym(handle, "mlx5dv_init_obj"));
	assert_true(dladdr(symbol, &info));
	assert_non_null(strstr(info.dli_fname, "shim_plain.so"));
	/* What the shim does not have, and a version that nobody has */
	assert_non_null(dlvsym(handle, "mlx5dv_is_supported", "MLX5_1.8"));
	assert_null(dlvsym(handle, "mlx5dv_create_qp", "MLX5_1.2"));
	assert_non_null(dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD));
}

/* A thread with a processor of its own loads the shim, and its helper runs where main() does. */
static void *load_pinned(void *arg)
{
	void (*use_first_cpus)(void);
	cpu_set_t *set = arg;
	void *handle;

	if (sched_setaffinity(0, sizeof(*set), set))
		return NULL;
	handle = dlopen("guard_for_dlopen.so", RTLD_NOW);
	use_first_cpus = handle ? dlsym(handle, "shim_use_first_cpus") : NULL;
	if (!use_first_cpus)
		return NULL;
	use_first_cpus();
	return sched_getaffinity(0, sizeof(*set), set) ? NULL : set;
}

static void notes_cpus_of_main(void **state)
{
	cpu_set_t all, set;
	pthread_t thread;
	void *loaded;
	int i;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) == 1)
		skip();
	CPU_ZERO(&set);
	for (i = 0; !CPU_ISSET(i, &all); i++)
		;
	CPU_SET(i, &set);
	assert_int_equal(pthread_create(&thread, NULL, load_pinned, &set), 0);
	assert_int_equal(pthread_join(thread, &loaded), 0);
	assert_non_null(loaded);
	assert_true(CPU_EQUAL(&set, &all));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_errors_and_flags),
		cmocka_unit_test(finds_by_runpath),
		cmocka_unit_test(is_opened_in_constructor),
		cmocka_unit_test(is_libibverbs),
		cmocka_unit_test(is_libmlx5),
		cmocka_unit_test(notes_cpus_of_main),
	};
	char shim[4096];
	ssize_t len;

	(void)argc;
	if (!getenv("LD_PRELOAD")) {
		len = readlink("/proc/self/exe", shim, sizeof(shim) - 32);
		if (len < 0)
			return 1;
		shim[len] = 0;
		*strrchr(shim, '/') = 0;
		strcat(shim, "/shim_plain.so");
		setenv("LD_PRELOAD", shim, 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("dlopen", tests, NULL, NULL);
}
