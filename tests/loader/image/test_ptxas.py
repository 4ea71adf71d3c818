#!/usr/bin/env python3
"""gpuload reads from a cubin the same registers, shared memory, stack and barriers that ptxas -v printed for it."""
import os, re, shutil, subprocess, sys, tempfile, unittest

BUILD = os.environ.get("GPULOAD_BUILD", "build")
HERE = os.path.dirname(os.path.abspath(__file__))
PLACES = [os.path.join(os.environ["CUDA_HOME"], "bin")] if os.environ.get("CUDA_HOME") else []
PTXAS = shutil.which("ptxas", path=os.pathsep.join([*PLACES, "/usr/local/cuda/bin", f"{BUILD}/cuda-wheels/bin",
                                                    "build/cuda-wheels/bin", os.environ.get("PATH", "")]))
ENTRY = re.compile(r"Compiling entry function '(\S+)'.*?Function properties for \1\n\s*(\d+) bytes stack frame.*?"
                   r"Used (\d+) registers([^\n]*)", re.S)


def parse_ptxas_output(text):
    """Parse the output of ptxas -v to {kernel: (registers, shared, stack, barriers)}; barriers: None if it does not print them (12.4)."""
    kernels = {}
    for name, stack, registers, rest in ENTRY.findall(text):
        shared, barriers = (re.search(rf"(\d+) {what}", rest) for what in ("bytes smem", "barriers"))
        kernels[name] = (int(registers), int(shared[1]) if shared else 0, int(stack), int(barriers[1]) if barriers else None)
    return kernels


def read(path):
    """Return {kernel: (registers, shared, stack, barriers)} as gpuload reads them from a cubin."""
    r = subprocess.run([f"{BUILD}/tests/loader/image/print_kernels", path], capture_output=True, text=True)
    if r.returncode:
        raise AssertionError(r.stderr)
    rows = [line.split() for line in r.stdout.splitlines()]
    return {row[0]: tuple(map(int, row[1:])) for row in rows}


def architectures():
    listed = subprocess.run([PTXAS, "--help"], capture_output=True, text=True).stdout
    return [a for a in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103", "sm_120", "sm_121")
            if f"'{a}'" in listed]


class Ptxas(unittest.TestCase):
    def test_finds_architectures(self):
        self.assertGreater(len(architectures()), 3)

    def agree(self, *flags):
        for arch in architectures():
            with self.subTest(arch=arch, flags=flags), tempfile.TemporaryDirectory() as folder:
                cubin, source = f"{folder}/k.cubin", f"{HERE}/resources.ptx"
                if arch[-1] == "a":  # ptxas needs PTX with the same target
                    with open(source, encoding="utf-8") as f:
                        text = re.sub(r"\.version 7\.8\n\.target sm_75", f".version {'8.0' if arch == 'sm_90a' else '8.6'}\n.target {arch}", f.read())
                    source = f"{folder}/k.ptx"
                    with open(source, "w", encoding="utf-8") as f:
                        f.write(text)
                r = subprocess.run([PTXAS, "-v", *flags, f"-arch={arch}", source, "-o", cubin], capture_output=True, text=True)
                self.assertEqual(r.returncode, 0, r.stderr)
                kernels = parse_ptxas_output(r.stdout + r.stderr)
                self.assertEqual(len(kernels), 9)
                found = read(cubin)
                if None in [k[3] for k in kernels.values()]:
                    kernels, found = ({name: k[:3] for name, k in side.items()} for side in (kernels, found))
                self.assertEqual(found, kernels)

    def test_agrees_with_ptxas_for_loadable_code(self):
        self.agree()

    def test_agrees_with_ptxas_for_relocatable_code(self):
        self.agree("-c")

    def test_agrees_with_ptxas_for_code_with_debug_information(self):
        self.agree("-g")

    def test_counts_the_shared_memory_of_ptx_as_ptxas_does(self):
        """Arrays that only a called function uses are not counted."""
        for dynamic in (".extern .shared .align 16 .b8 dynamic[];", ".extern .shared .align 128 .b8 dynamic[];",
                        ".shared .b8 dynamic[16];"):
            with self.subTest(dynamic=dynamic), tempfile.TemporaryDirectory() as folder:
                with open(f"{HERE}/resources.ptx", encoding="utf-8") as f:
                    text = re.sub(r"\.extern \.shared .*", dynamic, f.read())
                with open(f"{folder}/k.ptx", "w", encoding="utf-8") as f:
                    f.write(text)
                r = subprocess.run([PTXAS, "-v", "-arch=sm_80", f"{folder}/k.ptx", "-o", f"{folder}/k.cubin"],
                                   capture_output=True, text=True)
                kernels = {name: k[1] for name, k in parse_ptxas_output(r.stdout + r.stderr).items()}
                kernels["through_a_call"] = 0
                self.assertEqual({name: k[1] for name, k in read(f"{folder}/k.ptx").items()}, kernels)


if not PTXAS:
    print("skipped: no ptxas")
    sys.exit(77)
unittest.main()
