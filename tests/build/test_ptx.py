#!/usr/bin/env python3
"""Committed PTX is what its CUDA C++ makes today.

Beside NAME.cu stands NAME.ptx, made by the command in the comment at the head of NAME.cu, or by a rule of a lesson's
Makefile.  --make makes them all.  A header that changes (proxy/fifo_device.cuh) makes such a file old, and nothing else would tell: everything
still runs, by the code of yesterday.  Only the nvcc that made a file makes the same again; another one is a skip.
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
    """(how, what): a shell command that prints PTX, and the file that holds it."""
    for cu in sorted(glob.glob("**/*.cu", root_dir=ROOT, recursive=True)):
        if cu.startswith("build"):
            continue
        hit = COMMAND.search(read(cu)[:2000])
        if hit:
            yield re.sub(r"\n(?://| \*)\s+", " ", hit[1]), hit[2]
        elif cu.startswith("examples/07-fifo/"):
            yield LESSON.format(cu=cu), cu[:-3] + ".ptx"


def code(ptx):
    """Without comments, and without the hash of a path that names of internal functions begin with."""
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
    def test_is_what_its_source_makes(self):
        here = subprocess.run(["nvcc", "--version"], capture_output=True, text=True).stdout
        todo = [(how, what) for how, what in commands() if MADE_BY.search(read(what))[1] in here]
        if not todo:
            self.skipTest("made by another nvcc than the one that is here")
        for how, what in todo:
            with self.subTest(file=what):
                r = make(how)
                self.assertEqual(r.returncode, 0, r.stderr)
                self.assertTrue(code(read(what)) == code(r.stdout), "it is old: tests/build/test_ptx.py --make")

    def test_finds_the_files(self):
        found = {what for _, what in commands()}
        self.assertLessEqual({"cli/kernels/sum.ptx", "cli/kernels/fifo_bench.ptx", "cli/kernels/fifo_trace.ptx", "examples/07-fifo/5_fifo.ptx"}, found)


if __name__ == "__main__":
    if not shutil.which("nvcc"):
        print("no nvcc")
        sys.exit(77)
    if sys.argv[1:] == ["--make"]:
        sys.exit(make_all())
    unittest.main()
