#!/usr/bin/env python3
"""gcc_offload.py — programs in OpenMP and OpenACC, which GCC offloads to the software driver: programs/offload_*.c.

GCC links PTX into a program, and its runtime libgomp passes the PTX to the driver API.  A region that runs on the host fails its test.
PATH has no ptxas, because the PTX must load without it.  The script uses the installed gcc's compiler for nvptx, or else downloads
Debian's packages with apt-get, without installing them.
"""
import glob, os, shutil, subprocess, sys

import client  # in this folder

# Name: options of gcc.  Reductions of 16-byte values need -latomic.
PROGRAMS = {"openmp": ["-fopenmp", "-foffload=-lm -latomic", "-lm"], "openacc": ["-fopenacc"]}
SHORT = ("maps_copy_in_both_directions", "reductions_agree_with_the_host", "memory_is_allocated_and_copied_by_calls", "every_device_runs_a_region",
         "queues_keep_their_order_and_wait_for_each_other", "a_data_region_keeps_its_copy", "functions_and_variables_are_declared_for_the_device")
N_GPUS = "2"   # the number that the programs expect


def own_file(name):
    """The path of a file that belongs to the installed gcc; "": there is none."""
    path = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
    return path if os.path.isabs(path) else ""


def offload_compiler(args):
    """Find GCC's compiler for nvptx and libgomp's plug-in: (options of gcc, folder for PATH, folder for LD_LIBRARY_PATH), each empty if
    both are installed."""
    if not shutil.which("gcc"):
        client.skip("no gcc")
    if own_file("accel/nvptx-none/mkoffload") and own_file("libgomp-plugin-nvptx.so.1"):
        return [], "", ""
    version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True).stdout.split(".")[0].strip()
    usr = client.debian_packages(args, [f"gcc-{version}-offload-nvptx", "libgomp-plugin-nvptx1", "nvptx-tools"]) + "/usr"
    accel = glob.glob(f"{usr}/lib*/gcc/*/{version}/accel/nvptx-none/mkoffload")
    plugin = glob.glob(f"{usr}/lib/*/libgomp-plugin-nvptx.so.1")
    if not accel or not plugin:
        client.skip("Debian's packages have no mkoffload or libgomp-plugin-nvptx.so.1")
    return ["-B", accel[0].removesuffix("accel/nvptx-none/mkoffload")], f"{usr}/bin", os.path.dirname(plugin[0])


def environment(tools, libraries):
    """Return the environment for gcc and its programs: no ptxas in PATH, because the assembler of nvptx-tools would call it; and
    OMP_TARGET_OFFLOAD=MANDATORY, so that a region cannot run on the host instead."""
    path = [p for p in os.environ["PATH"].split(os.pathsep) if not os.path.exists(f"{p}/ptxas")]
    env = {**os.environ, "PATH": os.pathsep.join([tools] * bool(tools) + path), "OMP_TARGET_OFFLOAD": "MANDATORY"}
    if libraries:
        env["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [libraries, env.get("LD_LIBRARY_PATH")]))
    return env


def compile_program(args, name, options, env):
    """Compile programs/offload_NAME.c; return (path of the program, "") or (None, reason)."""
    program = f"{args.work}/{name}"
    command = ["gcc", "-O2", "-no-pie", "-foffload=nvptx-none", *options[0], f"{client.HERE}/programs/offload_{name}.c", "-o", program, *options[1]]
    status, text = client.run(command, args.limit, cwd=args.work, env=env)
    return (program, "") if status == 0 else (None, f"gcc: {text.strip() or status}")


def main():
    args = client.begin(client.parser(__doc__))
    place, tools, libraries = offload_compiler(args)
    env, results = environment(tools, libraries), client.Results()
    for name, options in PROGRAMS.items():
        program, why = compile_program(args, name, (place, options), env)
        if not program:
            results.add(f"{name} (compilation)", "failed", why)
            continue
        for test in subprocess.run([program], capture_output=True, text=True, check=True, env=env).stdout.split():
            if test not in (args.only or (SHORT if args.short else [test])):
                continue
            status, text = client.run([*client.soft(args, "--gpus", N_GPUS), program, test], args.limit, cwd=args.work, env=env)
            why = "" if status == 0 else f"did not end in {args.limit:g} s" if status is None else f"exit status {status}: {text.strip()}"
            results.add(f"{name}: {test}", "failed" if why else "passed", why)
        print(f"{name}: done", flush=True)
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
