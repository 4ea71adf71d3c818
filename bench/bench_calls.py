#!/usr/bin/env python3
"""bench_calls.py — what `gpuload calls` costs: the time of a launch in a loop, with a log of all calls and without.

    bench/bench_calls.py [--driver soft|nvidia] [--pairs N] [--launches N] [--build DIR]

The programs run in turn, so that other load on the machine affects both; the ratio is the median over the pairs.
"""
import argparse, os, statistics, subprocess, sys, tempfile


def launch_ns(command, env):
    r = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if r.returncode or "not recorded" in r.stderr:
        sys.exit(f"bench_calls.py: {' '.join(command)}: exit status {r.returncode}: {r.stdout}{r.stderr}")
    return float(r.stdout)


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--driver", default="soft", choices=["soft", "nvidia"])
    a.add_argument("--pairs", type=int, default=9)
    a.add_argument("--launches", type=int, default=1000000)
    a.add_argument("--build", default=os.environ.get("GPULOAD_BUILD", "build"))
    args = a.parse_args()
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    env = dict(os.environ)
    if args.driver == "soft":
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [os.path.abspath(f"{args.build}/softcuda"), os.environ.get("LD_LIBRARY_PATH")]))
    program = [f"{args.build}/bench/bench_calls", str(args.launches)]
    with tempfile.TemporaryDirectory() as folder:
        calls = [f"{args.build}/gpuload", "calls", "--driver", args.driver, "--output", f"{folder}/log"]
        commands = {"without a log": program, "all calls as text": [*calls, "--", *program], "summary": [*calls, "--summary", "--", *program],
                    "launches not recorded": [*calls, "--filter", "!launch", "--", *program]}
        times = {name: [] for name in commands}
        for _ in range(args.pairs):
            for name, command in commands.items():
                times[name].append(launch_ns(command, env))
    print(f"| {args.launches} launches, {args.driver} driver | ns for each, ratio to the run without a log, medians of {args.pairs} |\n|---|---|")
    for name, ns in times.items():
        ratios = [x / y for x, y in zip(ns, times["without a log"])]
        print(f"| {name} | {statistics.median(ns):.0f} ns, {statistics.median(ratios):.3f} |")


if __name__ == "__main__":
    main()
