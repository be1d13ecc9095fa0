// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Functions that glibc has moved between its libraries, with the versions that they had in 2.17.
 *
 * The shim is linked with these in place of libpthread and libdl, and so asks for the old
 * versions, which each glibc since has. Nothing here ever runs, and nothing here is installed.
 */
#define OLD(name) void name(void); void name(void) { }

#ifdef OLD_PTHREAD
OLD(pthread_attr_getstacksize)
OLD(pthread_attr_setstacksize)
OLD(pthread_condattr_setclock)
OLD(pthread_create)
OLD(pthread_key_create)
OLD(pthread_mutex_trylock)
OLD(pthread_once)
OLD(pthread_setname_np)
OLD(pthread_setspecific)
OLD(pthread_sigmask)
#else
OLD(dladdr)
OLD(dlsym)
OLD(dlvsym)
#endif
