#!/usr/bin/env python3
"""install.py — copy the built files to their places below $DESTDIR: `ninja install`.

    bin/gpuload                          the command
    lib/libgpuload.so*, libgpuload.a     the library
    lib/libgpuload-rt.a                  the mini runtime, for programs built with nvcc -cudart none
    lib/libgpuload-lab.a                 the experiments of lab/
    lib/libnccl-net-gpuload.so           a network plug-in of NCCL, which NCCL_NET_PLUGIN=gpuload selects
    lib/gpuload/gpuload-probe            a helper process of libgpuload; users do not start it
    lib/gpuload/libcuda-soft.so          the software driver, and a symbolic link libcuda.so.1 to it: run a program with
                                         LD_LIBRARY_PATH=<prefix>/lib/gpuload to use it
    lib/gpuload/libcudart.so.N           the mini runtime in place of NVIDIA's, for programs that are linked with that
    lib/gpuload/libcudart-redirect.so.1  redirects the calls of a CUDA runtime inside a program to that one (gpuload soft)
    lib/gpuload/libnvrtc.so.N, libnvJitLink.so.N, libnvfatbin.so.N    call NVIDIA's libraries, but return PTX for the software driver
    lib/gpuload/bin/ptxas                checks PTX with NVIDIA's ptxas, and writes the PTX itself instead of a cubin
    lib/gpuload/cuda-wheels              NVIDIA's compiler and headers, if configure.py --install-deps downloaded them
    lib/pkgconfig/gpuload.pc             compiler and linker flags for programs; gpuload-rt.pc: for the runtime; gpuload-lab.pc
    include/gpuload/<folder>/*.h         the headers; *.cuh: headers for device code; *.ptx: PTX to link with
    share/man, share/bash-completion, share/zsh, share/fish, share/doc/gpuload

The installed files do not need the build folder.
"""
import argparse, filecmp, glob, os, re, shutil, subprocess, sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
from scripts.modules import LIBRARY, VERSION, files, owner

WHEELS = "lib/gpuload/cuda-wheels"
WHEELS_LIST = "wheels.txt"  # names and versions of the wheels, which install_deps.py writes into their folder
PKGCONFIG = """\
prefix={prefix}
libdir=${{prefix}}/lib
includedir=${{prefix}}/include/gpuload
cudahome={cuda}

Name: gpuload
Description: loads and runs GPU kernels through the CUDA Driver API
Version: {version}
Libs: "-L${{libdir}}" {rpath}-lgpuload
Libs.private: -ldl -lpthread -lm {libraries}
Cflags: "-I${{includedir}}" "-I${{cudahome}}/include"
"""
RT_PKGCONFIG = """\
prefix={prefix}
libdir=${{prefix}}/lib
cudahome={cuda}

Name: gpuload-rt
Description: a small CUDA runtime, for programs that nvcc compiles with -cudart none
Version: {version}
Libs: "-L${{libdir}}" -lgpuload-rt -lstdc++ -ldl -lpthread
Cflags: "-I${{cudahome}}/include"
"""
LAB_PKGCONFIG = """\
prefix={prefix}
libdir=${{prefix}}/lib
includedir=${{prefix}}/include/gpuload
cudahome={cuda}

Name: gpuload-lab
Description: gpuload's experiments: sparse all-reduce, a receive queue, predicted times of collectives
Version: {version}
Libs: "-L${{libdir}}" -lgpuload-lab -l:libgpuload.a -ldl -lpthread -lm {libraries}
Cflags: "-I${{includedir}}" "-I${{cudahome}}/include"
"""
PKGCONFIGS = (("gpuload", PKGCONFIG), ("gpuload-rt", RT_PKGCONFIG), ("gpuload-lab", LAB_PKGCONFIG))
ARCHIVES = ("libgpuload.a", "libgpuload-rt.a", "libgpuload-lab.a")
RPATH = '"-Wl,-rpath,${libdir}" '


