"""slurm.py — a Slurm cluster of two nodes, "a" and "b", in two network namespaces: one slurmctld, two slurmd, no munge."""
import os, shutil, subprocess, time

from namespaces import TwoHosts

DAEMONS = ("slurmctld", "slurmd", "srun", "sinfo", "scontrol")
START_SECONDS = 60
SETTINGS = """ClusterName={tag}
SlurmctldHost=a({a})
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmdSpoolDir={folder}/spool.%n
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPort={port}
SlurmdPort={port_of_nodes}
SrunPortRange={srun_ports}
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SchedulerType=sched/builtin
ReturnToService=2
KillWait=2
TmpFS={folder}/%n/tmp
NodeName=a NodeHostname=a NodeAddr={a} CPUs={cpus} State=UNKNOWN
NodeName=b NodeHostname=b NodeAddr={b} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=a,b Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


def missing():
    """Return the requirements of a cluster that this machine lacks; "": none."""
    return ", ".join(d for d in DAEMONS if not shutil.which(d, path=os.environ["PATH"] + ":/usr/sbin:/sbin"))


class Cluster(TwoHosts):
    """with Cluster() as c: c.srun(["-N", "2", ...]).  Raises OSError where namespaces or the daemons do not start."""

    def __enter__(self):
        super().__enter__()
        try:
            self.start_daemons()
        except OSError:
            self.__exit__()
            raise
        return self

    def daemon(self, host, *argv):
        """Start a daemon in the foreground, with its host's name and in its own pid namespace, so that its child processes end with it."""
        path = shutil.which(argv[0], path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        script = f'hostname {host}; mount --bind {self.folder.name}/hosts /etc/hosts; exec "$@"'
        return self.start_inside(host, ["unshare", "-u", "-pf", "--mount-proc", "--kill-child", "sh", "-c", script, "sh", path, *argv[1:]])

    def start_inside(self, host, argv):
        """Start a process that sees the machine's /sys, which "ip netns exec" hides: slurmd wants its control groups."""
        p = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "nsenter", f"--net=/run/netns/{self.space[host]}", *argv], env=self.environment(host), text=True,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(p)
        return p

    def start_daemons(self):
        self.conf = f"{self.folder.name}/slurm.conf"
        for name in ("state", "spool.a", "spool.b"):
            os.makedirs(f"{self.folder.name}/{name}")
        with open(f"{self.folder.name}/hosts", "w", encoding="utf-8") as f:
            f.write("".join(f"{self.address[h]} {h}\n" for h in "ab") + "127.0.0.1 localhost\n")
        with open(f"{self.folder.name}/cgroup.conf", "w", encoding="utf-8") as f:
            f.write("CgroupPlugin=cgroup/v1\n")
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write(SETTINGS.format(tag=self.tag, folder=self.folder.name, cpus=os.cpu_count(), port=26817, port_of_nodes=26818,
                                    srun_ports="26900-26999", **self.address))
        daemons = [self.daemon("a", "slurmctld", "-D", "-f", self.conf)]
        daemons += [self.daemon(h, "slurmd", "-D", "-N", h, "-f", self.conf) for h in "ab"]
        end = time.monotonic() + START_SECONDS
        while self.count_idle() < 2:
            ended = [d for d in daemons if d.poll() is not None]
            if ended or time.monotonic() > end:
                raise OSError(f"Slurm does not start: {ended[0].communicate()[1] if ended else self.logs()}")
            time.sleep(0.1)

    def logs(self):
        """Return the last lines that the daemons have printed."""
        text = ""
        for name in ("slurmctld.log", "slurmd.a.log", "slurmd.b.log"):
            path = f"{self.folder.name}/{name}"
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as f:
                    text += f"{name}:\n" + "".join(f.readlines()[-15:])
        return text

    def count_idle(self):
        r = subprocess.run(["ip", "netns", "exec", self.space["a"], "sinfo", "-h", "-N", "-o", "%t"], env=self.variables(), text=True,
                           capture_output=True)
        return r.stdout.split().count("idle")

    def variables(self, **more):
        return {k: v for k, v in {**self.environment("a"), "SLURM_CONF": self.conf, **more}.items() if k != "GPULOAD_COMM_HOST"}

    def srun(self, options, argv, **more):
        """Start a program on the nodes; each of them has a name and folders of its own."""
        own = "; ".join(f"{h}) {' '.join(f'export {k}={v};' for k, v in self.environment(h).items() if k in OWN)} ;" for h in "ab")
        script = f'case $SLURMD_NODENAME in {own}; esac; exec "$@"'
        p = subprocess.Popen(["ip", "netns", "exec", self.space["a"], "srun", *options, "sh", "-c", script, "sh", *argv],
                             env=self.variables(**more), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.started.append(p)
        return p


OWN = ("GPULOAD_COMM_HOST", "GPULOAD_RUNTIME_DIR", "XDG_RUNTIME_DIR", "TMPDIR")
