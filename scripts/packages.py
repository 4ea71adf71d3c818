#!/usr/bin/env python3
"""packages.py — make the Python wheel and the Debian package: `ninja wheel` and `ninja deb`.

    wheel   gpuload/*.py                     the module, from python/
            gpuload/files/                   the command, the library, softcuda/, include/, pkgconfig/
            <data>/share/                    manual pages and completions
    deb     usr/bin/gpuload                  a link to the command in usr/lib/<triplet>/gpuload, where the software driver is:
                                             a folder that the loader does not search, so that NVIDIA's libcuda stays in use
            usr/lib/<triplet>/libgpuload.so* the library; headers, pkg-config files, manual pages, completions

Both packages are reproducible: all their time stamps are $SOURCE_DATE_EPOCH, or the date of the version.
"""
import argparse, base64, calendar, glob, gzip, hashlib, os, re, shutil, subprocess, sys, tempfile, time, zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)
from scripts import install
from scripts.modules import DATE, VERSION

SUMMARY = "runs GPU kernels without a host program, on an NVIDIA GPU or on any CPU"
DESCRIPTION = """\
gpuload loads PTX and CUDA C++ and runs its kernels: on NVIDIA's driver, or
on a software driver that interprets PTX on the CPU. The software driver also
takes the place of libcuda.so.1 for other programs, so that tests of GPU code
run on machines without a GPU. A C library does the same for programs."""
# The maintainer of the package; the default is not a valid mail address.
MAINTAINER = f"{os.environ.get('DEBFULLNAME', 'the gpuload authors')} <{os.environ.get('DEBEMAIL', 'gpuload@localhost')}>"
COMPLETIONS = (("bash", "bash-completion/completions/gpuload"), ("zsh", "{}/_gpuload"), ("fish", "fish/vendor_completions.d/gpuload.fish"))
# Debian packages of the static libraries that are linked into a wheel, which must contain their copyright files.
STATIC = ("libelf-dev", "libzstd-dev", "liblz4-dev", "zlib1g-dev", "libncurses-dev")


def epoch():
    return int(os.environ.get("SOURCE_DATE_EPOCH") or calendar.timegm(time.strptime(DATE, "%Y-%m-%d")))


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def output(*command, **more):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, **more).stdout
    except FileNotFoundError:
        sys.exit(f"packages.py: {command[0]} not found: install it, on Debian with the package dpkg-dev or binutils")
    except subprocess.CalledProcessError as e:
        sys.exit(f"packages.py: {command[0]}: {e.stderr.strip()}")


def tree(root):
    """The files and links below a folder, sorted."""
    return sorted(os.path.relpath(os.path.join(d, name), root) for d, folders, names in os.walk(root)
                  for name in names + [f for f in folders if os.path.islink(os.path.join(d, f))])


def is_elf(path):
    with open(path, "rb") as f:
        return f.read(4) == b"\x7fELF"


def glibc(paths):
    """The newest version of glibc's symbols that these files need, as (2, 34)."""
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", output("readelf", "-VW", *paths))
    return max((int(major), int(minor)) for major, minor in found)


def copy_driver(to, built, folder):
    """Copy the software driver and the libraries in its folder."""
    for path in sorted(glob.glob(f"{glob.escape(built)}/softcuda/lib*.so.*")):
        if not os.path.islink(path):
            to.copy(path, f"{folder}/{os.path.basename(path)}")
    to.copy(f"{built}/softcuda/bin/ptxas", f"{folder}/bin/ptxas", 0o755)


def copy_texts(to, build, share, zsh):
    for page in sorted(glob.glob(f"{glob.escape(build)}/man/man*/*")):
        path = to.path(f"{share}/{os.path.relpath(page, build)}.gz")
        with open(page, "rb") as f, open(path, "wb") as out:
            out.write(gzip.compress(f.read(), mtime=0))
    for shell, place in COMPLETIONS:
        to.copy(f"{build}/completion.{shell}", f"{share}/{place.format(zsh)}")


def copy_archive(to, source, name):
    """Make an archive without debug information and without time stamps."""
    to.copy(source, name)
    output("strip", "--strip-debug", "--enable-deterministic-archives", to.path(name))


