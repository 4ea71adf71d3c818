#!/usr/bin/env python3
"""mixed.py — checks that gpuload selects the same image of a fatbin as the driver.

    tests/gpu/mixed.py make FOLDER --nvcc NVCC            write fatbins with nvcc's ptxas and fatbinary
    tests/gpu/mixed.py compare FOLDER --driver soft       compare the selections

Every image contains a kernel `which` that writes the number of the image, so running it shows which image was loaded.
The driver's selection is tested with a program that does not use gpuload (plain/which.c) and loads the whole fatbin.
"""
import argparse, json, os, struct, subprocess, sys, tempfile

# An image: "elf:90a" is machine code for sm_90a, "ptx:75" is PTX for compute_75; "90g" is debug code (-G), "90b" is a second image for 90.
FATBINS = [line.split() for line in """
elf:90 elf:90a
elf:90a elf:90
elf:90a ptx:90
elf:90 ptx:90a
ptx:90a elf:90
ptx:90 ptx:90a
ptx:90a ptx:90
ptx:75 ptx:90
ptx:90 ptx:75
ptx:75 ptx:80 ptx:89
ptx:100 ptx:80
ptx:100a ptx:90
elf:80 ptx:80
elf:80 ptx:100
elf:75 elf:80 elf:86 elf:89 ptx:75
elf:100 ptx:75
elf:89 ptx:90a
elf:80 elf:86
ptx:100
ptx:90a
ptx:90a ptx:80
elf:90 elf:90g
elf:90g elf:90
elf:90b elf:90
ptx:90b ptx:90
ptx:90 ptx:90b
elf:90a ptx:90a
ptx:80 ptx:90a ptx:75
elf:90 ptx:90
elf:100a elf:100f elf:100 elf:120 ptx:75 ptx:80
elf:90a ptx:80 ptx:75
elf:120f ptx:75
elf:75 elf:120 ptx:120
""".strip().splitlines()]
MODES = ["none", "size"]
IMAGES = sorted({image for f in FATBINS for image in f})

PTX = """.version 8.8
.target sm_{arch}
.address_size 64
.visible .entry which(.param .u64 out)
{{
	.reg .b64 %d<2>;
	ld.param.u64 %d1, [out];
	st.global.u32 [%d1], {number};
	ret;
}}
"""


def arch_of(image):
    return image.split(":")[1].rstrip("gb")


def call(*command):
    r = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if r.returncode:
        sys.exit(f"mixed.py: {' '.join(command)}: {r.stderr.strip()}")


def make_image(bin_folder, folder, number, image):
    path = f"{folder}/{image.replace(':', '_')}"
    with open(f"{path}.ptx", "w", encoding="utf-8") as f:
        f.write(PTX.format(arch=arch_of(image), number=number))
    if image.startswith("ptx"):
        return f"{path}.ptx"
    debug = ["-g"] if image.endswith("g") else []
    call(f"{bin_folder}/ptxas", *debug, f"-arch=sm_{arch_of(image)}", f"{path}.ptx", "-o", f"{path}.cubin")
    return f"{path}.cubin"


def make(folder, nvcc):
    os.makedirs(folder, exist_ok=True)
    bin_folder, fatbins = os.path.dirname(os.path.realpath(nvcc)), []
    with tempfile.TemporaryDirectory() as d:
        made = {image: make_image(bin_folder, d, n, image) for n, image in enumerate(IMAGES, 1)}
        for n, images in enumerate(FATBINS):
            mode = MODES[n % len(MODES)]
            specs = [f"--image3=kind={i[:3]},sm={arch_of(i)},file={made[i]}" for i in images]
            call(f"{bin_folder}/fatbinary", "-64", f"--compress-mode={mode}", *specs, f"--create={folder}/{n:02}.fatbin")
            fatbins.append({"file": f"{n:02}.fatbin", "images": images, "mode": mode})
    with open(f"{folder}/mixed.json", "w", encoding="utf-8") as f:
        json.dump(fatbins, f, indent=1)


def of_gpuload(build, path, driver):
    """Return (number of the image that gpuload selects, "") or (None, gpuload's error)."""
    with tempfile.TemporaryDirectory() as d:
        r = subprocess.run([f"{build}/gpuload", "run", path, "--kernel", "which", "--driver", driver, "out:i32[1]", "--grid", "1",
                            "--block", "1", "--save", f"0={d}/out"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if r.returncode:
            return None, r.stderr.strip().splitlines()[0]
        with open(f"{d}/out", "rb") as f:
            return struct.unpack("<i", f.read())[0], ""


def of_driver(build, path, driver):
    env = dict(os.environ)
    if driver == "soft":
        env["LD_LIBRARY_PATH"] = os.path.abspath(f"{build}/softcuda")
    r = subprocess.run([f"{build}/tests/gpu/plain/which", path], capture_output=True, text=True, env=env)
    return (int(r.stdout), "") if r.returncode == 0 else (None, r.stderr.strip())


def named(number, why):
    return IMAGES[number - 1] if number and 0 < number <= len(IMAGES) else why or str(number)


def compare(build, folder, driver):
    with open(f"{folder}/mixed.json", encoding="utf-8") as f:
        fatbins = json.load(f)
    count = {"ok": 0, "FAIL": 0}
    for t in fatbins:
        ours, theirs = of_gpuload(build, f"{folder}/{t['file']}", driver), of_driver(build, f"{folder}/{t['file']}", driver)
        word = "ok" if ours[0] == theirs[0] else "FAIL"
        count[word] += 1
        print(f"{word:<5}{' '.join(t['images'])} ({t['mode']}): the driver {named(*theirs)}, gpuload {named(*ours)}")
    print("{ok} passed, {FAIL} failed, 0 skipped".format(**count))
    return 1 if count["FAIL"] else 0


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("what", choices=["make", "compare"])
    a.add_argument("folder")
    a.add_argument("--nvcc", default="nvcc")
    a.add_argument("--driver", default="nvidia")
    a.add_argument("--build", default="build")
    args = a.parse_args()
    return make(args.folder, args.nvcc) if args.what == "make" else compare(args.build, args.folder, args.driver)


if __name__ == "__main__":
    sys.exit(main())