class Place:
    """The folder tree to install into."""

    def __init__(self, root):
        self.root = root

    def path(self, name):
        path = f"{self.root}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def copy(self, source, name, mode=0o644):
        """Copy to a temporary name, then rename, so that running programs keep the old file."""
        path = self.path(name)
        shutil.copyfile(source, path + ".new")
        os.chmod(path + ".new", mode)
        os.replace(path + ".new", path)

    def copy_tree(self, source, name, same):
        """Copy a folder, unless its file `same` is equal to the one that is installed."""
        path = self.path(name)
        if os.path.exists(f"{source}/{same}") and os.path.exists(f"{path}/{same}") and \
                filecmp.cmp(f"{source}/{same}", f"{path}/{same}", shallow=False):
            return
        shutil.rmtree(path + ".new", ignore_errors=True)
        shutil.copytree(source, path + ".new", symlinks=True)
        if os.path.islink(path):
            os.remove(path)
        shutil.rmtree(path, ignore_errors=True)
        os.rename(path + ".new", path)

    def link(self, name, target):
        path = self.path(name)
        if os.path.lexists(path):
            os.remove(path)
        os.symlink(target, path)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)


def public_headers():
    """The headers of include/, all of which are installed."""
    return sorted(glob.glob("include/**/*.h", recursive=True))


def library_headers():
    """The headers whose functions libgpuload.so exports; those of lab/ are in a separate archive."""
    return [h for h in public_headers() if owner(h) != "lab"]


def device_headers():
    """Headers for nvcc and NVRTC, and PTX to link with."""
    return [h for m in (*LIBRARY, "lab") for end in (".cuh", ".def", ".ptx") for h in files(m, end)]


def header_places():
    """Return (file, path below the folder of installed headers) of each installed header."""
    return [(h, h.removeprefix("include/")) for h in public_headers() + device_headers()]


def install_cuda(to, build, cuda, link):
    """Return the value of cudahome for the pkg-config files.  A toolkit inside the checkout or the build folder is copied to the prefix,
    because these folders may be removed; or only linked, if `link` is true."""
    ours = tuple(os.path.realpath(folder) + "/" for folder in (ROOT, build))
    real, given = os.path.realpath(cuda), os.path.abspath(cuda)
    if not real.startswith(ours):
        return real if given.startswith(ours) else given
    if link:
        to.link(WHEELS, given)
    else:
        to.copy_tree(cuda, WHEELS, WHEELS_LIST)
    return f"${{prefix}}/{WHEELS}"


def install(build, prefix, destdir, cuda, libraries, link=False):
    to = Place(f"{destdir}{prefix}")
    so, major = f"libgpuload.so.{VERSION}", VERSION.split(".")[0]
    to.copy(f"{build}/gpuload", "bin/gpuload", 0o755)
    to.copy(f"{build}/{so}", f"lib/{so}", 0o755)
    to.link(f"lib/libgpuload.so.{major}", so)
    to.link("lib/libgpuload.so", so)
    for name in ARCHIVES:
        to.copy(f"{build}/{name}", f"lib/{name}")
    to.copy(f"{build}/libnccl-net-gpuload.so", "lib/libnccl-net-gpuload.so", 0o755)
    to.copy(f"{build}/gpuload-probe", "lib/gpuload/gpuload-probe", 0o755)
    to.copy(f"{build}/softcuda/libcuda-soft.so", "lib/gpuload/libcuda-soft.so", 0o755)
    for name in ("libcuda.so.1", "libcuda.so"):
        to.link(f"lib/gpuload/{name}", "libcuda-soft.so")
    to.copy(f"{build}/softcuda/bin/ptxas", "lib/gpuload/bin/ptxas", 0o755)
    for so in [so for name in ("libnv*", "libcudart*", "libcuda-calls*") for so in glob.glob(f"{glob.escape(build)}/softcuda/{name}.so.*")]:
        to.copy(so, f"lib/gpuload/{os.path.basename(so)}", 0o755)
    home = install_cuda(to, build, cuda, link)
    for name, text in PKGCONFIGS:
        to.write(f"lib/pkgconfig/{name}.pc", text.format(prefix=prefix, cuda=home, version=VERSION, libraries=libraries,
                                                      rpath="" if prefix == "/usr" else RPATH))
    for h, place in header_places():
        to.copy(h, f"include/gpuload/{place}")
    for page in glob.glob(f"{glob.escape(build)}/man/man*/*"):
        to.copy(page, f"share/{os.path.relpath(page, build)}")
    for shell, place in (("bash", "bash-completion/completions/gpuload"), ("zsh", "zsh/site-functions/_gpuload"),
                         ("fish", "fish/vendor_completions.d/gpuload.fish")):
        to.copy(f"{build}/completion.{shell}", f"share/{place}")
    for text in ("LICENSE", "README.md", "CHANGELOG.md"):
        to.copy(text, f"share/doc/gpuload/{text}")


