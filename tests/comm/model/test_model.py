#!/usr/bin/env python3
"""test_model.py — check the models of comm's protocols for many shapes, and check that each deliberate error is found.

    tests/comm/model/test_model.py                  small shapes: half a minute
    tests/comm/model/test_model.py --full           larger ones too: minutes, and some GB of memory
    tests/comm/model/test_model.py --only LL        shapes whose name contains the word
    tests/comm/model/test_model.py --only NAME --trail    the steps to an error

tests/spin.py has the search.
"""
import os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(os.path.dirname(HERE)))
import spin

# The text that pan, Spin's verifier, prints if this assertion of the model fails.
STALE = "assertion violated (loaded==(step+1))"
OVERWRITTEN = "assertion violated (written["
WRONG_ENTRY = "assertion violated ((at==(step+1))"
AFTER_TEARDOWN = "assertion violated  !(freed["
WAITS_FOR_EVER = "invalid end state"

CHANNEL_RIGHT = {  # name: definitions
    "Simple, 1 slot": "SIMPLE SLOTS=1 STEPS=4",
    "Simple, 2 slots": "SIMPLE STEPS=4",
    "Simple, 3 slots, blocks of 1 thread": "SIMPLE SLOTS=3 STEPS=5 THREADS=1",
    "direct, 1 slot": "SIMPLE DIRECT SLOTS=1 STEPS=4",
    "direct, 2 slots, blocks of 1 thread": "SIMPLE DIRECT STEPS=4 THREADS=1",
    "direct and Simple mixed": "SIMPLE MIXED STEPS=4 THREADS=1",
    "Simple, aborted": "SIMPLE SLOTS=1 STEPS=3 ABORTS",
    "direct, aborted": "SIMPLE DIRECT SLOTS=1 STEPS=2 ABORTS",
    "Simple, timed out": "SIMPLE SLOTS=1 STEPS=3 TIMEOUTS",
    "Simple, a rank is killed": "SIMPLE SLOTS=1 STEPS=3 THREADS=1 DIES",
    "LL, 1 slot": "LL SLOTS=1 STEPS=5",
    "LL, 2 slots": "LL STEPS=5",
    "LL, 2 slots, credits every 2 steps": "LL STEPS=6 FREE=2",
    "LL, 3 slots, credits every 2 steps": "LL SLOTS=3 STEPS=5 FREE=2",
    "LL, messages of 1 and 2 words": "LL VARIED STEPS=6",
    "LL, flags that wrap": "LL VARIED STEPS=6 WRAP=4",
    "LL, aborted": "LL SLOTS=1 STEPS=3 ABORTS",
    "LL, a rank is killed": "LL SLOTS=1 STEPS=3 THREADS=1 DIES",
    "LL128, 2 slots": "LL128 STEPS=5",
    "LL128, 2 slots, credits every 2 steps": "LL128 STEPS=6 FREE=2",
    "LL128, messages of 1 and 2 lines": "LL128 VARIED STEPS=6",
    "LL128, warps that have diverged": "LL128 SPLIT STEPS=4 DEPTH=8",
}
CHANNEL_LARGE = {
    "Simple, 2 slots, three laps": "SIMPLE STEPS=6",
    "Simple, 3 slots, larger": "SIMPLE SLOTS=3 STEPS=5",
    "Simple, blocks of 3 threads": "SIMPLE STEPS=3 THREADS=3 DEPTH=8",
    "direct, 2 slots, larger": "SIMPLE DIRECT STEPS=4",
    "direct and Simple mixed, larger": "SIMPLE MIXED STEPS=4",
    "Simple, 2 slots, aborted": "SIMPLE STEPS=3 ABORTS",
    "direct, 2 slots, aborted": "SIMPLE DIRECT STEPS=3 ABORTS THREADS=1",
    "Simple, 2 slots, timed out": "SIMPLE STEPS=3 TIMEOUTS",
    "Simple, blocks of 2 threads, a rank is killed": "SIMPLE SLOTS=1 STEPS=2 DIES",
    "LL, blocks of 2 threads, a rank is killed": "LL SLOTS=1 STEPS=2 DIES",
    "LL, blocks of 3 threads": "LL STEPS=4 THREADS=3 DEPTH=8",
    "LL, aborted, larger": "LL STEPS=4 FREE=2 ABORTS",
    "LL, 3 slots, larger": "LL SLOTS=3 STEPS=6",
}
CHANNEL_WRONG = {  # name: definitions, expected complaint of pan
    "Simple, tail before data": ("SIMPLE STEPS=3 WRONG_FLAG_FIRST", STALE),
    "Simple, no fence before tail": ("SIMPLE STEPS=3 WRONG_NO_FENCE", STALE),
    "Simple, no barrier before tail": ("SIMPLE STEPS=3 WRONG_NO_BARRIER_BEFORE_TAIL", STALE),
    "Simple, no acquire of tail": ("SIMPLE STEPS=3 WRONG_NO_ACQUIRE", STALE),
    "Simple, step reused a lap early": ("SIMPLE STEPS=3 WRONG_LAP_EARLY", OVERWRITTEN),
    "Simple, no credits": ("SIMPLE STEPS=3 WRONG_NO_CREDIT", OVERWRITTEN),
    "Simple, credit before the slot is read": ("SIMPLE STEPS=3 WRONG_CREDIT_TOO_SOON", OVERWRITTEN),
    "Simple, no barrier before head": ("SIMPLE STEPS=3 WRONG_NO_BARRIER_BEFORE_HEAD", OVERWRITTEN),
    "direct, no fence before offered": ("SIMPLE DIRECT STEPS=4 THREADS=1 WRONG_OFFER_NO_FENCE", WRONG_ENTRY),
    "direct, no acquire of offered": ("SIMPLE DIRECT STEPS=4 THREADS=1 WRONG_OFFER_NO_ACQUIRE", WRONG_ENTRY),
    "direct, offer a lap early": ("SIMPLE DIRECT STEPS=4 THREADS=1 WRONG_OFFER_LAP_EARLY", WRONG_ENTRY),
    "direct, no fence before tail": ("SIMPLE DIRECT STEPS=3 THREADS=1 WRONG_NO_FENCE", STALE),
    "LL, the same flag in each lap": ("LL STEPS=4 WRONG_CONSTANT_FLAG", STALE),
    "LL, a lap bit as the flag": ("LL VARIED STEPS=6 WRONG_LAP_BIT", STALE),
    "LL, flags that wrap to 0": ("LL VARIED STEPS=6 WRAP=4 WRONG_WRAP_TO_ZERO", STALE),
    "LL, no credits": ("LL STEPS=4 WRONG_NO_CREDIT", OVERWRITTEN),
    "LL, step reused a lap early": ("LL STEPS=4 WRONG_LAP_EARLY", OVERWRITTEN),
    "LL, credit before the words are read": ("LL STEPS=4 WRONG_CREDIT_TOO_SOON", OVERWRITTEN),
    "LL, no barrier before head": ("LL STEPS=4 WRONG_NO_BARRIER_BEFORE_HEAD", OVERWRITTEN),
    "LL, credits for more steps than slots": ("LL STEPS=4 FREE=3", WAITS_FOR_EVER),
    "LL128, lines that arrive in parts": ("LL128 STEPS=3 WRONG_LINE_IN_PARTS", STALE),
    "LL128, data loaded before the flag": ("LL128 STEPS=3 WRONG_READ_IN_PARTS", STALE),
    "LL128, diverged, no fence before the flag": ("LL128 SPLIT STEPS=3 DEPTH=8 WRONG_NO_FENCE", STALE),
    "LL128, diverged, data not loaded again": ("LL128 SPLIT STEPS=3 DEPTH=8 WRONG_READ_IN_PARTS", STALE),
    "Simple, threads that leave by themselves": ("SIMPLE STEPS=2 ABORTS WRONG_LEAVE_ALONE", WAITS_FOR_EVER),
    "LL, threads that leave by themselves": ("LL STEPS=2 ABORTS WRONG_LEAVE_ALONE", WAITS_FOR_EVER),
    "abort that only one rank sees": ("SIMPLE STEPS=2 ABORTS WRONG_ABORT_ONE_SIDE", WAITS_FOR_EVER),
    "time-out that the CPU does not report": ("SIMPLE SLOTS=1 STEPS=2 TIMEOUTS WRONG_TIMEOUT_UNREPORTED", WAITS_FOR_EVER),
    "teardown without a barrier": ("SIMPLE STEPS=2 ABORTS WRONG_FREE_ALONE", AFTER_TEARDOWN),
    "teardown that awaits a killed rank": ("SIMPLE SLOTS=1 STEPS=2 DIES WRONG_AWAITS_DEAD", WAITS_FOR_EVER),
}

