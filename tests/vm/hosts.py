"""hosts.py — uses two virtual machines as the hosts "a" and "b" of a job; same interface as tests/comm/bootstrap/hosts/namespaces.py.

    with guest.pair() as guests:
        hosts = Hosts(guests)
        ranks = hosts.start_job("aabb", ["build/gpuload", "comm", "allreduce"])
        hosts.disturb("a", loss=1)
"""
import contextlib, itertools, os, shlex, time

import guest  # in this folder

BUILD = os.environ.get("GPULOAD_BUILD", "build")
ADDRESS = {"a": "10.9.0.1", "b": "10.9.0.2"}
LONG_S = 1800


class Rank:
    """A rank of a job, which is a process in a guest."""

    def __init__(self, where, name):
        self.guest, self.returncode, self.path = where, None, f"{where.share}/{name}"

    def read(self, what):
        """Return the content of the file NAME.`what` that the guest writes; "": it does not exist yet."""
        with contextlib.suppress(FileNotFoundError), open(f"{self.path}.{what}", encoding="utf-8", errors="replace") as f:
            return f.read()
        return ""

    @property
    def pid(self):
        """The process id in the guest."""
        return int(self.read("pid"))

    def poll(self):
        status = self.read("status")
        if self.returncode is None and status:
            self.returncode = int(status)
        return self.returncode

    def communicate(self):
        """Wait; return (output, "") as subprocess.Popen does, but the first text has both standard output and standard error."""
        end = time.monotonic() + LONG_S
        while self.poll() is None:
            if time.monotonic() > end or self.guest.process.poll() is not None:
                raise guest.Stopped(f"a rank did not end within {LONG_S} s\n{self.read('text')[-4000:]}")
            time.sleep(0.02)
        return self.read("text"), ""


class Hosts:
    def __init__(self, guests):
        self.guest, self.started = dict(zip("ab", guests)), []
        self.ports, self.numbers = itertools.count(20000), itertools.count()
        self.before = {h: self.objects(h) for h in "ab"}

    def start_ranks(self, host, processes):
        """Start a process for each (argv, variables), all by one script, because a busy guest loses characters if scripts follow
        quickly."""
        script, ranks = "", []
        for argv, more in processes:
            name = f"rank-{next(self.numbers)}"
            variables = {"GPULOAD_DRIVER": "soft", "GPULOAD_BUILD": BUILD, "GPULOAD_SOFT_DRIVER": f"{BUILD}/softcuda/libcuda-soft.so",
                         "GPULOAD_LOG": "off", **more}
            script += (f"( ( echo $BASHPID >/share/{name}.pid; exec env {' '.join(f'{n}={shlex.quote(v)}' for n, v in variables.items())} "
                       f"{shlex.join(argv)} ) >/share/{name}.text 2>&1; echo $? >/share/{name}.new; mv /share/{name}.new /share/{name}.status ) &\n")
            ranks.append(Rank(self.guest[host], name))
        self.guest[host].start(script + "wait\n", LONG_S)
        self.started += ranks
        return ranks

    def start(self, host, argv, **more):
        return self.start_ranks(host, [(argv, more)])[0]

    def start_job(self, layout, argv, port=None, **more):
        """Start a rank on host "a" or "b" for each letter of a layout such as "aabb"; each job uses a different port."""
        port = port or next(self.ports)
        job = dict(GPULOAD_COMM_SIZE=str(len(layout)), GPULOAD_COMM_JOB=f"comm-{port}", GPULOAD_COMM_SECRET="a secret of the tests",
                   GPULOAD_COMM_ADDRESS=f"{ADDRESS[layout[0]]}:{port}", **more)
        ranks = {}
        for host in dict.fromkeys(layout):
            here = [r for r, h in enumerate(layout) if h == host]
            ranks.update(zip(here, self.start_ranks(host, [(argv, {**job, "GPULOAD_COMM_RANK": str(r)}) for r in here])))
        return [ranks[r] for r in range(len(layout))]

    def disturb(self, host, loss=0, delay_ms=0, reorder=0):
        """Drop `loss` % of the packets that a host sends; delay the others by delay_ms, except `reorder` % of them, which are not
        delayed."""
        words = ([f"delay {delay_ms}ms"] if delay_ms else []) + ([f"reorder {reorder}%"] if reorder else []) + ([f"loss {loss}%"] if loss else [])
        self.guest[host].run(f"netem {' '.join(words) or 'off'}")

    def objects(self, host):
        """List what ranks can leave in a guest: processes, sockets, files, and objects of the RDMA device."""
        _, text = self.guest[host].run("for name in stay gpuload comm_random; do grep -lsx $name /proc/[0-9]*/comm; done; "
                                       "ss -Htan state listening state established; rdma resource show qp | grep -v GSI; rdma resource show mr; "
                                       "find /dev/shm /tmp -xdev -type f -o -type s")
        return text.splitlines()

    def left(self, host):
        """The objects that exist now, but did not exist after the guests had booted."""
        return [line for line in self.objects(host) if line not in self.before[host]]