def first_unwritable(root):
    """Return the first folder below root to which the installation must write but cannot; None: there is none."""
    for name in ("", "bin", "lib", "lib/gpuload", "lib/pkgconfig", "include", "share", "share/doc", "share/man/man1"):
        folder = f"{root}/{name}".rstrip("/") or "/"
        while not os.path.exists(folder):
            folder = os.path.dirname(folder) or "."
        if not os.access(folder, os.W_OK | os.X_OK):
            return folder
    return None


def ninja(build):
    return "ninja" if build == "build" else f"ninja -f {build}/build.ninja"


def give_back(build):
    """If root ran ninja, make the owner of the build folder the owner of all files in it, so that this user can build again."""
    owner = os.stat(build)
    if os.geteuid() != 0 or owner.st_uid == 0:
        return
    for folder, folders, names in os.walk(build):
        for path in (f"{folder}/{name}" for name in folders + names):
            if os.lstat(path).st_uid == 0:
                os.lchown(path, owner.st_uid, owner.st_gid)


def update_loader_cache(lib):
    """Run ldconfig if it searches this folder: programs that are linked with -lgpuload but without pkg-config's -rpath need its cache."""
    ldconfig = "/sbin/ldconfig"
    if os.geteuid() == 0 and os.path.exists(ldconfig):
        searched = subprocess.run([ldconfig, "-NXv"], capture_output=True, text=True).stdout
        if re.search(rf"^{re.escape(lib)}:", searched, re.M):
            subprocess.run([ldconfig], check=False)


def hints(prefix):
    """Yield lines for the user: the settings with which the shell and pkg-config find the installed files."""
    if shutil.which("gpuload") != f"{prefix}/bin/gpuload":
        yield f"for the shell:      export PATH={prefix}/bin:$PATH"
    if shutil.which("pkg-config"):
        path = subprocess.run(["pkg-config", "--variable=pc_path", "pkg-config"], capture_output=True, text=True).stdout
        path = f"{path.strip()}:{os.environ.get('PKG_CONFIG_PATH', '')}"
        if f"{prefix}/lib/pkgconfig" not in path.split(":"):
            yield f"for pkg-config:     export PKG_CONFIG_PATH={prefix}/lib/pkgconfig"


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--build", default="build")
    a.add_argument("--prefix", default="/usr/local")
    a.add_argument("--destdir", default=os.environ.get("DESTDIR", ""))
    a.add_argument("--cuda", required=True, help="the CUDA toolkit, for the pkg-config file")
    a.add_argument("--link-cuda", action="store_true", help="link to a toolkit in the checkout instead of copying it")
    a.add_argument("--libraries", default="", help="further libraries that libgpuload.a needs, for the pkg-config file")
    args = a.parse_args()
    os.umask(0o022)
    refused = first_unwritable(f"{args.destdir}{args.prefix}")
    if refused:
        sys.exit(f"install.py: no permission to write to {refused}: run 'sudo {ninja(args.build)} install', or choose "
                 f"another folder: './configure.py --prefix ~/.local && {ninja(args.build)} install'")
    try:
        install(args.build, args.prefix, args.destdir, args.cuda, args.libraries, args.link_cuda)
        give_back(args.build)
    except OSError as e:
        sys.exit(f"install.py: {e.filename}: {e.strerror}: the files after it were not installed")
    print(f"installed to {args.destdir}{args.prefix}")
    if args.destdir:
        return
    update_loader_cache(f"{args.prefix}/lib")
    print("".join(f"{line}\n" for line in hints(args.prefix)), end="")


if __name__ == "__main__":
    main()