MAPPED_RIGHT = {
    "one-shot": "CALLS=5",
    "one-shot, 2 words": "WORDS=2 CALLS=4",
    "one-shot without greetings, 3 ranks": "RANKS=3 CALLS=3 NO_GREETINGS",
    "one-shot, 2 blocks, then 1": "SPAN=2 WORDS=2 CALLS=3 SHRINKS NO_GREETINGS",
    "one-shot, only rank 0 sends": "BROADCASTS=15 CALLS=4",
    "two-shot": "TWOS=7 CALLS=3",
    "two-shot that only reads": "TWOS=7 CALLS=3 PULL",
    "two-shot that only writes": "TWOS=7 CALLS=3 PUSH",
    "two-shot between one-shots": "TWOS=2 CALLS=4",
    "one-shot between two-shots": "TWOS=5 CALLS=4",
    "one-shots of all and of rank 0, two-shot": "BROADCASTS=5 TWOS=2 CALLS=4",
}
MAPPED_LARGE = {
    "one-shot, 3 ranks, larger": "RANKS=3 CALLS=3",
    "one-shot without greetings, 3 ranks, larger": "RANKS=3 CALLS=5 NO_GREETINGS",
    "one-shot, 3 ranks, only rank 0 sends": "RANKS=3 BROADCASTS=15 CALLS=3",
    "one-shot, 2 blocks": "SPAN=2 WORDS=2 CALLS=4",
    "one-shot, 2 blocks, then 1, larger": "SPAN=2 WORDS=2 CALLS=4 SHRINKS",
    "two-shot, 3 ranks": "RANKS=3 TWOS=3 CALLS=2",
}
STALE_INPUT = "(mem[((me*2)+p)]) )>=(k+1))"
OVERWRITTEN_INPUT = "(mem[((me*2)+p)]) )<=(k+1))"
STALE_OUTPUT = "+(me*2))+p)]>=(k+1))"
OVERWRITTEN_OUTPUT = "+(me*2))+p)]<=(k+1))"
MAPPED_WRONG = {
    "one-shot with one half": ("HALVES=1 CALLS=2", OVERWRITTEN),
    "one-shot, only rank 0 sends, no greetings": ("BROADCASTS=7 CALLS=3 NO_GREETINGS", OVERWRITTEN),
    "one half of greetings": ("BROADCASTS=7 CALLS=3 WRONG_ONE_GREETING", WAITS_FOR_EVER),
    "blocks that run ahead of others": ("SPAN=2 WORDS=2 CALLS=3 SHRINKS NO_GREETINGS WRONG_RUNS_AHEAD", OVERWRITTEN),
    "two-shot without start barrier": ("TWOS=3 CALLS=2 WRONG_NO_START", STALE_INPUT),
    "two-shot that only writes, without start barrier": ("TWOS=3 CALLS=2 PUSH WRONG_NO_START", OVERWRITTEN_OUTPUT),
    "two-shot without end barrier": ("TWOS=3 CALLS=2 WRONG_NO_END", STALE_OUTPUT),
    "two-shot that only reads, without end barrier": ("TWOS=3 CALLS=2 PULL WRONG_NO_END", OVERWRITTEN_INPUT),
    "two-shot, no fence before goodbye": ("TWOS=3 CALLS=2 WRONG_NO_FENCE", STALE_OUTPUT),
    "two-shot, no acquire of the greetings": ("TWOS=3 CALLS=2 WRONG_NO_ACQUIRE", STALE_INPUT),
}

