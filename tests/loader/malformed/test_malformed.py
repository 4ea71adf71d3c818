#!/usr/bin/env python3
"""Runs every command that reads files on malformed containers: each prints one clear line and uses little memory.

    tests/loader/malformed/test_malformed.py            the test
    tests/loader/malformed/test_malformed.py --show     prints the message, memory and time of each
    tests/loader/malformed/test_malformed.py --keep DIR writes the files to DIR
"""
import os, resource, sys, tempfile, time, unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases

GPULOAD = os.path.abspath(os.path.join(os.environ.get("GPULOAD_BUILD", "build"), "gpuload"))
TIMEOUT_S = 60  # a command that takes longer hangs; --show prints the times
MEMORY_KB = 64 << 10
LINES = 3  # for an error in PTX: the message, the line of the PTX, a mark below the column

COMMANDS = {"ls": ["ls"], "images": ["ls", "--images"], "json": ["ls", "--json"], "extract": ["extract"],
            "run": ["run", "--driver", "soft", "--kernel", "vecadd"]}
FAILS = {"container": set(COMMANDS), "part": set(COMMANDS) - {"run"}, "payload": set(COMMANDS) - {"images"}, "kernels": {"ls", "json", "run"}, "fine": set(),
         "any": {"ls"}}
MAY_FAIL = {"container": set(), "part": {"run"}, "payload": set(), "kernels": set(), "fine": {"run"}, "any": set(COMMANDS)}


def write_all(folder):
    os.mkdir(f"{folder}/folder")
    os.mkfifo(f"{folder}/fifo")
    rows = [(name, data, "good", "") for name, data in cases.GOOD.items()] + list(cases.all_cases())
    for name, data, _, _ in rows:
        assert not os.path.exists(f"{folder}/{name}"), f"two cases have the name {name}"
        with open(f"{folder}/{name}", "wb") as f:
            f.write(data)
    return [(name, shows, word) for name, _, shows, word in rows]


def command(how, folder, name):
    out = ["-o", f"{folder}/out.{name}"] if how == "extract" else []
    arguments = ["u64=0", "u64=0", "u64=0", "u32=0"] if how == "run" else []
    return [*COMMANDS[how], name, *out, *arguments]


def run(folder, arguments):
    """Run gpuload; return (exit status, stderr, peak memory in KB, seconds)."""
    with tempfile.TemporaryFile() as err:
        start = time.monotonic()
        pid = os.fork()
        if pid == 0:
            os.chdir(folder)
            quiet = os.open(os.devnull, os.O_RDWR)
            for fd, to in ((0, quiet), (1, quiet), (2, err.fileno())):
                os.dup2(to, fd)
            resource.setrlimit(resource.RLIMIT_CPU, (TIMEOUT_S, TIMEOUT_S))
            os.execv(GPULOAD, [GPULOAD, *arguments])
        status, used = wait(pid)
        err.seek(0)
        return status, err.read().decode(errors="replace"), used.ru_maxrss, time.monotonic() - start


def wait(pid):
    deadline = time.monotonic() + TIMEOUT_S
    pause = 0.0005
    while True:
        done, status, used = os.wait4(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), used
        if time.monotonic() > deadline:
            os.kill(pid, 9)
            return None, os.wait4(pid, 0)[2]
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


class Malformed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        cls.rows = write_all(cls.folder)
        # A sanitizer uses memory itself, so the limit is not checked then.
        cls.plain = run(cls.folder, ["version"])[2] < 20 << 10

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def complaint(self, how, name, shows, word):
        """Run one command; return what is wrong with its result, or None."""
        status, said, memory_kb, _ = run(self.folder, command(how, self.folder, name))
        # nvJitLink prints more lines itself.
        lines = [line for line in said.splitlines() if not line.startswith("error   : ")]
        fails, may = how in FAILS.get(shows, ()), how in MAY_FAIL.get(shows, ())
        if status not in (0, 1) or (status == 0 and fails) or (status == 1 and not fails and not may):
            return f"exit status {status}: {said.strip()[:300]}"
        if self.plain and memory_kb > MEMORY_KB:
            return f"{memory_kb >> 10} MB"
        if status == 0:
            return f"it printed: {said[:200]}" if said and how != "run" else None
        if not lines or not lines[0].startswith(f"gpuload {COMMANDS[how][0]}: ") or name not in lines[0] or \
                (COMMANDS[how][0] == "ls" and word not in said):
            return f"not clear: {said[:300]!r}"
        if len(lines) > (LINES if name.endswith(".ptx") or ".version" in said or "^" in said else 1):
            return f"{len(lines)} lines: {said[:400]!r}"
        return None

    def complain(self, rows):
        bad = []
        for name, shows, word in rows:
            for how in COMMANDS:
                why = self.complaint(how, name, shows, word)
                if why:
                    bad.append(f"{' '.join(COMMANDS[how])} {name}: {why}")
        self.assertEqual(len(bad), 0, "\n" + "\n".join(bad))

    def test_reads_well_formed_files(self):
        self.complain([(name, "fine", word) for name, shows, word in self.rows if shows == "good"])

    def test_refuses_malformed_files_in_one_clear_line(self):
        rows = [r for r in self.rows if r[1] != "good"]
        self.assertGreater(len(rows), 50)
        self.complain(rows)


def show():
    with tempfile.TemporaryDirectory() as folder:
        for name, shows, _ in write_all(folder):
            for how in COMMANDS:
                status, said, memory_kb, seconds = run(folder, command(how, folder, name))
                print(f"{name:32} {shows:9} {how:8} {status} {memory_kb >> 10:4} MB {seconds * 1e3:7.1f} ms  {said.strip()}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--show"]:
        show()
    elif sys.argv[1:2] == ["--keep"]:
        os.makedirs(sys.argv[2])
        write_all(sys.argv[2])
    else:
        unittest.main()
