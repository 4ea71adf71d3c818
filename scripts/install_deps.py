"""install_deps.py — install on Debian or Ubuntu the packages that configure.py searches for, and NVIDIA's wheels.

It first prints everything that is missing, with sizes.  It prompts only for sudo's password, and only on a terminal.  It installs
only what is missing, so a second run does nothing and needs no network.
"""
import glob, os, re, shutil, subprocess, sys, tempfile, time, zipfile

from scripts import parts
from scripts.install import WHEELS_LIST
from scripts.progress import Progress

PACKAGES = {  # apt package: a file or program that it installs
    "gcc": "cc", "g++": "c++", "libc6-dev": "/usr/include/stdio.h", "ninja-build": "ninja",
    "libcmocka-dev": "/usr/include/cmocka.h",
    "libelf-dev": "/usr/include/libelf.h", "libzstd-dev": "/usr/include/zstd.h",
    "liblz4-dev": "/usr/include/lz4.h", "zlib1g-dev": "/usr/include/zlib.h",
    "libncurses-dev": "/usr/include/ncurses.h",
    "libibverbs-dev": "/usr/include/infiniband/verbs.h", "libfabric-dev": "/usr/include/rdma/fabric.h",
    "universal-ctags": "ctags", "bats": "bats", "make": "make", "pkg-config": "pkg-config",
    "mandoc": "mandoc", "spin": "spin", "tcc": "tcc", "clang-format-19": "clang-format-19",
    # for the tests in virtual machines (tests/vm)
    "qemu-system-x86": "qemu-system-x86_64", "busybox-static": "busybox", "zstd": "zstd", "iproute2": "/sbin/tc",
    "ibverbs-providers": "/etc/libibverbs.d/rxe.driver", "ibverbs-utils": "ibv_devinfo", "perftest": "ib_write_bw",
}
ESSENTIAL = {"gcc", "libc6-dev", "ninja-build"}  # required for any build; configure.py prints which features need the others
WHEELS = {  # NVIDIA's wheels on PyPI, all of one CUDA release: (version, MB to download)
    "nvidia-cuda-runtime": ("13.0.96", 2),  # cuda.h and the runtime library
    "nvidia-cuda-crt": ("13.0.88", 1),      # headers that nvcc and NVRTC users include
    "nvidia-cuda-cccl": ("13.0.85", 3),     # cuda::atomic and other C++ headers
    "nvidia-cuda-nvrtc": ("13.0.88", 90),   # CUDA C++ to PTX
    "nvidia-nvjitlink": ("13.0.88", 41),    # linking of device code
    "nvidia-cuda-nvcc": ("13.0.88", 37),    # nvcc and ptxas
    "nvidia-nvvm": ("13.0.88", 62),         # cicc, which nvcc runs
}
UNUSED = re.compile(r"/lib/(lib\w+[.-]?\w*\.alt\.so|libnvvm\.so)")  # large libraries of the wheels that gpuload does not use
HOME = "build/cuda-wheels"


class Unable(Exception):
    """A part cannot be installed; the text is one line with the reason and advice."""


def missing_packages():
    return [pkg for pkg, sign in PACKAGES.items()
            if not (os.path.exists(sign) if sign.startswith("/") else shutil.which(sign))]


def missing_wheels(args):
    """All wheels or none, because they are unpacked together."""
    return {} if parts.cuda_home(args) else WHEELS


def pip_command():
    """The command of a working pip; None: this machine has none."""
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and not subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode:
            return [python, "-m", "pip"]
    return None


def apt_mb(packages):
    """The number of MB that apt would download, with all dependencies, according to its current lists; None: unknown."""
    if not shutil.which("apt-get"):
        return None
    r = subprocess.run(["apt-get", "-qqy", "--print-uris", "install", "--no-install-recommends", *packages], capture_output=True,
                       text=True, stdin=subprocess.DEVNULL)
    sizes = re.findall(r"^'\S+' \S+ (\d+) ", r.stdout, re.M)
    return sum(map(int, sizes)) // 1000000 if r.returncode == 0 and sizes else None


def announce(packages, wheels):
    """Print all that is missing, before anything is changed."""
    if packages:
        mb = apt_mb(packages)
        size = f", {mb} MB to download with their dependencies" if mb is not None else ""
        print(f"missing Debian packages{size}:\n    {' '.join(packages)}")
    if wheels:
        print(f"no CUDA toolkit found: NVIDIA's wheels, {sum(mb for _, mb in wheels.values())} MB to download into {HOME}:")
        for name, (version, mb) in wheels.items():
            print(f"    {name} {version}, {mb} MB")
    sys.stdout.flush()


def root_command(what):
    """Return the words to put before a command so that it runs as root; what: the command, for the message if this is impossible."""
    if os.geteuid() == 0:
        return []
    if not shutil.which("sudo"):
        raise Unable(f"not root, and there is no sudo: as root, run: {what}")
    if subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n"]
    if not sys.stdin.isatty():
        raise Unable(f"sudo needs a password, and there is no terminal to ask for it: run: sudo {what}")
    return ["sudo", "-p", "password of %p, for sudo to install these packages: "]


