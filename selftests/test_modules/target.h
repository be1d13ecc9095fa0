/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Finding the module that a test module watches.
 *
 * Owns nothing and takes no lock. Process context, may sleep.
 */
#ifndef RISO_TEST_TARGET_H
#define RISO_TEST_TARGET_H

#include <linux/kobject.h>
#include <linux/module.h>

/*
 * A module by its name, which stays until module_put(). All modules are in the set of objects
 * that the one who asks is in. NULL if there is none of that name.
 */
static inline struct module *test_get_module(const char *name)
{
	struct kobject *obj = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, name);
	struct module *mod;

	if (!obj)
		return NULL;
	mod = container_of(obj, struct module_kobject, kobj)->mod;
	/* What is built into the kernel has an object, too. */
	if (mod && !try_module_get(mod))
		mod = NULL;
	kobject_put(obj);
	return mod;
}

#endif /* RISO_TEST_TARGET_H */
