"""guest.py — boot virtual machines (guests) with QEMU that have an RDMA device (rdma_rxe), and run scripts in them.

    with Guest() as g:
        status, text = g.run("ibv_devinfo -d rxe0")
    with pair() as (a, b):                  # connected by a network of their own: 10.9.0.1 and 10.9.0.2
        server = b.start("ib_write_bw -d rxe0 -x 1")
        a.run("netem loss 2%; ib_write_bw -d rxe0 -x 1 10.9.0.2")
        server.wait()

A script is bash, runs as root in the repository's folder, and sees the host's files read-only at their own paths: a program
that was built here runs there, with its libraries.  It can write to /tmp (lost at the end) and to /share (g.share on the host).
Inside: `nobody COMMAND` runs without root's rights, `netem loss 2%` disturbs what the guest sends, see tests/vm/init.
"""
import contextlib, ctypes, os, shutil, signal, socket, subprocess, sys, tempfile, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kernel
from kernel import CACHE, ROOT, Missing

QEMU = "qemu-system-x86_64"
# TCG runs `rep movsb` byte by byte: without erms and fsrm the guest copies memory in other ways, which makes rxe 2.5 times faster.
# QEMU before 9.0.3 decodes a gather whose index is in ymm4 wrongly (its issue 2474), so the guest has no AVX2.
TCG = ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off,erms=off,fsrm=off,avx2=off"]
KVM = ["-accel", "kvm", "-cpu", "host,arch-capabilities=off"]
BOOT_S = {"kvm": 15, "tcg": 120}  # several times as long as on a busy machine
BOOTS = {"kvm": 1, "tcg": 3}  # attempts: an emulated guest on a busy machine may panic, because its clocks do not agree
RUN_S = 100
GRACE_S = 20


class Stopped(Exception):
    """A guest ended, or a script did not end within its time limit; the text includes the end of the output."""


