/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of user_pages share: the arguments of the program, the functions that
 * several files call, and the cases.
 */
#ifndef RISO_TEST_PAGES_H
#define RISO_TEST_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <linux/types.h>

struct share;

/* Settings between cases */
#define PAGES_USUAL "max-rate 100mbit safe-util 100mbit chunk-bytes 64k"

/* main.c: the arguments, and the bytes of a page */
extern const char *pages_device, *pages_events, *pages_cgroups;
extern __u64 pages_rate;
extern size_t pages_page;

/* device.c */
int pages_configure(const char *settings);
unsigned int pages_add_rule(const char *rule);
int pages_delete_rule(unsigned int id);
int pages_report(int fd, const char *dev, __u32 qpn, __u32 reason);
bool pages_has_reason(__u32 qpn, const char *reason);

/* counting.c */
void pages_start_counting(const char *function);
unsigned long long pages_stop_counting(void);

/* events.c */
bool pages_is_named(pid_t pid, const char *fault);
bool pages_named(pid_t pid, const char *fault);

/* process.c */
int pages_in_child(int (*fn)(struct share *), struct share *s, pid_t *pid);
int pages_in_container(int (*fn)(struct share *));
bool pages_enter_cgroup(const char *name);
void pages_start_all(int (*fn)(struct share *), pid_t *pid, unsigned int num);
bool pages_stop_all(const pid_t *pid, unsigned int num);

/* beside.c */
__u64 pages_compare_books(struct share *s, pid_t other, unsigned int seconds,
			  __u64 *mine, __u64 *its);
bool pages_has_half_beside(int (*fn)(struct share *), const char *fault);
bool pages_keeps_beside_eight(int (*fn)(struct share *));

/* The cases: each is true if all is right. */

/* attach.c */
bool pages_attaching(void);
bool pages_moving_away(void);
bool pages_registering(void);
bool pages_asking_again(void);

/* report.c */
bool pages_reporting(void);
bool pages_reporting_much(void);
bool pages_owing_much(void);
bool pages_making_many(void);
bool pages_changing_little(void);

/* mapping.c */
bool pages_mapping(void);
bool pages_forking(void);
bool pages_passing(void);

/* closing.c */
bool pages_closing(void);
bool pages_closing_before(void);
bool pages_closing_on(void);

/* places.c */
bool pages_many_places(void);
bool pages_many_places_of_container(void);
bool pages_many_places_of_root(void);
bool pages_many_places_of_leaver(void);
bool pages_many_places_of_namespace(void);

/* limits.c */
bool pages_many_files(void);
bool pages_many_files_of_container(void);
bool pages_joining_anew(void);
bool pages_registering_on(void);
bool pages_calling(void);

/* grants.c */
bool pages_granting(void);
bool pages_idling(void);
bool pages_timing(void);
bool pages_wishing(void);
bool pages_voiding(void);
bool pages_waiting(void);

/* lies.c */
bool pages_lying(void);
bool pages_boasting(void);
bool pages_stealing(void);

/* debt.c */
bool pages_strangers(void);
bool pages_claiming(void);
bool pages_claiming_eight(void);
bool pages_has_owed(void);

/* hoarding.c */
bool pages_grasping(void);
bool pages_grasping_eight(void);
bool pages_unmapping(void);
bool pages_hoarding(void);
bool pages_waking_up(void);
bool pages_stopping(void);

/* groups.c */
bool pages_sharing(void);
bool pages_sharing_by_user(void);
bool pages_sharing_by_container(void);

/* kill.c */
bool pages_killing(void);
bool pages_killing_open(void);

#endif /* RISO_TEST_PAGES_H */
