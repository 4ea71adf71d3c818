#!/usr/bin/env python3
"""check_trace.py FILE — check that a trace of gpuload fifo is valid for Trace Event viewers, and consistent.

Prints how many triggers it shows, and fails on the first thing that is wrong.  Format: "Trace Event Format" of the
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
        check(e.get("ph") in NEEDS, "no such phase", e)
        for key in ("pid", "tid", "name", *NEEDS[e["ph"]]):
            check(key in e, "no", key, "in", e)
        check(e["ph"] == "M" or isinstance(e["ts"], (int, float)), e)
        check(e.get("dur", 0) >= 0, e)


def tracks(events):
    """Each track has a name; its slices are sorted, and nested or disjoint."""
    named = {(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"}
    by_track = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            by_track[e["pid"], e["tid"]].append(e)
    for track, slices in by_track.items():
        check(track in named, "no name:", track)
        open_until = []
        for e in sorted(slices, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= e["ts"] + EPS:
                open_until.pop()
            end = e["ts"] + e["dur"]
            check(not open_until or end <= open_until[-1] + EPS, "crosses the slice around it:", e)
            open_until.append(end)
        starts = [e["ts"] for e in slices if e["name"] in ("push", "batch")]
        check(starts == sorted(starts), "not in order:", track)


def pairs(events, first, last):
    """Every arrow, or asynchronous event, has one begin and one end, and goes forwards; {(category, id): its times}"""
    ends = collections.defaultdict(dict)
    for e in events:
        if e["ph"] in (first, last):
            key = e["cat"], e["id"]
            check(e["ph"] not in ends[key], "twice:", e)
            ends[key][e["ph"]] = e["ts"]
    for key, of in ends.items():
        check(len(of) == 2, "has one end:", key)
        check(of[first] <= of[last] + EPS, "goes backwards:", key, of)
    return ends


def slots(events, most):
    count = [e["args"]["slots"] for e in events if e["ph"] == "C"]
    check(all(c >= 0 for c in count) and count[-1] == 0, "slots taken:", count)
    check(max(count) <= most, max(count), "slots are taken, where there are", most)


def causes(events, about):
    """Each trigger is pushed once and then handled once; a synced trigger was handled before."""
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
        check(("sync" in t) == about["sync"], "sync:", key)
        if about["sync"]:
            check(t["sync"]["ts"] + t["sync"]["dur"] >= t["handle"]["ts"] + t["handle"]["dur"] - bound,
                  "synced before it was handled:", key)
    return len(of)


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        trace = json.load(f)
    events, about = trace["traceEvents"], trace["otherData"]
    required_keys(events)
    tracks(events)
    arrows, rings = pairs(events, "s", "f"), pairs(events, "b", "e")
    n = causes(events, about)
    check(n == about["triggers"] == len(rings), n, "triggers of", about["triggers"], "and", len(rings), "in the ring")
    check(len(arrows) == n * (2 if about["sync"] else 1), len(arrows), "arrows")
    slots(events, about["slots"] + n_early(events, about))
    print(n)


def n_early(events, about):
    """How many slots can seem to be taken twice, because GPU times and CPU times differ by the clock error."""
    bound = about["clock_bound_ns"] / 1000
    freed = [e["ts"] + e["dur"] for e in events if e["name"] == "release"]
    entered = sorted(e["ts"] for e in events if e["ph"] == "b")
    return max((bisect.bisect_right(entered, f + EPS) - bisect.bisect_left(entered, f - bound - EPS) for f in freed),
               default=0)


main()
