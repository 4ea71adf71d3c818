#!/usr/bin/env python3
"""bench_comm_net.py — compares collectives over the network with the bare send path, in
one run.

    bench/bench_comm_net.py [--rates 1000,4000] [--calls sendrecv,allreduce] [--bytes 4M] [--pairs 3] [--provider tcp]

For each rate two network namespaces are connected by a veth pair whose ends send at most that many Mbit/s (a token bucket; 0:
no limit).  `gpuload rdma bench` sends from one to the other, then two ranks, one in each, run `gpuload comm`; a figure is the median
of the pairs.  The bus bandwidth of a collective counts the minimum of data that each rank must
send, so the ratio is the share of the line that the collective uses.  Needs root, ip and tc.
--local measures on this machine without namespaces instead.
"""
import argparse, json, os, statistics, subprocess, sys, time

NAMES, ADDRESSES = ("gpul-bench-a", "gpul-bench-b"), ("10.78.0.1", "10.78.0.2")
PORT, MEETING = "18631", "18632"


def run(command, **more):
    r = subprocess.run(command, capture_output=True, text=True, **more)
    if r.returncode:
        sys.exit(f"bench_comm_net.py: {' '.join(command)}: exit status {r.returncode}: {(r.stderr or r.stdout)[-1000:]}")
    return r.stdout


def inside(a, k):
    return [] if a.local else ["ip", "netns", "exec", NAMES[k]]


def connect():
    for name in NAMES:
        run(["ip", "netns", "add", name])
        run(["ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"])
    run(["ip", "link", "add", "gpulv0", "netns", NAMES[0], "type", "veth", "peer", "name", "gpulv1", "netns", NAMES[1]])
    for k, name in enumerate(NAMES):
        run(["ip", "-n", name, "addr", "add", f"{ADDRESSES[k]}/24", "dev", f"gpulv{k}"])
        for link in ("lo", f"gpulv{k}"):
            run(["ip", "-n", name, "link", "set", link, "up"])
    time.sleep(1.5)  # until both ends have a carrier, and libfabric finds their addresses


def disconnect():
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def limit(rate):
    for k, name in enumerate(NAMES):
        subprocess.run(["tc", "-n", name, "qdisc", "del", "dev", f"gpulv{k}", "root"], capture_output=True)
        if rate:
            run(["tc", "-n", name, "qdisc", "add", "dev", f"gpulv{k}", "root", "tbf", "rate", f"{rate}mbit", "burst", "256kb", "latency", "50ms"])


def send_path(a):
    """Return the GB/s of the bare send path, from b to a."""
    server = subprocess.Popen([*inside(a, 0), f"{a.build}/gpuload", "rdma", "serve", "--provider", a.provider, "--port", PORT], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        server.stdout.readline()  # READY
        host = "127.0.0.1" if a.local else ADDRESSES[0]
        out = run([*inside(a, 1), f"{a.build}/gpuload", "rdma", "bench", f"{host}:{PORT}", "--provider", a.provider, "--sizes", a.message,
                   "--time", "1", "--json"])
        return max(row["here"]["gb_per_s"] for row in json.loads(out)["rows"])
    finally:
        server.terminate()
        server.wait()


def collective(a, call):
    """Return the bus bandwidth in GB/s, and the plan."""
    job = f"bench-{os.getpid()}-{time.monotonic_ns()}"
    ranks = []
    for k in range(2):
        env = dict(os.environ, GPULOAD_COMM_RANK=str(k), GPULOAD_COMM_SIZE="2", GPULOAD_COMM_JOB=job, GPULOAD_COMM_HOST=NAMES[k],
                   GPULOAD_COMM_ADDRESS=f"{'127.0.0.1' if a.local else ADDRESSES[0]}:{MEETING}", GPULOAD_COMM_SECRET="a secret of this benchmark")
        ranks.append(subprocess.Popen([*inside(a, k), f"{a.build}/gpuload", "comm", call, "--transport", "net", "--provider", a.provider,
                                       "--bytes", a.bytes, "--iters", str(a.iters), "--out-of-place", "--json"], env=env, text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    (out, errors), _ = [rank.communicate() for rank in ranks]
    if ranks[0].returncode or ranks[1].returncode:
        sys.exit(f"bench_comm_net.py: comm {call}: {errors[-1000:]}")
    row = json.loads(out)["rows"][0]
    if row["out_of_place"]["wrong"]:
        sys.exit(f"bench_comm_net.py: comm {call}: wrong data")
    return row["out_of_place"]["busbw_gb_per_s"], "{algorithm}/{protocol}, {blocks} x {threads}".format(**row["plan"])


def measure(a, rate):
    base, figures, plans = [], {call: [] for call in a.calls}, {}
    for _ in range(a.pairs):
        base.append(send_path(a))
        for call in a.calls:
            figure, plans[call] = collective(a, call)
            figures[call].append(figure)
    bare = statistics.median(base)
    for call in a.calls:
        ours = statistics.median(figures[call])
        print(f"| {f'{rate} Mbit/s' if rate else 'none'} | {bare:.3f} | {call} | {ours:.3f} | {ours / bare:.2f} | {plans[call]} |", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--rates", default="1000,4000", help="Mbit/s of the line; 0: no limit (default: 1000,4000)")
    p.add_argument("--calls", default="sendrecv,allreduce", help="comma-separated (default: sendrecv,allreduce)")
    p.add_argument("--bytes", default="4M", help="size of a call (default: 4M)")
    p.add_argument("--message", default="128K", help="size of the send path's messages (default: 128K, a slot)")
    p.add_argument("--iters", type=int, default=20, help="timed calls (default: 20)")
    p.add_argument("--pairs", type=int, default=3, help="runs of each (default: 3)")
    p.add_argument("--provider", default="tcp", help="libfabric's provider (default: tcp)")
    p.add_argument("--local", action="store_true", help="on this machine, without namespaces and limits")
    p.add_argument("--build", default="build", help="build folder (default: build)")
    a = p.parse_args()
    a.build, a.calls = os.path.abspath(a.build), a.calls.split(",")
    print("| limit | send path GB/s | call | bus GB/s | ratio | plan |\n|---|---|---|---|---|---|")
    if a.local:
        return measure(a, 0)
    disconnect()  # left by a run that was killed
    try:
        connect()
        for rate in map(int, a.rates.split(",")):
            limit(rate)
            measure(a, rate)
    finally:
        disconnect()


if __name__ == "__main__":
    main()