SENDRECV_RIGHT = {
    "ungrouped, no more steps than slots": "STEPS=2",
    "grouped": "GROUPED",
    "grouped, 3 ranks": "RANKS=3 GROUPED SLOTS=1 STEPS=2",
    "send and receive in turn, 3 ranks": "RANKS=3 PAIRED",
    "ring, a lap ahead": "RANKS=3 RING AHEAD=2 STEPS=6",
}
SENDRECV_LARGE = {
    "grouped, 3 ranks, larger": "RANKS=3 GROUPED SLOTS=2 STEPS=3",
    "ring of 5, a lap ahead": "RANKS=5 RING AHEAD=2 STEPS=6",
}
SENDRECV_WRONG = {
    "ungrouped": ("STEPS=3", WAITS_FOR_EVER),
    "ungrouped, 3 ranks": ("RANKS=3 STEPS=3", WAITS_FOR_EVER),
    "ungrouped, receive first": ("STEPS=1 RECEIVES_FIRST", WAITS_FOR_EVER),
    "grouped, fewer blocks at a time than operations": ("GROUPED STEPS=3 RESIDENT=1", WAITS_FOR_EVER),
    "ring, more than a lap ahead": ("RANKS=3 RING AHEAD=3 STEPS=6", WAITS_FOR_EVER),
}

