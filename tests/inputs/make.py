#!/usr/bin/env python3
"""make.py — makes files of every kind that gpuload reads, with nvcc; and inputs.json, which lists the contents of each.

    tests/inputs/make.py --nvcc /usr/local/cuda/bin/nvcc FOLDER

Every input has a kernel `vecadd` with the same parameters, so that one command line runs and checks each of them:

    gpuload run FILE --kernel vecadd <RUN>

If a file cannot be made, because a tool is missing, inputs.json lists it under "missing" with the reason.
"""
import argparse, concurrent.futures, json, os, shlex, shutil, subprocess, sys

RUN = ["f32[1024]=iota", "f32[1024]=iota:0:2", "out:f32[1024]", "i32=1024", "--expect", "2=iota:0:3"]

# Kernels as their sources declare them.  params: (offset, bytes, type as in a demangled name).
POINTERS = [(0, 8, "float const*"), (8, 8, "float const*"), (16, 8, "float*"), (24, 4, "int")]
VEC = [
    {"name": "vecadd", "demangled": "vecadd", "params": POINTERS},
    {"name": "_Z4axpyIfEvT_PKS0_PS0_i", "demangled": "void axpy<float>(float, float const*, float*, int)",
     "params": [(0, 4, "float"), (8, 8, "float const*"), (16, 8, "float*"), (24, 4, "int")]},
    {"name": "_Z4axpyIdEvT_PKS0_PS0_i", "demangled": "void axpy<double>(double, double const*, double*, int)",
     "params": [(0, 8, "double"), (8, 8, "double const*"), (16, 8, "double*"), (24, 4, "int")]},
    {"name": "_ZN6shapes6insideENS_3boxEPKfPjj",
     "demangled": "shapes::inside(shapes::box, float const*, unsigned int*, unsigned int)",
     "params": [(0, 32, "shapes::box"), (32, 8, "float const*"), (40, 8, "unsigned int*"), (48, 4, "unsigned int")]},
    {"name": "block_sum", "demangled": "block_sum", "params": [(0, 8, "int const*"), (8, 8, "int*")],
     "shared_bytes": 512, "max_threads": 128},
    {"name": "_Z6hiddenPii", "demangled": "hidden(int*, int)", "params": [(0, 8, "int*"), (8, 4, "int")], "static": True},
]
PART = [{"name": "vecadd", "demangled": "vecadd", "params": POINTERS}]
SOURCES = {"vec": VEC, "part": PART, "none": []}


# An image contains the kernels of its input, or of the source named by "of".
def image(kind, arch, compression="none", section="", relocatable=False, embedded=False, of=None):
    return {"kind": kind, "arch": arch, "compression": compression, "section": section, "relocatable": relocatable,
            "origin": "embedded" if embedded else "registered", **({"of": of} if of else {})}


def object_images(cubin="none"):
    """Return the images that nvcc -c puts into an object: a cubin, uncompressed if small, and PTX compressed with zstd."""
    return [image("cubin", "sm_90", cubin, ".nv_fatbin"), image("ptx", "sm_75", "zstd", ".nv_fatbin")]


def relocatable_images(of=None):
    return [image(kind, arch, "zstd", "__nv_relfatbin", True, of=of) for kind, arch in (("cubin", "sm_90"), ("ptx", "sm_75"))]


OBJECT = "-gencode arch=compute_75,code=[sm_90,compute_75]"
PACK = "{fatbinary} -64 --image3=kind=elf,sm=90,file=vec.sm_90.cubin --image3=kind=ptx,sm=75,file=vec.ptx --create={out}"
MANY = ["75", "80", "90", "90a", "100f", "120"]
RUNTIME = "{libs} -lcudart_static -lrt -ldl -lpthread"
LTO = image("lto", "sm_75", "zstd", "__nv_relfatbin", True)
LINKED = [image("cubin", "sm_90", section=".nv_fatbin")]

