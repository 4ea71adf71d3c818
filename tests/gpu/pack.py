"""pack.py — `tests/gpu/run pack FILE.tar.xz`: everything that a GPU machine needs for tests/gpu/run, in one file.

    tests/gpu/run pack gpu.tar.xz                           here: builds what is missing, strips and packs it
    python3 -m tarfile -e gpu.tar.xz DIR && DIR/tests/gpu/run    on the GPU machine, which needs python3 only

The pack has the repository's files, the programs of `ninja all gpu-tests` without debug information, and the
libraries that they link (libcmocka, libelf, ...), except those of the C and C++ compilers.  MANIFEST lists the files, so that a run
reports a lost file as a failure, not as a skipped step.
"""
import argparse, json, lzma, os, shutil, subprocess, sys, tarfile, tempfile

MANIFEST = "tests/gpu/pack.json"
PROGRAMS = ("gpuload", "kernels", "gpuload-probe", "libgpuload.so", "libgpuload.so.0", "stage", "softcuda", "lib", "examples", "bench",
            *(f"tests/{part}" for part in ("comm", "corpus", "fault", "gpu", "inputs", "ipc", "lab", "nvidia/calls", "nvidia/cudart", "memalloc", "proxy", "rdma")))
INPUTS = "tests/inputs/"                     # files that gpuload reads: not stripped
OF_THE_COMPILER = ("libc.", "libm.", "libdl.", "libpthread.", "librt.", "libstdc++.", "libgcc_s.", "ld-linux", "libcuda.")
MOST_BYTES = 60 << 20


def is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def build_programs(build):
    rules = "build.ninja" if build == "build" else f"{build}/build.ninja"
    if subprocess.run(["ninja", "-f", rules, "--quiet", "all", "gpu-tests", "bench-programs"], check=False).returncode:
        sys.exit("tests/gpu/run pack: the build failed; its messages are above")


def tests_of_the_suite(build):
    """Return the programs that `ninja gpu-tests` builds, because a complete build has many more tests."""
    rules = "build.ninja" if build == "build" else f"{build}/build.ninja"
    return set(output_of("ninja", "-f", rules, "-t", "query", "gpu-tests").replace("|", " ").split())


def built_files(build, wanted):
    """Yield the built files for the pack.  Of the programs named test_*, only those in `wanted` are packed."""
    for part in PROGRAMS:
        top = f"{build}/{part}"
        if os.path.isfile(top):
            yield top
        for folder, _, names in os.walk(top):
            yield from (f"{folder}/{name}" for name in names if not name.startswith("test_") or f"{folder}/{name}" in wanted)


def libraries(files):
    """Return {name: path} of the libraries that the programs are linked with and the GPU machine may lack."""
    found = {}
    for path in files:
        listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
        for line in listed.splitlines():
            name, _, where = line.strip().partition(" => ")
            where = where.split(" (")[0]
            if os.path.isfile(where) and not name.startswith(OF_THE_COMPILER) and not where.startswith(os.getcwd()):
                found[name] = where
    return found


def add_file(folder, source, name):
    """Copy a file into the pack; strip debug information from an ELF file."""
    path = f"{folder}/{name}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.islink(source) and not os.path.isabs(os.readlink(source)):
        return os.symlink(os.readlink(source), path)
    shutil.copy(source, path)
    if is_elf(source) and INPUTS not in name:
        subprocess.run(["strip", "--strip-debug", path], check=False, stderr=subprocess.DEVNULL)
    return None


def main(argv):
    a = argparse.ArgumentParser(prog="tests/gpu/run pack", description=__doc__.splitlines()[0])
    a.add_argument("file", metavar="FILE.tar.xz")
    a.add_argument("--build", default="build", help="build folder (default: build)")
    args = a.parse_args(argv)
    build_programs(args.build)
    built = list(built_files(args.build, tests_of_the_suite(args.build)))
    tracked = [t for t in output_of("git", "ls-files", "-z").split("\0") if os.path.isfile(t)]
    with tempfile.TemporaryDirectory() as folder:
        for path in tracked:
            add_file(folder, path, path)
        for path in built:
            add_file(folder, path, f"build{path.removeprefix(args.build)}")
        for name, path in libraries([p for p in built if is_elf(p)]).items():
            add_file(folder, os.path.realpath(path), f"build/lib/{name}")
        files = sorted(os.path.relpath(f"{d}/{n}", folder) for d, _, names in os.walk(folder) for n in names)
        with open(f"{folder}/{MANIFEST}", "w", encoding="utf-8") as f:
            json.dump({"commit": output_of("git", "describe", "--always", "--dirty").strip(), "files": files}, f)
        # a dictionary as large as a program, because many programs contain the same library
        filters = [{"id": lzma.FILTER_LZMA2, "preset": 3, "dict_size": 64 << 20}]
        with lzma.open(args.file, "wb", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
            tar.add(folder, ".")
    n_bytes = os.path.getsize(args.file)
    print(f"{args.file}: {n_bytes / 2**20:.1f} MiB, {len(files)} files")
    if n_bytes > MOST_BYTES:
        sys.exit(f"tests/gpu/run pack: {args.file} has more than {MOST_BYTES >> 20} MiB")
    return 0


def read_manifest():
    """Return the manifest of the pack from which this folder was unpacked; None: this is a checkout."""
    try:
        with open(MANIFEST, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return None


def lost_files(manifest):
    return [path for path in manifest["files"] if not os.path.lexists(path)]
