"""planted.py — the planted faults of a tool: kernels in faults/TOOL, each with a correct variant NAME_right.ptx.

    planted.py FOLDER    write each .ptx of faults/ and its correct variant to FOLDER/TOOL

A kernel has two lines: `// gpuload run: ARGUMENTS`, which gpuload reads, and `// expect: TEXT`: a part of what the tool reports.
A .ptx also has the lines of its correct variant: `CODE  // right: OTHER CODE`, `// right: MORE CODE`, and `CODE  // wrong`, which the variant lacks.
The build writes both; it compiles those of CUDA C++, the correct variant with -DRIGHT.
"""
import glob, os, re, subprocess, sys

FAULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "faults")
SILENT = {"schedule": "; complete"}  # what a tool reports of a correct variant, if not "no errors"


def right_variant(text, expected):
    text = re.sub(r"^.*  // wrong\n", "", text, flags=re.M)
    text = re.sub(r"^([ \t]*).*?// right: ", r"\1", text, flags=re.M)
    return re.sub(r"^// expect: .*", f"// expect: {expected}", text, count=1, flags=re.M)


def write_variants(out):
    for path in glob.glob("*/*.ptx", root_dir=FAULTS):
        tool = os.path.dirname(path)
        with open(os.path.join(FAULTS, path), encoding="utf-8") as f:
            text = f.read()
        variants = {path: text}
        if not path.endswith("_right.ptx") and not os.path.exists(os.path.join(FAULTS, path.replace(".ptx", "_right.ptx"))):
            variants[path.replace(".ptx", "_right.ptx")] = right_variant(text, SILENT.get(tool, "no errors"))
        os.makedirs(os.path.join(out, tool), exist_ok=True)
        for name, content in variants.items():
            with open(os.path.join(out, name), "w", encoding="utf-8") as f:
                f.write(content)


class Planted:
    def __init__(self, tool):
        self.folder = os.path.join(os.path.abspath(os.environ.get("GPULOAD_BUILD", "build")), "kernels", "tests/softcuda/tools/faults", tool)
        self.files = sorted(glob.glob("*.ptx", root_dir=self.folder))
        self.right = [f for f in self.files if f.endswith("_right.ptx")]
        self.wrong = [f for f in self.files if f not in self.right]
        if not self.files:
            sys.exit(f"{self.folder}: no planted faults; `ninja kernels` writes them")

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


if __name__ == "__main__":
    write_variants(sys.argv[1])
