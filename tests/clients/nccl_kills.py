#!/usr/bin/env python3
"""nccl_kills.py — kill ranks of NCCL from PyPI during all-reduces: the other ranks must notice it, abort, and still use their GPUs.

    python3 tests/clients/nccl_kills.py [--kills 200] [--seed 1] [--first K] [--transport NAME] [--delay S]

The seed and k determine kill k: its number of ranks, algorithm, protocol, transport, size, victim and delay; `--first K --kills 1` repeats
one kill.  Each rank is a process of programs/nccl_survivor.c.  The victim gets SIGKILL up to half a second after the initialisation
(--delay).  The script counts hangs (a survivor has not ended within the limit; its stacks are in WORK/logs), crashes, wrong results, and
leftovers: processes, and files in /dev/shm and TMPDIR.  Files that NCCL itself leaves in /dev/shm are counted separately, and removed.
"""
import collections, glob, os, random, re, shutil, signal, subprocess, sys, time

import client, nccl  # in this folder

TRANSPORTS = {
    "P2P": {},   # ranks map each other's device memory, from cuMemCreate
    "SHM": {"NCCL_P2P_DISABLE": "1", "NCCL_CUMEM_HOST_ENABLE": "0"},   # files in /dev/shm
    "host memory": {"NCCL_P2P_DISABLE": "1", "NCCL_CUMEM_HOST_ENABLE": "1"},   # host memory from cuMemCreate
    "NET": {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1"},   # sockets
}
BY_PLUGIN = "plug-in"   # as NET, but NCCL's network is gpuload's send path; only with --transport
WAYS = [(a, p, t) for a in ("Ring", "Tree") for p in ("LL", "LL128", "Simple") for t in TRANSPORTS] + 4 * [("NVLS", "Simple", "P2P")]
SIZES = (1000, 30000, 300000)
LONGEST_DELAY_S = 0.5
N_SHORT = 6


class Kill:
    """The random parameters of one kill, which depend only on the seed and k."""

    def __init__(self, seed, k, transport=None, longest_delay_s=LONGEST_DELAY_S):
        r = random.Random(f"{seed}/{k}")
        self.k, self.n = k, r.choice((2, 2, 4))
        self.algorithm, self.protocol, self.transport = r.choice(WAYS)
        if transport:
            self.algorithm, self.transport = r.choice(("Ring", "Tree")), transport
        self.count, self.victim, self.delay_s = r.choice(SIZES), r.randrange(self.n), r.uniform(0, longest_delay_s)

    def __str__(self):
        return (f"kill {self.k}: rank {self.victim} of {self.n} after {1000 * self.delay_s:.0f} ms, "
                f"{self.algorithm} {self.protocol} {self.transport}, {self.count} floats")

    def environment(self, build):
        env = {"NCCL_ALGO": f"allreduce:{self.algorithm.lower()}", "NCCL_PROTO": self.protocol}
        if self.transport == BY_PLUGIN:
            return {**env, **TRANSPORTS["NET"], "NCCL_NET_PLUGIN": f"{build}/stage/lib/libnccl-net-gpuload.so"}
        return {**env, **TRANSPORTS[self.transport]}


class Rank:
    """A process of nccl_survivor.c, and the log with the lines that it prints."""

    def __init__(self, args, program, kill, me, life, env):
        others = [p[0] for k, p in enumerate(life) if k != me]
        self.me, self.log = me, f"{args.work}/logs/kill-{kill.k}-rank-{me}.txt"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*client.soft(args, "--gpus", str(kill.n)), program, str(me), str(kill.n), str(kill.count), *map(str, others)],
                stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, pass_fds=[life[me][1], *others], env=env, cwd=args.work, start_new_session=True)

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def line(self, begin):
        """Return the rest of the first complete line in the log that begins with this text, or None."""
        found = re.search(rf"^{begin}(.*)\n", self.text(), re.M)
        return found and found[1].strip()

    def wait_line(self, begin, end):
        while time.monotonic() < end:
            found = self.line(begin)
            if found is not None:
                return found
            if self.process.poll() is not None:
                break
            time.sleep(0.01)
        return self.line(begin)

    def stop(self):
        """Kill all processes of the rank's session.  Returns True if the rank had ended but another process of its session was alive."""
        alone = self.process.poll() is not None
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            alone = False
        self.process.wait()
        self.process.stdin.close()
        return alone

    def stacks(self):
        if shutil.which("gdb"):
            with open(self.log, "ab") as log:
                subprocess.run(["gdb", "-p", str(self.process.pid), "-batch", "-ex", "thread apply all bt 16"], stdin=subprocess.DEVNULL, stdout=log,
                               stderr=subprocess.DEVNULL, timeout=300, check=False)


def shared_files():
    return set(glob.glob("/dev/shm/*"))


def in_use(path):
    """Return whether a process has this file of /dev/shm open."""
    inode = os.stat(path).st_ino
    for fd in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            if os.stat(fd).st_ino == inode and os.readlink(fd).startswith("/dev/shm/"):
                return True
        except OSError:
            pass
    return False


