#!/usr/bin/env python3
"""The simulation finds mistakes: each one is planted into a copy of rdma/protocol, which must then fail on some seed.

A mistake is a textual patch.  The unpatched sources must pass the same seeds.  `--full` runs the simulation built with
ASan and UBSan, and reports the first seed that finds each mistake.
"""
import argparse, collections, concurrent.futures, glob, os, re, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(ROOT)
SEEDS = 6000  # limit of the seeds until a mistake must be found
FLAGS = "-std=c11 -D_GNU_SOURCE -O1 -w"
SANITIZE = "-fsanitize=address,undefined -fno-sanitize-recover=all"
SOURCES = [*sorted(glob.glob("tests/rdma/sim/*.c")), *sorted(glob.glob("rdma/protocol/*.c")), "core/error.c", "core/text.c"]

Mistake = collections.namedtuple("Mistake", "name old new")
MISTAKES = [Mistake(*m) for m in (
    ("a returned slot is used again a lap early",
     "(g->state == GRANT_RETURNED && (int32_t)(l->highest_arrived - l->grants_tail) <= 1)", "0"),
    ("a slot is granted again before it has arrived",
     "at - l->grants_tail == GPUL_RDMA_SLOTS ||", "at - l->grants_tail == GPUL_RDMA_SLOTS + 1 ||"),
    ("a completion is counted twice",
     "\tf->done = true;\n", "\tf->done = true;\n\tl->requests[f->request].ops_left -= l->requests[f->request].ops_left > 2;\n"),
    ("a completion does not complete the earlier operations",
     "while (q->retired != position + 1)\n\t\tretire_one(l, q);", "q->retired = position;\n\tretire_one(l, q);"),
    ("a deadline is not carried over to the next tick",
     "if (r->deadline_ns < next)", "if (0)"),
    ("only the first deadline is watched",
     "if (deadline_ns && deadline_ns < l->next_deadline_ns)", "if (deadline_ns && l->next_deadline_ns == UINT64_MAX)"),
    ("lost grants are not repeated",
     "repeat_ns *= 2;\n\tl->grants_written = l->grants_tail;", "repeat_ns *= 2;"),
    ("stripes are counted from the room, not from the length",
     "stripes_mask(l, at + 1, GPUL_RDMA_IMM_BYTES(imm))", "stripes_mask(l, at + 1, g->room)"),
    ("the mark of the last segment is lost in empty messages",
     "GPUL_RDMA_IMM(slot->sequence, last, bytes)", "GPUL_RDMA_IMM(slot->sequence, last && bytes, bytes)"),
    ("a signal is written with its data on a fabric without order",
     "if (r->put.signal_left && (l->desc.ordered || !r->span.bytes))", "if (r->put.signal_left)"),
    ("the signals of puts complete before they are delivered",
     "op->flags |= GPUL_RDMA_DELIVERED;", ""),
    ("a completion overtakes a delivery",
     "if (q->wants_delivery || (int32_t)(q->delivery_until - q->retired) > 0)", "if (q->wants_delivery)"),
    ("a put begins before the one before it on a fabric without order",
     " || q->put_busy", ""),
    ("a staging buffer is released after its first stripe",
     "if (--o->ops_left)\n\t\treturn;\n\tl->out.free", "if (--o->ops_left)\n\t\tl->out.free[l->out.n_free++] = (uint8_t)stage;\n"
     "\tif (o->ops_left)\n\t\treturn;\n\tl->out.free"),
    ("a staging buffer is granted again while it is copied",
     "\t\tl->in.copies[l->in.copies_head++ % MAX_STAGES] = g->stage;\n",
     "\t\tl->in.copies[l->in.copies_head++ % MAX_STAGES] = g->stage;\n\t\tl->in.free[l->in.n_free++] = g->stage;\n"),
    ("a slot is granted again while its staging buffer is copied",
     "g->stage != NO_STAGE ||\n", "false ||\n"),
    ("a completion of a copy is accepted twice",
     "s->copying &= ~(1ull << stage);", ""),
    ("slots behind a short message are not skipped",
     "if (!continues_buffer(l, s) || l->in_message)", "if (1)"),
    ("the slots of a multi-receive are skipped after its first message",
     "\t\tif (l->group_taken + 1 != 1u << n)\n\t\t\treturn;\n", ""),
    ("a multi-receive is passed before its last message",
     "if (l->group_taken + 1 != 1u << n)", "if (!(l->group_taken >> (n - 1)))"),
    ("the generation of a handle is not checked",
     "&& gpul_rdma_request_handle(r) == handle ?", "?"),
    ("receives are given back too late",
     "q->recvs_used < RECV_BATCH", "q->recvs_used < 4 * RECV_BATCH"),
    ("a receive is not given back",
     ".bytes = q->recvs_used }", ".bytes = q->recvs_used - 1 }"),
    ("one operation too many is in flight",
     "return l->desc.depth - (q->posted - q->retired);", "return l->desc.depth + 1 - (q->posted - q->retired);"),
    ("grants are written past the end of the ring",
     "if (n > GPUL_RDMA_SLOTS - index)", "if (0)"),
    ("the last operation of a take is not signalled",
     "if (q->wants_signal && q->last_op >= 0)", "if (0)"),
    ("a slot crosses two pieces of its region",
     "if (bytes > in_piece)", "if (0)"),
    ("a write crosses two pieces of its region",
     "end - done < left ? end - done : (uint32_t)left", "end - done"),
    ("operations are taken after a failure",
     "if (l->failure.status)\n\t\treturn 0;", ""),
    ("a longer message than its buffer is cut",
     "if (!last && (SLOT_END(&slot) || !bytes))", "if (0)"),
    ("the queue pair of an arrival is not checked",
     "const char *why = qp >= l->desc.n_qps ?", "qp %= l->desc.n_qps;\n\tconst char *why = 0 ?"),
    ("a handle is 0 when the generation wraps",
     "r->generation < LAST_GENERATION ? r->generation + 1 : 1", "(r->generation + 1) & LAST_GENERATION"),
    ("a handle is 0 for the last request of the last generation",
     "return r->generation << INDEX_BITS | r->index;", "return (r->generation << INDEX_BITS | r->index) + 1;"),
    ("a slot is used before all of it has landed",
     "out->check != gpul_rdma_slot_check(out)", "0"),
    ("slot number 0 is no slot",
     "if (!find_slot(l, r->tag, &slot))", "if (!find_slot(l, r->tag, &slot) || !slot.sequence)"),
    ("a message number does not wrap",
     "SLOT_MESSAGE(s) != (uint16_t)(l->message + 1)", "SLOT_MESSAGE(s) != l->message + 1"),
    ("two stripes share a queue pair where slot numbers wrap",
     "(sequence % l->desc.n_qps + stripe) % l->desc.n_qps", "(sequence + stripe) % l->desc.n_qps"),
    ("a position in a queue does not wrap",
     "if (position - q->retired >= q->posted - q->retired)\n\t\treturn false;\n\twhile",
     "if (position >= q->posted)\n\t\treturn false;\n\twhile"),
    ("a message ends with a segment before one that has arrived",
     "p->seen > g->segment   ?", "0 ?"),
    ("a message ends with the last stripe of its last segment, not with the first one",
     "\t\tif (g->last)\n\t\t\tend_message(l, at, p);\n\t}\n\tg->stripes_left = (uint16_t)(awaited & ~(1u << stripe));\n",
     "\t}\n\tg->stripes_left = (uint16_t)(awaited & ~(1u << stripe));\n\tif (g->last && !g->stripes_left)\n"
     "\t\tend_message(l, at, &l->parts[g->part]);\n"),
    ("a segment before the last may be short",
     "if (bytes != g->room)", "if (0)"),
    ("a message goes on behind its buffer",
     "return g->offset + bytes == p->span.bytes ?", "return 0 ?"),
    ("a stripe counts twice",
     "if (!(awaited >> stripe & 1))", "if (0)"),
    ("the stripes of a segment may disagree",
     "return bytes == g->bytes && last == g->last ? NULL", "return 1 ? NULL"),
    ("a slot is filled twice",
     "if (g->state == GRANT_FULL)", "if (0)"),
    ("a slot behind the end of its message is filled",
     "if (g->state == GRANT_RETURNED)", "if (0)"),
    ("a slot that the peer does not know is filled",
     ">= l->grants_known - l->grants_tail)", ">= l->grants_head - l->grants_tail)"),
    ("a repetition overtakes the slots that have been passed",
     "if ((int32_t)(l->grants_tail - l->grants_written) > 0)", "if (0)"),
    ("a deadline ends a request before its time",
     "if (r->deadline_ns <= now_ns)", "if (r->deadline_ns <= now_ns + 100000)"),
)]


