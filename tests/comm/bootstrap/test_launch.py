#!/usr/bin/env python3
"""The launcher: environment, standard input, exit statuses, signals; nothing remains, whichever
process is killed."""
import fcntl, glob, os, pty, random, re, signal, subprocess, sys, tempfile, termios, time, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
RANK = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"), "tests/comm/bootstrap/rank")
LONG = 60  # seconds; a passing test never takes that long
KILLS = 200


def alive(pid):
    """True if a process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def children(pid):
    """Return the child processes of a process."""
    found = []
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, encoding="utf-8") as f:
                if int(f.read().rsplit(")", 1)[1].split()[1]) == pid:
                    found.append(int(path.split("/")[2]))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def wait_until(condition):
    """Poll a condition; False if it does not become true."""
    end = time.monotonic() + LONG
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


class Launcher(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("GPULOAD_COMM", "PMIX", "OMPI", "RANK", "WORLD_SIZE"))}
        self.env["GPULOAD_RUNTIME_DIR"] = f"{self.folder.name}/run"

    def tearDown(self):
        run = self.env["GPULOAD_RUNTIME_DIR"]
        self.assertEqual(os.listdir(run) if os.path.exists(run) else [], [], "files are left")
        self.folder.cleanup()

    def start(self, n, *argv, grace_ms=None, **options):
        env = dict(self.env, **({"RANK_GRACE_MS": str(grace_ms)} if grace_ms else {}))
        return subprocess.Popen([RANK, "launch", str(n), *argv], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                **{"stdin": subprocess.DEVNULL, **options})

    def end(self, p, given=None):
        """Wait for a launcher; return (exit status, standard output, standard error)."""
        out, err = p.communicate(given, timeout=LONG)
        return p.returncode, out, err

    def sh(self, n, script, given=None, grace_ms=None):
        return self.end(self.start(n, "sh", "-c", script, grace_ms=grace_ms, stdin=subprocess.PIPE), given)

    def lines(self, p, n):
        """Return the first n lines of a launcher's standard output."""
        return [p.stdout.readline().split() for _ in range(n)]


class Start(Launcher):
    def test_each_rank_gets_its_number_the_size_and_one_job_name(self):
        status, out, err = self.sh(5, "echo $GPULOAD_COMM_RANK $GPULOAD_COMM_SIZE $GPULOAD_COMM_JOB")
        got = sorted(line.split() for line in out.splitlines())
        self.assertEqual((status, err), (0, ""))
        self.assertEqual([g[:2] for g in got], [[str(r), "5"] for r in range(5)])
        self.assertEqual(len({g[2] for g in got}), 1)
        other = self.sh(1, "echo $GPULOAD_COMM_JOB")[1].strip()
        self.assertNotEqual(other, got[0][2])

    def test_variables_of_an_outer_job_are_replaced(self):
        self.env.update(GPULOAD_COMM_RANK="7", GPULOAD_COMM_SIZE="9", GPULOAD_COMM_JOB="outer")
        _, out, _ = self.sh(1, "env | grep -c ^GPULOAD_COMM; echo $GPULOAD_COMM_RANK $GPULOAD_COMM_SIZE")
        self.assertEqual(out.split(), ["4", "0", "1"])

    def test_only_rank_0_reads_the_standard_input(self):
        _, out, _ = self.sh(3, "echo $GPULOAD_COMM_RANK $(cat)", given="hello\n")
        self.assertEqual(sorted(out.splitlines()), ["0 hello", "1", "2"])

    def test_ranks_meet(self):
        for n in 1, 2, 32:
            status, out, err = self.end(self.start(n, RANK, "meet"))
            self.assertEqual((status, err), (0, ""))
            self.assertEqual(sorted(out.splitlines()), sorted(f"rank {r} of {n} by gpuload: sum {n * (n - 1) // 2}" for r in range(n)))

    def test_a_program_that_cannot_be_started(self):
        status, _, err = self.end(self.start(3, "no-such-program"))
        self.assertEqual((status, err), (127, "launcher: cannot start no-such-program as rank 0: No such file or directory\n"))
        status, _, err = self.end(self.start(3, "/"))
        self.assertEqual((status, err), (126, "launcher: cannot start / as rank 0: Permission denied\n"))

    def test_the_number_of_ranks_is_checked(self):
        for n in 0, -1, 33:
            status, _, err = self.end(self.start(n, "true"))
            self.assertEqual(status, 1)
            self.assertRegex(err, r"rank 0 is invalid in a job of -?\d+ ranks: expected|the job has 33 ranks, but at most 32")

    def test_a_limit_of_open_files_is_an_error(self):
        p = self.start(4, "true", preexec_fn=lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_NOFILE, (5, 5)))
        status, _, err = self.end(p)
        self.assertNotEqual(status, 0)
        self.assertIn("Too many open files", err)


