#!/usr/bin/env python3
"""The committed PTX files of examples/07-fifo are up to date with their CUDA C++ sources and the headers of the library.

A rule of the lesson's Makefile compiled them; --make compiles them again.  Only the nvcc version that compiled a file produces the same
text, so the test is skipped for other versions.
"""
import glob, os, re, shutil, subprocess, sys, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMAND = ("nvcc -ptx -arch=sm_75 -I. -Iinclude {cu} -o - | "
           "sed -e 's/^.version .*/.version 6.4/; s/^.target .*/.target sm_70/'")  # as in examples/07-fifo/Makefile
MADE_BY = re.compile(r"^// (Cuda compilation tools, .*)$", re.M)


def read(path):
    with open(f"{ROOT}/{path}", encoding="utf-8") as f:
        return f.read()


def commands():
    """Yield (shell command that prints PTX, path of the committed file with this PTX)."""
    for cu in sorted(glob.glob("examples/07-fifo/*.cu", root_dir=ROOT)):
        yield COMMAND.format(cu=cu), cu[:-3] + ".ptx"


def code(ptx):
    """Return the PTX without comments, and without the hash of a path that nvcc puts into the names of internal functions."""
    lines = [line for line in ptx.splitlines() if line.strip() and not line.startswith("//")]
    return re.sub(r"_INTERNAL_[0-9a-f]{8}_", "_INTERNAL_", "\n".join(lines))


def make(how):
    return subprocess.run(["bash", "-o", "pipefail", "-c", how], cwd=ROOT, capture_output=True, text=True, check=False)


def make_all():
    for how, what in commands():
        r = make(how)
        if r.returncode:
            sys.exit(r.stderr)
        if code(read(what)) != code(r.stdout):
            print(what)
            with open(f"{ROOT}/{what}", "w", encoding="utf-8") as f:
                f.write(r.stdout)


class Ptx(unittest.TestCase):
    def test_committed_ptx_is_up_to_date(self):
        here = subprocess.run(["nvcc", "--version"], capture_output=True, text=True, check=False).stdout
        todo = [(how, what) for how, what in commands() if MADE_BY.search(read(what))[1] in here]
        if not todo:
            self.skipTest("the files were compiled by another version of nvcc")
        for how, what in todo:
            with self.subTest(file=what):
                r = make(how)
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertTrue(code(read(what)) == code(r.stdout), "out of date: run tests/build/test_ptx.py --make")

    def test_finds_the_files(self):
        self.assertEqual(len(list(commands())), 5)


if __name__ == "__main__":
    if not shutil.which("nvcc"):
        print("no nvcc")
        sys.exit(77)
    if sys.argv[1:] == ["--make"]:
        sys.exit(make_all())
    unittest.main()
