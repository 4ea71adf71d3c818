"""kernel.py — a Debian kernel for the guests, from its package: nothing is installed.

    linux-image-*.deb ─┬─ boot/vmlinuz-*  ── decompressed ── build/vm/vmlinux      booted as it is: saves a second per boot
                       └─ lib/modules/*.ko ─┐
    busybox-static, tests/vm/init ──────────┴─ build/vm/initramfs.cpio             mounts the host's files, see init

A second call downloads nothing, and only writes the initramfs again.
"""
import contextlib, fcntl, glob, io, lzma, os, re, shutil, subprocess, tarfile, zlib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = f"{ROOT}/build/vm"
META = "linux-image-amd64"  # the package that depends on the newest kernel of this Debian release

# Loaded by init in this order, each after the modules that it depends on.  rxe needs crc32 at run time, not by a dependency.
MODULES = ["virtio_pci", "virtio_console", "virtio_net", "9pnet_virtio", "9p", "dummy", "sch_netem", "crc32_generic", "ib_uverbs", "rdma_ucm", "rdma_rxe"]
UNPACKED = re.compile(r"^\./(boot/vmlinuz-.*|(?:usr/)?lib/modules/[^/]+/(modules\.builtin|kernel/.*\.ko(\.\w+)?))$")


class Missing(Exception):
    """A guest cannot be booted on this machine; the text is one line with the reason."""


@contextlib.contextmanager
def locked(what):
    """A context manager with a file lock, because tests run in parallel: one process at a time holds the lock `what`."""
    os.makedirs(CACHE, exist_ok=True)
    with open(f"{CACHE}/{what}.lock", "w", encoding="utf-8") as f:
        fcntl.flock(f, fcntl.LOCK_EX)  # released when the file is closed
        yield


