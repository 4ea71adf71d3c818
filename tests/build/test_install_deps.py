#!/usr/bin/env python3
"""configure.py --install-deps: its first output, the prompt for sudo's password, and that it continues after an interruption.

apt-get, sudo and pip are small scripts here: nothing is installed and no network is used.
"""
import contextlib, io, os, pty, subprocess, sys, tempfile, types, unittest, zipfile
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, ROOT)
from scripts import install_deps, parts
from scripts.progress import Progress

APT_GET = """\
#!/bin/sh
case "$*" in
*--print-uris*) echo "'http://mirror/a.deb' a.deb 41000000 SHA256:0"; echo "'http://mirror/b.deb' b.deb 2000000 SHA256:0" ;;
*install*) echo "dlstatus:1:50.0:Retrieving file 1 of 2"; echo "pmstatus:a:99.0:Installing a"; echo "Setting up a ..."
           [ ! -e "$FAKE/broken" ] && touch "$FAKE/installed" ;;
esac
"""
SUDO = """\
#!/bin/sh
[ "$1" = -n ] && { [ -e "$FAKE/no-password" ] && shift && exec "$@"; exit 1; }
printf '%s' "$2" >/dev/tty
read -r typed </dev/tty
[ "$typed" = secret ] || exit 1
shift 2
exec "$@"
"""
PIP = """\
#!/bin/sh
echo "$@" >>"$FAKE/pip.log"
for last; do :; done
[ "$last" = "$(cat "$FAKE/offline" 2>/dev/null)" ] && exit 1
while [ "$1" != --dest ]; do shift; done
name=$(echo "$last" | sed 's/==/-/; s/-\\([^-]*\\)$/@\\1/; s/-/_/g; s/@/-/')
mkdir -p "$2" && cp "$FAKE/any.whl" "$2/$name-py3-none-any.whl"
"""
# Runs the tested part of configure.py with a non-root user id and one missing package.
PROGRAM = """\
import os, sys, types
sys.path.insert(0, {root!r})
from scripts import install_deps
os.geteuid = lambda: 1000
install_deps.PACKAGES = {{"needed": {sign!r}}}
install_deps.ESSENTIAL = {{"needed"}}
install_deps.WHEELS = {{}}
install_deps.run(types.SimpleNamespace(cuda="none"))
print("configured")
"""