TREE_RIGHT = {
    "tree of 2": "RANKS=2",
    "tree of 4": "RANKS=4",
    "tree of 5": "RANKS=5",
    "tree of 4, credits every 2 steps": "RANKS=4 SLOTS=3 FREE=2",
    "two levels, 2 hosts of 2": "LEVELS",
        "two levels, 2 hosts of 3": "LEVELS LOCAL=3 ROUNDS=1",
    "two levels, chunks of 2 steps, credits every 2 steps": "LEVELS CHUNK=2 SLOTS=5 FREE=2 ROUNDS=1",
}
TREE_LARGE = {
    "tree of 7": "RANKS=7 CHUNKS=4",
    "tree of 6, credits every 2 steps": "RANKS=6 SLOTS=3 FREE=2",
    "two levels, 3 hosts of 2": "LEVELS HOSTS=3 ROUNDS=1",
    "two levels, 2 hosts of 3, larger": "LEVELS LOCAL=3",
}
TREE_WRONG = {
    "tree, a rank takes too many chunks up before one down": ("RANKS=3 CHUNKS=12 LAG=9 WRONG_CONSTANT_LAG", WAITS_FOR_EVER),
    "two levels, chunks of more steps than slots": ("LEVELS CHUNK=3", WAITS_FOR_EVER),
}

QUEUE_RIGHT = {
    "queue, one block": "SPAN=1 ITEMS=4",
    "queue, two blocks of 1 thread": "THREADS=1",
    "queue, two blocks of 2 threads": "SLOTS=1 ITEMS=2",
    "queue, blocks that wait for one another": "THREADS=1 TOGETHER",
    "queue, one block, aborted": "SPAN=1 ABORTS",
    "queue, blocks that wait for one another, aborted": "THREADS=1 TOGETHER ABORTS ITEMS=2",
}
QUEUE_LARGE = {
    "queue, two blocks, larger": "ITEMS=3",
    "queue, blocks that wait for one another, larger": "TOGETHER",
    "queue, two blocks, aborted, larger": "ABORTS ITEMS=2",
    "queue, blocks that wait for one another, aborted, larger": "TOGETHER ABORTS ITEMS=2",
}
STALE_ITEM = "assertion violated (item=="
OVERWRITTEN_ITEM = "assertion violated ((posted<"
STALE_RESULT = "assertion violated (mem["
LOST_ITEM = "assertion violated (aborted||"
QUEUE_WRONG = {
    "queue, posted before the item": ("SPAN=1 WRONG_POSTED_FIRST", STALE_ITEM),
    "queue, no fence before posted": ("SPAN=1 WRONG_NO_FENCE", STALE_ITEM),
    "queue, no acquire of posted": ("SPAN=1 WRONG_NO_ACQUIRE", STALE_ITEM),
    "queue, slot reused before done": ("SPAN=1 WRONG_REUSED_BEFORE_DONE", OVERWRITTEN_ITEM),
    "queue, done of one block only": ("THREADS=1 WRONG_DONE_OF_ONE_BLOCK", OVERWRITTEN_ITEM),
    "queue, done before the work": ("SPAN=1 WRONG_DONE_TOO_SOON", STALE_RESULT),
    "queue, no fence before done": ("SPAN=1 WRONG_DONE_NO_FENCE", STALE_RESULT),
    "queue, a stop word instead of the last item": ("THREADS=1 WRONG_STOP_WORD", LOST_ITEM),
    "queue, a stop word, and blocks that wait for one another": ("THREADS=1 TOGETHER WRONG_STOP_WORD", WAITS_FOR_EVER),
    "queue, threads that leave by themselves": ("SPAN=1 ABORTS WRONG_LEAVE_ALONE", WAITS_FOR_EVER),
    "queue, wait for other blocks without abort": (
        "THREADS=1 TOGETHER ABORTS WRONG_MEETS_WITHOUT_ABORT", WAITS_FOR_EVER),
}

