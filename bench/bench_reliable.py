#!/usr/bin/env python3
"""bench_reliable.py — compares reliable-udp with libfabric's udp;ofi_rxd and tcp, plain UDP, and iperf3 (TCP cubic) between two namespaces.

    bench/bench_reliable.py [--sizes 4K,64K,1M] [--loss 1] [--delay-ms 5] [--rounds 2] [-- OPTION OF gpuload rdma bench...]

Without --loss and --delay-ms, the namespaces are connected by a veth pair, otherwise by a program that loses and delays packets, in both
directions; plain UDP (bench_udp) is then left out, because it must not lose any.  Needs root, and iperf3 for its row.
"""
import argparse, json, os, re, shutil, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/comm/bootstrap/hosts"))
from namespaces import BUILD, TwoHosts

DATAGRAM_BYTES = 1448  # as reliable-udp sends them at an MTU of 1500: 64 bytes of header, 1384 of payload


def bench(hosts, provider, a):
    """Return {bytes: (Gbit/s, p50 in us)} as the client prints them, and the counters of reliable-udp.  Raises RuntimeError."""
    gpuload = f"{BUILD}/gpuload"
    server = hosts.start("b", [gpuload, "rdma", "serve", "--once", "--provider", provider], GPULOAD_DRIVER="soft")
    client = hosts.start("a", [gpuload, "rdma", "bench", hosts.address["b"], "--provider", provider, "--sizes", a.sizes, "--time", str(a.time), *a.options],
                         GPULOAD_DRIVER="soft", GPULOAD_LOG="info")
    out, err = client.communicate()
    server.kill()
    if client.returncode:
        raise RuntimeError(err[-800:])
    rows = [line.split() for line in out.splitlines() if re.match(r" +\d+ +\d+ ", line)]
    return {int(r[0]): (float(r[2]), float(r[5])) for r in rows}, (re.findall(r"reliable-udp: (\d+ chunks.*)", err) or [""])[-1]


def plain_udp(hosts, a):
    program, port = f"{BUILD}/bench/bench_udp", "18700"
    server = hosts.start("b", [program, port])
    time.sleep(0.5)
    client = hosts.start("a", [program, hosts.address["b"], port, str(DATAGRAM_BYTES), str(a.time)])
    out, err = client.communicate()
    server.kill()
    return (out or err).strip()


def iperf(hosts, a):
    if not shutil.which("iperf3"):
        return 0.0
    server = hosts.start("b", ["iperf3", "-s", "-1"])
    time.sleep(0.5)
    client = hosts.start("a", ["iperf3", "-c", hosts.address["b"], "-t", str(a.time), "-J", "-C", "cubic"])
    out, _ = client.communicate()
    server.communicate()
    return json.loads(out)["end"]["sum_received"]["bits_per_second"] * 1e-9


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--sizes", default="4K,64K,1M", help="sizes of messages (default: 4K,64K,1M)")
    p.add_argument("--loss", type=float, default=0, help="%% of the packets that are lost (default: 0)")
    p.add_argument("--delay-ms", type=float, default=0, help="in each direction (default: 0)")
    p.add_argument("--rounds", type=int, default=2, help="default: 2")
    p.add_argument("--time", type=float, default=3, help="seconds for each size (default: 3)")
    p.add_argument("options", nargs="*", help="further options of gpuload rdma bench")
    a = p.parse_args()
    with TwoHosts(5 if a.loss or a.delay_ms else None) as hosts:
        for h in "ab" if a.loss or a.delay_ms else "":
            hosts.disturb(h, loss=a.loss, delay_ms=a.delay_ms)
        for _ in range(a.rounds):
            for provider in ("reliable-udp", "udp;ofi_rxd", "tcp"):
                try:
                    rows, counters = bench(hosts, provider, a)
                except RuntimeError as e:
                    if provider != "udp;ofi_rxd":  # which may give up when packets are lost
                        sys.exit(f"bench_reliable.py: {provider}: {e}")
                    print(f"{provider}: failed: {e}", flush=True)
                    continue
                print(f"{provider}: " + "; ".join(f"{n} bytes: {rate:g} Gbit/s, p50 {us:g} us" for n, (rate, us) in rows.items()), counters, flush=True)
            if not a.loss and not a.delay_ms:
                print(f"plain UDP: {plain_udp(hosts, a)}", flush=True)
            print(f"iperf3, TCP cubic: {iperf(hosts, a):.3g} Gbit/s", flush=True)


if __name__ == "__main__":
    main()
