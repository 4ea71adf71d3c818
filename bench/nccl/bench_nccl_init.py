#!/usr/bin/env python3
"""bench_nccl_init.py — measures ncclCommInitAll of 1 to 8 GPUs on the software driver, with an empty and a filled cache.

    bench/nccl/bench_nccl_init.py --nccl libnccl.so.2 [--gpus 1 2 4 8] [--rounds 5] [--gpuload build/gpuload]

Each row has minimums over ROUNDS processes: of the seconds of the call, of the CPU seconds of the process, and of its largest
resident size.  "empty": the linked PTX of NCCL's kernels is not in the cache, so gpuload parses and links the PTX of NCCL's object files.
"""
import argparse, json, os, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = """
import ctypes, json, resource, sys, time
n, nccl = int(sys.argv[1]), ctypes.CDLL(sys.argv[2])
comms = (ctypes.c_void_p * n)()
began = time.perf_counter()
status = nccl.ncclCommInitAll(comms, n, None)
s = time.perf_counter() - began
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"status": status, "s": s, "cpu_s": used.ru_utime + used.ru_stime, "mb": used.ru_maxrss / 1024}))
"""


def run(args, n, cache):
    """Run PROGRAM in one process, and return the dict that it prints."""
    r = subprocess.run([args.gpuload, "soft", "--gpus", str(n), "--", sys.executable, "-c", PROGRAM, str(n), args.nccl], text=True, check=False,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, GPULOAD_CACHE=cache))
    found = json.loads(r.stdout) if r.returncode == 0 else {"status": r.returncode}
    if found["status"]:
        sys.exit(f"bench_nccl_init: {n} GPUs: status {found['status']}: {r.stderr}")
    return found


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--nccl", required=True, metavar="FILE")
    a.add_argument("--gpus", type=int, nargs="+", default=[1, 2, 4, 8], metavar="N")
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--gpuload", default=f"{ROOT}/build/gpuload", metavar="FILE")
    args = a.parse_args()
    print("GPUs  cache     call     CPU   resident")
    for n in args.gpus:
        for filled in (False, True):
            rows = []
            with tempfile.TemporaryDirectory() as shared:
                if filled:
                    run(args, n, shared)
                for _ in range(args.rounds):
                    with tempfile.TemporaryDirectory() as empty:
                        rows.append(run(args, n, shared if filled else empty))
            print(f"{n:4}  {'filled' if filled else 'empty ':6} {min(r['s'] for r in rows):6.2f} s {min(r['cpu_s'] for r in rows):6.2f} s "
                  f"{min(r['mb'] for r in rows):6.0f} MB", flush=True)


if __name__ == "__main__":
    main()
