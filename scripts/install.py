#!/usr/bin/env python3
"""install.py — copy the built files to their places below $DESTDIR: `ninja install`.

    bin/gpuload                          the command
    lib/libgpuload.so*, libgpuload.a     the library
    lib/libgpuload-rt.a                  the mini runtime, for programs built with nvcc -cudart none
    lib/gpuload/gpuload-probe            a helper process of libgpuload; users do not start it
    lib/gpuload/libcuda-soft.so          the software driver, and a symbolic link libcuda.so.1 to it: run a program with
                                         LD_LIBRARY_PATH=<prefix>/lib/gpuload to use it
    lib/pkgconfig/gpuload.pc             compiler and linker flags for programs; gpuload-rt.pc: for the runtime
    include/gpuload/<folder>/*.h         the headers; *.cuh: headers for device code; *.ptx: PTX to link with
    share/man, share/bash-completion, share/doc/gpuload
"""
import argparse, glob, os, shutil, sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from scripts.modules import LIBRARY, VERSION, files

PKGCONFIG = """\
prefix={prefix}
libdir=${{prefix}}/lib
includedir=${{prefix}}/include/gpuload
cudaincludedir={cuda}

Name: gpuload
Description: loads and runs GPU kernels through the CUDA Driver API
Version: {version}
Libs: "-L${{libdir}}" -lgpuload
Libs.private: -ldl -lpthread -lm {libraries}
Cflags: "-I${{includedir}}" "-I${{cudaincludedir}}"
"""
RT_PKGCONFIG = """\
prefix={prefix}
libdir=${{prefix}}/lib
cudaincludedir={cuda}

Name: gpuload-rt
Description: a small CUDA runtime, for programs that nvcc compiles with -cudart none
Version: {version}
Libs: "-L${{libdir}}" -lgpuload-rt -lstdc++ -ldl -lpthread
Cflags: "-I${{cudaincludedir}}"
"""


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

    def link(self, name, target):
        path = self.path(name)
        if os.path.lexists(path):
            os.remove(path)
        os.symlink(target, path)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as f:
            f.write(text)


def public_headers():
    return [h for m in LIBRARY for h in files(m, ".h") if not h.endswith("_internal.h")]


def device_headers():
    """Headers for nvcc and NVRTC, and PTX to link with."""
    return [h for m in LIBRARY for end in (".cuh", ".ptx") for h in files(m, end)]


def install(build, prefix, destdir, cuda, libraries):
    to = Place(f"{destdir}{prefix}")
    so, major = f"libgpuload.so.{VERSION}", VERSION.split(".")[0]
    to.copy(f"{build}/gpuload", "bin/gpuload", 0o755)
    to.copy(f"{build}/{so}", f"lib/{so}", 0o755)
    to.link(f"lib/libgpuload.so.{major}", so)
    to.link("lib/libgpuload.so", so)
    for name in ("libgpuload.a", "libgpuload-rt.a"):
        to.copy(f"{build}/{name}", f"lib/{name}")
    to.copy(f"{build}/gpuload-probe", "lib/gpuload/gpuload-probe", 0o755)
    to.copy(f"{build}/softcuda/libcuda-soft.so", "lib/gpuload/libcuda-soft.so", 0o755)
    for name in ("libcuda.so.1", "libcuda.so"):
        to.link(f"lib/gpuload/{name}", "libcuda-soft.so")
    for name, text in (("gpuload", PKGCONFIG), ("gpuload-rt", RT_PKGCONFIG)):
        to.write(f"lib/pkgconfig/{name}.pc", text.format(prefix=prefix, cuda=os.path.abspath(cuda), version=VERSION,
                                                      libraries=libraries))
    for h in public_headers() + device_headers():
        to.copy(h, f"include/gpuload/{h}")
    for page in glob.glob(f"{glob.escape(build)}/man/man*/*"):
        to.copy(page, f"share/{os.path.relpath(page, build)}")
    to.copy(f"{build}/completion.bash", "share/bash-completion/completions/gpuload")
    for text in ("LICENSE", "README.md", "CHANGELOG.md"):
        to.copy(text, f"share/doc/gpuload/{text}")


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--build", default="build")
    a.add_argument("--prefix", default="/usr/local")
    a.add_argument("--destdir", default=os.environ.get("DESTDIR", ""))
    a.add_argument("--cuda", required=True, help="the folder of cuda.h, for the pkg-config file")
    a.add_argument("--libraries", default="", help="further libraries that libgpuload.a needs, for the pkg-config file")
    args = a.parse_args()
    try:
        install(args.build, args.prefix, args.destdir, args.cuda, args.libraries)
    except OSError as e:
        sys.exit(f"install.py: {e.filename}: {e.strerror}: the files after it were not installed")
    print(f"installed to {args.destdir}{args.prefix}")


if __name__ == "__main__":
    main()