def die_with_parent():
    """Runs in the child process before QEMU starts: the kernel kills QEMU when the test ends, even if the test is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Job:
    """A script that runs in a guest."""

    def __init__(self, guest, number, timeout_s):
        self.guest, self.number, self.timeout_s, self.end = guest, number, timeout_s, time.monotonic() + timeout_s

    def output(self):
        """The output of the script so far."""
        with contextlib.suppress(FileNotFoundError), open(f"{self.guest.share}/{self.number}.out", encoding="utf-8", errors="replace") as f:
            return f.read()
        return ""

    def wait(self):
        """Wait for the script; return (exit status, output).  A script that exceeds its time limit is killed, after GRACE_S also the
        guest."""
        status = self.guest.answer(f"done {self.number} ", self.end + GRACE_S)
        if status is None:
            self.guest.kill()
        if status in (None, "137"):
            raise Stopped(f"script {self.number} did not end within {self.timeout_s} s\n{self.output()[-4000:]}{self.guest.console()[-2000:]}")
        return int(status), self.output()


class Guest:
    """A virtual machine.  accel: 'kvm', 'tcg', or None for KVM where it works.  nic: one end of a socket pair that is its network cable."""

    def __init__(self, accel=None, n_cpus=2, memory_mb=1536, nic=None, address="10.9.0.1"):
        self.accel = accel or usable_accel()
        if not shutil.which(QEMU):
            raise Missing(f"no {QEMU}: install qemu-system-x86")
        self.vmlinux, self.initramfs = kernel.boot_files()
        self.n_cpus, self.memory_mb, self.nic, self.address = n_cpus, memory_mb, nic, address
        self.process, self.n_jobs, self.lines = None, 0, []

    def command(self, control_fd):
        words = ["root=" + ROOT, "address=" + self.address]
        files = "local,security_model=none,multidevs=remap"
        drive = ["-virtfs", f"{files},path=/,mount_tag=host,readonly=on", "-virtfs", f"{files},path={self.share},mount_tag=share"]
        card = ["-netdev", f"socket,id=n,fd={self.nic.fileno()}", "-device",
                f"virtio-net-pci,netdev=n,romfile=,mac=52:54:00:09:00:0{self.address[-1]}"] if self.nic else ["-nic", "none"]
        return [QEMU, "-M", "q35", *(KVM if self.accel == "kvm" else TCG), "-smp", str(self.n_cpus), "-m", str(self.memory_mb), "-nodefaults", "-no-user-config",
                "-display", "none", "-no-reboot", "-kernel", self.vmlinux, "-initrd", self.initramfs,
                "-append", "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off random.trust_cpu=on " + " ".join(f"gpul.{w}" for w in words),
                "-serial", "stdio", "-chardev", f"socket,id=control,fd={control_fd}", "-device", "virtio-serial-pci",
                "-device", "virtserialport,chardev=control,name=control", *drive, *card]

    def start_qemu(self):
        """Start QEMU; does not wait until the guest has booted."""
        self.folder = tempfile.mkdtemp(prefix="guest-", dir=CACHE)
        self.share = f"{self.folder}/share"
        os.mkdir(self.share)
        os.chmod(self.share, 0o777)  # also for unprivileged users of the guest
        self.control, theirs = socket.socketpair()
        with theirs, open(f"{self.folder}/console", "wb") as console:
            fds = [theirs.fileno()] + ([self.nic.fileno()] if self.nic else [])
            self.process = subprocess.Popen(self.command(theirs.fileno()), pass_fds=fds, stdin=subprocess.DEVNULL,
                                            stdout=console, stderr=console, preexec_fn=die_with_parent)

    def __enter__(self):
        last = BOOTS[self.accel] - 1
        for attempt in range(last + 1):
            if attempt or not self.process:
                self.start_qemu()
            try:
                self.await_boot()
                return self
            except Stopped:
                self.close()
                if attempt == last:
                    raise
            except BaseException:
                self.close()
                raise

    def await_boot(self):
        self.lines = []
        if self.answer("ready", time.monotonic() + BOOT_S[self.accel]) is None:
            raise Stopped(f"the guest did not boot with {self.accel} in {BOOT_S[self.accel]} s\n{self.console()[-4000:]}")

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.kill()
        self.control.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def console(self):
        """The output of the kernel and init, or of QEMU."""
        with contextlib.suppress(OSError), open(f"{self.folder}/console", encoding="utf-8", errors="replace") as f:
            return f.read()
        return ""

    def answer(self, start, end):
        """Wait until the time `end` for a line from the guest that starts with this text; return the rest of the line, or None."""
        text = b""
        while True:
            for line in self.lines:
                if line.startswith(start):
                    self.lines.remove(line)
                    return line[len(start):]
            self.control.settimeout(max(end - time.monotonic(), 0.001))
            try:
                data = self.control.recv(4096)
            except TimeoutError:
                return None
            except ConnectionError:
                data = b""
            if not data:
                raise Stopped(f"the guest ended\n{self.console()[-4000:]}")
            text += data
            *whole, text = text.split(b"\n")
            self.lines += [l.decode(errors="replace").strip() for l in whole]

    def start(self, script, timeout_s=RUN_S):
        """Run a bash script in the background; several can run at a time."""
        self.n_jobs += 1
        env = {name: value for name, value in os.environ.items() if name.startswith(("GPULOAD_", "ASAN_", "UBSAN_", "LSAN_", "TSAN_"))}
        with open(f"{self.share}/{self.n_jobs}.sh", "w", encoding="utf-8") as f:
            f.write(f"cd {ROOT!r}\n" + "".join(f"export {n}={v!r}\n" for n, v in env.items()) + script)
        with contextlib.suppress(BrokenPipeError):  # the guest has ended, which wait() reports
            self.control.sendall(b"%d %d\n" % (self.n_jobs, timeout_s))
        return Job(self, self.n_jobs, timeout_s)

    def run(self, script, timeout_s=RUN_S):
        """Run a bash script; return (exit status, output)."""
        return self.start(script, timeout_s).wait()


@contextlib.contextmanager
def pair(**options):
    """Boot two guests that are connected by a network, with the addresses 10.9.0.1 and 10.9.0.2 and an RDMA device rxe0 each."""
    ends = socket.socketpair()
    with ends[0], ends[1]:
        guests = [Guest(nic=end, address=f"10.9.0.{i}", **options) for i, end in enumerate(ends, 1)]
        guests[1].start_qemu()  # so that both boot at the same time
        with contextlib.closing(guests[1]), guests[0], guests[1]:
            yield guests


def usable_accel():
    """Return 'kvm' if a guest boots with KVM, which may fail although /dev/kvm exists, else 'tcg'.  A file keeps the result until the
    host reboots."""
    forced = os.environ.get("GPULOAD_VM_ACCEL")
    if forced:
        return forced
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as f:
        path = f"{CACHE}/accel-{f.read().strip()}"
    with kernel.locked("accel"):  # tests run in parallel, but only one boots a guest here
        if not os.path.exists(path):
            try:
                with Guest("kvm"):
                    found = "kvm"
            except Stopped:
                found = "tcg"
            kernel.replace(path, found.encode())
    with open(path, encoding="utf-8") as f:
        return f.read()
