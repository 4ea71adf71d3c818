#!/usr/bin/env python3
"""Every function that the libraries in build/softcuda export returns when it is called with zeros, before CUDA is initialised,
afterwards and with a context: a missing argument is an error, never a crash or a hang.

Each call is made in a child process.  Prints one line for each function that ends its process.
"""
import ctypes, glob, os, resource, signal, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOFT = os.path.join(os.path.abspath(os.environ.get("GPULOAD_BUILD", os.path.join(ROOT, "build"))), "softcuda")
RETURNS_A_STRUCTURE = {"cudaCreateChannelDesc"}   # its first argument is the address of the result, which C code provides; it is never NULL
LIMIT_S = 60
N_ARGUMENTS = 16


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], capture_output=True, text=True, check=True).stdout
    return sorted({f[-1].split("@")[0] for f in map(str.split, out.splitlines()) if f[-2] in "TW"} - RETURNS_A_STRUCTURE)


def call(library, name, before):
    """Make the call in a child process, after the calls `before`; return the wait status of the child."""
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.alarm(LIMIT_S)
    for start in before:
        start(None)
    getattr(library, name)(*[None] * N_ARGUMENTS)
    os._exit(0)


def check(path, runtime):
    """Yield a line for each function that ends its process, with the signal or exit status."""
    library, names, family = ctypes.CDLL(path), exported(path), os.path.basename(path).partition(".so")[0]
    states = {"": []}
    if family == "libcuda":
        states |= {" after cuInit": [library.cuInit], " with a context": [runtime.cudaFree]}
    elif family == "libcudart":
        states[" with a context"] = [library.cudaFree]
    elif family == "libnvidia-ml":
        states[" after nvmlInit"] = [library.nvmlInit_v2]
    if len(names) < 10:
        yield f"{path}: only {len(names)} functions were found"
    for state, before in states.items():
        for name in names:
            status = call(library, name, before)
            if status:
                why = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit status {os.WEXITSTATUS(status)}"
                yield f"{os.path.basename(path)}: {name} with zeros{state}: {why}"


def main():
    paths = sorted(p for p in glob.glob(f"{SOFT}/lib*.so.[0-9]*") if "redirect" not in p and "calls" not in p)   # programs do not call those
    if len(paths) < 3:
        sys.exit(f"{SOFT} has only {len(paths)} libraries")
    for path in paths:
        if subprocess.run(["grep", "-q", "__asan_init\\|__tsan_init", path], check=False).returncode == 0:
            print("skipped: a library with a sanitizer cannot be loaded into Python")
            sys.exit(77)
    runtime = ctypes.CDLL([p for p in paths if "libcudart" in p][-1])
    bad = [line for path in paths for line in check(path, runtime)]
    print("\n".join(bad), file=sys.stderr)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
