#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Adds up what guest.sh left in each of the given directories.

Counts the test cases of each test, or the test itself where it names none. A
test that was planned and did not run, one that failed although none of its
cases did, and one under which the kernel complained count as a failure more.
"""

import pathlib
import re
import sys

# The first line of whatever the kernel prints when something is wrong. (What
# starts the guest writes its own warnings to the same log.)
SPLAT = re.compile(
    r"WARNING:|BUG:|BUG |Oops|KASAN|KFENCE|UBSAN|ODEBUG|general protection"
    r"|Kernel panic|INFO: (possible|task|rcu|trying|inconsistent|suspicious)"
    r"|DEBUG_LOCKS_WARN|rcu:? INFO|soft lockup|hard LOCKUP|refcount_t:"
    r"|list_(add|del) corruption|suspicious RCU|possible circular"
    r"|sleeping function|scheduling while atomic|double free|Bad page"
    r"|unregister_netdevice: waiting")
# What is wrong with rxe alone: it queues a packet, with which its hold on the queue pair
# may be gone, and then schedules the work of that. If another CPU has handled the packet
# and somebody destroys the queue pair meanwhile, it warns (or, a moment later, crashes).
KNOWN = (re.compile(r"WARNING: .*rxe_task\.c:\d+ (rxe_sched_task|__reserve_if_idle)"),
         re.compile(r" rxe_udp_encap_recv\+"))
CASE = re.compile(r"^# (not ok|ok) \d+ ?(.*)$")
RESULT = re.compile(r"^(not ok|ok) \d+ selftests: \S+ (\S+)(.*)$")


def is_known(lines, n):
    return KNOWN[0].search(lines[n]) and any(
        map(KNOWN[1].search, lines[n:n + 60]))


def splats_by_test(lines):
    """For each test the number of the line where the kernel complained first."""
    found, test = {}, "boot"
    for n, line in enumerate(lines):
        mark = re.search(r"riso-selftest: (?:begin (\S+)|end)", line)
        if mark:
            test = mark.group(1) or "end"
        elif SPLAT.search(line) and "virtme-ng-init:" not in line:
            if is_known(lines, n):
                print(f"# {test}: rxe lost a queue pair under a packet: {line}")
            else:
                found.setdefault(test, n)
    return found


def show(lines):
    print("".join(f"#   {line}\n" for line in lines), end="")


def cases_that_failed(lines):
    """With what each said before it."""
    said = []
    for line in lines:
        case = CASE.match(line)
        if not case:
            said.append(line)
            continue
        if case.group(1) == "not ok":
            yield said[-15:] + [line]
        said = []


def read(path):
    return path.read_text(errors="replace") if path.exists() else ""


def report(out):
    """Prints what went wrong, the end of each log with it.

    Returns passed, failed, skipped, and a line for each thing that is wrong.
    """
    passed = failed = skipped = 0
    never = []
    faults = []

    def fault(what):
        faults.append(f"# {out.name}: {what}")
        print(faults[-1])

    ran = {m.group(2): m for m in map(RESULT.match,
                                      read(out / "results").splitlines()) if m}
    dmesg = read(out / "dmesg").splitlines()
    splats = splats_by_test(dmesg)

    def complained(when):
        at = splats[when]
        fault(f"{when}: the kernel complained: {dmesg[at]}")
        show(dmesg[at + 1:at + 25])

    for test in read(out / "planned").split():
        log = read(out / f"{test}.log")
        if not log and test not in ran:
            never.append(test)
            continue
        cases = [m for m in map(CASE.match, log.splitlines()) if m]
        bad = sum(m.group(1) == "not ok" for m in cases)
        skip = sum(m.group(1) == "ok" and "# SKIP" in m.group(2)
                   for m in cases)
        passed += len(cases) - bad - skip
        failed += bad
        skipped += skip

        result = ran.get(test)
        wrong = []
        if not result:
            wrong.append("did not come to its end")
        elif result.group(1) == "not ok" and not bad:
            wrong.append(result.group(3).strip(" #") or "failed")
        elif not cases and "# SKIP" in result.group(3):
            skipped += 1
        elif not cases:
            passed += 1
        failed += len(wrong)
        for what in wrong:
            fault(f"{test}: {what}")
        if wrong:
            show(log.splitlines()[-40:])
        for lines in cases_that_failed(log.splitlines()):
            fault(f"{test}: {lines.pop().lstrip('# ')}")
            show(lines)
        if test in splats:
            failed += 1
            complained(test)
        if wrong or bad:
            continue
        if skip or (result and "# SKIP" in result.group(3)):
            for line in log.splitlines():
                if "SKIP" in line:
                    print(f"# {out.name}: {test}: {line.lstrip('# ')}")

    for when in ("boot", "end"):
        if when in splats:
            failed += 1
            complained(when)
    if never:
        failed += len(never)
        fault(f"nothing from {' '.join(never)}")
    # boot.sh leaves it of a machine that did not come to its own end.
    console = read(out / "console")
    if console:
        fault("the machine ended early. The last it said:")
        show(console.splitlines()[-50:])
    leaks = read(out / "leaks")
    if leaks:
        failed += 1
        fault("kmemleak:")
        show(leaks.splitlines()[:40])
    print(f"# {out.name}: {passed} passed, {failed} failed, {skipped} skipped;"
          f" logs in {out}")
    return passed, failed, skipped, faults


def main():
    *totals, faults = [sum(column, start) for column, start in
                       zip(zip(*(report(pathlib.Path(d))
                                 for d in sys.argv[1:])), (0, 0, 0, []))]
    # Once more, where who sees only the end of it looks.
    for line in faults:
        print(line)
    print("{} passed, {} failed, {} skipped".format(*totals))
    if totals[1]:
        return 1
    return 0 if totals[0] else 4


if __name__ == "__main__":
    sys.exit(main())
