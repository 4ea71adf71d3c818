#!/usr/bin/env python3
"""Compare --schedule all with a search of all orders, without reduction, on random kernels: N kernels from SEED.

Two to four warps, or halves of a warp, load, store and update two words; each stores one bit that depends on what it has seen.  The words are
cleared at the end, so that few orders give a different result.  Both searches must agree whether the result depends on the order.

usage: random_orders.py [N [SEED]]      gpuload is looked up in PATH, its driver in GPULOAD_SOFT_DRIVER
"""
import os, random, subprocess, sys, tempfile

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
	.reg .pred %p<64>;
	.reg .b32 %r<16>;
	.reg .b64 %d<8>;
	.shared .align 8 .b32 s[4];
	ld.param.u64 %d1, [out];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, s;
	mov.u32 %r3, 1;
"""


def operation(r, n):
    """Return PTX of one access to one of two words; %r3 collects what the thread has loaded."""
    at = f"[%r2+{4 * r.randrange(2)}]"
    value = r.choice(["%r3", str(r.randrange(1, 4))])
    kind = r.randrange(7)
    seen = "\tmad.lo.u32 %r3, %r3, 3, %r4;\n"
    if kind < 2:
        return f"\tld.shared.u32 %r4, {at};\n" + seen
    if kind < 4:
        return f"\tst.shared.u32 {at}, {value};\n"
    if kind == 4:
        return f"\tatom.shared.add.u32 %r4, {at}, {value};\n" + seen
    if kind == 5:
        return f"\tred.shared.add.u32 {at}, {value};\n"
    return f"\tatom.shared.cas.b32 %r4, {at}, {r.randrange(2)}, {r.randrange(1, 4)};\n" + seen


def conditional(r, n):
    if r.randrange(4):
        return operation(r, n)
    return (f"\tand.b32 %r5, %r3, 1;\n\tsetp.eq.u32 %p{n}, %r5, 0;\n\t@%p{n} bra skip{n};\n{operation(r, n)}skip{n}:\n")


def kernel(seed):
    """Return PTX and the number of threads of a block."""
    r = random.Random(seed)
    threads, halves = r.choice([(2, False), (2, False), (3, False), (2, True), (4, False)])
    length = {2: 4, 3: 3, 4: 2}[threads]
    shift = 4 if halves else 5
    text, n = HEAD + f"\tshr.u32 %r6, %r1, {shift};\n\tand.b32 %r7, %r1, {(1 << shift) - 1};\n", 0
    text += "\tsetp.ne.u32 %p0, %r7, 0;\n\t@%p0 bra end;\n"
    for t in range(threads):
        text += f"\tsetp.ne.u32 %p{10 + t}, %r6, {t};\n\t@%p{10 + t} bra other{t};\n"
        for _ in range(length):
            n += 1
            text += conditional(r, 20 + n)
        text += f"\tbra end;\nother{t}:\n"
    odd = r.choice([7, 31, 101, 997])
    text += f"end:\n\trem.u32 %r8, %r3, {odd};\n\tmin.u32 %r8, %r8, 1;\n"
    text += "\t" + ("bar.warp.sync 0xffffffff" if halves else "bar.sync 0") + ";\n"
    text += "\tmul.wide.u32 %d2, %r1, 4;\n\tadd.u64 %d2, %d1, %d2;\n\tst.global.u32 [%d2], %r8;\n\tret;\n}\n"
    return text, 32 if halves else 32 * threads


def search(path, block, words):
    run = subprocess.run(["gpuload", "run", path, f"out:u32[{block}]", "--grid", "1", "--block", str(block)], capture_output=True, text=True,
                         env=dict(os.environ, GPULOAD_DRIVER="soft", GPULOAD_SOFT_TOOLS=f"schedule:how=all:max=200000{words}"), timeout=600)
    depends = "the result depends on the order" in run.stderr
    if depends == ("; complete" in run.stderr):
        sys.exit(f"unexpected: {run.stderr}")
    return depends, run.stderr


def main(n=100, seed=0):
    counts = [0, 0]
    with tempfile.TemporaryDirectory() as folder:
        for k in range(seed, seed + n):
            text, block = kernel(k)
            path = f"{folder}/k.ptx"
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
            reduced, words = search(path, block, "")
            full, other = search(path, block, ":exhaustive")
            counts[full] += 1
            if reduced != full:
                sys.exit(f"kernel {k}: with reduction: {words}\nwithout: {other}\n{text}")
    print(f"{n} kernels: the result of {counts[1]} depends on the order, of {counts[0]} it does not; both searches agree")


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
