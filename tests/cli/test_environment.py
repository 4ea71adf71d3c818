#!/usr/bin/env python3
"""`gpuload help environment` lists the variables that the sources read, all of them and no others."""
import glob, os, re, subprocess, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("cli", "comm", "core", "driver", "ipc", "lab", "loader", "memalloc", "nvidia", "proxy", "ptx", "rdma", "softcuda")
READS = r'(?:getenv|copy_variable|gpul_comm_variable|toolchain_search)\("(\w+)"|\.variable = "(\w+)"'
LOCALE = {"LC_ALL", "LC_CTYPE", "LANG"}  # of every program


def sources():
    for folder in FOLDERS:
        for path in glob.glob(f"{ROOT}/{folder}/**/*.[ch]", recursive=True):
            with open(path, encoding="utf-8") as f:
                yield f.read()


class Environment(unittest.TestCase):
    def test_help_lists_the_variables_that_are_read(self):
        read = {a or b for text in sources() for a, b in re.findall(READS, text)}
        self.assertGreater(len(read), 10)
        help_text = subprocess.run([f"{os.environ.get('GPULOAD_BUILD', 'build')}/gpuload", "help", "environment"],
                                   check=True, capture_output=True, text=True, cwd=ROOT).stdout
        listed = set(re.findall(r"^  ([A-Z_]+) ", help_text, re.M))
        self.assertEqual(read - LOCALE, listed)


if __name__ == "__main__":
    unittest.main()
