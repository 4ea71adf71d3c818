#!/usr/bin/env python3
"""Repeatedly SIGKILL a random rank of 4 in two network namespaces: all others end in time and
name it.

    tests/comm/fault/kill_hosts.py --kills 500 [--limit 2] [--seed N] [-- PROGRAM ARGUMENT...]

The program must print a line "ready ..." when its rank has met the others, and then work until another rank ends.  The default
exchanges blocks (tests/comm/bootstrap/rank stay).  Needs root.  The last line has the longest time, from the signal to the end
of the last of the other ranks.
"""
import argparse, os, random, re, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bootstrap/hosts"))
from namespaces import RANK, TwoHosts

LAYOUTS = ("aabb", "abab", "abbb", "aaab")


def kill_one(hosts, dice, program, number, limit):
    """Run one round; returns (seconds, the error or None)."""
    layout, victim = dice.choice(LAYOUTS), dice.randrange(4)
    ranks = hosts.start_job(layout, program, port=20000 + number % 10000)
    for p in ranks:
        line = p.stdout.readline()
        if not line.startswith("ready "):
            return 0, f"a rank did not meet: {line}{p.communicate()[1]}"
    time.sleep(dice.random() * 0.05)
    begin = time.monotonic()
    ranks[victim].kill()
    ends, last = {}, begin
    while len(ends) < 4:
        for r, p in enumerate(ranks):
            if r not in ends and p.poll() is not None:
                ends[r], last = p.returncode, time.monotonic() if r != victim else last
        if time.monotonic() - begin > 30:
            return 30, f"{layout}, rank {victim} killed: ranks {sorted(set(range(4)) - set(ends))} did not end"
        time.sleep(0.001)
    said = [p.communicate()[1] for p in ranks]
    hosts.started.clear()
    expected = rf"rank {victim} \(pid {ranks[victim].pid}\) on host {layout[victim]} "
    for r in range(4):
        if r != victim and (ends[r] == 0 or not re.search(expected, said[r])):
            return last - begin, f"{layout}, rank {victim} (pid {ranks[victim].pid}) killed: rank {r} ended with {ends[r]}: {said[r]}"
    if last - begin > limit:
        return last - begin, f"{layout}, rank {victim} killed: the others took {last - begin:.3f} s, at most {limit} s are allowed"
    return last - begin, None


def main():
    o = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    o.add_argument("--kills", type=int, default=20)
    o.add_argument("--limit", type=float, default=2, help="seconds")
    o.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    o.add_argument("program", nargs="*", default=[RANK, "stay"])
    o = o.parse_args()
    dice, times, wrong = random.Random(o.seed), [], 0
    try:
        hosts = TwoHosts().__enter__()
    except OSError as reason:
        print(f"skipped: {reason}")
        return 77
    try:
        for i in range(o.kills):
            seconds, problem = kill_one(hosts, dice, o.program, i, o.limit)
            times.append(seconds)
            if problem:
                wrong += 1
                print(f"seed {o.seed}, kill {i}: {problem}", flush=True)
    finally:
        hosts.__exit__()
    times.sort()
    print(f"{o.kills} kills, {wrong} wrong; the others ended within {times[-1]:.3f} s, half of them within {times[len(times) // 2]:.3f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
