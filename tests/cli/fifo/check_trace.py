#!/usr/bin/env python3
"""check_trace.py FILE — check that a trace of gpuload fifo is valid for Trace Event viewers, and consistent.

Prints the number of triggers (with --put: of messages), or a message about the first error.  Format: "Trace Event Format" of the
Chromium project: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""
import bisect, collections, json, sys

GPU, CPU, RING = 1, 2, 3
NEEDS = {"X": ("ts", "dur"), "s": ("id", "cat", "ts"), "f": ("id", "cat", "ts", "bp"), "b": ("id", "cat", "ts"),
         "e": ("id", "cat", "ts"), "C": ("ts", "args"), "M": ("args",)}
EPS = 0.0015  # us: times are written with three decimals


def check(condition, *about):
    if not condition:
        sys.exit("wrong: " + " ".join(map(str, about)))


def required_keys(events):
    for e in events:
        check(e.get("ph") in NEEDS, "unknown phase in", e)
        for key in ("pid", "tid", "name", *NEEDS[e["ph"]]):
            check(key in e, "missing", key, "in", e)
        check(e["ph"] == "M" or isinstance(e["ts"], (int, float)), e)
        check(e.get("dur", 0) >= 0, e)


def tracks(events):
    """Check that each track has a name, and that its slices are sorted, and nested or disjoint."""
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    by_track = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            by_track[e["pid"], e["tid"]].append(e)
    for track, slices in by_track.items():
        check(track in named, "track without a name:", track)
        open_until = []
        for e in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= e["ts"] + EPS:
                open_until.pop()
            end = e["ts"] + e["dur"]
            check(not open_until or end <= open_until[-1] + EPS, "ends after the slice around it:", e)
            open_until.append(end)
        starts = [e["ts"] for e in slices if e["name"] in ("push", "batch")]
        check(starts == sorted(starts), "slices not in order of time in track", track)


def pairs(events, first, last):
    """Check that each arrow or asynchronous event has one begin and one later end; return {(category, id): {phase: time}}."""
    ends = collections.defaultdict(dict)
    for e in events:
        if e["ph"] in (first, last):
            key = e["cat"], e["id"]
            check(e["ph"] not in ends[key], "begins or ends twice:", e)
            ends[key][e["ph"]] = e["ts"]
    for key, of in ends.items():
        check(len(of) == 2, "has no begin or no end:", key)
        check(of[first] <= of[last] + EPS, "ends before it begins:", key, of)
    return ends


def slots(events, most):
    count = [e["args"]["slots"] for e in events if e["ph"] == "C"]
    check(all(c >= 0 for c in count) and count[-1] == 0, "slots taken:", count)
    check(max(count) <= most, max(count), "slots are taken, but the FIFO has", most)


def causes(events, about):
    """Check that each trigger is pushed, handled and, with --sync, synced once, in this order; return the number of triggers."""
    bound = about["clock_bound_ns"] / 1000 + EPS
    of = collections.defaultdict(dict)
    for e in events:
        if e["ph"] == "X" and e["name"] == "push":
            last = of[e["tid"] - 1, e["args"]["trigger"]]
            check("push" not in last, "pushed twice:", e)
            last["push"] = e
        elif e["ph"] == "X" and e["name"] == "sync":
            last["sync"] = e
        elif e["ph"] == "X" and e["name"] == "handle":
            mine = of[e["args"]["block"], e["args"]["trigger"]]
            check("handle" not in mine, "handled twice:", e)
            mine["handle"] = e
    for key, t in of.items():
        check("push" in t and "handle" in t, "not both pushed and handled:", key)
        check(t["handle"]["ts"] >= t["push"]["ts"] - bound, "handled before it was pushed:", key)
        check(("sync" in t) == about["sync"], "sync slice missing or unexpected:", key)
        if about["sync"]:
            check(t["sync"]["ts"] + t["sync"]["dur"] >= t["handle"]["ts"] + t["handle"]["dur"] - bound,
                  "synced before it was handled:", key)
    return len(of)


PUT_STEPS = {"push": 1, "sync": 1, "post": 2, "in flight": 2, "flush": 3, "wait for step": 4}
PUT_ARROWS = {"pushed": ("push", "post"), "arrived": ("in flight", "flush"), "seen": ("in flight", "wait for step"), "done": ("in flight", "sync")}


def put_messages(events, about):
    """Check that each message of a trace with --put has each slice once, in the right process, and in causal order; return the slices."""
    near, far = about["clock_bound_ns"] / 1000 + EPS, about["peer_clock_bound_ns"] / 1000 + EPS
    of = collections.defaultdict(dict)
    for e in events:
        if e["ph"] == "X":
            mine = of[e["args"]["message"]]
            check(e["name"] in PUT_STEPS and e["pid"] == PUT_STEPS[e["name"]], "unexpected slice:", e)
            check(e["name"] not in mine, "twice:", e)
            mine[e["name"]] = e
    for key, t in of.items():
        check(len(t) == len(PUT_STEPS), "message", key, "has only", sorted(t))
        check(len({e["tid"] for e in t.values()}) == 1, "message", key, "is in tracks of several blocks")
        start, end = ({name: e["ts"] for name, e in t.items()}, {name: e["ts"] + e["dur"] for name, e in t.items()})
        check(start["post"] >= start["push"] - near, "popped before it was pushed:", key)
        check(abs(end["post"] - start["in flight"]) <= EPS and abs(end["push"] - start["sync"]) <= EPS, "a gap:", key)
        # The clocks of two CPUs of an emulated virtual machine may differ; `far` includes the error of the receiving process's clock.
        check(start["flush"] >= start["post"] - far, "seen by the peer before it was popped:", key, start["flush"] - start["post"])
        check(end["wait for step"] >= start["post"] - far, "seen by the peer's kernel before it was popped:", key)
        check(end["sync"] >= end["in flight"] - near, "synced before it was acknowledged:", key)
    return of


def check_puts(events, about):
    of, arrows = put_messages(events, about), pairs(events, "s", "f")
    check(len(of) == about["puts"] and sorted(of) == list(range(about["puts"])), len(of), "messages of", about["puts"])
    check(len(arrows) == len(PUT_ARROWS) * len(of), len(arrows), "arrows")
    for (name, message), _ in arrows.items():
        check(name in PUT_ARROWS and message in of, "unexpected arrow:", name, message)
    print(len(of))


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        trace = json.load(f)
    events, about = trace["traceEvents"], trace["otherData"]
    required_keys(events)
    tracks(events)
    if "puts" in about:
        return check_puts(events, about)
    arrows, rings = pairs(events, "s", "f"), pairs(events, "b", "e")
    n = causes(events, about)
    check(n == about["triggers"] == len(rings), n, "triggers of", about["triggers"], "and", len(rings), "in the ring")
    check(len(arrows) == n * (2 if about["sync"] else 1), len(arrows), "arrows")
    slots(events, about["slots"] + n_early(events, about))
    print(n)


def n_early(events, about):
    """Return how many slots can appear to be used by two triggers at the same time, because GPU times can be wrong by the clock error."""
    bound = about["clock_bound_ns"] / 1000
    freed = [e["ts"] + e["dur"] for e in events if e["name"] == "release"]
    entered = sorted(e["ts"] for e in events if e["ph"] == "b")
    return max((bisect.bisect_right(entered, f + EPS) - bisect.bisect_left(entered, f - bound - EPS) for f in freed),
               default=0)


main()