# (file, its inputs, command run in FOLDER, source of its kernels, images; None: a source file)
STEPS = [
    ("vec.cu", [], "cp {source}/vec.cu {out}", "vec", None),
    ("vec.ptx", [], "{nvcc} -ptx -arch=compute_75 {source}/vec.cu -o {out}", "vec", [image("ptx", "sm_75")]),
    *[(f"vec.sm_{sm}.cubin", ["vec.ptx"], f"{{ptxas}} -arch=sm_{sm} vec.ptx -o {{out}}", "vec",
       [image("cubin", f"sm_{sm}")]) for sm in MANY],
    *[(f"vec.{mode}.fatbin", ["vec.ptx", "vec.sm_90.cubin"], f"{PACK} --compress-mode={mode}", "vec",
       [image("cubin", "sm_90", cubin), image("ptx", "sm_75", ptx)])
      for mode, cubin, ptx in [("none", "none", "none"), ("balance", "none", "zstd"), ("speed", "none", "lz4"),
                               ("size", "zstd", "zstd")]],
    ("vec.options.fatbin", ["vec.ptx", "vec.sm_90.cubin"], PACK + ' --cmdline="-maxrregcount=40  "', "vec",
     [image("cubin", "sm_90"), image("ptx", "sm_75", "zstd")]),
    ("vec.many.fatbin", ["vec.ptx", *[f"vec.sm_{sm}.cubin" for sm in MANY]],
     "{fatbinary} -64 --create={out} --image3=kind=ptx,sm=75,file=vec.ptx "
     + " ".join(f"--image3=kind=elf,sm={sm},file=vec.sm_{sm}.cubin" for sm in MANY), "vec",
     [image("ptx", "sm_75", "zstd"), *[image("cubin", f"sm_{sm}") for sm in MANY]]),
    ("vec.o", [], "{nvcc} -c -Xcompiler -fPIC " + OBJECT + " {source}/vec.cu -o {out}", "vec", object_images()),
    ("debug.o", [], "{nvcc} -G -c " + OBJECT + " {source}/vec.cu -o {out}", "vec",
     object_images("zstd")),
    ("host.o", [], "{cc} -O1 -fPIC -I{include} -c {source}/program.c -o {out}", "none", []),
    ("libvec.a", ["vec.o", "host.o"], "rm -f {out} && ar rcs {out} host.o vec.o", "vec", object_images()),
    ("libthin.a", ["vec.o", "host.o"], "rm -f {out} && ar rcsT {out} host.o vec.o", "vec", object_images()),
    # nvcc also links device code, and adds an empty image.  The host's linker does not.
    ("libvec.so", ["vec.o"], "{nvcc} -shared -arch=sm_90 -cudart static -cudadevrt none {libs} vec.o -o {out}", "vec",
     [image("cubin", "sm_90", section=".nv_fatbin", of="none"), *object_images()]),
    ("libvec_stripped.so", ["libvec.so"], "strip -s libvec.so -o {out}", "vec",
     [image("cubin", "sm_90", section=".nv_fatbin", of="none"), *object_images()]),
    ("program", ["vec.o", "host.o"], "{cxx} host.o vec.o " + RUNTIME + " -o {out}", "vec", object_images()),
    ("program_stripped", ["program"], "strip -s program -o {out}", "vec", object_images()),
    ("libplain.so", ["vec.size.fatbin", "vec.sm_90.cubin"], "{cc} -shared -nostdlib {source}/plain_data.S -o {out}", "vec",
     [image("cubin", "sm_90", "zstd", ".rodata", embedded=True), image("ptx", "sm_75", "zstd", ".rodata", embedded=True),
      image("cubin", "sm_90", "none", ".rodata", embedded=True)]),
    ("part_kernel.o", [], "{nvcc} -dc " + OBJECT + " {source}/part_kernel.cu -o {out}", "part", relocatable_images()),
    ("part_plus.o", [], "{nvcc} -dc " + OBJECT + " {source}/part_plus.cu -o {out}", "none", relocatable_images()),
    ("libpart.a", ["part_kernel.o", "part_plus.o"], "rm -f {out} && ar rcs {out} part_kernel.o part_plus.o", "part",
     [*relocatable_images(), *relocatable_images("none")]),
    ("part_link.o", ["part_kernel.o", "part_plus.o"],
     "{nvcc} -dlink -arch=sm_90 -cudadevrt none part_kernel.o part_plus.o -o {out}", "part", LINKED),
    ("part_program", ["part_link.o", "part_kernel.o", "part_plus.o", "host.o"],
     "{cxx} host.o part_kernel.o part_plus.o part_link.o " + RUNTIME + " -o {out}", "part",
     [*relocatable_images(), *relocatable_images("none"), *LINKED]),
    *[(f"lto_{half}.o", [], f"{{nvcc}} -dc -gencode arch=compute_75,code=lto_75 {{source}}/part_{half}.cu -o {{out}}",
       "part" if half == "kernel" else "none", [LTO])
      for half in ("kernel", "plus")],
    ("liblto.a", ["lto_kernel.o", "lto_plus.o"], "rm -f {out} && ar rcs {out} lto_kernel.o lto_plus.o", "part",
     [LTO, dict(LTO, of="none")]),
]
# For `gpuload run`: (files, reason why the software driver cannot run them or "", 90 if only a device of capability 9.0 can, else 0).
NEEDS_MACHINE_CODE = "it contains machine code but no PTX"
RUNS = [(f, "", 0) for f in (
    "vec.cu", "vec.ptx", "vec.none.fatbin", "vec.balance.fatbin", "vec.speed.fatbin", "vec.size.fatbin",
    "vec.options.fatbin", "vec.many.fatbin", "vec.o", "debug.o", "libvec.a", "libthin.a", "libvec.so",
    "libvec_stripped.so", "program", "program_stripped", "libplain.so", "libpart.a", "liblto.a",
    "part_kernel.o part_plus.o", "lto_kernel.o lto_plus.o", "part_program")]
