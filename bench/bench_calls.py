#!/usr/bin/env python3
"""bench_calls.py — measures the cost of `gpuload calls`: the time of a launch in a loop, with a log of all calls and without.

    bench/bench_calls.py [--driver soft|nvidia] [--pairs N] [--launches N] [--build DIR]

The programs run in turn, so that other load on the machine affects both; the ratio is the median over the pairs.
"""
import argparse, os, resource, statistics, subprocess, sys, tempfile


def cpu_ns():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e9


def launch_ns(command, env, launches):
    """Return the time of a launch, and the CPU time of all processes and threads for each launch, including the writing of the log."""
    before = cpu_ns()
    r = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if r.returncode or "not recorded" in r.stderr:
        sys.exit(f"bench_calls.py: {' '.join(command)}: exit status {r.returncode}: {r.stdout}{r.stderr}")
    return float(r.stdout), (cpu_ns() - before) / launches


def compare(title, args, env, n, commands):
    """Run the commands alternately and print a table; the first command, without a log, is the reference for the ratios."""
    times = {name: [] for name in commands}
    for _ in range(args.pairs):
        for name, command in commands.items():
            times[name].append(launch_ns(command, env, n))
    first = next(iter(times.values()))
    print(f"| {title} | ns for each, ratio to the run without a log, the same of CPU time; medians of {args.pairs} |\n|---|---|")
    for name, pairs in times.items():
        cells = []
        for k in (0, 1):
            ratios = [x[k] / y[k] for x, y in zip(pairs, first)]
            cells.append(f"{statistics.median(x[k] for x in pairs):.0f} ns, {statistics.median(ratios):.3f}")
        print(f"| {name} | {cells[0]}; CPU {cells[1]} |")


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
        few = [program[0], "10000", "switch"]   # fits into a ring: the program does not wait for the reader
        compare(f"{args.launches} launches, {args.driver} driver", args, env, args.launches, {
            "without a log": program, "all calls as text": [*calls, "--", *program], "summary": [*calls, "--summary", "--", *program],
            "launches not recorded": [*calls, "--filter", "!launch", "--", *program]})
        compare("10000 calls of cuCtxSetCurrent", args, env, 10000, {"without a log": few, "summary": [*calls, "--summary", "--", *few]})


if __name__ == "__main__":
    main()
