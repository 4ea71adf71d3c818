#!/usr/bin/env python3
"""warp_examples.py — run Warp's own examples, which its wheel contains, on the software driver.

Each example that needs neither a display nor another package (PyTorch, JAX, CuPy, MPI, NCCL) runs without a window and without an output file, for a few
frames or iterations; FEW and SMALL have the options.  It passes if it ends with exit status 0, its own assertions included, and if Warp reports that it
loaded a module on the device.
"""
import concurrent.futures, glob, os, re, subprocess, sys

import client  # in this folder

PINNED = ["warp-lang==1.19.0", "numpy==2.4.6", "usd-core==26.11", "matplotlib==3.11.2", "pillow==13.0.0", "scipy==1.17.1", "nlopt==2.11.0"]
RUNTIME, CUDA = "nvidia-cuda-runtime==13.4.92", "13.4"   # versions of the toolkit in Warp's wheel: for an older driver Warp compiles machine code
LEFT_OUT = {"core.example_render_opengl": "a display", "core.example_cupy": "CuPy", "core.example_torch": "PyTorch", "interop": "JAX", "distributed": "MPI or NCCL"}
FEW = {"--num-frames": 2, "--train-iters": 2, "--num-iters": 2, "--num-steps": 2, "--max-evals": 2}
SMALL = {"fem.example_apic_fluid": {"--voxel-size": 2.0}, "fem.example_cantilever_topology_optimization": {"--nx": 16, "--ny": 6},   # sizes of Warp's own tests
         "fem.example_kelvin_helmholtz": {"--resolution": 20}, "fem.example_magnetostatics": {"--resolution": 16},
         "optim.example_navier_stokes_perturbation": {"--spin-up-steps": 10, "--lead-steps": 5}, "tile.example_tile_mcgp": {"--height": 64, "--slices": 2}}
NO_KERNELS = ("core.example_custom_allocator",)
SHORT = ("core.example_dem", "core.example_graph_capture", "core.example_mesh", "core.example_wave", "fem.example_diffusion", "tile.example_tile_matmul")


def archive(args, python):
    """Return the folder of the libcudart_static.a that was linked into Warp; gpuload soft needs it to find the runtime's functions
    there."""
    folder = f"{args.work}/cudart"
    if not glob.glob(f"{folder}/nvidia/*/lib/libcudart_static.a"):
        r = subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", folder, RUNTIME],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if r.returncode:
            client.skip(f"pip cannot install {RUNTIME}: {(r.stderr.strip().splitlines() or ['no message'])[-1]}")
    return os.path.dirname(glob.glob(f"{folder}/nvidia/*/lib/libcudart_static.a")[0])


def options(source, name):
    """Return the options for a short run without a display, as far as the example has them."""
    with open(source, encoding="utf-8") as f:
        offered = set(re.findall(r"""add_argument\(\s*["'](--[\w-]+)""", f.read()))
    chosen = {"--device": "cuda:0", "--stage-path": "None", **FEW, **SMALL.get(name, {})}
    given = [word for option, value in chosen.items() if option in offered for word in (option, str(value))]
    return given + [option for option in ("--headless", "--verbose") if option in offered]


def run_example(args, python, env, source, name):
    """Run one example; return (outcome, reason)."""
    command = [*client.soft(args, "--cuda", CUDA), python, "-X", "faulthandler", "-m", f"warp.examples.{name}", *options(source, name)]
    env = {**os.environ, **env, "WARP_CACHE_PATH": f"{args.work}/cache/{name}"}   # one for each example, because some clear it
    status, text = client.run(command, args.limit, cwd=args.work, env=env)
    with open(f"{args.work}/logs/{name}.txt", "w", encoding="utf-8") as f:
        f.write(" ".join(command[command.index("-m"):]) + "\n" + text)
    if status is None:
        return "failed", f"did not end in {args.limit:g} s"
    if status:
        return "failed", f"exit status {status}: {(text.strip().splitlines() or ['no output'])[-1]}"
    return ("passed", "") if "on device 'cuda:0'" in text or name in NO_KERNELS else ("failed", "Warp loaded no module on the device")


def main():
    a = client.parser(__doc__)
    a.set_defaults(limit=900)
    args = client.begin(a)
    python, results = client.environment(args, PINNED), client.Results()
    env = {"GPULOAD_CUDART_STATIC": archive(args, python), "MPLBACKEND": "Agg"}
    examples = f"{client.site_packages(python)}/warp/examples"
    found = {os.path.relpath(f, examples)[:-3].replace("/", "."): f for f in sorted(glob.glob(f"{examples}/*/example_*.py"))}
    wanted = args.only or (SHORT if args.short else [n for n in found if n not in LEFT_OUT and n.split(".")[0] not in LEFT_OUT])
    os.makedirs(f"{args.work}/logs", exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        futures = {pool.submit(run_example, args, python, env, found[n], n): n for n in wanted}
        for f in concurrent.futures.as_completed(futures):
            outcome, why = f.result()
            results.add(futures[f], outcome, why)
            print(f"{futures[f]}: {outcome}", flush=True)
    return results.end()


if __name__ == "__main__":
    sys.exit(main())
