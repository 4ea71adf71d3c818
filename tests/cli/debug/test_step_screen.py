#!/usr/bin/env python3
"""gpuload step in a terminal: its windows, keys, the command line, and the end.  The terminal is a small emulator of a VT100."""
import fcntl, os, pty, re, select, signal, struct, subprocess, sys, termios, time, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
GPULOAD = os.path.join(os.path.abspath(os.environ.get("GPULOAD_BUILD", "build")), "gpuload")
HERE = f"{ROOT}/tests/cli/ptx"
ROWS, COLUMNS = 40, 120
LIMIT_S = 120


class Screen:
    """The characters that a VT100 shows after some output."""

    def __init__(self):
        self.cells = [[" "] * COLUMNS for _ in range(ROWS)]
        self.y = self.x = 0
        self.top, self.bottom = 0, ROWS - 1

    def feed(self, text):
        """Show the text; returns an incomplete escape sequence at its end."""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self.put(text[at])
                at += 1
                continue
            m = re.compile(r"\x1b(\[([?\d;]*)([A-Za-z@])|[()].|[=>78MDE])").match(text, at)
            if not m:
                return text[at:]
            if m[3]:
                self.control(m[3], [int(n or 0) for n in m[2].lstrip("?").split(";")])
            elif m[1] == "M":
                self.y -= self.y > self.top
            at = m.end()
        return ""

    def put(self, c):
        if c == "\r":
            self.x = 0
        elif c == "\n":
            if self.y == self.bottom:
                del self.cells[self.top]
                self.cells.insert(self.bottom, [" "] * COLUMNS)
            else:
                self.y += 1
        elif c == "\b":
            self.x -= self.x > 0
        elif c >= " ":
            self.cells[self.y][min(self.x, COLUMNS - 1)] = c
            self.x += 1

    def control(self, letter, n):
        first = max(n[0], 1)
        if letter == "H":
            self.y, self.x = min(first, ROWS) - 1, (max(n[1], 1) if len(n) > 1 else 1) - 1
        elif letter in "ABCD":
            self.y = max(min(self.y + first * {"A": -1, "B": 1}.get(letter, 0), ROWS - 1), 0)
            self.x = max(min(self.x + first * {"D": -1, "C": 1}.get(letter, 0), COLUMNS - 1), 0)
        elif letter == "K":
            begin, end = (self.x, COLUMNS) if n[0] == 0 else (0, self.x + 1)
            self.cells[self.y][begin:end] = [" "] * (end - begin)
        elif letter == "J":
            for y in range(self.y + 1 if n[0] == 0 else 0, ROWS):
                self.cells[y] = [" "] * COLUMNS
            if n[0] == 0:
                self.control("K", [0])
        elif letter == "r":
            self.top, self.bottom = first - 1, (n[1] if len(n) > 1 else ROWS) - 1

    def text(self):
        return "\n".join("".join(row).rstrip() for row in self.cells)