def start_ranks(args, kill, ranks):
    """Send rank 0's ncclUniqueId to the other ranks, and wait until all are initialised.  Returns an error text, or ""."""
    end = time.monotonic() + args.limit
    name = ranks[0].wait_line("id ", end)
    for r in ranks[1:] if name else ():
        try:
            r.process.stdin.write(f"id {name}\n".encode())
            r.process.stdin.flush()
        except OSError:
            return f"rank {r.me} has ended"
    for r in ranks:
        if r.wait_line("ready", end) is None:
            return f"rank {r.me} did not start: {(r.text().strip().splitlines() or ['no output'])[-1]}"
    return ""


def watch_survivors(args, kill, ranks, counts):
    """Wait until the survivors have ended, and count how they ended.  Returns an error text, or ""."""
    end = time.monotonic() + args.limit
    survivors = [r for r in ranks if r.me != kill.victim]
    while time.monotonic() < end and any(r.process.poll() is None for r in survivors):
        time.sleep(0.01)
    wrong = []
    for r in survivors:
        failed, aborted = r.line("FAILED "), r.line("aborted ")
        status = r.process.poll()
        if status is None:
            counts["hangs"] += 1
            wrong.append(f"rank {r.me} did not end in {args.limit:g} s after it {'noticed' if r.line('noticed ') else 'did not notice'} the death")
            r.stacks()
        elif failed and "all-reduce" in failed:
            counts["wrong results"] += 1
            wrong.append(f"rank {r.me}: {failed}")
        elif failed or status or not aborted:
            counts["crashes"] += 1
            wrong.append(f"rank {r.me}: {failed or f'exit status {status}'}")
        else:
            counts[f"by {r.line('noticed ').split()[0]}"] += 1
            counts["right all-reduces"] += int(aborted.split()[1])
            counts["longest abort, ms"] = max(counts["longest abort, ms"], int(aborted.split()[0]))
    return "; ".join(wrong)


def leftovers(args, ranks, files, counts):
    """Stop the remaining processes and remove the remaining files of the ranks; return a description of each."""
    left = [f"a process of rank {r.me}" for r in ranks if r.stop()]
    for f in sorted(shared_files() - files):
        if not os.path.exists(f) or in_use(f):
            continue
        if os.path.basename(f).startswith("nccl-"):   # NCCL unlinks its files only when all ranks have opened them
            counts["files of NCCL"] += 1
            os.remove(f)
        else:
            left.append(f)
    left += glob.glob(f"{args.work}/tmp/*")
    for f in glob.glob(f"{args.work}/tmp/*"):
        shutil.rmtree(f) if os.path.isdir(f) else os.remove(f)
    counts["left"] += len(left)
    return left


def run_kill(args, program, kill, env, counts):
    """Run the ranks of one kill and kill the victim.  Returns an error text, or ""."""
    files, life = shared_files(), [os.pipe() for _ in range(kill.n)]
    ranks = [Rank(args, program, kill, me, life, env) for me in range(kill.n)]
    for p in life:
        os.close(p[0])
        os.close(p[1])
    begin = time.monotonic()
    why = start_ranks(args, kill, ranks)
    if why:
        counts["not started"] += 1
    else:
        time.sleep(kill.delay_s)
        os.kill(ranks[kill.victim].process.pid, signal.SIGKILL)
        begin = time.monotonic()
        why = watch_survivors(args, kill, ranks, counts)
        counts["longest end, ms"] = max(counts["longest end, ms"], int(1000 * (time.monotonic() - begin)))
    left = leftovers(args, ranks, files, counts)
    if not why:
        for r in ranks:
            os.remove(r.log)
    return "; ".join(filter(None, [why, f"left: {', '.join(left)}" if left else ""]))


def main():
    a = client.parser(__doc__)
    a.add_argument("--kills", type=int, default=200, metavar="N")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--first", type=int, default=0, metavar="K", help="number of the first kill (default: 0)")
    a.add_argument("--transport", choices=(*TRANSPORTS, BY_PLUGIN), help="transport of all kills (default: a random one, but not the plug-in)")
    a.add_argument("--delay", type=float, default=LONGEST_DELAY_S, metavar="S", help="latest kill, in seconds after the initialisation (default: %(default)s)")
    a.set_defaults(limit=120)
    args = client.begin(a)
    library, cuda = nccl.find_nccl(args)
    program = nccl.build_program(args, "nccl_survivor", library, cuda)
    for folder in ("logs", "tmp"):
        os.makedirs(f"{args.work}/{folder}", exist_ok=True)
    results, counts = client.Results(), collections.Counter()
    for k in range(args.first, args.first + (N_SHORT if args.short else args.kills)):
        kill = Kill(args.seed, k, args.transport, args.delay)
        why = run_kill(args, program, kill, {**nccl.environment(library, cuda), "TMPDIR": f"{args.work}/tmp", **kill.environment(args.build)}, counts)
        results.add(str(kill), "failed" if why else "passed", why)
        if not why:
            print(kill, flush=True)
    for name in ("hangs", "crashes", "wrong results", "left", "files of NCCL", "not started", "by error", "by pipe", "right all-reduces", "longest abort, ms", "longest end, ms"):
        print(f"{name}: {counts[name]}")
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