class Fakes(unittest.TestCase):
    """Puts a folder with fake programs first in PATH."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.fake = folder.name
        for name, text in (("apt-get", APT_GET), ("sudo", SUDO), ("pip", PIP)):
            with open(f"{self.fake}/{name}", "w", encoding="utf-8") as f:
                f.write(text)
            os.chmod(f"{self.fake}/{name}", 0o755)
        env = mock.patch.dict(os.environ, FAKE=self.fake, PATH=f"{self.fake}:{os.environ['PATH']}")
        env.start()
        self.addCleanup(env.stop)

    def touch(self, name, text=""):
        with open(f"{self.fake}/{name}", "w", encoding="utf-8") as f:
            f.write(text)

    def program(self):
        return [sys.executable, "-c", PROGRAM.format(root=ROOT, sign=f"{self.fake}/installed")]

    def without_terminal(self):
        r = subprocess.run(self.program(), stdin=subprocess.DEVNULL, capture_output=True, text=True, start_new_session=True)
        return r.returncode, r.stdout, r.stderr

    def on_terminal(self, typed):
        """Run on a pseudo-terminal, and type a line after the prompt; return (status, what the terminal shows)."""
        pid, fd = pty.fork()
        if pid == 0:
            os.execvp(sys.executable, self.program())
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the program has ended
            while data := os.read(fd, 1000):
                shown += data
                if typed and b"password of" in shown:
                    os.write(fd, typed.encode() + b"\n")
                    typed = None
        os.close(fd)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()


class Packages(Fakes):
    def test_sudo_asks_for_the_password_on_a_terminal(self):
        status, shown = self.on_terminal("secret")
        self.assertEqual(status, 0, shown)
        self.assertTrue(os.path.exists(f"{self.fake}/installed"))
        self.assertIn("\r\033[Kinstalling packages: 99 %  Installing a", shown)
        self.assertNotIn("Setting up", shown)
        self.assertIn("configured", shown)
        self.assertLess(shown.index("missing Debian packages, 43 MB"), shown.index("password of"))

    def test_a_wrong_password_ends_with_the_command_to_run(self):
        status, shown = self.on_terminal("wrong")
        self.assertEqual(status, 1)
        self.assertRegex(shown, r"configure.py: .*as root, run: apt-get install needed\r\n$")
        self.assertFalse(os.path.exists(f"{self.fake}/installed"))

    def test_without_a_terminal_one_line_gives_the_command_to_run(self):
        status, out, err = self.without_terminal()
        self.assertEqual(status, 1)
        self.assertEqual(out, "missing Debian packages, 43 MB to download with their dependencies:\n    needed\n")
        self.assertEqual(err, "configure.py: sudo needs a password, and there is no terminal to ask for it: run: sudo apt-get install needed\n")

    def test_a_sudo_without_password_needs_no_terminal_and_progress_is_plain_lines(self):
        self.touch("no-password")
        status, out, err = self.without_terminal()
        self.assertEqual((status, err), (0, ""))
        self.assertEqual(out.splitlines()[2:], ["downloading packages", "installing packages", "configured"])
        self.assertEqual(self.without_terminal(), (0, "configured\n", ""))  # second run: nothing is missing

    def test_a_failed_apt_get_shows_its_output(self):
        self.touch("no-password")
        self.touch("broken")
        status, out, err = self.without_terminal()
        self.assertEqual(status, 1)
        self.assertIn("Setting up a ...\n", out)
        self.assertIn("apt-get failed", err)

    def test_without_root_only_a_missing_essential_package_is_an_error(self):
        for missing, stops in ((["mandoc"], False), (["gcc", "mandoc"], True)):
            with mock.patch.multiple(install_deps, missing_packages=lambda m=missing: m,
                                     apt=mock.Mock(side_effect=install_deps.Unable("no root"))), \
                 contextlib.redirect_stdout(io.StringIO()) as out:
                if stops:
                    self.assertRaises(install_deps.Unable, install_deps.packages, missing)
                else:
                    install_deps.packages(missing)
                    self.assertEqual(out.getvalue(), "no root; continuing without them\n")

    def test_starts_no_program_if_nothing_is_missing(self):
        with mock.patch.multiple(install_deps, missing_packages=lambda: [], missing_wheels=lambda args: {}), \
             mock.patch.object(subprocess, "Popen", side_effect=AssertionError("a program was started")):
            install_deps.run(None)


class Wheels(Fakes):
    def setUp(self):
        super().setUp()
        with zipfile.ZipFile(f"{self.fake}/any.whl", "w") as z:
            z.writestr("nvidia/cu13/include/cuda.h", "#define CUDA_VERSION 13000\n")
            z.writestr("nvidia/cu13/bin/nvcc", "#!/bin/sh\n")
            z.writestr("nvidia/cu13/lib/libnvrtc.so.13", "")
            z.writestr("nvidia/cu13/lib/libnvrtc.alt.so.13", "")
            z.writestr("nvidia_a.dist-info/METADATA", "")
        self.home = f"{self.fake}/cuda-wheels"
        wheels = {"nvidia-a": ("13.0.1", 2), "nvidia-b-c": ("13.0.2", 90)}
        for patch in (mock.patch.multiple(install_deps, HOME=self.home, WHEELS=wheels, missing_packages=lambda: [],
                                          pip_command=lambda: [f"{self.fake}/pip"]),
                      mock.patch.object(parts, "cuda_home", lambda args: os.path.isdir(self.home))):
            patch.start()
            self.addCleanup(patch.stop)

    def run_here(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            install_deps.run(types.SimpleNamespace(cuda=None))
        return out.getvalue()

    def test_the_wheels_are_listed_with_sizes_then_unpacked_as_a_toolkit(self):
        out = self.run_here()
        self.assertTrue(out.startswith(f"no CUDA toolkit found: NVIDIA's wheels, 92 MB to download into {self.home}:\n"
                                       "    nvidia-a 13.0.1, 2 MB\n    nvidia-b-c 13.0.2, 90 MB\n"
                                       "downloading nvidia-a 13.0.1, 2 MB\n"), out)
        self.assertTrue(os.access(f"{self.home}/bin/nvcc", os.X_OK))
        self.assertTrue(os.path.exists(f"{self.home}/lib64/libnvrtc.so"))
        self.assertEqual(sorted(os.listdir(f"{self.home}/lib")), ["libnvrtc.so", "libnvrtc.so.13"])
        with open(f"{self.home}/wheels.txt", encoding="utf-8") as f:
            self.assertEqual(f.read(), "nvidia-a==13.0.1\nnvidia-b-c==13.0.2\n")
        self.assertFalse(os.path.exists(f"{self.home}.tmp"))

    def test_after_a_failed_download_only_the_missing_wheels_are_downloaded(self):
        self.touch("offline", "nvidia-b-c==13.0.2")
        with self.assertRaisesRegex(SystemExit, "pip could not download nvidia-b-c 13.0.2 .*run the command again"):
            self.run_here()
        self.assertFalse(os.path.exists(self.home))
        os.remove(f"{self.fake}/offline")
        os.remove(f"{self.fake}/pip.log")
        self.run_here()
        with open(f"{self.fake}/pip.log", encoding="utf-8") as f:
            self.assertEqual([line.split()[-1] for line in f], ["nvidia-b-c==13.0.2"])
        self.assertTrue(os.path.exists(f"{self.home}/include/cuda.h"))

    def test_pip_is_named_with_the_other_packages_if_the_wheels_need_it(self):
        with mock.patch.multiple(install_deps, pip_command=lambda: None, apt=mock.Mock(side_effect=install_deps.Unable("no root"))), \
             contextlib.redirect_stdout(io.StringIO()) as out, self.assertRaisesRegex(SystemExit, "no pip: install python3-pip"):
            install_deps.run(types.SimpleNamespace(cuda=None))
        self.assertIn("    python3-pip\n", out.getvalue())


class Shown(unittest.TestCase):
    def test_a_terminal_line_is_not_longer_than_the_terminal_and_is_removed_at_the_end(self):
        out = io.StringIO()
        out.isatty = lambda: True
        p = Progress(out)
        with mock.patch.dict(os.environ, COLUMNS="20"):
            p.show("downloading", "3 MB", "a long name of a file")
        p.end()
        self.assertEqual(out.getvalue(), "\r\033[Kdownloading: 3 MB  \r\033[K")


if __name__ == "__main__":
    unittest.main()
