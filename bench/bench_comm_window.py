#!/usr/bin/env python3
"""bench_comm_window.py — an all-to-all through a switch with short queues, with and without the window of the receivers.

    bench/bench_comm_window.py [--ranks 4] [--rate 500] [--queue 256kb] [--windows off,default] [--call alltoall] [--bytes 8M] [--pairs 3]

Each rank is in a network namespace of its own.  All are connected to a bridge, whose ports are token buckets of --rate Mbit/s with a queue of
--queue towards the ranks: where many ranks send to one, packets wait there, and are dropped when the queue is full.  The windows take
turns; a row has the medians of the pairs: bus bandwidth, segments that TCP has retransmitted,
packets that the ports have dropped, and the queue (its mean while it was not empty, and its
maximum over all samples).  Needs root, ip, tc and nstat.
"""
import argparse, json, os, re, statistics, subprocess, sys, threading, time

SWITCH, PORT = "gpul-win-switch", "18641"


def host(k):
    return f"gpul-win-{k}"


def run(command, **more):
    r = subprocess.run(command, capture_output=True, text=True, **more)
    if r.returncode:
        sys.exit(f"bench_comm_window.py: {' '.join(command)}: exit status {r.returncode}: {(r.stderr or r.stdout)[-1000:]}")
    return r.stdout


def connect(a):
    for name in [SWITCH] + [host(k) for k in range(a.ranks)]:
        run(["ip", "netns", "add", name])
        run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"])
        run(["ip", "-n", name, "link", "set", "lo", "up"])
    run(["ip", "-n", SWITCH, "link", "add", "bridge0", "type", "bridge"])
    run(["ip", "-n", SWITCH, "link", "set", "bridge0", "up"])
    for k in range(a.ranks):
        run(["ip", "link", "add", f"port{k}", "netns", SWITCH, "type", "veth", "peer", "name", "eth0", "netns", host(k)])
        run(["ip", "-n", SWITCH, "link", "set", f"port{k}", "master", "bridge0", "up"])
        run(["ip", "-n", host(k), "addr", "add", f"10.79.0.{k + 1}/24", "dev", "eth0"])
        run(["ip", "-n", host(k), "link", "set", "eth0", "up"])
        run(["tc", "-n", SWITCH, "qdisc", "add", "dev", f"port{k}", "root", "tbf", "rate", f"{a.rate}mbit", "burst", "64kb", "limit", a.queue])
    time.sleep(1.5)  # until the ports forward, and libfabric finds the addresses


def disconnect(a):
    for name in [SWITCH] + [host(k) for k in range(a.ranks)]:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def ports():
    """Return the statistics of the switch's token buckets (tc -s qdisc)."""
    return [q for q in json.loads(run(["tc", "-n", SWITCH, "-s", "-j", "qdisc"])) if q["kind"] == "tbf"]


def resent(a):
    return sum(int(json.loads(run(["ip", "netns", "exec", host(k), "nstat", "-aszj"]))["kernel"]["TcpRetransSegs"]) for k in range(a.ranks))


def watch(samples, stop):
    while not stop.is_set():
        r = subprocess.run(["tc", "-n", SWITCH, "-s", "-j", "qdisc"], capture_output=True, text=True)
        samples += [int(n) for n in re.findall(r'"backlog":(\d+)', r.stdout) if int(n)]
        stop.wait(0.02)


def collective(a, window):
    job = f"window-{os.getpid()}-{time.monotonic_ns()}"
    ranks = []
    for k in range(a.ranks):
        env = dict(os.environ, GPULOAD_COMM_RANK=str(k), GPULOAD_COMM_SIZE=str(a.ranks), GPULOAD_COMM_JOB=job, GPULOAD_COMM_HOST=host(k),
                   GPULOAD_COMM_ADDRESS=f"10.79.0.1:{PORT}", GPULOAD_COMM_SECRET="a secret of this benchmark")
        more = [] if window == "default" else ["--window", window]
        more += ["--algo", a.algo] if a.algo else []
        ranks.append(subprocess.Popen(["ip", "netns", "exec", host(k), f"{a.build}/gpuload", "comm", a.call, "--transport", "net", "--provider", "tcp",
                                       "--bytes", a.bytes, "--iters", str(a.iters), "--out-of-place", "--json", *more],
                                      env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    results = [rank.communicate() for rank in ranks]
    if any(rank.returncode for rank in ranks):
        sys.exit(f"bench_comm_window.py: comm {a.call}: {results[0][1][-1000:]}")
    figures = json.loads(results[0][0])["rows"][0]["out_of_place"]
    if figures["wrong"]:
        sys.exit(f"bench_comm_window.py: comm {a.call}: wrong data")
    return figures["busbw_gb_per_s"]


def measure(a, window):
    samples, stop = [], threading.Event()
    watcher = threading.Thread(target=watch, args=(samples, stop))
    again, drops = resent(a), sum(q["drops"] for q in ports())
    watcher.start()
    try:
        rate = collective(a, window)
    finally:
        stop.set()
        watcher.join()
    return (rate, resent(a) - again, sum(q["drops"] for q in ports()) - drops, statistics.mean(samples) / 1024 if samples else 0,
            max(samples, default=0) / 1024)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--ranks", type=int, default=4, help="2 to 16 (default: 4)")
    p.add_argument("--rate", type=int, default=500, help="Mbit/s of a port (default: 500)")
    p.add_argument("--queue", default="256kb", help="of a port (default: 256kb)")
    p.add_argument("--windows", default="off,default", help="comma-separated values of --window (default: off,default)")
    p.add_argument("--call", default="alltoall", help="of gpuload comm (default: alltoall)")
    p.add_argument("--algo", help="of the call (default: chosen)")
    p.add_argument("--bytes", default="8M", help="size of a call (default: 8M)")
    p.add_argument("--iters", type=int, default=10, help="timed calls (default: 10)")
    p.add_argument("--pairs", type=int, default=3, help="runs of each window (default: 3)")
    p.add_argument("--build", default="build", help="build folder (default: build)")
    a = p.parse_args()
    a.build, windows = os.path.abspath(a.build), a.windows.split(",")
    disconnect(a)  # left by a run that was killed
    try:
        connect(a)
        rows = {w: [] for w in windows}
        for _ in range(a.pairs):
            for w in windows:
                rows[w].append(measure(a, w))
    finally:
        disconnect(a)
    print(f"{a.call} of {a.bytes}, {a.ranks} ranks, ports of {a.rate} Mbit/s with a queue of {a.queue}")
    print("| window | bus GB/s | sent again | dropped | queue mean, most, KiB |\n|---|--:|--:|--:|--:|")
    for w in windows:
        rate, again, drops, mean, most = map(statistics.median, zip(*rows[w]))
        print(f"| {w} | {rate:.4f} | {again:.0f} | {drops:.0f} | {mean:.0f}, {most:.0f} |")


if __name__ == "__main__":
    main()
