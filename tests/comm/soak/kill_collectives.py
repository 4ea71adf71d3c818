#!/usr/bin/env python3
"""kill_collectives.py — SIGKILL of a random rank of a job over two network namespaces: the others end in time, and name it.

    tests/comm/soak/kill_collectives.py [--rounds 500] [--ranks 4] [--limit 2] [--seed N] [--build build]

Half of the ranks runs in each of two namespaces, which a veth pair connects; ranks of one namespace share memory, the others use the
network (libfabric, tcp).  Each round kills a rank at a random moment of `gpuload comm allreduce`, after all ranks have joined.  Needs root, ip.
"""
import argparse, os, random, signal, statistics, subprocess, sys, time

NAMES, ADDRESSES = ("gpul-kill-a", "gpul-kill-b"), ("10.79.0.1", "10.79.0.2")


def run(*command):
    r = subprocess.run(command, capture_output=True, text=True)
    if r.returncode:
        sys.exit(f"kill_collectives.py: {' '.join(command)}: {r.stderr.strip()}")


def connect():
    for name in NAMES:
        run("ip", "netns", "add", name)
        run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
    run("ip", "link", "add", "gpulk0", "netns", NAMES[0], "type", "veth", "peer", "name", "gpulk1", "netns", NAMES[1])
    for k, name in enumerate(NAMES):
        run("ip", "-n", name, "addr", "add", f"{ADDRESSES[k]}/24", "dev", f"gpulk{k}")
        for link in ("lo", f"gpulk{k}"):
            run("ip", "-n", name, "link", "set", link, "up")
    time.sleep(1.5)


def disconnect():
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def start(a, number):
    job = f"kill-{os.getpid()}-{number}"
    ranks = []
    for r in range(a.ranks):
        k = r * 2 // a.ranks
        env = dict(os.environ, GPULOAD_COMM_RANK=str(r), GPULOAD_COMM_SIZE=str(a.ranks), GPULOAD_COMM_JOB=job, GPULOAD_COMM_HOST=NAMES[k],
                   GPULOAD_COMM_ADDRESS=f"{ADDRESSES[0]}:{20000 + number % 10000}", GPULOAD_COMM_SECRET="a secret of this test")
        ranks.append(subprocess.Popen(["ip", "netns", "exec", NAMES[k], f"{a.build}/gpuload", "comm", "allreduce", "--provider", "tcp", "--bytes",
                                       "8:1M:8", "--iters", "1000", "--check", "off"], env=env, text=True, stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE if r == 0 else subprocess.DEVNULL, stderr=subprocess.PIPE))
    return ranks


def kill_one(a, chance, number):
    """Return (seconds until the last rank has ended, the error or None)."""
    ranks = start(a, number)
    victim = chance.randrange(a.ranks)
    ranks[0].stdout.readline()  # all ranks have joined
    time.sleep(chance.uniform(0, 1.5))
    if any(rank.poll() is not None for rank in ranks):
        wrong = "a rank ended before the kill: " + " | ".join(str(rank.communicate()[1])[-300:] for rank in ranks if rank.poll() is not None)
        for rank in ranks:
            rank.kill()
        return 0, wrong
    begun = time.monotonic()
    ranks[victim].send_signal(signal.SIGKILL)
    wrong, last = "", 0.0
    for r, rank in enumerate(ranks):
        if r == victim:
            rank.wait()
            continue
        try:
            text = rank.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            rank.kill()
            wrong = wrong or f"rank {r} has not ended"
            continue
        last = max(last, time.monotonic() - begun)
        if rank.returncode == 0 or f"rank {victim} " not in text:
            wrong = wrong or f"rank {r}, exit status {rank.returncode}, does not name rank {victim}: {text[-400:]}"
    if not wrong and last > a.limit:
        wrong = f"the others ended after {last:.2f} s"
    return last, wrong


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rounds", type=int, default=500)
    p.add_argument("--ranks", type=int, default=4)
    p.add_argument("--limit", type=float, default=2, help="seconds (default: 2)")
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--build", default="build")
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    chance, times, failed = random.Random(a.seed), [], 0
    disconnect()
    try:
        connect()
        for number in range(a.rounds):
            seconds, wrong = kill_one(a, chance, number)
            times.append(seconds)
            if wrong:
                failed += 1
                print(f"round {number}: {wrong}", flush=True)
    finally:
        disconnect()
    times.sort()
    print(f"{a.rounds} rounds, {failed} wrong; the others ended after {statistics.median(times):.2f} s (median), {times[-1]:.2f} s (longest); "
          f"seed {a.seed}")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
