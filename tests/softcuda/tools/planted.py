"""planted.py — the planted faults of a tool: kernels in faults/TOOL, each with a correct variant NAME_right.ptx.

A kernel has two lines: `// gpuload run: ARGUMENTS`, which gpuload reads, and `// expect: TEXT`: a part of what the tool reports.
Those of CUDA C++ are compiled by the build, the right variant with -DRIGHT.
"""
import glob, os, re, subprocess, sys

FAULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "faults")


class Planted:
    def __init__(self, tool):
        own, built = os.path.join(FAULTS, tool), os.path.join(os.path.abspath(os.environ.get("GPULOAD_BUILD", "build")), "kernels", "tests/softcuda/tools/faults", tool)
        self.folder = built if glob.glob("*.cu", root_dir=own) else own
        self.files = sorted(glob.glob("*.ptx", root_dir=self.folder))
        self.right = [f for f in self.files if f.endswith("_right.ptx")]
        self.wrong = [f for f in self.files if f not in self.right]
        if not self.files:
            sys.exit(f"{self.folder}: no planted faults")

    def run(self, path, *words, **environment):
        """Return the exit status, stdout and stderr of `gpuload run`."""
        run = subprocess.run(["gpuload", "run", path, *words], cwd=self.folder, capture_output=True, text=True, timeout=300,
                             env=dict(os.environ, **environment))
        return run.returncode, run.stdout, run.stderr

    def expectation(self, path):
        with open(os.path.join(self.folder, path), encoding="utf-8") as f:
            return re.search(r"^// expect: (.*)$", f.read(), re.M)[1]

    def assert_pairs(self, test, n_least):
        """Fail unless there are enough faults, and each has a correct variant."""
        test.assertGreaterEqual(len(self.wrong), n_least)
        test.assertEqual(self.right, sorted(f.replace(".ptx", "_right.ptx") for f in self.wrong))