class Stepper:
    """gpuload step in a pseudo-terminal."""

    def __init__(self, *words, term="vt100"):
        self.terminal, end = pty.openpty()
        fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("4H", ROWS, COLUMNS, 0, 0))
        env = dict(os.environ, GPULOAD_DRIVER="soft", GPULOAD_CACHE="off", TERM=term, LC_ALL="C.UTF-8")
        self.process = subprocess.Popen([GPULOAD, "step", *(words or ("step.ptx",))], stdin=end, stdout=end, stderr=end, cwd=HERE, env=env,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(end)
        self.screen, self.rest, self.raw = Screen(), "", ""

    def read(self, timeout_s):
        if not select.select([self.terminal], [], [], timeout_s)[0]:
            return False
        try:
            text = os.read(self.terminal, 65536).decode(errors="replace")
        except OSError:
            return False
        self.raw += text
        self.rest = self.screen.feed(self.rest + text)
        return bool(text)

    def key(self, keys):
        os.write(self.terminal, keys.encode())

    def wait(self, *patterns):
        """Wait until the screen matches all patterns; return its text."""
        end = time.monotonic() + LIMIT_S
        while not all(re.search(p, self.screen.text()) for p in patterns):
            if time.monotonic() > end or (not self.read(1) and self.process.poll() is not None):
                raise AssertionError(f"{patterns} are not shown:\n{self.screen.text()}")
        return self.screen.text()

    def close(self):
        self.key("q")
        while self.process.poll() is None:
            self.read(0.1)
        while self.read(0):
            pass
        os.close(self.terminal)
        return self.process.returncode


class Windows(unittest.TestCase):
    def test_shows_sources_warps_registers_and_follows_steps(self):
        s = Stepper()
        s.wait(r"steps  block 0 warp 0 mask ffffffff  #1  entry", r">   9 .*unsigned t", r">  25 +mov.u32 %r1, %tid.x",
               r"0\.0  #{32} current line 9")
        s.key("d")
        s.wait(r"0\.0  #{8}\.{24} ready line 11", r"0\.0  \.{8}#{24} current line 13", r"diverged: 2 groups")
        s.key("n")
        s.wait(r"mask 000000ff  #10", r">  11 .*t \+= 1000;", r">  38 +add.u32 %r5, %r1, 1000")
        s.key("n")
        s.wait(r"mask ffffffff  #11", r"%r5 +u32 +1000")
        self.assertEqual(s.close(), 0)

    def test_keys_select_a_lane_and_go_back(self):
        s = Stepper()
        s.wait("#1  entry")
        s.key("iii")
        s.wait("#4 ", r"lane 0 of block 0 warp 0")
        s.key("\x1bOC")  # cursor right
        s.wait(r"lane 1 of block 0 warp 0", r"%r1 +u32 +1\b")
        s.key("b")
        s.wait("#3 ")
        s.key("B")
        s.wait("#1 ")
        self.assertEqual(s.close(), 0)

    def test_the_command_line_breakpoints_and_memory(self):
        s = Stepper()
        s.wait("#1  entry")
        s.key(":break 16 if warp == 1\n")
        s.wait("breakpoint 1: step.cu:16 if warp == 1")
        s.key("c")
        s.wait(r"block 0 warp 1 mask ffffffff  #25  breakpoint")
        s.key("m")
        s.wait("shared memory", r"    0 e8030000 e9030000 ea030000")
        s.key("m:p %r5 + 1\n")
        s.wait(r"1033  \(0x409\)")
        self.assertEqual(s.close(), 0)

    def test_the_output_of_the_program_is_shown_at_its_end(self):
        s = Stepper()
        s.wait("#1  entry")
        s.key("c")
        s.wait("steps has ended")
        s.key("c")
        s.wait("the program has ended: press q to quit", r"arg 0 +out:u32\[128\]: 2064")
        self.assertEqual(s.close(), 0)

    def test_ctrl_c_stops_a_running_kernel(self):
        s = Stepper("faults.ptx", "--kernel", "endless", "--grid", "1", "--block", "32")
        s.wait("#1  entry")
        while "pause" not in s.screen.text():  # Ctrl-C discards keys that have not been read, on a busy machine also this c
            s.key("c")
            time.sleep(0.3)
            s.key("\x03")
            while s.read(1):
                pass
        self.assertEqual(s.close(), 0)

    def test_a_terminal_that_changes_its_size_or_is_too_small(self):
        s = Stepper()
        s.wait("#1  entry")
        fcntl.ioctl(s.terminal, termios.TIOCSWINSZ, struct.pack("4H", 10, 40, 0, 0))
        os.killpg(s.process.pid, signal.SIGWINCH)
        s.wait("the terminal needs 60 x 16 characters")
        self.assertEqual(s.close(), 0)

    def test_an_unknown_terminal_is_refused_with_a_way_out(self):
        s = Stepper(term="no-such-terminal")
        s.wait("use gpuload step --plain")
        while s.process.poll() is None:
            s.read(0.1)
        self.assertEqual(s.process.returncode, 1)
        os.close(s.terminal)


if __name__ == "__main__":
    if subprocess.run([GPULOAD, "step", "--plain"], capture_output=True).returncode != 2:
        sys.exit("gpuload step does not run")
    linked = subprocess.run(["ldd", GPULOAD], capture_output=True, text=True).stdout
    if "libncurses" not in linked:
        print("gpuload was built without ncurses")
        sys.exit(77)
    unittest.main()
