#!/usr/bin/env python3
"""The README's commands work and print the output shown there, and its C program runs; so do the guides' commands.

A ```console block contains commands after `$ ` and their output (console.py): each command is run, and its output must
be equal except for times and addresses; in the guides, except for numbers.  An indented line is a command too.  Commands that begin with `build/`
are run and must exit with status 0; OTHERS lists the other commands and the tests that run them.  In docs/,
the indented commands begin with `gpuload`.
"""
import glob, os, re, shlex, shutil, subprocess, tempfile, unittest

import console  # in this folder
from console import ROOT, read

BUILD = os.environ.get("GPULOAD_BUILD", "build")
OTHERS = {   # start of a command: the test that runs it
    "git clone": "not tested: the tests run in a cloned folder",
    "./configure.py": ".ci/run",
    "ninja": ".ci/run, tests/demo, tests/install",
    "LD_LIBRARY_PATH=build/softcuda": "tests/gpu/plain",
    "nvcc -cudart none": "tests/nvidia/cudart",
    "GPULOAD_SOFT_TOOLS=debug:listen=": "tests/cli/debug/test_step.py",
    "gpuload step --attach": "tests/cli/debug/test_step.py",
    "cp -r cli/debug/vscode": "not tested: VS Code is not there",
    "gpuload comm incast -n 5 --rate": "tests/cli/comm/comm_incast.bats",  # needs the right to make network namespaces
}

SOCKETS = tempfile.TemporaryDirectory()  # for the sockets of shared memory, instead of the user's folder


def readme():
    return read(f"{ROOT}/README.md")