GRANTS_RIGHT = {
    "grants, one slot": "",
    "grants, two slots": "WINDOW=2 STEPS=4",
    "grants and free slots": "FREE=1",
    "grants, a sender that waits for the other": "DEPENDS",
    "grants and free slots, a sender that waits for the other": "DEPENDS FREE=1",
    "grants, a sender is killed": "DIES STEPS=2",
}
GRANTS_LARGE = {
    "grants and free slots, larger": "FREE=1 WINDOW=2 STEPS=4",
    "grants and free slots, a sender is killed": "DIES FREE=1 WINDOW=2",
}
GRANTS_WRONG = {
    "grants, room that is free when a kernel has read": ("WRONG_FREED_WHEN_READ", WAITS_FOR_EVER),
    "grants, in advance": ("DEPENDS WRONG_GRANTED_IN_ADVANCE", WAITS_FOR_EVER),
    "grants, a dead sender keeps them": ("DIES WRONG_DEAD_HOLDS", WAITS_FOR_EVER),
}

ARRIVALS_RIGHT = {
    "arrivals, 1 slot": "SLOTS=1 STEPS=3",
    "arrivals, 2 slots": "STEPS=3",
    "arrivals, staged": "STAGED STEPS=4",
}
ARRIVALS_LARGE = {
    "arrivals, 2 slots, larger": "STEPS=5",
    "arrivals, 3 slots": "SLOTS=3 STEPS=5",
}
ARRIVALS_WRONG = {
    "arrivals, no flush": ("STEPS=2 WRONG_NO_FLUSH", STALE),
    "arrivals, the tail when the flush begins": ("STEPS=2 WRONG_TAIL_BEFORE_END", STALE),
    "arrivals, the tail of steps that came during the flush": ("STEPS=2 WRONG_COVERS_LATER", STALE),
    "arrivals, the sender raises the tail": ("STEPS=2 WRONG_STEP_TO_TAIL", STALE),
    "arrivals, no fence before the tail of the mirror": ("STEPS=3 WRONG_NO_FENCE", STALE),
    "arrivals, no acquire of the tail": ("STEPS=3 WRONG_NO_ACQUIRE", STALE),
    "arrivals, no credits": ("STEPS=3 WRONG_NO_CREDIT", OVERWRITTEN),
    "arrivals, staged, the tail before the data": ("STAGED STEPS=2 WRONG_STEP_BEFORE_DATA", STALE),
}

with open(os.path.join(HERE, "README.md"), encoding="utf-8") as f:
    README = f.read()

MODELS = [spin.Model(os.path.join(HERE, name), right, large, wrong) for name, right, large, wrong in (
    ("channel.pml", CHANNEL_RIGHT, CHANNEL_LARGE, CHANNEL_WRONG),
    ("mapped.pml", MAPPED_RIGHT, MAPPED_LARGE, MAPPED_WRONG),
    ("sendrecv.pml", SENDRECV_RIGHT, SENDRECV_LARGE, SENDRECV_WRONG),
    ("tree.pml", TREE_RIGHT, TREE_LARGE, TREE_WRONG),
    ("queue.pml", QUEUE_RIGHT, QUEUE_LARGE, QUEUE_WRONG),
    ("grants.pml", GRANTS_RIGHT, GRANTS_LARGE, GRANTS_WRONG),
    ("arrivals.pml", ARRIVALS_RIGHT, ARRIVALS_LARGE, ARRIVALS_WRONG),
)]

if __name__ == "__main__":
    undescribed = [n for m in MODELS for n in m.wrong if f"| {n} |" not in README]
    if undescribed:
        sys.exit(f"FAIL README.md: its table has no row for: {'; '.join(undescribed)}")
    sys.exit(spin.main(__doc__.splitlines()[0], MODELS))
