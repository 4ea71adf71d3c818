#!/usr/bin/env python3
"""ucx.py — UCX from PyPI between two processes: programs/ucx_check.c, which checks every byte, and UCX's ucx_perftest with CUDA memory.

ucx_check.c runs with all transports, with cuda_ipc alone (memory of cuIpcGetMemHandle), by gets and by puts, and over sockets.
ucx_perftest only measures, so its test passes if both of its processes exit with status 0.  UCX's own tests (test/gtest) are not in the
package.
"""
import os, re, shutil, socket, subprocess, sys, time

import client  # in this folder

UCX = ("libucx-cu13==1.22.0",)
CHECKS = {
    "all transports": {},
    "CUDA IPC": {"UCX_TLS": "cuda_ipc,cuda_copy,tcp"},
    "CUDA IPC, gets": {"UCX_TLS": "cuda_ipc,cuda_copy,tcp", "UCX_RNDV_SCHEME": "get_zcopy", "UCX_RNDV_THRESH": "1024"},
    "CUDA IPC, puts": {"UCX_TLS": "cuda_ipc,cuda_copy,tcp", "UCX_RNDV_SCHEME": "put_zcopy", "UCX_RNDV_THRESH": "1024"},
    "sockets": {"UCX_TLS": "cuda_copy,tcp"},
    "shared memory": {"UCX_TLS": "cuda_copy,sm"},
}
UCP = ("tag_lat", "tag_bw", "tag_sync_lat", "tag_sync_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get", "stream_lat", "stream_bw", "ucp_am_lat", "ucp_am_bw")
MEMORY = ("cuda", "cuda,host", "host,cuda", "cuda-managed")
SIZES = (8, 65536, 4194304)
# Name: options of ucx_perftest.  cuda_copy works only within a process, so -l makes one process both client and server.
UCT = {f"{test} {transport}": ("-t", test, "-x", transport, "-d", "cuda", "-m", "cuda", "-D", "zcopy", *(("-l",) if transport == "cuda_copy" else ()))
       for test in ("put_bw", "get_bw") for transport in ("cuda_copy", "cuda_ipc")}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def run_check(args, results, program, name, env):
    status, text = client.run([*client.soft(args, "--gpus", "2"), program], args.limit, env=env, cwd=args.work)
    counts = re.findall(r"^process \d: (\d+) passed, 0 failed$", text, re.M)
    why = re.findall(r"^FAILED (.*)$", text, re.M) or [f"exit status {status}: {text[-200:]}"]
    results.add(f"check: {name}", "passed" if status == 0 and len(counts) == 2 else "failed", why[0])
    print(f"check: {name}: {' + '.join(counts) or 'no'} transfers are right", flush=True)


def run_perftest(args, results, perftest, name, options, env):
    """Run ucx_perftest as a server and a client; with -l as one process."""
    port, command, server = free_port(), [*client.soft(args, "--gpus", "2"), perftest], None
    options = [*options, "-n", "20", "-w", "2"]
    if "-l" not in options:
        options += ["-p", port]
        server = subprocess.Popen([*command, *options], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, env=env, cwd=args.work,
                                  start_new_session=True)
        options.append("127.0.0.1")
        until = time.monotonic() + args.limit
        while time.monotonic() < until and f":{int(port):04X} " not in open("/proc/net/tcp", encoding="ascii").read() and server.poll() is None:
            time.sleep(0.02)
    status, text = client.run([*command, *options], args.limit, env=env, cwd=args.work)
    try:
        other = server.wait(args.limit) if server else 0
    except subprocess.TimeoutExpired:
        server.kill()
        other = server.wait()
    right = status == 0 and other == 0 and "Final:" in text
    errors = [line for line in text.splitlines() if "ERROR" in line] or text.strip().splitlines() or ["no output"]
    results.add(f"perftest: {name}", "passed" if right else "failed", f"exit status {status} and {other}: {errors[0][-160:]}")


def main():
    a = client.parser(__doc__)
    a.set_defaults(limit=300)
    args = client.begin(a)
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    if not os.path.exists(f"{cuda}/include/cuda_runtime.h") or not shutil.which("gcc"):
        client.skip("no gcc, or no CUDA toolkit with the headers of its runtime")
    ucx = f"{client.site_packages(client.environment(args, UCX))}/libucx"
    program = f"{args.work}/ucx_check"
    status, text = client.run(["gcc", "-O2", f"{client.HERE}/programs/ucx_check.c", "-o", program, f"-I{ucx}/include", f"-I{cuda}/include", f"-L{ucx}/lib", "-lucp", "-lucs",
                               f"-L{cuda}/lib64", "-lcudart"], args.limit)
    if status:
        sys.exit(f"ucx: gcc: {text}")
    env = {**os.environ, "UCX_WARN_UNUSED_ENV_VARS": "n",
           "LD_LIBRARY_PATH": os.pathsep.join(filter(None, [f"{ucx}/lib", f"{cuda}/lib64", os.environ.get("LD_LIBRARY_PATH")]))}
    results = client.Results()
    for name, more in list(CHECKS.items())[:2 if args.short else None]:
        run_check(args, results, program, name, {**env, **more})
    tests = {f"{t} {m} {size}": ("-t", t, "-m", m, "-s", str(size)) for t in UCP for m in MEMORY for size in SIZES}
    tests.update({f"{name} {size}": (*options, "-s", str(size)) for name, options in UCT.items() for size in SIZES})
    for name, options in list(tests.items())[::18 if args.short else 1]:
        if not args.only or name.split()[0] in args.only:
            run_perftest(args, results, f"{ucx}/bin/ucx_perftest", name, options, env)
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