def apt(packages):
    """Install packages; prints apt's progress, and its whole output if it fails."""
    what = f"apt-get install {' '.join(packages)}"
    if not shutil.which("apt-get"):
        raise Unable(f"no apt-get: install the equivalents of these Debian packages: {' '.join(packages)}")
    root = root_command(what)
    # A single command, so that sudo asks only once.  A failure of apt-get update is ignored, because the installation fails if it matters.
    # Packages that this system does not know are left out, so that the others are installed.
    known = "for p; do shift; if ! command -v apt-cache || apt-cache show $p; then set -- \"$@\" $p; fi; done >/dev/null 2>&1"
    script = f"apt-get -q update; {known}; exec apt-get -qy -o APT::Status-Fd=1 install --no-install-recommends \"$@\""
    p = subprocess.Popen([*root, "env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "sh", "-c", script, "apt", *packages],
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
    printed, progress = [], Progress()
    for line in p.stdout:
        status = re.match(r"(dl|pm)status:[^:]*:([\d.]+):(.*)", line)
        if status:
            progress.show("downloading packages" if status[1] == "dl" else "installing packages", f"{float(status[2]):.0f} %", status[3])
        else:
            printed.append(line)
    progress.end()
    if p.wait():
        print("".join(printed[-20:]), end="", flush=True)
        raise Unable(f"apt-get failed (its messages are above): as root, run: {what}")


def download(pip, name, version, mb, folder, progress):
    """Download one wheel into folder/whl; does nothing if an earlier run has downloaded it."""
    if glob.glob(f"{folder}/whl/{name.replace('-', '_')}-{version}-*.whl"):
        return
    with tempfile.TemporaryDirectory(dir=folder) as part:  # pip writes the incomplete file here; its size is the progress
        p = subprocess.Popen([*pip, "download", "--quiet", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--dest", f"{part}/whl",
                              f"{name}=={version}"], stdin=subprocess.DEVNULL, env={**os.environ, "TMPDIR": os.path.abspath(part)})
        while p.poll() is None:
            files = [f for f in glob.glob(f"{part}/**/*", recursive=True) if os.path.isfile(f)]
            done = max((os.path.getsize(f) for f in files if os.path.exists(f)), default=0) / 1e6
            progress.show(f"downloading {name} {version}, {mb} MB", f"{min(done, mb):.0f} MB")
            time.sleep(0.1)
        if p.returncode:
            raise Unable(f"pip could not download {name} {version} (its messages are above): run the command again, which downloads "
                         f"only the wheels that are still missing")
        for wheel in glob.glob(f"{part}/whl/*.whl"):
            os.rename(wheel, f"{folder}/whl/{os.path.basename(wheel)}")


def unpack(wheel, home):
    """Merge the wheel's nvidia/<release>/ tree into home; programs become executable."""
    with zipfile.ZipFile(wheel) as z:
        for item in z.infolist():
            parts_of = item.filename.split("/")
            if parts_of[0] != "nvidia" or item.is_dir() or len(parts_of) < 3 or UNUSED.search(item.filename):
                continue
            target = os.path.join(home, *parts_of[2:])
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with z.open(item) as src, open(target, "wb") as dst:
                shutil.copyfileobj(src, dst)
            if "bin" in parts_of:
                os.chmod(target, 0o755)


def cuda_wheels(wheels):
    """Download NVIDIA's wheels and unpack them as a toolkit."""
    pip = pip_command()
    if not pip:
        raise Unable("no pip: install python3-pip, or a CUDA toolkit")
    tmp, progress = f"{HOME}.tmp", Progress()
    os.makedirs(f"{tmp}/whl", exist_ok=True)
    for name, (version, mb) in wheels.items():
        download(pip, name, version, mb, tmp, progress)
    progress.end()
    home = f"{tmp}/home"
    shutil.rmtree(home, ignore_errors=True)
    for name, (version, _) in wheels.items():
        unpack(glob.glob(f"{tmp}/whl/{name.replace('-', '_')}-{version}-*.whl")[0], home)
    os.symlink("lib", f"{home}/lib64")
    for so in glob.glob(f"{home}/lib/*.so.*"):  # the symbolic links that a toolkit's installer makes: libx.so -> libx.so.13
        plain = so[:so.index(".so") + 3]
        if not os.path.exists(plain):
            os.symlink(os.path.basename(so), plain)
    with open(f"{home}/{WHEELS_LIST}", "w", encoding="utf-8") as f:
        f.writelines(f"{name}=={version}\n" for name, (version, _) in wheels.items())
    shutil.rmtree(HOME, ignore_errors=True)
    os.rename(home, HOME)  # last, so that an interrupted download leaves no incomplete toolkit
    shutil.rmtree(tmp)


def packages(missing):
    """Install missing packages.  A failure stops the script only if an essential package is missing."""
    try:
        apt(missing)
    except Unable as why:
        if ESSENTIAL & set(missing_packages()):
            raise
        print(f"{why}; continuing without them", flush=True)


def run(args):
    missing, wheels = missing_packages(), missing_wheels(args)
    if wheels and not pip_command():
        missing.append("python3-pip")
    try:
        if missing or wheels:
            announce(missing, wheels)
        if missing:
            packages(missing)
        if wheels:
            cuda_wheels(wheels)
    except Unable as why:
        sys.exit(f"configure.py: {why}")
