#!/usr/bin/env python3
"""The sources use no name that the header of libfabric 2 warns about, because a warning ends the build.

The test works with any version of libfabric: it poisons these names after libfabric's headers, and before the source.
"""
import glob, os, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
DEPRECATED = "FI_MR_UNSPEC FI_MR_BASIC FI_MR_SCALABLE FI_ORDER_NONE FI_ORDER_STRICT FI_ORDER_DATA FI_LOCAL_MR FI_REG_MR"
HEADERS = ("fabric", "fi_cm", "fi_domain", "fi_endpoint", "fi_eq", "fi_errno", "fi_rma", "fi_tagged")


def first_error(source):
    """Return the compiler's first error in a source; "": none."""
    with tempfile.NamedTemporaryFile("w", suffix=".h") as f:
        f.writelines(f"#include <rdma/{h}.h>\n" for h in HEADERS)
        f.write(f"#pragma GCC poison {DEPRECATED}\n")
        f.flush()
        r = subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-DGPUL_HAVE_LIBFABRIC=1", "-DGPUL_HAVE_LIBIBVERBS=0", f"-I{ROOT}", f"-I{ROOT}/include",
                            *CUDA, "-include", f.name, "-fsyntax-only", source], capture_output=True, text=True)
    return next((line for line in r.stderr.splitlines() if "error" in line), "")


class Libfabric2(unittest.TestCase):
    def test_no_source_uses_a_deprecated_name(self):
        sources = sorted(glob.glob(f"{ROOT}/rdma/ofi/*.c") + glob.glob(f"{ROOT}/tests/rdma/ofi/*.c"))
        self.assertGreater(len(sources), 5)
        for source in sources:
            with self.subTest(source=os.path.relpath(source, ROOT)):
                self.assertEqual(first_error(source), "")


if __name__ == "__main__":
    sys.path.insert(0, ROOT)
    os.chdir(ROOT)
    import types
    from scripts import parts
    if not os.path.exists("/usr/include/rdma/fabric.h"):
        print("skipped: no header of libfabric")
        sys.exit(77)
    CUDA = ["-isystem", f"{parts.cuda_home(types.SimpleNamespace(cuda=None))}/include"]
    unittest.main()