class End(Launcher):
    def test_the_status_is_that_of_the_rank_that_failed(self):
        status, _, err = self.sh(4, "[ $GPULOAD_COMM_RANK != 2 ] || exit 3")
        self.assertEqual(status, 3)
        self.assertRegex(err, r"^launcher: rank 2 \(pid \d+\) ended with status 3\n$")

    def test_the_status_of_a_killed_rank_is_128_and_its_signal(self):
        status, _, err = self.sh(4, "[ $GPULOAD_COMM_RANK != 1 ] || kill -9 $$")
        self.assertEqual(status, 137)
        self.assertRegex(err, r"^launcher: rank 1 \(pid \d+\) was killed by signal 9 \(Killed\)\n$")

    def test_the_other_ranks_are_terminated_after_the_grace(self):
        status, out, err = self.sh(3, "trap 'echo terminated; exit 1' TERM; [ $GPULOAD_COMM_RANK != 0 ] || exit 9; while :; do sleep 0.01; done",
                                   grace_ms=50)
        self.assertEqual(status, 9)
        self.assertEqual(out, "terminated\n" * 2)
        self.assertRegex(err, r"rank 0 \(pid \d+\) ended with status 9; ranks 1, 2 did not exit within 50 ms and had to be killed\n$")

    def test_stopped_ranks_do_not_use_up_the_grace(self):
        before = time.monotonic()
        status, out, err = self.sh(3, 'case $GPULOAD_COMM_RANK in 0) exit 9;; 1) kill -STOP $$; sleep 100;; 2) sleep 1.5; echo ended;; esac')
        self.assertLess(time.monotonic() - before, 4.5)  # the grace is 5 s
        self.assertEqual((status, out), (9, "ended\n"))  # a rank that runs has its time
        self.assertRegex(err, r"rank 0 \(pid \d+\) ended with status 9; rank 1 had been stopped \(SIGSTOP\) and had to be killed\n$")

    def test_ranks_that_ignore_the_signal_or_are_stopped_are_killed(self):
        status, _, err = self.sh(4, "trap '' TERM; case $GPULOAD_COMM_RANK in 0) exit 9;; 1) kill -STOP $$;; esac; while :; do sleep 0.01; done",
                                 grace_ms=50)
        self.assertEqual(status, 9)
        self.assertIn("ranks 1, 2, 3 did not exit", err)

    def test_processes_that_ranks_leave_behind_are_killed(self):
        status, out, _ = self.sh(3, "sleep 1000 >/dev/null 2>&1 & echo $!; (sleep 1000 >/dev/null 2>&1 & echo $!) & wait $!")
        self.assertEqual(status, 0)
        self.assertEqual(len(out.split()), 6)
        for pid in out.split():
            self.assertFalse(alive(pid))

    def test_a_rank_that_ends_before_the_meeting_ends_the_others(self):
        for rank, how, text in [(0, "exit 5", "ended with status 5"), (2, "kill -9 $$", "was killed by signal 9"),
                                (0, "exit 0", "ended before all ranks had joined the job"), (1, "exit 0", "ended before all ranks had joined the job")]:
            script = f"[ $GPULOAD_COMM_RANK != {rank} ] || {{ sleep 0.1; {how}; }}; exec {RANK} meet"
            status, _, err = self.sh(4, script, grace_ms=LONG * 1000)
            self.assertNotEqual(status, 0)
            self.assertRegex(err, rf"rank: rank {rank} (\(pid \d+\) )?{text}")
            self.assertNotIn("had to be killed", err)

    def test_a_rank_that_comes_late_names_the_one_that_ended_not_those_that_failed_for_it(self):
        script = f"case $GPULOAD_COMM_RANK in 1) exit 0;; 2) sleep 1;; esac; exec {RANK} meet"
        status, _, err = self.sh(3, script, grace_ms=LONG * 1000)
        self.assertNotEqual(status, 0)
        self.assertEqual([line for line in err.splitlines() if line.startswith("rank: ")], ["rank: rank 1 ended before all ranks had joined the job"] * 2)


