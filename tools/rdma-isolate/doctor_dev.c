// SPDX-License-Identifier: GPL-2.0
/*
 * The checks of an enabled device, by what the module says about it.
 */
#include <inttypes.h>
#include <stdio.h>

#include "doctor.h"
#include "units.h"

/* A turn takes about 200 us. A timer that is later than half of it leaves holes. */
#define LATE_NS		UINT64_C(100000)

enum { TEXT_LEN = 192 };

static void check_timer(const struct doctor_dev *dev, doctor_fn tell, void *data)
{
	char found[TEXT_LEN], late[UNITS_LEN];

	if (dev->late_ns <= LATE_NS)
		return;
	snprintf(found, sizeof(found), "the timer of %s runs %s late in the mean",
		 dev->name, time_format(dev->late_ns, late));
	tell("timer", VERDICT_HINT, found,
	     "give the host more processor time: riso_timer.bt shows how late it is", data);
}

/* The lower of both directions; one that was never used is at its full pace. */
static void check_pace(const struct doctor_dev *dev, doctor_fn tell, void *data)
{
	uint64_t slow = dev->pace[0] < dev->pace[1] ? dev->pace[0] : dev->pace[1];
	char found[TEXT_LEN], pace[UNITS_LEN], util[UNITS_LEN];

	if (slow >= dev->safe_util / 2)
		return;
	snprintf(found, sizeof(found),
		 "%s is given work at %s, its safe-util is %s: it was full, and did less",
		 dev->name, rate_format(slow, pace), rate_format(dev->safe_util, util));
	tell("pace", VERDICT_HINT, found,
	     "give the host more processor time, or set max-rate and safe-util to what it can do (calibrate)",
	     data);
}

static void check_believed(const struct doctor_dev *dev, doctor_fn tell, void *data)
{
	char found[TEXT_LEN], rate[UNITS_LEN], believed[UNITS_LEN];

	/* One that was guessed follows, and has a hint of its own. */
	if (!dev->calibrated || dev->believed_rate <= dev->max_rate)
		return;
	snprintf(found, sizeof(found),
		 "%s delivers more than its max-rate of %s: chunks and windows go by %s",
		 dev->name, rate_format(dev->max_rate, rate),
		 rate_format(dev->believed_rate, believed));
	tell("believed-rate", VERDICT_HINT, found,
	     "set max-rate to what the device can do (calibrate)", data);
}

void doctor_dev(const struct doctor_dev *dev, doctor_fn tell, void *data)
{
	char found[TEXT_LEN], fix[TEXT_LEN];

	if (!dev->calibrated) {
		snprintf(found, sizeof(found), "max-rate of %s is only guessed", dev->name);
		snprintf(fix, sizeof(fix), "rdma-isolate calibrate dev %s --apply",
			 dev->name);
		tell("max-rate", VERDICT_HINT, found, fix, data);
	}
	if (!dev->latency_flows) {
		snprintf(found, sizeof(found), "%s has no latency flow to protect",
			 dev->name);
		snprintf(fix, sizeof(fix),
			 "rdma-isolate rule add dev %s cgroup PATH class latency",
			 dev->name);
		tell("latency", VERDICT_HINT, found, fix, data);
	}
	if (!dev->chunk) {
		snprintf(found, sizeof(found),
			 "%s does not cut large messages: small ones wait for whole ones",
			 dev->name);
		snprintf(fix, sizeof(fix), "rdma-isolate calibrate dev %s --apply",
			 dev->name);
		tell("chunk-bytes", VERDICT_HINT, found, fix, data);
	}
	check_timer(dev, tell, data);
	check_pace(dev, tell, data);
	check_believed(dev, tell, data);
}
