#!/usr/bin/env python3
"""Random calls over a network between two hosts that loses, delays and reorders packets; every result is checked.

    tests/comm/soak/lossy_hosts.py [--cases 500] [--loss 1] [--delay-ms 5] [--reorder 25] [--seed N] [-- OPTION OF comm_random...]

The hosts are two network namespaces (it needs root), connected by tests/comm/bootstrap/hosts/wire.  First the packets are lost, then they
are delayed and reordered, then all of it.
"""
import argparse, os, random, subprocess, sys, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bootstrap/hosts"))
from namespaces import BUILD, TwoHosts


def main():
    o = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    o.add_argument("--cases", type=int, default=500, help="of each of the three kinds (default: 500)")
    o.add_argument("--loss", type=float, default=1, help="%% (default: 1)")
    o.add_argument("--delay-ms", type=float, default=5, help="(default: 5)")
    o.add_argument("--reorder", type=float, default=25, help="%% of the packets that are not delayed (default: 25)")
    o.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    o.add_argument("options", nargs="*", help="further options of comm_random")
    o = o.parse_args()
    kinds = ({"loss": o.loss}, {"delay_ms": o.delay_ms, "reorder": o.reorder}, {"loss": o.loss, "delay_ms": o.delay_ms, "reorder": o.reorder})
    wrong = 0
    try:
        with TwoHosts(o.seed) as hosts:
            for i, how in enumerate(kinds):
                for host in "ab":
                    hosts.disturb(host, **how)
                begin = time.monotonic()
                r = subprocess.run([f"{BUILD}/tests/comm/soak/comm_random", "--netns", f"{hosts.space['a']},{hosts.space['b']}", "--address",
                                    hosts.address["a"], "--cases", str(o.cases), "--seed", str(o.seed + i), *o.options],
                                   env=dict(os.environ, GPULOAD_LOG="off"), capture_output=True, text=True)
                wrong += r.returncode != 0
                print(f"{how}: {(r.stdout + r.stderr).strip()}; {time.monotonic() - begin:.0f} s", flush=True)
    except OSError as reason:
        print(f"skipped: {reason}")
        return 77
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
