#!/usr/bin/env python3
"""test_model.py — check fifo.pml for many shapes, and check that each deliberate error in it is found.

    tests/proxy/model/test_model.py                  small shapes: some seconds
    tests/proxy/model/test_model.py --full           larger ones too: minutes, and some GB of memory
    tests/proxy/model/test_model.py --only shared    shapes whose name contains the word
    tests/proxy/model/test_model.py --only NAME --trail    the steps to an error

tests/spin.py has the search.
"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import spin

MODEL = os.path.join(HERE, "fifo.pml")

RIGHT = {  # correct shapes: {name: definitions}
    "owned, 1 slot": "OWNED PRODUCERS=1 SLOTS=1 PUSHES=5",
    "owned, 2 slots": "OWNED PRODUCERS=1 SLOTS=2 PUSHES=5",
    "owned, 4 slots": "OWNED PRODUCERS=1 SLOTS=4 PUSHES=5",
    "owned, release": "OWNED PRODUCERS=1 SLOTS=2 PUSHES=5 RELEASE",
    "owned, release and sync": "OWNED PRODUCERS=1 SLOTS=2 PUSHES=4 RELEASE SYNC",
    "owned by two threads in turn": "OWNED PRODUCERS=2 SLOTS=1 PUSHES=2",
    "owned, two lanes, aborted": "OWNED PRODUCERS=2 LANES=2 SLOTS=1 PUSHES=2 ABORTS",
    "owned, two lanes, timed out": "OWNED PRODUCERS=2 LANES=2 SLOTS=1 PUSHES=2 TIMEOUTS",
    "shared, 1 slot": "PRODUCERS=2 SLOTS=1 PUSHES=2",
    "shared, 2 slots": "PRODUCERS=2 SLOTS=2 PUSHES=2",
    "shared by three": "PRODUCERS=3 SLOTS=1 PUSHES=1",
    "shared, release": "PRODUCERS=2 SLOTS=1 PUSHES=2 RELEASE",
    "shared, release and sync": "PRODUCERS=2 SLOTS=1 PUSHES=2 RELEASE SYNC",
    "shared, aborted": "PRODUCERS=2 SLOTS=1 PUSHES=2 ABORTS",
    "shared, timed out": "PRODUCERS=2 SLOTS=1 PUSHES=2 TIMEOUTS",
    "shared, a sync timed out": "PRODUCERS=2 SLOTS=1 PUSHES=2 SYNC TIMEOUTS",
    "shared, polls ahead": "PRODUCERS=2 SLOTS=1 PUSHES=2 AHEAD",
    "warp, ring smaller than the warp": "OWNED PRODUCERS=1 SLOTS=1 PUSHES=2 GROUP=2",
    "warp, ring as large as the warp": "OWNED PRODUCERS=1 SLOTS=2 PUSHES=2 GROUP=2",
    "warp, release": "OWNED PRODUCERS=1 SLOTS=4 PUSHES=2 GROUP=2 RELEASE",
    "warps that share": "PRODUCERS=2 SLOTS=2 PUSHES=1 GROUP=2",
}
LARGE = {
    "shared, release and sync, larger": "PRODUCERS=2 SLOTS=2 PUSHES=2 RELEASE SYNC",
    "owned, 4 slots, laps": "OWNED PRODUCERS=1 SLOTS=4 PUSHES=9 DEPTH=8",
    "shared, laps": "PRODUCERS=2 SLOTS=2 PUSHES=3",
    "shared, release, laps": "PRODUCERS=2 SLOTS=1 PUSHES=3 RELEASE",
    "warps that share, laps": "PRODUCERS=2 SLOTS=2 PUSHES=2 GROUP=2",
    "shared, polls ahead, larger": "PRODUCERS=2 SLOTS=2 PUSHES=2 AHEAD",
    "shared by three, polls ahead, larger": "PRODUCERS=3 SLOTS=1 PUSHES=1 AHEAD ABORTS",
    "shared by three, laps": "PRODUCERS=3 SLOTS=1 PUSHES=2",
}
WRONG = {  # deliberate errors: {name: definitions, expected complaint of pan}
    "lap bit in one word only": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=3 WRONG_ONE_LAP_BIT", "w0/2)==(w1/2"),
    "lap bit of word 1 ignored": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=3 WRONG_IGNORES_WORD1", "w0/2)==(w1/2"),
    "lap bit that does not flip": ("OWNED PRODUCERS=1 SLOTS=2 PUSHES=4 WRONG_NO_FLIP", "==pushed["),
    "no fence before a push_release": ("OWNED PRODUCERS=1 SLOTS=2 PUSHES=2 RELEASE WRONG_NO_FENCE", ">=i)"),
    "no acquire by the CPU": ("OWNED PRODUCERS=1 SLOTS=2 PUSHES=2 RELEASE WRONG_EARLY_PAYLOAD", ">=i)"),
    "no acquire by the kernel": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=2 RELEASE SYNC WRONG_EARLY_ANSWER", "==(i+1)"),
    "tail released before the slot is read": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=3 WRONG_EARLY_TAIL", "w0/2)==(w1/2"),
    "tail stored without release": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=2 RELEASE SYNC WRONG_TAIL_RELAXED", "==(i+1)"),
    "free slots counted one too high": ("OWNED PRODUCERS=1 SLOTS=1 PUSHES=3 WRONG_OFF_BY_ONE", "-released["),
    "poller that leaves and stays elected": ("PRODUCERS=2 SLOTS=1 PUSHES=2 WRONG_STAYS_ELECTED", "invalid end state"),
    "poller that times out and stays elected": (
        "PRODUCERS=2 SLOTS=1 PUSHES=2 SYNC TIMEOUTS WRONG_LATE_STAYS_ELECTED", "invalid end state"),
    "poller that publishes only at the end": ("PRODUCERS=3 SLOTS=1 PUSHES=2 WRONG_SILENT_POLLER", "invalid end state"),
    "poller that publishes in two words": ("PRODUCERS=3 SLOTS=1 PUSHES=2 WRONG_SPLIT_SEEN", "invalid end state"),
    "owner cleared before the head is written": ("OWNED PRODUCERS=2 SLOTS=1 PUSHES=2 WRONG_DISOWN", "==pushed["),
    "unused ticket, no abort": ("PRODUCERS=2 SLOTS=1 PUSHES=2 TIMEOUTS WRONG_TICKET_DROPPED", "invalid end state"),
    "abort of one lane not copied to the other": (
        "OWNED PRODUCERS=2 LANES=2 SLOTS=1 PUSHES=2 TIMEOUTS WRONG_ABORTS_ONE_LANE", "invalid end state"),
}


if __name__ == "__main__":
    sys.exit(spin.main(__doc__.splitlines()[0], [spin.Model(MODEL, RIGHT, LARGE, WRONG)]))
