#!/usr/bin/env python3
"""Matrix multiplications give the same bits as on an H200: digests of the first 150 sets of operands of each form.

h200.txt was made on an H200 by `mma_fuzz run h200.bin && mma_fuzz digest h200.bin --sets 150`; there, 2,500 sets of each form
were compared, too.
"""
import os, subprocess, sys, tempfile

HERE = "tests/softcuda/api/mma"
BUILD = os.environ.get("GPULOAD_BUILD", "build")


def by_form(text):
    return {line.split(" ", 1)[1]: line.split()[0] for line in text.splitlines()}


def main():
    program = f"{BUILD}/{HERE}/mma_fuzz"
    env = dict(os.environ, LD_LIBRARY_PATH=os.path.abspath(f"{BUILD}/softcuda"))
    with tempfile.NamedTemporaryFile() as results:
        subprocess.run([program, "run", results.name, "--sets", "150", "--kept", "0"], env=env, check=True, stdout=subprocess.DEVNULL)
        text = subprocess.run([program, "digest", results.name, "--sets", "150"], env=env, check=True, capture_output=True, text=True).stdout
    got = by_form(text)
    with open(f"{HERE}/h200.txt", encoding="utf-8") as f:
        want = by_form(f.read())
    bad = [name for name in want if got.get(name) != want[name]]
    for name in bad:
        print(f"{name}: not the results of an H200")
    for name in got.keys() - want.keys():
        print(f"{name}: not run on an H200")
    print(f"{len(got)} forms, {len(bad)} differ")
    return 1 if bad or not want else 0


if __name__ == "__main__":
    sys.exit(main())
