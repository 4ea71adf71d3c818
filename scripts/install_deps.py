"""install_deps.py — install on Debian or Ubuntu the packages that configure.py searches for.

It never prompts, installs only missing packages, and does nothing when run again.
"""
import glob, os, shutil, subprocess, sys, zipfile

from scripts import parts

PACKAGES = {  # apt package: a file or program of it
    "gcc": "cc", "g++": "c++", "libc6-dev": "/usr/include/stdio.h", "ninja-build": "ninja",
    "libcmocka-dev": "/usr/include/cmocka.h",
    "libelf-dev": "/usr/include/libelf.h", "libzstd-dev": "/usr/include/zstd.h",
    "liblz4-dev": "/usr/include/lz4.h", "libnuma-dev": "/usr/include/numa.h",
    "libibverbs-dev": "/usr/include/infiniband/verbs.h", "libfabric-dev": "/usr/include/rdma/fabric.h",
    "universal-ctags": "ctags", "bats": "bats", "make": "make", "pkg-config": "pkg-config",
    "mandoc": "mandoc", "spin": "spin",
    # for the tests in guests, tests/vm
    "qemu-system-x86": "qemu-system-x86_64", "busybox-static": "busybox", "zstd": "zstd", "iproute2": "/sbin/tc",
    "ibverbs-providers": "/etc/libibverbs.d/rxe.driver", "ibverbs-utils": "ibv_devinfo", "perftest": "ib_write_bw",
}
ESSENTIAL = {"gcc", "libc6-dev", "ninja-build"}  # required for any build; configure.py prints which features need the others
WHEELS = {  # NVIDIA's wheels on PyPI, all of one CUDA release
    "nvidia-cuda-runtime": "13.0.96",  # cuda.h and the runtime library
    "nvidia-cuda-crt": "13.0.88",      # headers that nvcc and NVRTC users include
    "nvidia-cuda-cccl": "13.0.85",     # cuda::atomic and other C++ headers
    "nvidia-cuda-nvrtc": "13.0.88",    # CUDA C++ to PTX
    "nvidia-nvjitlink": "13.0.88",     # linking of device code
    "nvidia-cuda-nvcc": "13.0.88",     # nvcc and ptxas
    "nvidia-nvvm": "13.0.88",          # cicc, which nvcc runs
}
HOME = "build/cuda-wheels"


def missing_packages():
    return [pkg for pkg, sign in PACKAGES.items()
            if not (os.path.exists(sign) if sign.startswith("/") else shutil.which(sign))]


class Unable(Exception):
    """A package cannot be installed; the text is one line with the reason."""


def apt(packages):
    wanted = " ".join(packages)
    if not shutil.which("apt-get"):
        raise Unable(f"no apt-get: install the equivalents of these Debian packages: {wanted}")
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if root and (not shutil.which("sudo") or subprocess.run([*root, "true"], capture_output=True).returncode):
        raise Unable(f"neither root nor password-less sudo: as root, run: apt-get install {wanted}")
    print(f"installing {wanted}", flush=True)
    env = [*root, "env", "DEBIAN_FRONTEND=noninteractive"]
    quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    subprocess.run([*env, "apt-get", "-q", "update"], check=False, **quiet)  # if a failure matters, the installation below fails
    if subprocess.run([*env, "apt-get", "-qy", "install", "--no-install-recommends", *packages], **quiet).returncode:
        raise Unable(f"apt-get could not install {wanted}: its own message is above")


def pip():
    """The command of a working pip; pip is installed by apt if this Python has none."""
    cmd = [sys.executable, "-m", "pip"]
    if subprocess.run([*cmd, "--version"], capture_output=True).returncode:
        apt(["python3-pip"])
        cmd = ["/usr/bin/python3", "-m", "pip"]
    return cmd


def unpack(wheel, home):
    """Merge the wheel's nvidia/<release>/ tree into home; programs become executable."""
    with zipfile.ZipFile(wheel) as z:
        for item in z.infolist():
            parts_of = item.filename.split("/")
            if parts_of[0] != "nvidia" or item.is_dir() or len(parts_of) < 3:
                continue
            target = os.path.join(home, *parts_of[2:])
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with z.open(item) as src, open(target, "wb") as dst:
                shutil.copyfileobj(src, dst)
            if "bin" in parts_of:
                os.chmod(target, 0o755)


def cuda_wheels():
    """Download NVIDIA's wheels and unpack them as a toolkit."""
    print(f"no CUDA toolkit found: downloading NVIDIA's wheels into {HOME}", flush=True)
    tmp = f"{HOME}.tmp"
    shutil.rmtree(tmp, ignore_errors=True)
    os.makedirs(tmp)
    subprocess.run([*pip(), "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest", f"{tmp}/whl",
                    *(f"{name}=={version}" for name, version in WHEELS.items())],
                   check=True, stdin=subprocess.DEVNULL)
    for wheel in sorted(glob.glob(f"{tmp}/whl/*.whl")):
        unpack(wheel, tmp)
    shutil.rmtree(f"{tmp}/whl")
    os.symlink("lib", f"{tmp}/lib64")
    for so in glob.glob(f"{tmp}/lib/*.so.*"):  # the links of a toolkit's installer: libx.so -> libx.so.13
        plain = so[:so.index(".so") + 3]
        if not os.path.exists(plain):
            os.symlink(os.path.basename(so), plain)
    shutil.rmtree(HOME, ignore_errors=True)
    os.rename(tmp, HOME)  # last, so that an interrupted download leaves no incomplete toolkit


def packages():
    """Install missing packages.  A failure stops the script only if an essential package is missing."""
    missing = missing_packages()
    if not missing:
        return
    try:
        apt(missing)
    except Unable as why:
        if ESSENTIAL & set(missing_packages()):
            raise
        print(f"{why}; continuing without them", flush=True)


def run(args):
    try:
        packages()
        if not parts.cuda_home(args):
            cuda_wheels()
    except Unable as why:
        sys.exit(f"configure.py: {why}")
    except subprocess.CalledProcessError as e:
        sys.exit(f"configure.py: {' '.join(map(str, e.cmd))} failed ({e.returncode}); its own message is above")