def pkg_config(to, folder, archives, **values):
    """Write NAME.pc for each row of PKGCONFIGS, except those whose archive lib<NAME>.a is not in the package."""
    for name, text in install.PKGCONFIGS:
        if name != "gpuload" and f"lib{name}.a" not in archives:
            continue
        text = text.replace("libdir=${{prefix}}/lib", "libdir={libdir}").replace("${{prefix}}/include/gpuload", "{include}")
        text = text.format(version=VERSION, cuda="/usr/local/cuda", **values)
        to.write(f"{folder}/{name}.pc", text.replace("-lgpuload\n", values["link"] + "\n"))


# ---- wheel -----------------------------------------------------------------------------------------------------------


def notices():
    """The licences of the libraries that are linked into the programs of a wheel."""
    texts = ["The folder gpuload/files has copies of libelf.so.1 (from elfutils; used under the LGPL, version 3) and libz.so.1, which may be\n"
             "replaced by other versions; zstd, LZ4, zlib and ncurses are linked into the programs. Their licences follow.\n"]
    for path in [f"/usr/share/doc/{name}/copyright" for name in STATIC] + [f"/usr/share/common-licenses/{name}" for name in ("LGPL-3", "GPL-3")]:
        if not os.path.exists(path):
            sys.exit(f"packages.py: {path} not found: a wheel must contain the licences of the libraries in it; build it on Debian "
                     f"or Ubuntu with these packages: {' '.join(STATIC)}")
        texts.append(f"{'=' * 100}\n{path}\n\n{read(path)}")
    return "\n".join(texts)


def shared_libraries(program):
    """Return (name, path) of the shared libraries that a program needs, directly or indirectly, apart from those of glibc."""
    found = re.findall(r"(\S+) => (/\S+)", output("ldd", program))
    return [(name, path) for name, path in found if not re.match(r"lib(c|m|dl|pthread|rt)\.so", name)]


def stage_wheel(to, build, built):
    for path in sorted(glob.glob("python/gpuload/*")):
        if os.path.isfile(path):
            to.copy(path, f"gpuload/{os.path.basename(path)}")
    files, data = "gpuload/files", f"gpuload-{VERSION}.data/data"
    for name in ("gpuload", "gpuload-probe"):
        to.copy(f"{built}/{name}", f"{files}/{name}", 0o755)
    to.copy(f"{built}/libgpuload.so.{VERSION}", f"{files}/libgpuload.so.{VERSION.split('.')[0]}", 0o755)
    copy_archive(to, f"{built}/libgpuload-rt.a", f"{files}/libgpuload-rt.a")
    to.copy(f"{built}/libnccl-net-gpuload.so", f"{files}/libnccl-net-gpuload.so", 0o755)
    copy_driver(to, built, f"{files}/softcuda")
    to.copy(f"{built}/softcuda/libcuda-soft.so", f"{files}/softcuda/libcuda.so.1", 0o755)  # the only copy: a wheel has no links
    for name, path in shared_libraries(f"{built}/gpuload"):
        to.copy(path, f"{files}/{name}", 0o755)
    for h, place in install.header_places():
        to.copy(h, f"{files}/include/{place}")
    pkg_config(to, f"{files}/pkgconfig", ["libgpuload-rt.a"], prefix="${pcfiledir}/..", libdir="${prefix}", include="${prefix}/include", libraries="",
               rpath=install.RPATH, link=f"-l:libgpuload.so.{VERSION.split('.')[0]}")
    copy_texts(to, build, f"{data}/share", "zsh/site-functions")