def indented(text):
    """Return the indented commands outside of fenced blocks, without comments."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return [line.split("  #")[0].rstrip() for line in re.findall(r"^    (\S.*)$", text, re.M)]


def run_command(command, folder=ROOT):
    env = dict(os.environ, GPULOAD_DRIVER="soft", GPULOAD_RUNTIME_DIR=SOCKETS.name)
    command = re.sub(r"(^|\s)build/", lambda m: f"{m[1]}{os.path.abspath(f'{ROOT}/{BUILD}')}/", command)
    r = subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True)
    return r.returncode, r.stdout + r.stderr


def write_weights(path):
    """Write a .npy file of 4096 x 1024 f32."""
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (4096, 1024), }"
    header += " " * (127 - 10 - len(header)) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header.encode() + b"\0\0\0?" * (4096 * 1024))


def remove_varying(text):
    """Remove the parts of an output that differ from run to run."""
    text = re.sub(r"^time .*$", "time", text, flags=re.M)
    text = re.sub(r" in [0-9.]+ ms: [0-9.]+ M/s$", " in TIME", text, flags=re.M)
    text = re.sub(r"^total sum \[\d+\]", "total sum [PID]", text, flags=re.M)
    return re.sub(r"0x[0-9a-f]+", "0x", text).strip()


class Readme(unittest.TestCase):
    def test_console_blocks_show_the_real_output(self):
        shown = list(console.sessions(readme()))
        self.assertGreaterEqual(len(shown), 2)
        for [command], [printed] in shown:
            with self.subTest(command=command):
                self.assertEqual(remove_varying(run_command(command)[1]), remove_varying(printed))

    def test_the_paths_of_the_build_exist(self):
        paths = set(re.findall(r"\bbuild/[\w./-]*\w", readme()))
        self.assertGreaterEqual(len(paths), 2)
        for path in paths:
            self.assertTrue(os.path.exists(f"{ROOT}/{BUILD}/{path[6:]}"), path)

    def test_indented_commands_work(self):
        commands = indented(readme())
        self.assertGreaterEqual(len(commands), 2)
        for command in commands:
            if command.startswith("build/"):
                self.check_command(command)
            else:
                self.assertTrue(command.startswith(tuple(OTHERS)), f"no test runs this command: {command}")

    def test_the_c_program_builds_and_runs(self):
        stage = os.path.abspath(f"{ROOT}/{BUILD}/stage")
        if not shutil.which("pkg-config") or not os.path.exists(f"{stage}/lib/pkgconfig/gpuload.pc"):
            self.skipTest("pkg-config or the installed files are missing")
        [program] = re.findall(r"^```c\n(.*?)^```", readme(), re.M | re.S)
        with tempfile.TemporaryDirectory() as folder:
            with open(f"{folder}/program.c", "w", encoding="utf-8") as f:
                f.write(program)
            flags = subprocess.run(["pkg-config", f"--define-variable=prefix={stage}", "--cflags", "--libs", "gpuload"], capture_output=True,
                                   text=True, check=True, env=dict(os.environ, PKG_CONFIG_PATH=f"{stage}/lib/pkgconfig")).stdout
            r = subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "program.c", "-o", "program", *shlex.split(flags)], cwd=folder,
                               capture_output=True, text=True)
            self.assertEqual(r.returncode, 0, r.stderr)
            status, printed = run_command(f"{folder}/program")
            self.assertEqual(status, 0, printed)
            self.assertIn("@@@@@@", printed)

    def test_the_links_lead_to_files(self):
        pages = [f"{ROOT}/README.md", f"{ROOT}/CONTRIBUTING.md", *glob.glob(f"{ROOT}/docs/*.md")]
        for page in pages:
            for link in re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", read(page)):
                self.assertTrue(os.path.exists(os.path.join(os.path.dirname(page), link)), f"{page}: {link}")

    def test_docs_readme_lists_every_guide(self):
        listed = set(re.findall(r"^- \[([\w.-]+)\]", read(f"{ROOT}/docs/README.md"), re.M))
        self.assertEqual(listed, {os.path.basename(p) for p in glob.glob(f"{ROOT}/docs/*.md")} - {"README.md"})

    def test_the_guides_commands_work(self):
        commands = [c for guide in glob.glob(f"{ROOT}/docs/*.md") for c in indented(read(guide))]
        self.assertGreaterEqual(len(commands), 3)
        for command in commands:
            if not command.startswith(tuple(OTHERS)):
                self.assertIn("gpuload ", command, f"no test runs this command: {command}")
                self.check_command(re.sub(r"(^|\s)gpuload ", r"\1build/gpuload ", command))

    def test_the_guides_show_the_real_output(self):
        env = dict(os.environ, GPULOAD_DRIVER="soft", GPULOAD_RUNTIME_DIR=SOCKETS.name)
        env["PATH"] = f"{os.path.abspath(f'{ROOT}/{BUILD}')}:{env['PATH']}"
        env |= {"PYTHONPATH": f"{ROOT}/python", "GPULOAD_BUILD": os.path.abspath(f"{ROOT}/{BUILD}")}  # as if the wheel was installed
        n_shown = 0
        for guide in glob.glob(f"{ROOT}/docs/*.md"):
            inside = ""  # the folder in which the guide is
            for commands, outputs in console.sessions(read(guide)):
                if commands[0].startswith("cd "):
                    inside = commands[0][3:].strip()
                    continue
                n_shown += 1
                with self.subTest(guide=os.path.basename(guide), commands=commands), tempfile.TemporaryDirectory() as folder:
                    for name in ("demo", "examples", "tests"):
                        os.symlink(f"{ROOT}/{name}", f"{folder}/{name}")
                    write_weights(f"{folder}/weights.npy")
                    printed = console.run_pair(commands, outputs, folder, env) if len(commands) == 2 \
                        else [console.run_one(commands[0], f"{folder}/{inside}", env)[1]]
                    for shown, output in zip(outputs, printed):
                        output = "\n".join(line for line in output.splitlines() if not line.startswith("gpuload: no "))
                        self.assertIsNone(console.first_difference(shown, output), output)
        self.assertGreaterEqual(n_shown, 2)

    def check_command(self, command):
        """Check that the command exits with status 0 in a new folder with links to its inputs."""
        with self.subTest(command=command), tempfile.TemporaryDirectory() as folder:
            for name in ("demo", "examples", "tests"):
                os.symlink(f"{ROOT}/{name}", f"{folder}/{name}")
            status, printed = run_command(command, folder)
            if status and "NVRTC" in printed:
                self.skipTest("NVRTC was not found")
            self.assertEqual(status, 0, printed)


if __name__ == "__main__":
    unittest.main()