def run(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True)


def compile_to(out, source, include, flags):
    r = run(f"cc {flags} {include} -c {source} -o {out}")
    if r.returncode:
        raise RuntimeError(f"{source}: {r.stderr}")
    return out


def build_unpatched(folder, flags, pool):
    """Return the object files of the simulation and of the unchanged protocol."""
    outs = [f"{folder}/{os.path.basename(c)[:-2]}.o" for c in SOURCES]
    return dict(zip(SOURCES, pool.map(lambda p: compile_to(*p, "-I. -Iinclude", flags), zip(outs, SOURCES))))


def plant(m, folder, objects, flags):
    """Build the simulation with one mistake; returns the program."""
    here, text = tempfile.mkdtemp(dir=folder), {}
    os.makedirs(f"{here}/rdma/protocol")
    for path in glob.glob("rdma/protocol/*.[ch]"):
        with open(path, encoding="utf-8") as f:
            text[path] = f.read()
    places = [p for p in text for _ in range(text[p].count(m.old))]
    if len(places) != 1:
        raise ValueError(f"there are {len(places)} places for this mistake: change its patch")
    path = places[0]
    with open(f"{here}/{path}", "w", encoding="utf-8") as f:
        f.write(text[path].replace(m.old, m.new))
    new = dict(objects)
    for s in [path] if path.endswith(".c") else [s for s in SOURCES if s.startswith("rdma/protocol/")]:
        # A patched header comes first on the search path.
        source = f"{here}/{s}" if s == path else s
        new[s] = compile_to(f"{here}/{os.path.basename(s)}.o", source, f"-I{here} -I. -Iinclude", flags)
    return link(f"{here}/sim", new, flags)


