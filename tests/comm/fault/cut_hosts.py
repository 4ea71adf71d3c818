#!/usr/bin/env python3
"""Repeatedly cut the network between two hosts at a random moment: every rank ends in time,
with one line that names what is lost.

    tests/comm/fault/cut_hosts.py --rounds 20 [--layouts ab,aabb] [--delay-ms 50] [--seed N]

The hosts are two network namespaces (it needs root); tests/vm/comm_guests.py does the same with two guests.  Each round starts the
ranks of tests/comm/fault/stay, waits for a random time, and drops all packets, in both directions or in one.  The delay of the
wire makes the meeting and the creation slow, so that many rounds hit them.  A rank that finds a leak, a rank that does not end, and anything
that is left on a host make a round fail.  The last lines have the longest times from the cut to the end of the last rank.
"""
import argparse, collections, os, random, re, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bootstrap/hosts"))
from namespaces import ROOT, TwoHosts

STAY = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"), "tests/comm/fault/stay")
DIRECTIONS = {"both": "ab", "a to b": "a", "b to a": "b"}
HANGS_S = 120


class Cut:
    """The parameters of the rounds, and the library's limits: lost_ms until a silent host is lost, create_ms until all ranks must arrive."""

    def __init__(self, hosts, seed, lost_ms=2000, create_ms=6000, earliest_s=0.0, latest_s=3.0, delay_ms=50, grace_s=3.0):
        self.hosts, self.dice, self.delay_ms, self.grace_s = hosts, random.Random(seed), delay_ms, grace_s
        self.moments_s, self.said = (earliest_s, latest_s), collections.Counter()
        self.lost_ms, self.create_ms = lost_ms, create_ms

    def limit_s(self, phase):
        """Return the time after which all ranks must have ended: lost_ms or, if the cut was during gpul_comm_create(), at least create_ms."""
        notice = self.lost_ms / 1000 + 1
        return (max(notice, self.create_ms / 1000 + 1) if phase in ("start", "create") else notice) + self.grace_s

    def round(self, layout, direction, number):
        """Run one round; returns (phase of each rank, seconds, the error or None)."""
        h, dice = self.hosts, self.dice
        for host in "ab":
            h.disturb(host, delay_ms=self.delay_ms)
        ranks = h.start_job(layout, [STAY, "--seed", str(dice.randrange(1 << 30)), "--create-ms", str(self.create_ms)], port=22000 + number % 10000,
                            GPULOAD_COMM_LOST_MS=str(self.lost_ms), GPULOAD_LOG="off")
        time.sleep(dice.uniform(*self.moments_s))
        begin = time.monotonic()
        for host in DIRECTIONS[direction]:
            h.disturb(host, loss=100)
        ends = [0.0] * len(ranks)
        while not all(ends):
            for r, p in enumerate(ranks):
                if not ends[r] and p.poll() is not None:
                    ends[r] = time.monotonic() - begin
            if time.monotonic() - begin > HANGS_S:
                return ["?"], HANGS_S, f"ranks {[r for r, e in enumerate(ends) if not e]} have not ended"
            time.sleep(0.005)
        texts = ["".join(reversed(p.communicate())) for p in ranks]  # standard output is the last
        h.started.clear()
        return self.judge(layout, ranks, texts, ends)

    def judge(self, layout, ranks, texts, ends):
        phases = []
        for r, (p, text) in enumerate(zip(ranks, texts)):
            last = (text.strip().splitlines() or [""])[-1]
            phase, _, why = last.partition(": ")
            phases.append(phase)
            others = "".join(str(k) for k in range(len(layout)) if layout[k] != layout[r])
            every = "".join(map(str, range(len(layout))))
            if p.returncode != 1:
                return phases, max(ends), f"rank {r}: exit status {p.returncode}: {text}"
            if not re.search(rf"\brank(s? | \d and rank )[{every}]", why) or (len(layout) == 2 and not re.search(rf"\brank(s? | \d and rank )[{others}]", why)):
                return phases, max(ends), f"rank {r} does not name the other host's ranks: {why}"
            self.said[re.sub(r"\d+", "N", why)] += 1
        wrong = None
        if max(ends) > max(map(self.limit_s, phases)):
            wrong = f"the ranks ended after {', '.join(f'{e:.2f}' for e in ends)} s: {texts}"
        left = sum((self.hosts.left(host) for host in "ab"), [])
        return phases, max(ends), wrong or (f"left: {left}; {texts}" if left else None)

    def run(self, rounds, layouts, first=0):
        """Run all rounds and print the report; returns the number of rounds with a wrong result."""
        times, wrong = collections.defaultdict(list), 0
        for i in range(rounds):
            layout, direction = layouts[i % len(layouts)], list(DIRECTIONS)[i // len(layouts) % 3]
            phases, seconds, problem = self.round(layout, direction, first + i)
            early = any(p in ("start", "create") for p in phases)
            times["while the ranks meet" if early else "later"].append(seconds)
            if problem:
                wrong += 1
                print(f"round {i}, {layout}, {direction}, {'/'.join(phases)}: {problem}", flush=True)
        for host in "ab":
            self.hosts.disturb(host)
        print(f"{rounds} rounds, {wrong} wrong; announced: a lost host after {self.lost_ms} ms, ranks that do not arrive after {self.create_ms} ms")
        for when, t in times.items():
            t.sort()
            print(f"  cut {when}: {len(t)} rounds, all ranks had ended after {t[len(t) // 2]:.2f} s (median), {t[-1]:.2f} s (longest)")
        return wrong


def main():
    o = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    o.add_argument("--rounds", type=int, default=20)
    o.add_argument("--layouts", default="ab,aabb", help="host of each rank (default: ab,aabb)")
    o.add_argument("--lost-ms", type=int, default=2000, help="GPULOAD_COMM_LOST_MS (default: 2000)")
    o.add_argument("--create-ms", type=int, default=6000, help="for all ranks to arrive (default: 6000)")
    o.add_argument("--latest", type=float, default=3, help="the cut is within so many seconds (default: 3)")
    o.add_argument("--delay-ms", type=float, default=50, help="of each packet, before the cut (default: 50)")
    o.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    o.add_argument("--verbose", action="store_true", help="print all texts, with their numbers of times")
    o = o.parse_args()
    try:
        hosts = TwoHosts(o.seed).__enter__()
    except OSError as reason:
        print(f"skipped: {reason}")
        return 77
    try:
        cut = Cut(hosts, o.seed, o.lost_ms, o.create_ms, 0, o.latest, o.delay_ms)
        wrong = cut.run(o.rounds, o.layouts.split(","))
        if o.verbose:
            for text, n in cut.said.most_common():
                print(f"  {n:4} {text}")
        print(f"seed {o.seed}")
    finally:
        hosts.__exit__()
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