class Signals(Launcher):
    def test_a_signal_to_the_launcher_reaches_each_rank(self):
        for number, name in (signal.SIGINT, "INT"), (signal.SIGTERM, "TERM"), (signal.SIGHUP, "HUP"):
            p = self.start(3, "sh", "-c", f"trap 'echo got; exit 4' {name}; echo ready; while :; do sleep 0.01; done")
            self.lines(p, 3)
            p.send_signal(number)
            status, out, _ = self.end(p)
            self.assertEqual((status, out), (4, "got\n" * 3))

    def test_control_c_on_a_terminal_reaches_each_rank_once(self):
        terminal, end = pty.openpty()

        def take_terminal():
            os.setsid()
            fcntl.ioctl(end, termios.TIOCSCTTY, 0)

        script = "trap 'echo got' INT; echo ready; i=0; while [ $i -lt 30 ]; do sleep 0.01; i=$((i+1)); done"
        p = self.start(3, "sh", "-c", script, stdin=end, preexec_fn=take_terminal, grace_ms=LONG * 1000)
        self.lines(p, 3)
        os.write(terminal, b"\x03")
        status, out, err = self.end(p)
        os.close(terminal)
        os.close(end)
        self.assertEqual((status, out), (0, "got\n" * 3), err)

    def test_a_second_signal_kills(self):
        p = self.start(2, "sh", "-c", "trap '' TERM; trap 'echo got' INT; echo ready; while :; do sleep 0.01; done", grace_ms=LONG * 1000)
        self.lines(p, 2)
        p.send_signal(signal.SIGINT)
        self.assertEqual(self.lines(p, 2), [["got"]] * 2)
        p.send_signal(signal.SIGINT)
        self.assertNotEqual(self.end(p)[0], 0)

    def test_an_ignored_signal_stays_ignored(self):
        p = self.start(2, "sh", "-c", "echo ready; sleep 0.2; echo done", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.lines(p, 2)
        p.send_signal(signal.SIGHUP)
        self.assertEqual(self.end(p)[:2], (0, "done\n" * 2))

    def test_the_ranks_have_the_signal_mask_of_the_caller(self):
        with open("/proc/self/status", encoding="utf-8") as f:
            mask = re.search(r"SigBlk:\s*(\w+)", f.read())[1]
        self.assertEqual(self.sh(2, "exec grep SigBlk /proc/self/status")[1].split(), ["SigBlk:", mask] * 2)

    def test_the_next_launcher_removes_the_files_of_a_killed_job(self):
        run = self.env["GPULOAD_RUNTIME_DIR"]
        p = self.start(2, "sh", "-c", f"[ $GPULOAD_COMM_RANK = 1 ] || exec {RANK} meet; exec sleep 1000")
        self.assertTrue(wait_until(lambda: os.path.exists(run) and len(os.listdir(run)) == 2))
        p.kill()
        self.end(p)
        self.assertEqual(len(os.listdir(run)), 2)  # nobody is left who could remove them
        self.assertTrue(wait_until(lambda: self.sh(1, "true")[0] == 0 and not os.listdir(run)))

    def test_killing_the_launcher_leaves_no_rank(self):
        p = self.start(4, RANK, "stay")
        pids = [int(pid) for _, _, pid in self.lines(p, 4)]
        p.kill()
        self.end(p)
        for pid in pids:
            self.assertTrue(wait_until(lambda: not alive(pid)), f"rank {pid} still runs")


class Kills(Launcher):
    def test_any_rank_may_be_killed_at_any_moment(self):
        """Every other rank ends by itself and reports the killed one.  The grace is so long that the test would time out if the
        launcher had to end a rank."""
        seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
        dice = random.Random(seed)
        for i in range(KILLS):
            p = self.start(4, RANK, "stay", grace_ms=LONG * 1000)
            time.sleep(dice.random() * 0.03)
            self.assertTrue(wait_until(lambda: children(p.pid)))
            ranks = sorted(children(p.pid))
            victim = dice.choice(ranks)
            os.kill(victim, signal.SIGKILL)
            status, _, err = self.end(p)
            where = f"SEED={seed}, kill {i}, process {victim}:\n{err}"
            self.assertNotIn("had to be killed", err, where)
            for pid in ranks:
                self.assertFalse(alive(pid), where)
            if f"launcher: cannot start {RANK}" in err:
                continue  # killed before it was a rank
            self.assertEqual(status, 137, where)
            said = [line for line in err.splitlines() if line.startswith("rank: ")]
            self.assertEqual(len(said), 3, where)
            for line in said:
                self.assertRegex(line, rf"rank \d \(pid {victim}\) |rank 0 ended before|rank \d ended before", where)


if __name__ == "__main__":
    if not os.path.exists(RANK):
        print(f"skipped: {RANK} has not been built")
        sys.exit(77)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job that a shell starts in the background ignores it
    unittest.main()