def wheel(root, build, built, args):
    stage_wheel(install.Place(root), build, built)
    major, minor = glibc([f"{root}/{name}" for name in tree(root) if is_elf(f"{root}/{name}")])
    tag = f"py3-none-manylinux_{major}_{minor}_{args.triplet.split('-')[0]}"
    to, info = install.Place(root), f"gpuload-{VERSION}.dist-info"
    to.write(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: gpuload\nVersion: {VERSION}\nSummary: {SUMMARY}\nLicense: MIT\n"
                                 "License-File: LICENSE\nLicense-File: THIRD-PARTY.txt\nRequires-Python: >=3.8\n"
                                 "Provides-Extra: cuda\nRequires-Dist: nvidia-cuda-nvrtc-cu12; extra == 'cuda'\n"
                                 f"Description-Content-Type: text/markdown\n\n{read('docs/python.md')}")
    to.write(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: gpuload {VERSION}\nRoot-Is-Purelib: false\nTag: {tag}\n")
    to.write(f"{info}/entry_points.txt", "[console_scripts]\ngpuload = gpuload._command:main\n")
    to.copy("LICENSE", f"{info}/licenses/LICENSE")
    to.write(f"{info}/licenses/THIRD-PARTY.txt", notices())
    out, record = f"{args.out}/gpuload-{VERSION}-{tag}.whl", f"{info}/RECORD"
    rows, moment = [], time.gmtime(max(epoch(), 315532800))[:6]  # the zip format has no time before 1980
    for old in glob.glob(f"{glob.escape(args.out)}/gpuload-*.whl"):
        os.remove(old)
    with zipfile.ZipFile(out + ".new", "w", zipfile.ZIP_DEFLATED, compresslevel=args.level) as z:
        def add(name, content, mode):
            entry = zipfile.ZipInfo(name, moment)
            entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            z.writestr(entry, content, compresslevel=args.level)

        for name in tree(root):
            with open(f"{root}/{name}", "rb") as f:
                content = f.read()
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(content)}\n")
            add(name, content, os.stat(f"{root}/{name}").st_mode & 0o777)
        add(record, "".join(rows) + f"{record},,\n", 0o644)
    os.replace(out + ".new", out)
    return out


# ---- deb -------------------------------------------------------------------------------------------------------------

CONTROL = """\
Package: gpuload
Version: {version}
Architecture: {arch}
Maintainer: {maintainer}
Installed-Size: {kib}
Depends: {depends}
Suggests: nvidia-cuda-toolkit
Section: devel
Priority: optional
Description: {summary}
{description}
"""
COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: gpuload

Files: *
Copyright: {holder}
License: Expat

License: Expat
{text}
"""
CHANGELOG = """\
gpuload ({version}) unstable; urgency=medium

  * See /usr/share/doc/gpuload/NEWS.gz.

 -- {maintainer}  {date}