RUNS += [(f, NEEDS_MACHINE_CODE, 90) for f in ("vec.sm_90.cubin", "vec.sm_90a.cubin", "part_link.o")]
PROGRAMS = ["program", "program_stripped", "part_program"]  # print "ok"; they need NVIDIA's driver, because they use NVIDIA's runtime


def names(nvcc, folder):
    """Return the values of the {names} in a command."""
    nvcc = os.path.abspath(shutil.which(nvcc) or nvcc)  # commands run in another folder
    bin_folder = os.path.dirname(os.path.realpath(nvcc))
    home = os.path.dirname(bin_folder)
    tool = lambda name: shlex.quote(os.path.join(bin_folder, name))
    return {"nvcc": shlex.quote(nvcc), "ptxas": tool("ptxas"), "fatbinary": tool("fatbinary"), "cc": "cc", "cxx": "c++",
            "include": shlex.quote(f"{home}/include"), "libs": shlex.join([f"-L{home}/lib64", f"-L{home}/lib"]),
            "source": shlex.quote(os.path.relpath(os.path.dirname(os.path.abspath(__file__)), folder))}


def make(step, folder, words):
    """Run a step; return None, or the reason why its file could not be made."""
    out, _, command, _, _ = step
    r = subprocess.run(["sh", "-c", command.format(out=out, **words)], cwd=folder, capture_output=True, text=True,
                       stdin=subprocess.DEVNULL)
    if r.returncode == 0 and os.path.exists(os.path.join(folder, out)):
        return None
    return (r.stderr.strip() or r.stdout.strip() or f"exit status {r.returncode}")[-500:]


def make_all(folder, words, jobs):
    """Runs each step when its inputs exist.  Returns {file: why it is missing}."""
    missing, waiting, done, running = {}, list(STEPS), set(), {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        while waiting or running:
            for step in [s for s in waiting if done | set(missing) >= set(s[1])]:
                waiting.remove(step)
                lacks = [n for n in step[1] if n in missing]
                if lacks:
                    missing[step[0]] = f"it needs {lacks[0]}"
                else:
                    running[pool.submit(make, step, folder, words)] = step[0]
            ended, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for job in ended:
                name, why = running.pop(job), job.result()
                missing.update({name: why} if why else {})
                done.add(name)
    return missing


def manifest(missing):
    inputs = [{"file": out, "kernels": source, "images": images or []}
              for out, _, _, source, images in STEPS if out not in missing]
    return {"sources": SOURCES, "inputs": inputs,
            "missing": missing, "run": RUN, "programs": PROGRAMS,
            "runs": [{"files": files.split(), "not_soft": why, "only_sm": sm} for files, why, sm in RUNS]}


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("folder")
    a.add_argument("--nvcc", default="nvcc")
    a.add_argument("--jobs", type=int, default=2)
    args = a.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    missing = make_all(args.folder, names(args.nvcc, args.folder), args.jobs)
    for name, why in missing.items():
        print(f"make.py: {name} could not be made: {why}", file=sys.stderr)
    with open(f"{args.folder}/inputs.json", "w", encoding="utf-8") as f:
        json.dump(manifest(missing), f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    main()
