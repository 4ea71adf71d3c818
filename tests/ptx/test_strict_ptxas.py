#!/usr/bin/env python3
"""The strict check and ptxas of CUDA 13 agree: on each form of strict/forms.txt, and on whole files: the strict check may refuse no file that ptxas accepts."""
import concurrent.futures, glob, os, re, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.chdir(ROOT)
GPULOAD = os.environ.get("GPULOAD_BUILD", "build") + "/gpuload"
KERNELS = os.environ.get("GPULOAD_BUILD", "build") + "/kernels"
FOLDERS = ("tests/corpus/ptx", *(f"{KERNELS}/{folder}" for folder in ("tests/corpus", "comm/kernels", "lab/netqueue", "lab/sparse", "cli/kernels", "bench/kernels", "tests/softcuda/exec/odd")), "demo",
           "proxy", "examples/*", os.environ.get("GPULOAD_BUILD", "build") + "/examples/*", "tests/ptx/good")


def find_ptxas():
    """Return the path of ptxas if its newest PTX version is 9.0, else None."""
    path = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
    if not os.path.exists(path):
        return None
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    return path if "release 13.0" in said else None


def architecture(text):
    """The option -arch of ptxas.  A compute_N makes it parse only; compute_75 is the oldest.  Old PTX is compiled for sm_75,
    because ptxas finds only then what needs the ABI."""
    if re.search(rb"^\s*\.version\s+[12]\.", text, re.M):
        return "sm_75"
    found = re.search(rb"^\s*\.target[^\n]*?(?:sm|compute)_(\d+)([af]?)", text, re.M)
    return "compute_75" if not found or int(found[1]) < 75 else f"compute_{found[1].decode()}{found[2].decode()}"


def verdicts(ptxas, path):
    """Return the errors of ptxas and of gpuload for a file; "": none."""
    with open(path, "rb") as f:
        text = f.read()
    a = subprocess.run([ptxas, f"-arch={architecture(text)}", path, "-o", os.devnull], capture_output=True, text=True, check=False, errors="replace")
    b = subprocess.run([GPULOAD, "ls", "--strict", path], capture_output=True, text=True, check=False, errors="replace")
    return a.stderr.strip() if a.returncode else "", b.stderr.strip() if b.returncode else ""


def form_text():
    """Put a form into the same PTX text as test_strict.c does."""
    with open("tests/ptx/test_strict.c", encoding="utf-8") as f:
        lines = re.search(r'static const char head\[\] =(.*?);\n\n', f.read(), re.S)[1]
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', lines)).encode().decode("unicode_escape")


def forms():
    """Return (line, version, target, form) for each form."""
    with open("tests/ptx/strict/forms.txt", encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.strip() and not line.startswith("#"):
                names, rest = line.rstrip("\n").split(" | ", 1)
                form = rest.rsplit(" | ", 1)[0]
                yield (number, *names.split(), form.encode().decode("unicode_escape").encode("latin-1"))


def main():
    ptxas = find_ptxas()
    if not ptxas:
        print("no ptxas of CUDA 13.0")
        sys.exit(77)
    errors = []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        names, head = {}, form_text()
        for number, version, target, form in forms():
            declaration = form.startswith(b"<")
            parts = (version, target, form[1:-1].decode("latin-1") if declaration else "", "" if declaration else form.decode("latin-1"))
            names[f"{folder}/{number}.ptx"] = f"tests/ptx/strict/forms.txt:{number}: {form.decode('latin-1')}"
            with open(f"{folder}/{number}.ptx", "wb") as f:
                f.write((head % parts).encode("latin-1"))
        for path, (theirs, ours) in zip(names, pool.map(lambda p: verdicts(ptxas, p), names)):
            if bool(theirs) != bool(ours):
                errors.append(f"{names[path]}\n    ptxas: {theirs or 'accepted'}\n    gpuload: {ours or 'accepted'}")
        files = sorted(p for folder in FOLDERS for p in glob.glob(f"{folder}/*.ptx"))
        for path, (theirs, ours) in zip(files, pool.map(lambda p: verdicts(ptxas, p), files)):
            if ours and not theirs:
                errors.append(f"ptxas accepts {path}; {ours}")
    print("\n".join(errors) or f"{len(names)} forms and {len(files)} files: ptxas and gpuload ls --strict agree")
    sys.exit(bool(errors))


main()
