"""namespaces.py — two network namespaces with a wire between them, as two hosts: "a" and "b"; the wire can lose and delay packets (wire.c)."""
import json, os, shutil, subprocess, tempfile, time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../.."))
BUILD = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"))
RANK = f"{BUILD}/tests/comm/bootstrap/rank"
WIRE = f"{BUILD}/tests/comm/bootstrap/hosts/wire"
OURS = ("GPULOAD_COMM", "GPULOAD_LIBPMIX", "PMIX", "OMPI", "SLURM", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC")
SECRET = "a secret of the tests"
AGENT = """#!/bin/sh
# A launcher calls this instead of ssh: HOST COMMAND...
shift
{begin}
exec ip netns exec {space} env {variables} sh -c "$*"
"""


def ip(*argv):
    """Run ip; its standard error is part of the exception."""
    r = subprocess.run(["ip", *argv], capture_output=True, text=True)
    if r.returncode:
        raise OSError(f"ip {' '.join(argv)}: {r.stderr.strip()}")


def why_no_mpirun():
    """Return why mpirun cannot start ranks on two hosts; None: it can."""
    if not shutil.which("mpirun"):
        return "no mpirun"
    with open(f"{BUILD}/gpuload", "rb") as f:
        return None if b"PMIx_Init" in f.read() else "gpuload was built without libpmix"


class TwoHosts:
    """with TwoHosts() as hosts: hosts.start("b", ...).  Raises OSError where namespaces are not permitted.

    With a seed, the wire is a program, and disturb() sets how it disturbs packets."""

    def __init__(self, seed=None):
        self.seed, self.wire = seed, None
        self.tag = f"gpul{os.getpid() % 100000}"
        self.space = {h: f"{self.tag}{h}" for h in "ab"}
        self.address = {"a": "10.99.77.1", "b": "10.99.77.2"}
        self.started = []

    def __enter__(self):
        if os.geteuid() or not shutil.which("ip"):
            raise OSError("namespaces need root and the command ip")
        self.folder = tempfile.TemporaryDirectory()
        try:
            for h in "ab":
                os.makedirs(f"{self.folder.name}/{h}/tmp")
                ip("netns", "add", self.space[h])
            if self.seed is None:
                ip("link", "add", "wire", "netns", self.space["a"], "type", "veth", "peer", "name", "wire", "netns", self.space["b"])
            else:
                if not os.path.exists(WIRE):
                    raise OSError(f"{WIRE} has not been built")
                self.wire = subprocess.Popen([WIRE, self.space["a"], self.space["b"], str(self.seed)], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
                if self.wire.stdout.readline() != "ready\n":
                    raise OSError("the wire between the namespaces did not start")
            for h in "ab":
                ip("-n", self.space[h], "addr", "add", f"{self.address[h]}/24", "dev", "wire")
                ip("-n", self.space[h], "link", "set", "lo", "up")
                ip("-n", self.space[h], "link", "set", "wire", "up")
        except OSError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for p in self.started:
            if p.poll() is None:
                p.kill()
            p.communicate()
        if self.wire:
            self.wire.communicate()
        for h in "ab":
            subprocess.run(["ip", "netns", "del", self.space[h]], capture_output=True)
        self.folder.cleanup()

    def add_wire(self, name, network):
        """Add one more wire, such as add_wire("wire2", "10.99.78"): host a has address .1, b .2."""
        ip("link", "add", name, "netns", self.space["a"], "type", "veth", "peer", "name", name, "netns", self.space["b"])
        for k, h in enumerate("ab", 1):
            ip("-n", self.space[h], "addr", "add", f"{network}.{k}/24", "dev", name)
            ip("-n", self.space[h], "link", "set", name, "up")

    def await_wires(self, *wires):
        """Wait until the wires can be used: libfabric lists an interface only then."""
        deadline = time.monotonic() + 60
        while any(self.link(h, w)["operstate"] != "UP" for h in "ab" for w in wires):
            if time.monotonic() > deadline:
                raise OSError(f"{' and '.join(wires)} do not come up")
            time.sleep(0.05)

    def link(self, host, wire):
        r = subprocess.run(["ip", "-n", self.space[host], "-s", "-j", "link", "show", wire], capture_output=True, text=True, check=True)
        return json.loads(r.stdout)[0]

    def sent_bytes(self, host, wire):
        """Return the number of bytes that a host has sent over a wire so far."""
        return self.link(host, wire)["stats64"]["tx"]["bytes"]

    def environment(self, host, **more):
        """Return the environment of a process on a host.  Both hosts are on one machine, so each needs its own name and folders."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        return {**env, "GPULOAD_COMM_HOST": host, "GPULOAD_RUNTIME_DIR": f"{self.folder.name}/{host}/run",
                "XDG_RUNTIME_DIR": f"{self.folder.name}/{host}/tmp", "TMPDIR": f"{self.folder.name}/{host}/tmp", **more}

    def start(self, host, argv, **more):
        """Start a process on a host; the pid of the result is that of the program, not of a shell."""
        p = subprocess.Popen(["ip", "netns", "exec", self.space[host], *argv], env=self.environment(host, **more), text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(p)
        return p

    def start_job(self, layout, argv, port=29600, wrap=None, **more):
        """Start a rank for each letter of a layout such as "aabb".  wrap: words before the command on each host, such as {"b": ["nice"]}."""
        job = dict(GPULOAD_COMM_SIZE=str(len(layout)), GPULOAD_COMM_JOB=f"comm-{self.tag}-{port}", GPULOAD_COMM_SECRET=SECRET,
                   GPULOAD_COMM_ADDRESS=f"{self.address[layout[0]]}:{port}", **more)
        return [self.start(h, [*(wrap or {}).get(h, []), *argv], GPULOAD_COMM_RANK=str(r), **job) for r, h in enumerate(layout)]

    def agent(self, begin=""):
        """Write a program that runs a command on host b, as ssh would; begin: shell commands before it.  Return its path."""
        agent, b = f"{self.folder.name}/agent", self.environment("b")
        own = ("GPULOAD_COMM_HOST", "GPULOAD_RUNTIME_DIR", "XDG_RUNTIME_DIR", "TMPDIR")
        with open(agent, "w", encoding="utf-8") as f:
            f.write(AGENT.format(space=self.space["b"], variables=" ".join(f"{k}={b[k]}" for k in own), begin=begin))
        os.chmod(agent, 0o755)
        return agent

    def mpirun(self, n_per_host, argv):
        """Start ranks on both hosts by the mpirun of Open MPI, whose daemons connect the hosts."""
        agent = self.agent()
        # Without --leave-session-attached, some kernels starve the ranks of another session for many seconds while ranks of this session
        # poll.  Without the last options, Open MPI spends half a minute on names that the namespaces cannot resolve.
        return self.start("a", ["mpirun", "--allow-run-as-root", "--oversubscribe", "--leave-session-attached", "--mca", "plm_rsh_agent", agent, "--host",
                                ",".join(f"{self.address[h]}:{n_per_host}" for h in "ab"), "--mca", "plm_rsh_no_tree_spawn", "1",
                                "--mca", "oob_tcp_if_include", "10.99.77.0/24", "--mca", "routed", "direct",
                                "-n", str(2 * n_per_host), *argv])

    def set_wire(self, host, state):
        """Cut the wire at a host ("down"), or restore it ("up"): packets are lost silently."""
        ip("-n", self.space[host], "link", "set", "wire", state)

    def disturb(self, host, loss=0, delay_ms=0, reorder=0):
        """Of the packets that a host sends, `loss` % are lost; the others arrive delay_ms later, but `reorder` % of them immediately."""
        self.tell_wire(f"{host} {loss} {delay_ms} {reorder}")

    def spare(self, port):
        """Exempt a TCP port: its packets are neither lost nor delayed."""
        self.tell_wire(f"spare {port}")

    def tell_wire(self, command):
        self.wire.stdin.write(command + "\n")
        self.wire.stdin.flush()
        if self.wire.stdout.readline() != "set\n":
            raise OSError("the wire between the namespaces has ended")

    def left(self, host):
        """Return the processes, sockets (listening or connected) and files that the ranks have left on a host."""
        run = ["ip", "netns", "exec", self.space[host]]
        sockets = subprocess.run([*run, "ss", "-Htan", "state", "listening", "state", "established"], capture_output=True, text=True)
        found = [f"process {pid}" for pid in subprocess.run(["ip", "netns", "pids", self.space[host]], capture_output=True, text=True).stdout.split()]
        found += sockets.stdout.splitlines()
        return found + [os.path.join(at, name) for at, _, names in os.walk(f"{self.folder.name}/{host}") for name in names]