"""
OVERRIDES = """\
# One package has the command, the library and its headers, because they are of the same version.
gpuload: package-name-doesnt-match-sonames *
gpuload: non-dev-pkg-with-shlib-symlink *
gpuload: lacks-versioned-link-to-shared-library *
"""


def depends(root, elves, libdir):
    """Return the Debian packages that contain the libraries that these ELF files need."""
    if shutil.which("dpkg-shlibdeps"):
        with tempfile.TemporaryDirectory() as d:
            os.mkdir(f"{d}/debian")
            with open(f"{d}/debian/control", "w", encoding="utf-8") as f:
                f.write("Source: gpuload\n\nPackage: gpuload\nArchitecture: any\n")
            found = output("dpkg-shlibdeps", "-O", f"-l{root}{libdir}", *(f"-e{path}" for path in elves), cwd=d)
        return found.strip().split("=", 1)[1]
    needed = set(re.findall(r"Shared library: \[(.*?)\]", output("readelf", "-dW", *elves)))
    owners = {output("dpkg", "-S", f"*-linux-gnu/{name}").split(":")[0] for name in needed if not os.path.exists(f"{root}{libdir}/{name}")}
    return ", ".join(sorted(f"libc6 (>= {'.'.join(map(str, glibc(elves)))})" if name == "libc6" else name for name in owners))


def stage_deb(to, build, built, lib):
    so, own = f"libgpuload.so.{VERSION}", f"{lib}/gpuload"
    for name in ("gpuload", "gpuload-probe"):
        to.copy(f"{built}/{name}", f"{own}/{name}", 0o755)
    to.link("usr/bin/gpuload", f"../{own.removeprefix('usr/')}/gpuload")
    to.copy(f"{built}/{so}", f"{lib}/{so}")
    for name in (f"libgpuload.so.{VERSION.split('.')[0]}", "libgpuload.so"):
        to.link(f"{lib}/{name}", so)
    for name in install.ARCHIVES:
        copy_archive(to, f"{built}/{name}", f"{lib}/{name}")
    to.copy(f"{built}/libnccl-net-gpuload.so", f"{lib}/libnccl-net-gpuload.so")
    copy_driver(to, built, own)
    to.copy(f"{built}/softcuda/libcuda-soft.so", f"{own}/libcuda-soft.so")
    for name in ("libcuda.so.1", "libcuda.so"):
        to.link(f"{own}/{name}", "libcuda-soft.so")
    for h, place in install.header_places():
        to.copy(h, f"usr/include/gpuload/{place}")
    copy_texts(to, build, "usr/share", "zsh/vendor-completions")


def document_deb(to):
    text = read("LICENSE")
    holder = re.search(r"^Copyright \(c\) (.*)$", text, re.M)[1]
    body = "\n".join(f" {line}" if line else " ." for line in text[text.index("Permission"):].strip().split("\n"))
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(epoch()))
    doc = "usr/share/doc/gpuload"
    to.write(f"{doc}/copyright", COPYRIGHT.format(holder=holder, text=body))
    for name, content in (("changelog", CHANGELOG.format(version=VERSION, maintainer=MAINTAINER, date=date)), ("NEWS", read("CHANGELOG.md"))):
        with open(to.path(f"{doc}/{name}.gz"), "wb") as f:
            f.write(gzip.compress(content.encode(), mtime=0))
    to.write("usr/share/lintian/overrides/gpuload", OVERRIDES)


def deb(root, build, built, args):
    to, lib = install.Place(root), f"usr/lib/{args.triplet}"
    stage_deb(to, build, built, lib)
    pkg_config(to, f"{lib}/pkgconfig", install.ARCHIVES, prefix="/usr", libdir=f"/{lib}", include="/usr/include/gpuload", rpath="", link="-lgpuload",
               libraries=args.libraries)
    document_deb(to)
    names = [name for name in tree(root) if not os.path.islink(f"{root}/{name}")]
    elves = [f"{root}/{name}" for name in names if is_elf(f"{root}/{name}")]
    description = "\n".join(f" {line}" for line in DESCRIPTION.split("\n"))
    arch = output("dpkg", "--print-architecture").strip()
    sums = "".join(f"{hashlib.md5(open(f'{root}/{name}', 'rb').read()).hexdigest()}  {name}\n" for name in names)
    kib = sum(-(-os.path.getsize(f"{root}/{name}") // 1024) for name in names)
    control = CONTROL.format(version=VERSION, arch=arch, maintainer=MAINTAINER, kib=kib, depends=depends(root, elves, f"/{lib}/gpuload"),
                             summary=SUMMARY, description=description)
    to.write("DEBIAN/control", control)
    to.write("DEBIAN/md5sums", sums)
    to.write("DEBIAN/shlibs", f"libgpuload {VERSION.split('.')[0]} gpuload (>= {VERSION})\n")
    to.write("DEBIAN/triggers", "activate-noawait ldconfig\n")
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            os.utime(f"{folder}/{name}", (epoch(), epoch()), follow_symlinks=False)
    out = f"{args.out}/gpuload_{VERSION}_{arch}.deb"
    output("dpkg-deb", "--root-owner-group", "-Zxz", f"-z{args.level}", "--threads-max=1", "--build", root, out,
           env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch())})
    return out


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("kind", choices=("wheel", "deb"))
    a.add_argument("--build", default="build")
    a.add_argument("--out", help="folder for the package (default: <build>/packages)")
    a.add_argument("--triplet", required=True, help="as in /usr/lib/TRIPLET")
    a.add_argument("--libraries", default="", help="further libraries that libgpuload.a needs, for the pkg-config file")
    a.add_argument("--level", type=int, default=6, help="of compression, 0 to 9")
    args = a.parse_args()
    args.out = args.out or f"{args.build}/packages"
    os.umask(0o022)
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as root:
        os.chmod(root, 0o755)
        out = {"wheel": wheel, "deb": deb}[args.kind](root, args.build, f"{args.build}/packages/{args.kind}", args)
    print(f"{out}: {os.path.getsize(out) / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
