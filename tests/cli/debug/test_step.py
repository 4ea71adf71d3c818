#!/usr/bin/env python3
"""gpuload step: commands line by line, on a kernel whose lanes diverge, exchange values and call a function."""
import os, re, shutil, signal, subprocess, tempfile, time, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
GPULOAD = os.path.join(os.path.abspath(os.environ.get("GPULOAD_BUILD", "build")), "gpuload")
HERE = f"{ROOT}/tests/cli/ptx"
ENVIRONMENT = dict(os.environ, GPULOAD_DRIVER="soft", GPULOAD_CACHE="off")


def is_sanitized():
    """True if gpuload is sanitized.  Programs that it starts with the sanitized driver would then need the sanitizer's library."""
    with open(os.path.join(os.path.dirname(GPULOAD), "libgpuload-rt.a"), "rb") as f:
        return re.search(rb"__(asan|ubsan|tsan|gcov)_", f.read())


def has_nvcc():
    return os.access(os.environ.get("GPULOAD_NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc", os.X_OK)


def step(*commands, words=("step.ptx",), status=0, **environment):
    """Return the output of a session with these commands."""
    r = subprocess.run([GPULOAD, "step", "--plain", *words], input="".join(f"{c}\n" for c in commands), capture_output=True, text=True,
                       cwd=HERE, env=dict(ENVIRONMENT, **environment), timeout=120)
    assert r.returncode == status, (r.returncode, r.stdout, r.stderr)
    return r.stdout + r.stderr


def moments(text):
    """Return the numbers #N of the stops, in order."""
    return [int(n) for n in re.findall(r"^#(\d+) ", text, re.M)]


class Steps(unittest.TestCase):
    def test_the_first_stop_is_before_the_first_instruction(self):
        out = step()
        self.assertIn("#1 steps block 0 warp 0 lane 0 mask ffffffff  step.cu:9  ptx:25", out)
        self.assertIn("unsigned t = threadIdx.x;", out)
        self.assertIn("ptx  mov.u32 %r1, %tid.x;", out)

    def test_steps_by_instruction_and_by_source_line(self):
        out = step("i", "i 2", "s", "n")
        self.assertEqual(moments(out), [1, 2, 4, 6, 8])
        self.assertIn("step.cu:10  ptx:31", out)

    def test_an_empty_line_repeats_the_last_command(self):
        self.assertEqual(moments(step("i", "", "")), [1, 2, 3, 4])

    def test_divergence_is_shown_with_its_groups_of_lanes(self):
        out = step("diverge", "warps", "n", "n")
        self.assertIn("warp 0 has diverged: 2 groups of lanes", out)
        self.assertIn("block 0 warp 0  |########........................| ready    ptx:38  line 11", out)
        self.assertIn("block 0 warp 0  |........########################| current  ptx:34  line 13", out)
        self.assertIn("mask 000000ff  step.cu:11", out)
        self.assertIn("mask ffffffff  step.cu:14", out)  # they have joined

    def test_a_step_of_a_lane_passes_over_instructions_of_others(self):
        self.assertIn("mask 000000ff  step.cu:11", step("diverge", "lane 3", "si"))

    def test_the_selected_lane_stays_selected(self):
        self.assertIn("#3 steps block 0 warp 0 lane 9 ", step("i", "lane 9", "i"))

    def test_runs_to_the_next_barrier_warp_and_block(self):
        out = step("barrier", "restart", "warp+", "block+")
        self.assertIn("barrier 0 of block 0 is complete", out)
        self.assertRegex(out, r"#\d+ steps block 0 warp 1 .*step.cu:9")
        self.assertRegex(out, r"#\d+ steps block 1 warp 0 .*step.cu:9")

    def test_steps_into_over_and_out_of_a_function(self):
        out = step("break 16", "c", "s", "w", "out", "restart", "c", "n")
        self.assertRegex(out, r"step.cu:3  ptx:12")
        self.assertRegex(out, r"\*0  twice  step.cu:3  step.ptx:12\n 1  steps  step.cu:16  step.ptx:53")
        self.assertRegex(out, r"step.cu:16  ptx:54")
        self.assertRegex(out, r"step.cu:17  ptx:57")

    def test_the_end_of_the_kernel_is_a_stop_and_the_results_follow(self):
        out = step("c", "c")
        self.assertIn("steps has ended", out)
        self.assertIn("arg 0     out:u32[128]: 2064 2066", out)
        self.assertIn("the program has ended", out)


class Breakpoints(unittest.TestCase):
    def test_a_line_of_the_cu_and_of_the_ptx(self):
        out = step("break 15", "break step.ptx:34", "c", "c", "breaks")
        self.assertIn("breakpoint 2\n#8 steps block 0 warp 0 lane 8 mask ffffff00", out)
        self.assertIn("breakpoint 1\n#12 steps", out)
        self.assertIn("breakpoint 1: step.cu:15  hit 1 times", out)

    def test_a_line_without_code_moves_to_the_next_one_with_code(self):
        self.assertIn("breakpoint 1: step.cu:13\n", step("break 12"))

    def test_a_label_and_a_function(self):
        out = step("break label join", "break twice", "c", "delete 1", "c")
        self.assertIn("breakpoint 1\n#11 ", out)
        self.assertRegex(out, r"breakpoint 2\n#\d+ steps .*step.cu:3")

    def test_names_of_cxx_are_shown_and_understood(self):
        with open(f"{HERE}/step.ptx") as f:
            ptx = f.read()
        for plain, mangled in (("steps", "_Z5stepsPj"), ("twice", "_ZN3app5twiceEj"), ("cells", "_ZZ5stepsPjE5cells")):
            ptx = re.sub(rf"\b{plain}\b", mangled, ptx)
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/step.ptx", "w") as f:
                f.write(ptx)
            for name in ("twice", "app::twice", "app::twice(unsigned int)", "_ZN3app5twiceEj"):
                out = step("vars", "p cells", "p %none", f"break {name}", "c", "w", words=(f"{d}/step.ptx",))
                self.assertRegex(out, r"shared +steps\(unsigned int\*\)::cells +256 bytes at 0")
                self.assertIn("\n0  (0x0)", out)
                self.assertIn("function steps(unsigned int*) has no register %none", out)
                self.assertRegex(out, r"breakpoint 1\n#\d+ steps.unsigned int\*. .*step.cu:3")
                self.assertRegex(out, r"\*0  app::twice\(unsigned int\)  .*\n 1  steps\(unsigned int\*\)  ")

    def test_a_condition_selects_the_lane(self):
        out = step("break 16 if lane == 3 && %r5 > 1000 && warp == 1", "c", "p %r5", "p lane")
        self.assertRegex(out, r"breakpoint 1\n#\d+ steps block 0 warp 1 lane 3 ")
        self.assertIn("1035  (0x40b)\n3  (0x3)", out)

    def test_a_condition_that_is_never_true_never_stops(self):
        self.assertIn("steps has ended", step("break 16 if %r5 == 7", "c"))

    def test_watches_shared_and_global_memory(self):
        out = step("watch shared[132]", "c", "delete all", "break 17", "c", "insn 4", "p %rd1", "watch %rd1 + 64*4 4", "delete 2", "c")
        self.assertIn("watchpoint 1: lane 1 of warp 1 writes shared[132]", out)
        self.assertRegex(out, r"watchpoint 3: lane 0 of warp 0 writes %rd1 \+ 64\*4")

    def test_a_fault_stops_and_the_way_back_leads_to_it(self):
        out = step("c", "back", "back", "c", words=("faults.ptx", "--kernel", "traps", "--grid", "1", "--block", "32"))
        self.assertEqual(out.count("faults.ptx:21: trap executed; traps, block 0, thread 0\n#1 traps"), 2)
        self.assertEqual(out.count("the beginning of the kernel"), 1)


class Back(unittest.TestCase):
    def test_every_moment_can_be_reached_again_with_the_same_values(self):
        forward = step("lane 9", *["i", "regs"] * 8).split("#")[2:]
        backward = step("lane 9", "goto 9", "regs", *["back", "regs"] * 7).split("#")[2:]
        self.assertEqual(len(forward), 8)
        self.assertEqual([f.strip() for f in forward], [b.strip() for b in reversed(backward)])

    def test_back_by_lines_and_to_the_breakpoint_before(self):
        out = step("break 14", "c", "c", "rc", "bs", "bs", "rc")
        self.assertEqual(moments(out), [1, 11, 23, 11, 10, 8, 1])
        self.assertIn("the beginning of the kernel", out)

    def test_memory_is_restored(self):
        out = step("break 17", "c", "x shared 0 8", "restart", "x shared 0 8", "c", "x shared 0 8")
        self.assertEqual(re.findall(r"^0x0  (.*)", out, re.M), ["e8030000 e9030000", "00000000 00000000", "e8030000 e9030000"])

    def test_device_malloc_returns_the_same_addresses_again(self):
        out = step("i 3", "p %rd1", "restart", "i 3", "p %rd1", "back 2", "i 2", "p %rd1",
                   words=("step_malloc.ptx", "--grid", "1", "--block", "32"))
        addresses = re.findall(r"^(0x\w+)  \(", out, re.M)
        self.assertEqual((len(addresses), len(set(addresses))), (3, 1))

    def test_a_moment_behind_the_end_is_reported(self):
        self.assertIn("steps has ended at instruction #120, before instruction #300", step("goto 300"))

    def test_back_from_the_end_of_the_kernel(self):
        out = step("c", "back", "c", "c")
        self.assertRegex(out, r"steps has ended\n#\d+ steps .*step.cu:18")
        self.assertIn("arg 0 ", out)


class Looks(unittest.TestCase):
    def test_registers_parameters_variables_lanes_and_memory(self):
        out = step("goto 11", "lane 9", "r", "lanes %r5", "vars", "params", "specials", "list", "ptx")
        self.assertRegex(out, r"%r5 +s32 +109|%r5 +u32 +109")
        self.assertRegex(out, r" 7: 1007 +\n 8: 108 +")
        self.assertRegex(out, r"shared +cells +256 bytes at 0")
        self.assertRegex(out, r"out +u64 +0x")
        self.assertRegex(out, r"%tid.x +u32 +9")
        self.assertIn(">    14   cells[threadIdx.x] = t;", re.sub("\t", " ", out))
        self.assertIn(">    41      st.shared.u32 [%r4], %r5;", out)

    def test_expressions(self):
        out = step("goto 11", "p 1 + 2 * 3", "p (1 + 2) * 3 == 9 && !0", "p -7 / 2", "p 0x10 >> 2 | 1", "p 1.5 * 2", "p %tid.x + block", "p cells",
                   "p 1 /", "p %nothing", "p 1 / 0", "p [0]", "p nobody")
        for value in ("7  ", "1  ", "-3  ", "5  ", "3  ", "0  "):
            self.assertIn(f"\n{value}(", out)
        self.assertIn("the expression ends too early", out)
        self.assertIn("function steps has no register %nothing", out)
        self.assertIn("division by zero", out)
        self.assertIn("4 bytes at 0x0 cannot be read", out)
        self.assertIn("unknown name 'nobody'", out)

    def test_errors_are_one_line_and_the_session_goes_on(self):
        out = step("stpe", "lane 99", "break", "delete 7", "x 0", "goto 3")
        for text in ("did you mean step", "lane 99 is not running", "break needs LINE", "there is no breakpoint 7", "0x0 cannot be read", "#3 steps"):
            self.assertIn(text, out)

    def test_quit_ends_a_program_that_would_go_on(self):
        out = step("q", "i")
        self.assertEqual(moments(out), [1])

    def test_a_wrong_command_line_is_refused(self):
        self.assertIn("step needs a FILE", step(words=(), status=2))
        self.assertIn("cannot connect to", step(words=("--attach", "/nowhere/socket"), status=1))
        self.assertIn("no such file", step(words=("missing.ptx",), status=1))


class Attach(unittest.TestCase):
    def test_steps_in_a_running_program_which_runs_on_afterwards(self):
        with tempfile.TemporaryDirectory() as folder:
            address = f"{folder}/socket"
            p = subprocess.Popen([GPULOAD, "run", "step.ptx"], stdout=subprocess.PIPE, text=True, cwd=HERE,
                                 env=dict(ENVIRONMENT, GPULOAD_SOFT_TOOLS=f"debug:listen={address}:wait"))
            while not os.path.exists(address) and p.poll() is None:
                time.sleep(0.02)
            out = step("n", "regs", words=("--attach", address))
            self.assertEqual(moments(out), [1, 6])
            text, _ = p.communicate(timeout=120)
            self.assertEqual(p.returncode, 0)
            self.assertIn("out:u32[128]: 2064 2066", text)

    @unittest.skipIf(is_sanitized(), "a program would need the sanitizer's library")
    def test_any_program_of_the_driver_can_be_started(self):
        out = step("n", words=("--program", GPULOAD, "run", "step.ptx"))
        self.assertEqual(moments(out), [1, 6])

    @unittest.skipIf(is_sanitized(), "a program would need the sanitizer's library")
    def test_multicast_memory_has_no_bytes_to_save_or_to_show(self):
        """The memory is saved when the launch begins, so that `back` can restore it."""
        words = ("--program", os.path.join(os.path.dirname(GPULOAD), "tests/softcuda/api/vmm/multicast_program"), "put:m")
        out = step("i 6", "p [%x]:u32", "watch %x", "back", "i", "c", words=words, GPULOAD_SOFT_DEVICES="2")
        self.assertEqual(moments(out), [1, 7, 6, 7, 8])
        self.assertIn("ptx  multimem.st.weak.global.u32 [%a], %t;", out)
        self.assertRegex(out, r"4 bytes at 0x\w+ cannot be read")
        self.assertIn("watchpoint 1: lane 0 of warp 0 writes %x", out)


KERNEL = "#include <cstdio>\n#include <unistd.h>\n#include <sys/wait.h>\n__global__ void set(int *p, int v)\n{\n\tp[threadIdx.x] = v;\n}\n"
LAUNCH = "int h[4], *p; cudaMalloc(&p, 16); set<<<1, 4>>>(p, argc + 5); cudaMemcpy(h, p, 16, cudaMemcpyDeviceToHost); "


@unittest.skipIf(not has_nvcc() or is_sanitized(), "no nvcc, or a program would need the sanitizer's library")
class Programs(unittest.TestCase):
    def step(self, main, *commands, words=(), status=0):
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/program.cu", "w") as f:
                f.write(f"{KERNEL}int main(int argc, char **argv) {{ {main} }}\n")
            return step(*commands, words=(f"{d}/program.cu", *words), status=status)

    def test_the_first_kernel_of_main_is_stepped(self):
        out = self.step(LAUNCH + 'printf("h %d\\n", h[3]);', "lanes %tid.x", "n", "c", "c")
        self.assertRegex(out, r"#1 set.* block 0 warp 0 lane 0 mask 0000000f  .*program.cu:4")
        self.assertIn("p[threadIdx.x] = v;", out)
        self.assertIn("h 6\n", out)
        self.assertTrue(out.endswith("the program has ended\n"))

    def test_arguments_follow_two_dashes_and_stdin_is_empty(self):
        out = self.step(LAUNCH + 'printf("h %d %d\\n", h[0], getchar());', "c", "c", words=("--", "a", "b"))
        self.assertIn("h 8 -1\n", out)

    def test_a_program_without_a_launch_is_told_in_one_line(self):
        self.assertEqual(self.step("return 3;", "c", status=3), "the program has ended without launching a kernel\n")

    def test_a_program_that_does_not_compile_is_told_once_and_by_step(self):
        out = self.step("return undefined;", "c", status=1)
        self.assertIn('program.cu(8): error: identifier "undefined" is undefined', out)
        self.assertTrue(out.endswith("\ngpuload step: the program was not built: the messages of nvcc are above\n"))

    def test_only_one_process_of_a_program_that_forks_is_stepped(self):
        out = self.step("int c = fork(); " + LAUNCH + 'printf("h %d\\n", h[0]); if (c) wait(NULL);', "c", "c")
        self.assertEqual(out.count("h 6\n"), 2)
        self.assertEqual(out.count("launch of set"), 1)
        self.assertRegex(out, r"gpuload debug: process \d+ is not stepped")

    def test_a_program_with_the_static_runtime_is_stepped(self):
        with tempfile.TemporaryDirectory() as d:
            with open(f"{d}/program.cu", "w") as f:
                f.write(f"{KERNEL}int main(int argc, char **argv) {{ {LAUNCH} printf(\"h %d\\n\", h[0]); }}\n")
            nvcc = os.environ.get("GPULOAD_NVCC") or shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
            subprocess.run([nvcc, "-o", f"{d}/program", f"{d}/program.cu"], check=True, capture_output=True)
            out = step("i", "c", "c", words=("--program", f"{d}/program", "a"))
        self.assertEqual(moments(out)[:2], [1, 2])
        self.assertIn("h 7\n", out)


class Errors(unittest.TestCase):
    def test_errors_name_step(self):
        self.assertEqual(step(words=("no-such-file.cu",), status=1), "gpuload step: no-such-file.cu: no such file\n")
        self.assertIn("gpuload step: cannot run ./no-such-program: ", step(words=("--program", "./no-such-program"), status=1))
        self.assertIn("give the path of a file instead of -", step(words=("-",), status=2))


class Interrupt(unittest.TestCase):
    def test_ctrl_c_stops_a_running_kernel_and_the_session_goes_on(self):
        p = subprocess.Popen([GPULOAD, "step", "--plain", "faults.ptx", "--kernel", "endless", "--grid", "1", "--block", "32"], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=HERE, env=ENVIRONMENT)
        p.stdin.write("c\nwarps\nq\n")
        p.stdin.flush()
        for line in p.stdout:
            if line.startswith("#1 "):
                break
        time.sleep(0.5)  # whenever the signal comes, the kernel runs or is about to
        p.send_signal(signal.SIGINT)
        out, _ = p.communicate(timeout=120)
        self.assertIn("pause\n#", out)
        self.assertIn("block 0 warp 0", out)
        self.assertEqual(p.returncode, 0)


if __name__ == "__main__":
    unittest.main()
