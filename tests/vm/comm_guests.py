#!/usr/bin/env python3
"""The long tests of collectives between two virtual machines, over libibverbs: tests/vm/comm_guests.py calls random cuts kills speed

    calls    every call of `gpuload comm`, without loss and with 1 % of the packets lost
    random   300 random cases without loss, 300 with 1 % loss
    cuts     20 rounds of tests/comm/fault/cut_hosts.py: the network is cut at a random moment
    kills    20 times a rank kills itself at a random moment; the other ranks must end, with an error that names it
    speed    the bus bandwidth of calls, compared with that of `gpuload rdma bench` in the same run

tc-netem(8) in both guests drops the packets, including those of the ranks' bootstrap over TCP.
"""
import argparse, json, os, random, re, statistics, sys, time

import guest, hosts  # in this folder

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../comm/fault"))
import cut_hosts

GPULOAD, RANDOM = f"{hosts.BUILD}/gpuload", f"{hosts.BUILD}/tests/comm/soak/comm_random"
CALLS = ("allreduce", "reducescatter", "allgather", "broadcast", "alltoall", "sendrecv", "sparse-allreduce")
LAYOUTS = ("ab", "aabb", "aab", "abb")


def say(text):
    print(text, flush=True)


def outputs(ranks):
    """Wait for the ranks; return (their outputs, True if all have succeeded)."""
    texts = [r.communicate()[0] for r in ranks]
    return texts, all(r.returncode == 0 for r in ranks)


def check_calls(h, o):
    wrong = 0
    for i, (call, loss) in enumerate((c, l) for l in (0, 1) for c in CALLS):
        for host in "ab":
            h.disturb(host, loss=loss)
        layout = LAYOUTS[i % 2]
        begin = time.monotonic()
        texts, good = outputs(h.start_job(layout, [GPULOAD, "comm", call, "--bytes", "40K", "--iters", "2"]))
        good = good and (call == "sparse-allreduce" or "# wrong elements: 0 OK" in texts[0])
        wrong += not good
        say(f"calls: {call}, {layout}, {loss} % loss: {'right' if good else texts}, {time.monotonic() - begin:.1f} s")
    return wrong


def random_cases(h, o):
    wrong = 0
    for loss in (0, 1):
        for host in "ab":
            h.disturb(host, loss=loss)
        begin = time.monotonic()
        texts, good = outputs([h.start(host, [RANDOM, "--host", str(i), "--address", hosts.ADDRESS["a"], "--cases", str(o.cases), "--ranks", "2:3",
                                              "--seed", str(o.seed % 1000)]) for i, host in enumerate("ab")])
        wrong += not good
        say(f"random: {o.cases} cases of seed {o.seed % 1000}, {loss} % loss: {'0 wrong' if good else texts}, {time.monotonic() - begin:.0f} s")
    return wrong


def cut_network(h, o):
    cut = cut_hosts.Cut(h, o.seed, lost_ms=2000, delay_ms=0, earliest_s=0.5, latest_s=6.0, grace_s=6.0)
    wrong = cut.run(o.rounds, ("ab", "aabb"))
    for text, n in cut.said.most_common():
        say(f"  {n:4} {text}")
    return wrong


def kill_one(h, dice, number):
    """Run a job in which one rank kills itself; return (seconds from its end to the end of the last other rank, the error or None)."""
    layout, victim, step = dice.choice(LAYOUTS[1:]), 0, dice.randrange(3, 60)
    victim = dice.randrange(len(layout))
    ranks = h.start_job(layout, [cut_hosts.STAY, "--seed", str(number), "--victim", str(victim), "--at-step", str(step)])
    ends = {}
    while len(ends) < len(ranks):
        for r, rank in enumerate(ranks):
            if r not in ends and rank.poll() is not None:
                ends[r] = time.monotonic()
        time.sleep(0.005)
    texts = [r.communicate()[0] for r in ranks]
    pid, last = ranks[victim].pid, max(ends[r] for r in ends if r != victim) - ends[victim]
    for r, rank in enumerate(ranks):
        if r != victim and (rank.returncode != 1 or not re.search(rf"rank {victim} \(pid {pid}\)", texts[r])):
            return last, f"rank {r}, exit status {rank.returncode}: {texts[r]}"
    left = sum((h.left(host) for host in "ab"), [])
    return last, f"left: {left}" if left else "more than 2 s" if last > 2 else None


def kill_ranks(h, o):
    dice, times, wrong = random.Random(o.seed), [], 0
    for i in range(o.rounds):
        seconds, problem = kill_one(h, dice, i)
        times.append(seconds)
        if problem:
            wrong += 1
            say(f"kills: round {i}: after {seconds:.2f} s: {problem}")
    times.sort()
    say(f"kills: {o.rounds} rounds, {wrong} wrong; the others had ended after {times[len(times) // 2]:.2f} s (median), {times[-1]:.2f} s (longest)")
    return wrong


def send_path(h):
    server = h.start("b", [GPULOAD, "rdma", "serve", "--backend", "verbs", "--once"])
    while "READY" not in server.read("text") and server.poll() is None:
        time.sleep(0.05)
    (text,), good = outputs([h.start("a", [GPULOAD, "rdma", "bench", hosts.ADDRESS["b"], "--backend", "verbs", "--sizes", "128K", "--time", "2", "--json"])])
    server.communicate()
    if not good:
        raise guest.Stopped(text)
    return max(row["here"]["gb_per_s"] for row in json.loads(text[text.index("{"):])["rows"])


def measure_speed(h, o):
    bare, figures = [], {"allreduce": [], "sendrecv": []}
    for _ in range(3):
        bare.append(send_path(h))
        for call, found in figures.items():
            texts, good = outputs(h.start_job("ab", [GPULOAD, "comm", call, "--bytes", "1M", "--iters", "10", "--out-of-place", "--json"]))
            if not good:
                raise guest.Stopped(str(texts))
            found.append(json.loads(texts[0][texts[0].index("{"):])["rows"][0]["out_of_place"]["busbw_gb_per_s"])
    base = statistics.median(bare)
    say(f"speed: rdma bench, 128 KiB: {base:.4f} GB/s, {bare}")
    for call, found in figures.items():
        say(f"speed: {call}, 1 MiB, bus bandwidth {statistics.median(found):.4f} GB/s, ratio {statistics.median(found) / base:.2f}, {found}")
    return 0


PARTS = {"calls": check_calls, "random": random_cases, "cuts": cut_network, "kills": kill_ranks, "speed": measure_speed}


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")
    a.add_argument("--cases", type=int, default=300, help="random cases (default: 300)")
    a.add_argument("--rounds", type=int, default=20, help="of cuts and kills (default: 20)")
    a.add_argument("--cpus", type=int, default=1, help="CPUs of a guest (default: 1)")
    a.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    o = a.parse_args()
    wrong = 0
    try:
        with guest.pair(n_cpus=o.cpus) as guests:
            h = hosts.Hosts(guests)
            say(f"two guests, {guests[0].accel}, seed {o.seed}")
            for name in o.parts:
                wrong += PARTS[name](h, o)
                for host in "ab":
                    h.disturb(host)
                    h.started.clear()
    except guest.Missing as why:
        print(f"skipped: {why}")
        return 77
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