def output(*command, cwd=None):
    r = subprocess.run(command, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if r.returncode:
        why = (r.stderr.strip().splitlines() or [f"exit status {r.returncode}"])[-1]
        raise Missing(f"{' '.join(command)}: {why}")
    return r.stdout


def download(folder):
    """Download the kernel's .deb with the machine's package lists or, if they are too old, with new lists; return its path."""
    own = f"{CACHE}/apt"  # a separate folder, because apt-get update needs root for the machine's lists
    for d in (f"{own}/lists/partial", f"{own}/cache/archives/partial"):
        os.makedirs(d, exist_ok=True)
    new = ["-o", f"Dir::State::Lists={own}/lists", "-o", f"Dir::Cache={own}/cache", "-o", "APT::Sandbox::User=root"]
    for options in ([], new):
        with contextlib.suppress(Missing):
            if options:
                output("apt-get", "-q", *options, "update")
            names = re.findall(r"Depends: (linux-image-\S+)", output("apt-cache", *options, "depends", META))
            output("apt-get", "-q", *options, "download", *names[:1], cwd=folder)
            return glob.glob(f"{folder}/linux-image-*.deb")[0]
    raise Missing(f"apt-get cannot download the package that {META} depends on")


def unpack(deb, folder):
    """Extract only the kernel and its modules from the package."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as p:
        with tarfile.open(fileobj=p.stdout, mode="r|") as tar:
            for item in tar:
                if item.isfile() and UNPACKED.match(item.name):
                    name = os.path.basename(item.name)
                    with open(f"{folder}/{name.split('-')[0] if name.startswith('vmlinuz') else name}", "wb") as f:
                        shutil.copyfileobj(tar.extractfile(item), f)
    for name in ("vmlinuz", "modules.builtin"):
        if not os.path.exists(f"{folder}/{name}"):
            raise Missing(f"{deb} contains no {name}")


def decompress(data):
    if data[:6] == b"\xfd7zXZ\0":
        return lzma.LZMADecompressor().decompress(data)
    if data[:2] == b"\x1f\x8b":
        return zlib.decompressobj(31).decompress(data)
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return data


def vmlinux(bzimage):
    """Return the ELF kernel in a bzImage.  Source: Linux, Documentation/x86/boot.rst, payload_offset and payload_length."""
    sectors = bzimage[0x1F1] or 4
    at, n = (int.from_bytes(bzimage[i:i + 4], "little") for i in (0x248, 0x24C))
    start = (sectors + 1) * 512 + at
    elf = decompress(bzimage[start:start + n])
    if elf[:4] != b"\x7fELF":
        raise Missing("the kernel is compressed in a way that tests/vm/kernel.py does not read")
    return elf


def module_bytes(folder, name):
    """A module of the package, decompressed; None if it is built into the kernel."""
    for path in glob.glob(f"{folder}/{name.replace('_', '[-_]')}.ko*"):
        with open(path, "rb") as f:
            return decompress(f.read())
    with open(f"{folder}/modules.builtin", encoding="utf-8") as f:
        if re.search(rf"/{name.replace('_', '[-_]')}\.ko$", f.read(), re.M):
            return None
    raise Missing(f"the kernel has no module {name}")


def modules(folder):
    """{name: bytes} of MODULES and the modules that they depend on, in the order in which they can be loaded."""
    found = {}

    def add(name):
        if name in found:
            return
        data = module_bytes(folder, name)
        if data:
            depends = re.search(rb"\0depends=([^\0]*)\0", data)
            for d in filter(None, depends[1].decode().split(",")) if depends else ():
                add(d)
            found[name] = data

    for name in MODULES:
        add(name)
    return found


def cpio(entries):
    """An initramfs in the format newc: [(path, mode, bytes)], with the folders before their files."""
    out = io.BytesIO()
    for i, (path, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        name = path.encode() + b"\0"
        fields = [i, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0]
        out.write(b"070701" + b"".join(b"%08X" % n for n in fields) + name)
        out.write(b"\0" * (-out.tell() % 4) + data)
        out.write(b"\0" * (-out.tell() % 4))
    return out.getvalue()


def busybox():
    """A busybox that needs no shared libraries."""
    path = shutil.which("busybox")
    if path:
        with open(path, "rb") as f:
            if b"/ld-linux" not in f.read(4096):
                return path
    raise Missing("no statically linked busybox: install busybox-static")


def replace(path, data):
    """Write a file atomically, so that a guest that boots meanwhile reads either the old or the new file."""
    with open(f"{path}.new", "wb") as f:
        f.write(data)
    os.rename(f"{path}.new", path)


def write_initramfs(folder, path):
    with open(busybox(), "rb") as b, open(f"{ROOT}/tests/vm/init", "rb") as i:
        entries = [("bin", 0o40755, b""), ("lib", 0o40755, b""), ("dev", 0o40755, b""), ("dev/console", 0o20600, b""),
                   ("bin/busybox", 0o100755, b.read()), ("init", 0o100755, i.read())]
    names = []
    for name, data in modules(folder).items():
        entries.append((f"lib/{name}.ko", 0o100644, data))
        names.append(name)
    entries.append(("lib/order", 0o100644, "".join(f"{n}\n" for n in names).encode()))
    replace(path, cpio(entries))


def boot_files():
    """(kernel, initramfs) for QEMU's -kernel and -initrd; downloads and unpacks the package if there is none yet."""
    if os.uname().machine != "x86_64":
        raise Missing(f"guests are x86_64, this machine is {os.uname().machine}")
    folder, kernel, initramfs = f"{CACHE}/package", f"{CACHE}/vmlinux", f"{CACHE}/initramfs.cpio"
    busybox()
    with locked("package"):
        if not os.path.exists(kernel):
            if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
                raise Missing("no apt-get and dpkg-deb: the guest's kernel is a Debian package")
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            deb = download(folder)
            unpack(deb, folder)
            with open(f"{folder}/vmlinuz", "rb") as f:
                replace(kernel, vmlinux(f.read()))  # last: its presence means that the package is complete
            os.remove(deb)
        write_initramfs(folder, initramfs)
    return kernel, initramfs