def link(exe, objects, flags):
    r = run(f"cc {flags} {' '.join(objects.values())} -o {exe}")
    if r.returncode:
        raise RuntimeError(r.stderr)
    return exe


def first_failure(exe, seeds):
    """Return (seed, reason) of the first seed that fails; None if all pass."""
    r = run(f"timeout 120 {exe} --seeds 1-{seeds} --failures 1")
    found = re.search(r"^seed (\d+)(.*)", r.stdout, re.M)
    return (int(found[1]), found[2].lstrip(": ")) if found else None if r.returncode == 0 else (0, f"exit status {r.returncode}")


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--full", action="store_true", help="with sanitizers, and up to 100,000 seeds")
    a.add_argument("--only", default="", help="mistakes whose name contains this")
    a = a.parse_args()
    seeds = 100000 if a.full else SEEDS
    flags = f"{FLAGS} {SANITIZE}" if a.full else FLAGS
    bad = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(min(4, os.cpu_count())) as pool:
        objects = build_unpatched(folder, flags, pool)
        clean = pool.submit(lambda: first_failure(link(f"{folder}/sim", objects, flags), SEEDS))
        chosen = [m for m in MISTAKES if a.only in m.name]
        jobs = [pool.submit(lambda m: first_failure(plant(m, folder, objects, flags), seeds), m) for m in chosen]
        for m, job in zip(chosen, jobs):
            f = None if job.exception() else job.result()
            bad += not f
            print(f"{m.name}: " + (f"found by seed {f[0]} {f[1]}" if f else f"NOT FOUND {job.exception() or ''}"), flush=True)
        if clean.result():
            bad += 1
            print(f"without a mistake: seed {clean.result()[0]} {clean.result()[1]}")
    print(f"{len(chosen) + 1 - bad} passed, {bad} failed, 0 skipped")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
