/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RISO_TEST_SENDS_GIVEN_H
#define RISO_TEST_SENDS_GIVEN_H

/*
 * How many SENDs of a queue pair the provider has been given. With @before_end, which is
 * how many that were when the queue pair ended (0 if it did not), the count begins anew.
 */
unsigned int sends_given(unsigned int qpn, unsigned int *before_end);

#endif /* RISO_TEST_SENDS_GIVEN_H */
