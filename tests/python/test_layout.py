#!/usr/bin/env python3
"""The structures that the module reads by ctypes have the layout that the C compiler gives them."""
import ctypes, os, shutil, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, f"{ROOT}/python")
from gpuload import _library as library

PAIRS = {"gpul_error": library.CError, "gpul_context": library.Context, "gpul_launch_config": library.LaunchConfig,
         "gpul_param": library.Param, "gpul_signature": library.Signature, "gpul_driver": library.Driver}


def cuda():
    """Return the folder of cuda.h, from the build's flags."""
    build = os.environ.get("GPULOAD_BUILD", "build")
    ninja = f"{ROOT}/build.ninja" if os.path.basename(build) == "build" else f"{build}/build.ninja"
    with open(ninja, encoding="utf-8") as f:
        line = next(l for l in f if l.startswith("cflags = "))
    return line.partition("-isystem ")[2].split(" ")[0].strip().strip("'") or "/usr/include"


class Layout(unittest.TestCase):
    def test_every_member_has_the_offset_of_c(self):
        if not shutil.which("cc"):
            self.skipTest("no cc")
        lines, expected = [], []
        for name, structure in PAIRS.items():
            for member, _ in structure._fields_:
                lines.append(f'printf("%zu\\n", offsetof({name}, {member}));')
                expected.append(getattr(structure, member).offset)
            if name != "gpul_driver":  # the module reads only its beginning
                lines.append(f'printf("%zu\\n", sizeof({name}));')
                expected.append(ctypes.sizeof(structure))
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/x.c", "w", encoding="utf-8") as f:
                f.write('#include <stdio.h>\n#include "driver/context.h"\n#include "loader/loader.h"\nint main(void) {\n' +
                        "\n".join(lines) + "\n}\n")
            subprocess.run(["cc", "-I", f"{ROOT}/include", "-isystem", cuda(), f"{d}/x.c", "-o", f"{d}/x"], check=True)
            got = subprocess.run([f"{d}/x"], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual([int(x) for x in got], expected)


if __name__ == "__main__":
    unittest.main()
