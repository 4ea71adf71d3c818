#!/usr/bin/env python3
"""The man pages: every public function has a page with its contract, and mandoc reports no warning."""
import glob, os, re, shutil, subprocess, sys, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(ROOT)
sys.path.insert(0, ROOT)
from scripts.install import public_headers

MAN = os.path.join(os.environ.get("GPULOAD_BUILD", "build"), "man")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


class Manual(unittest.TestCase):
    def test_every_public_function_has_a_page(self):
        for h in public_headers():
            for name in re.findall(r"^(?!typedef|#| \*)[A-Za-z_][\w\s*]*?\b(gpul_\w+)\(", read(h), re.M):
                if not re.search(rf"define {name}\(", read(h)):
                    with self.subTest(f"{name} of {h}"):
                        self.assertIn("gpuload-" + h[len("include/"):-2].replace("/", "-"), read(f"{MAN}/man3/{name}.3"))

    def test_a_page_contains_the_whole_contract(self):
        text = read(f"{MAN}/man3/gpuload-driver-context.3")
        for part in (".SS gpul_context_open()", ".B ordinal", "device ordinal, from 0", ".B Errors", ".B Threads"):
            self.assertIn(part, text)

    def test_the_section_1_pages_describe_the_subcommands(self):
        text = read(f"{MAN}/man1/gpuload.1").replace("\\-", "-")
        for word in ("run", "ls", "compile", "devices"):
            self.assertIn(f"gpuload-{word}", text)
            self.assertTrue(os.path.exists(f"{MAN}/man1/gpuload-{word}.1"))
        text = read(f"{MAN}/man1/gpuload-run.1").replace("\\-", "-")
        for word in ("--driver", "--expect"):
            self.assertIn(word, text)

    def test_mandoc_reports_no_warning(self):
        if not shutil.which("mandoc"):
            self.skipTest("no mandoc")
        pages = glob.glob(f"{MAN}/man*/gpuload*")
        self.assertGreater(len(pages), 8)
        r = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True)
        self.assertEqual(r.stdout + r.stderr, "")


if __name__ == "__main__":
    unittest.main()
