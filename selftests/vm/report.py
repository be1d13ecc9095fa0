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
CASE = re.compile(r"^# (not ok|ok) \d+ ?(.*)$")
RESULT = re.compile(r"^(not ok|ok) \d+ selftests: \S+ (\S+)(.*)$")


def splats_by_test(dmesg):
    found, test = {}, "boot"
    for line in dmesg.splitlines():
        mark = re.search(r"riso-selftest: (?:begin (\S+)|end)", line)
        if mark:
            test = mark.group(1) or "end"
        elif SPLAT.search(line) and "virtme-ng-init:" not in line:
            found.setdefault(test, []).append(line)
    return found


def read(path):
    return path.read_text(errors="replace") if path.exists() else ""


def report(out):
    """Prints what went wrong; returns passed, failed, skipped."""
    passed = failed = skipped = 0
    ran = {m.group(2): m for m in map(RESULT.match,
                                      read(out / "results").splitlines()) if m}
    splats = splats_by_test(read(out / "dmesg"))

    for test in read(out / "planned").split():
        log = read(out / f"{test}.log")
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
        if test in splats:
            wrong.append("the kernel complained: " + splats[test][0])
        failed += len(wrong)
        if bad or wrong:
            print(f"# {out.name}: {test}: "
                  + "; ".join(wrong or [f"{bad} cases failed"]))
            print("".join(f"#   {line}\n" for line in log.splitlines()[-40:]),
                  end="")
        elif skip or (result and "# SKIP" in result.group(3)):
            for line in log.splitlines():
                if "SKIP" in line:
                    print(f"# {out.name}: {test}: {line.lstrip('# ')}")

    for when in ("boot", "end"):
        if when in splats:
            failed += 1
            print(f"# {out.name}: {when}: the kernel complained: "
                  + splats[when][0])
    leaks = read(out / "leaks")
    if leaks:
        failed += 1
        print(f"# {out.name}: kmemleak:")
        print("".join(f"#   {line}\n" for line in leaks.splitlines()[:40]),
              end="")
    print(f"# {out.name}: {passed} passed, {failed} failed, {skipped} skipped;"
          f" logs in {out}")
    return passed, failed, skipped


def main():
    totals = [sum(column) for column in
              zip(*(report(pathlib.Path(d)) for d in sys.argv[1:]))]
    print("{} passed, {} failed, {} skipped".format(*totals))
    if totals[1]:
        return 1
    return 0 if totals[0] else 4


if __name__ == "__main__":
    sys.exit(main())
