#!/usr/bin/env python3
"""The committed PTX files are up to date with their CUDA C++ sources.

NAME.ptx beside NAME.cu was compiled by the command in the comment at the head of NAME.cu, or by a rule of an example's
Makefile; --make compiles all of them again.  When a header changes (proxy/fifo_device.cuh), the tests would still pass with
the old PTX, so this test compares them with the
compiler's output.  Only the nvcc version that compiled a file gives the same text; others are skipped.
"""
import glob, os, re, shutil, subprocess, sys, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMAND = re.compile(r"^(?://| \*)\s+(nvcc .*?-ptx .*?) > (\S+\.ptx)", re.M | re.S)
LESSON = ("nvcc -ptx -arch=sm_75 -I. {cu} -o - | "
          "sed -e 's/^.version .*/.version 6.4/; s/^.target .*/.target sm_70/'")  # examples/07-fifo/Makefile
MADE_BY = re.compile(r"^// (Cuda compilation tools, .*)$", re.M)


def read(path):
    with open(f"{ROOT}/{path}", encoding="utf-8") as f:
        return f.read()


def commands():
    """(how, what): a shell command that prints PTX, and the committed file."""
    for cu in sorted(glob.glob("**/*.cu", root_dir=ROOT, recursive=True)):
        if cu.startswith("build"):
            continue
        hit = COMMAND.search(read(cu)[:2000])
        if hit:
            yield re.sub(r"\n(?://| \*)\s+", " ", hit[1]), hit[2]
        elif cu.startswith("examples/07-fifo/"):
            yield LESSON.format(cu=cu), cu[:-3] + ".ptx"


def code(ptx):
    """The PTX without comments, and without the hash of the path in the names of internal functions."""
    lines = [line for line in ptx.splitlines() if line.strip() and not line.startswith("//")]
    return re.sub(r"_INTERNAL_[0-9a-f]{8}_", "_INTERNAL_", "\n".join(lines))


def make(how):
    return subprocess.run(["bash", "-o", "pipefail", "-c", how], cwd=ROOT, capture_output=True, text=True)


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
        here = subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout
        todo = [(how, what) for how, what in commands() if MADE_BY.search(read(what))[1] in here]
        if not todo:
            self.skipTest("the files were compiled by another version of nvcc")
        for how, what in todo:
            with self.subTest(file=what):
                r = make(how)
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertTrue(code(read(what)) == code(r.stdout), "out of date: run tests/build/test_ptx.py --make")

    def test_finds_the_committed_files(self):
        found = {what for _, what in commands()}
        self.assertLessEqual({"cli/kernels/sum.ptx", "cli/kernels/fifo_bench.ptx", "cli/kernels/fifo_trace.ptx", "examples/07-fifo/5_fifo.ptx"}, found)


if __name__ == "__main__":
    if not shutil.which("nvcc"):
        print("no nvcc")
        sys.exit(77)
    if sys.argv[1:] == ["--make"]:
        sys.exit(make_all())
    unittest.main()
