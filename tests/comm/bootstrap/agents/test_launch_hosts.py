#!/usr/bin/env python3
"""gpuload comm launch --hosts over two network namespaces: output, failures, signals; nothing
remains, whichever process is killed."""
import glob, os, re, signal, sys, time, unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../hosts"))
from namespaces import RANK, ROOT, TwoHosts

GPULOAD = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"), "gpuload")
LONG = 120  # seconds; a passing test never takes that long
LOOP = "while :; do sleep 0.05; done"


def running(marker):
    """Return the processes whose environment contains a text; the environment of a zombie is empty."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as f:
                if marker.encode() in f.read():
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass
    return found


def wait_until(condition):
    """Poll a condition; False if it does not become true."""
    end = time.monotonic() + LONG
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


class Hosts(unittest.TestCase):
    space = TwoHosts()

    def setUp(self):
        self.marker = f"GPULOAD_TEST_MARK={os.getpid()}-{self.id()}"

    def tearDown(self):
        self.assertTrue(wait_until(lambda: not running(self.marker)), f"left: {running(self.marker)}")

    def start(self, *argv, options=(), agent=None, hosts="10.99.77.1:2,10.99.77.2:2", launcher="a"):
        name, value = self.marker.split("=")
        return self.space.start(launcher, [GPULOAD, "comm", "launch", "--hosts", hosts, "--agent", agent or self.space.agent(), *options, "--", *argv],
                                **{name: value})

    def end(self, p):
        out, err = p.communicate(timeout=LONG)
        return p.returncode, out, err

    def sh(self, script, **more):
        return self.end(self.start("sh", "-c", script, **more))

    def ready(self, p, n):
        """Return the first n lines that the ranks print, sorted, each split into words."""
        return sorted(p.stdout.readline().split() for _ in range(n))


class Start(Hosts):
    def test_ranks_of_two_hosts_meet(self):
        status, out, err = self.end(self.start(RANK, "meet"))
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(sorted(out.splitlines()), [f"rank {r} of 4 by gpuload: sum 6" for r in range(4)])

    def test_ranks_of_remote_hosts_only_meet(self):
        status, out, err = self.end(self.start(RANK, "meet", hosts="10.99.77.2:3"))
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(sorted(out.splitlines()), [f"rank {r} of 3 by gpuload: sum 3" for r in range(3)])

    def test_each_rank_runs_on_its_host_and_lines_begin_with_its_number(self):
        status, out, err = self.sh("echo $GPULOAD_COMM_RANK $GPULOAD_COMM_HOST; echo error >&2", options=["--tag-output"])
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(out.splitlines()), ["[0] 0 a", "[1] 1 a", "[2] 2 b", "[3] 3 b"])
        self.assertEqual(sorted(err.splitlines()), [f"[{r}] error" for r in range(4)])

    def test_no_command_line_contains_the_secret(self):
        p = self.start("sh", "-c", f"echo $GPULOAD_COMM_SECRET; {LOOP}")
        secrets = {line[0] for line in self.ready(p, 4)}
        self.assertEqual(len(secrets), 1)
        secret = secrets.pop()
        self.assertRegex(secret, r"^[0-9a-f]{32}$")
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            try:
                with open(path, "rb") as f:
                    self.assertNotIn(secret.encode(), f.read(), path)
            except OSError:
                pass
        p.send_signal(signal.SIGTERM)
        self.assertNotEqual(self.end(p)[0], 0)

    def test_what_a_login_shell_prints_is_not_taken_for_the_answer(self):
        status, out, err = self.sh("echo $GPULOAD_COMM_RANK", agent=self.space.agent("echo Welcome; echo Warning: new key >&2"))
        self.assertEqual((status, sorted(out.split())), (0, ["0", "1", "2", "3"]))
        self.assertEqual(err, "Warning: new key\n")

    def test_large_output_arrives_whole(self):
        status, out, err = self.sh("seq 20000")
        self.assertEqual((status, len(out.split()), err), (0, 80000, ""))


    def test_a_collective_starts_itself_on_both_hosts(self):
        name, value = self.marker.split("=")
        p = self.space.start("a", [GPULOAD, "comm", "allreduce", "--hosts", "10.99.77.1:1,10.99.77.2:2", "--driver", "soft", "--bytes", "64K", "--iters", "1"],
                             **{name: value, "GPULOAD_COMM_AGENT": self.space.agent()})
        status, out, err = self.end(p)
        self.assertEqual(status, 0, err)
        self.assertIn("3 ranks (gpuload)", out)
        self.assertIn("# wrong elements: 0 OK", out)
        self.assertRegex(out, r"to ranks? [^;]*: net \(")


class Failures(Hosts):
    def expect_line(self, result, status, text):
        got, out, err = result
        self.assertEqual((got, out), (status, ""), err)
        self.assertRegex(err, rf"\Agpuload comm launch: {text}\n\Z")

    def test_an_agent_that_fails(self):
        agent = self.space.agent("echo no route to host >&2; exit 255")
        self.expect_line(self.sh("true", agent=agent), 1,
                         r"host 10\.99\.77\.2: the agent ended with status 255 and has not started gpuload: no route to host")

    def test_an_agent_that_does_not_exist(self):
        self.expect_line(self.sh("true", agent="/nowhere/agent"), 1,
                         r"host 10\.99\.77\.2: cannot start the agent \(--agent\) /nowhere/agent: No such file or directory")

    def test_an_agent_that_hangs(self):
        agent = self.space.agent("sleep 1000; exit 1")
        self.expect_line(self.sh("true", agent=agent, options=["--start-timeout", "1"]), 1,
                         r"host 10\.99\.77\.2: the agent '.*' has not answered within 1000 ms")

    def test_another_version(self):
        agent = self.space.agent("echo gpuload-part 0.0.7; sleep 1000")
        self.expect_line(self.sh("true", agent=agent), 1, r"host 10\.99\.77\.2: that host has gpuload version 0\.0\.7, but this host has version \S+")

    def test_a_program_that_does_not_exist_there(self):
        status, _, err = self.end(self.start("no-such-program"))
        self.assertEqual(status, 127)
        self.assertRegex(err, r"\Agpuload comm launch: host 10\.99\.77\.[12]: cannot start no-such-program as rank [02]: No such file or directory\n\Z")

    def test_a_program_that_exists_on_one_host_only(self):
        folder = f"{self.space.folder.name}/bin"
        os.makedirs(folder, exist_ok=True)
        if not os.path.exists(f"{folder}/only-here"):
            os.symlink(RANK, f"{folder}/only-here")
        os.environ["PATH"] += f":{folder}"
        status, _, err = self.end(self.start("only-here", "meet", agent=self.space.agent("PATH=/usr/bin:/bin:/usr/sbin:/sbin")))
        self.assertEqual(status, 127)
        reason = r"host 10\.99\.77\.2: cannot start only-here as rank 2: No such file or directory"
        self.assertRegex(err, rf"\A(rank: (rank [01] \(pid \d+\) failed: )?{reason}\n){{0,2}}gpuload comm launch: {reason}\n\Z")

    def test_the_status_is_that_of_the_rank_that_failed(self):
        script = f"[ $GPULOAD_COMM_RANK != 3 ] || exit 5; exec {RANK} meet"
        status, _, err = self.sh(script)
        self.assertEqual(status, 5)
        self.assertRegex(err.splitlines()[-1], r"gpuload comm launch: rank 3 \(pid \d+\) on host 10\.99\.77\.2 ended with status 5(;|$)")

    def test_a_killed_rank_is_named_on_both_hosts(self):
        for victim in 0, 3:
            p = self.start(RANK, "stay")
            pids = {int(line[1]): int(line[2]) for line in self.ready(p, 4)}
            os.kill(pids[victim], signal.SIGKILL)
            status, _, err = self.end(p)
            self.assertEqual(status, 137, err)
            self.assertEqual(len(re.findall(rf"^rank: rank {victim} \(pid {pids[victim]}\) on host {'aabb'[victim]} (?:died|was killed)", err, re.M)), 3, err)
            self.assertRegex(err.splitlines()[-1], rf"^gpuload comm launch: rank {victim} \(pid \d+\) on host 10\.99\.77\.[12] was killed by signal 9")

    def test_a_connection_that_ends(self):
        p = self.start("sh", "-c", f"echo $PPID; {LOOP}", hosts="10.99.77.2:2,10.99.77.1:2")
        parents = {int(line[0]) for line in self.ready(p, 4)}
        here = [pid for pid in parents if os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat(f"/proc/{p.pid}/ns/net").st_ino]
        os.kill((parents - set(here)).pop(), signal.SIGKILL)
        status, _, err = self.end(p)
        self.assertEqual(status, 1)
        self.assertRegex(err, r"\A(Killed\n)?gpuload comm launch: host 10\.99\.77\.2: the agent (was killed by signal 9 \(Killed\)|ended with status 137)\n\Z")


class Signals(Hosts):
    def test_a_signal_reaches_each_rank_once(self):
        p = self.start("sh", "-c", f"trap 'echo got; exit 4' INT; echo ready; {LOOP}")
        self.ready(p, 4)
        p.send_signal(signal.SIGINT)
        status, out, err = self.end(p)
        self.assertEqual((status, out), (4, "got\n" * 4), err)

    def test_a_second_signal_kills(self):
        p = self.start("sh", "-c", f"trap '' TERM; trap 'echo got' INT; echo ready; {LOOP}")
        self.ready(p, 4)
        p.send_signal(signal.SIGINT)
        self.assertEqual(self.ready(p, 4), [["got"]] * 4)
        p.send_signal(signal.SIGINT)
        self.assertNotEqual(self.end(p)[0], 0)

    def test_killing_the_launcher_leaves_no_rank(self):
        p = self.start("sh", "-c", f"trap '' HUP INT TERM; echo ready; {LOOP}")
        self.ready(p, 4)
        p.kill()
        self.end(p)

    def test_processes_that_ranks_leave_behind_are_killed(self):
        status, out, _ = self.sh("sleep 1000 & (setsid sleep 1000 &) ; echo done")
        self.assertEqual((status, out), (0, "done\n" * 4))


if __name__ == "__main__":
    if not os.path.exists(RANK) or not os.path.exists(GPULOAD):
        print(f"skipped: {RANK} or {GPULOAD} has not been built")
        sys.exit(77)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job that a shell starts in the background ignores it
    try:
        with Hosts.space:
            unittest.main()
    except OSError as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
