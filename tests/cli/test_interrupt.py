#!/usr/bin/env python3
"""Ctrl-C immediately ends every command that runs long, and the shell gets status 130."""
import fcntl, os, signal, struct, subprocess, tempfile, termios, time, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GPULOAD = os.path.join(os.path.abspath(os.environ.get("GPULOAD_BUILD", "build")), "gpuload")
ENDLESS = f"{ROOT}/tests/cli/ptx/faults.ptx"


def start(arguments, folder, stdin):
    """Start a command in a process group of its own, as a shell does for a job, with the default action of SIGINT."""
    def as_a_job():
        os.setpgid(0, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    environment = dict(os.environ, GPULOAD_DRIVER="soft", GPULOAD_RUNTIME_DIR=folder)
    return subprocess.Popen([GPULOAD, *arguments], preexec_fn=as_a_job, cwd=folder, env=environment,
                            stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def fields_of(command):
    with open(f"/proc/{command.pid}/stat", encoding="utf-8") as f:
        return f.read().rpartition(")")[2].split()


def computes(command):
    """True if the command has used half a second of processor time, more than its start needs, or has children."""
    running = os.listdir(f"/proc/{command.pid}/task")
    for thread in running:
        with open(f"/proc/{command.pid}/task/{thread}/children", encoding="utf-8") as f:
            if f.read().split():
                return True
    return sum(map(int, fields_of(command)[11:13])) > os.sysconf("SC_CLK_TCK") / 2


def sleeps(command):
    """True if the process runs gpuload, no longer this program before exec, and sleeps."""
    return os.path.samefile(f"/proc/{command.pid}/exe", GPULOAD) and fields_of(command)[0] == "S"


def waiting_bytes(pipe):
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)))[0]


class Interrupt(unittest.TestCase):
    def interrupt(self, arguments, busy, stdin=subprocess.DEVNULL):
        """Press Ctrl-C when the command is busy; return the exit status as a shell reports it."""
        with tempfile.TemporaryDirectory() as folder, start(arguments, folder, stdin) as command:
            while command.poll() is None and not busy(command):
                time.sleep(0.02)
            ended = command.poll()
            os.killpg(command.pid, signal.SIGINT) if ended is None else None
            try:
                _, messages = command.communicate(timeout=120)
            except subprocess.TimeoutExpired:
                os.killpg(command.pid, signal.SIGKILL)
                raise
            self.assertIsNone(ended, f"it ended before Ctrl-C: {messages}")
            return 128 - command.returncode if command.returncode < 0 else command.returncode

    def test_a_kernel_that_does_not_end(self):
        for options in ([], ["--json"], ["--repeat", "1000"], ["--timeout", "600"]):
            with self.subTest(options=options):
                self.assertEqual(self.interrupt(["run", ENDLESS, "--kernel", "endless", *options], computes), 130)

    def test_measurements_and_servers(self):
        """Without Ctrl-C, each of these commands would run for minutes."""
        for arguments, busy in ((["fifo", "bench", "--triggers", "16777216", "--sizes", "64", "--parallel", "8"], computes),
                                (["share", "w", "--bytes", "4K"], sleeps),
                                (["mmap-sum", "--bytes", "2G"], computes),
                                (["comm", "allreduce", "-n", "2", "--bytes", "1M", "--iters", "1000000"], computes)):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.interrupt(arguments, busy), 130)

    def test_input_that_does_not_end(self):
        for arguments in (["ls", "-"], ["extract", "-", "-o", "out"], ["run", "-"], ["compile", "-", "-o", "-"]):
            with self.subTest(arguments=arguments):
                read_end, write_end = os.pipe()
                os.write(write_end, b"/")
                self.assertEqual(self.interrupt(arguments, lambda command: waiting_bytes(read_end) == 0, read_end), 130)
                os.close(read_end)
                os.close(write_end)


if __name__ == "__main__":
    unittest.main()
