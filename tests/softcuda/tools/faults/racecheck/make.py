#!/usr/bin/env python3
"""Compile the pairs of kernels of this folder: NAME.cu to NAME.ptx, and with -DRIGHT to NAME_right.ptx."""
import glob, os, re, subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def compile_kernel(cu, right):
    source = open(f"{HERE}/{cu}", encoding="utf-8").read()
    what, run = re.search(r"^// (.*)", source)[1], re.search(r"^// gpuload run: (.*)", source, re.M)[1]
    expect = "no errors" if right else re.search(r"^// expect: (.*)", source, re.M)[1]
    command = ["nvcc", "-ptx", "-arch=sm_90", "-lineinfo", *(["-DRIGHT"] if right else []), cu, "-o", "-"]
    ptx = subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True).stdout
    ptx = re.sub(r'(\.file\s+\d+ ")[^"]*/', r"\1", ptx)  # without the folder of this machine
    ptx = re.sub(r'^(\.file\s+\d+ "[^"]*"),.*', r"\1", ptx, flags=re.M)  # without time and size
    ptx = re.sub(r"^\s*\.section.*\n*\{.*?\}\n?", "", ptx, flags=re.M | re.S)
    lines = [line for line in ptx.splitlines() if line.strip() and not line.startswith("//")]
    name = cu[:-3] + ("_right" if right else "")
    with open(f"{HERE}/{name}.ptx", "w", encoding="utf-8") as f:
        f.write("\n".join([f"// {what}{' (right)' if right else ''}", f"// gpuload run: {run}", f"// expect: {expect}", *lines]) + "\n")


if __name__ == "__main__":
    for cu in sorted(glob.glob("*.cu", root_dir=HERE)):
        compile_kernel(cu, False)
        compile_kernel(cu, True)
