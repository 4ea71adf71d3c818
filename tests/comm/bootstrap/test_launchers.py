#!/usr/bin/env python3
"""Ranks started by mpirun, or with the variables that torchrun sets; also in a container without /dev/shm."""
import os, shutil, socket, subprocess, sys, tempfile, unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
RANK = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"), "tests/comm/bootstrap/rank")
LONG = 60  # seconds; a passing test never takes that long
OURS = ("GPULOAD_COMM", "GPULOAD_LIBPMIX", "PMIX", "OMPI", "SLURM", "RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC")


def expected(n, source):
    return sorted(f"rank {r} of {n} by {source}: sum {n * (n - 1) // 2}" for r in range(n))


class Launchers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(OURS)}
        self.env["GPULOAD_RUNTIME_DIR"] = f"{self.folder.name}/run"
        # If two mpirun of Open MPI 4 create the same folder at the same time, one of them fails.
        self.env["OMPI_MCA_orte_tmpdir_base"] = self.folder.name
        with open(f"{self.folder.name}/leaks", "w", encoding="utf-8") as f:  # for builds with AddressSanitizer
            f.write("leak:libpmix.so\n")
        self.env["LSAN_OPTIONS"] = f"suppressions={self.folder.name}/leaks:print_suppressions=0"

    def tearDown(self):
        run = self.env["GPULOAD_RUNTIME_DIR"]
        self.assertEqual(os.listdir(run) if os.path.exists(run) else [], [], "files are left")
        self.folder.cleanup()

    def run_command(self, *argv, **env):
        r = subprocess.run(argv, env={**self.env, **env}, capture_output=True, text=True, timeout=LONG, stdin=subprocess.DEVNULL)
        return r.returncode, r.stdout, r.stderr

    def mpirun(self, n, *argv, **env):
        if not shutil.which("mpirun"):
            self.skipTest("no mpirun")
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return self.run_command("mpirun", *root, "--oversubscribe", "-n", str(n), *argv, **env)

    def start_torchrun(self, n, ranks, each=lambda r: {}, **env):
        """Start ranks with the variables of torchrun; return [(status, standard output, standard error)]."""
        job = {"WORLD_SIZE": str(n), "LOCAL_WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500",
               "TORCHELASTIC_RUN_ID": "none", "TORCHELASTIC_RESTART_COUNT": "0", **env}
        started = [subprocess.Popen([RANK, "meet"], env={**self.env, **job, "RANK": str(r), "LOCAL_RANK": str(r), **each(r)}, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) for r in ranks]
        ends = [p.communicate(timeout=LONG) for p in started]
        return [(p.returncode, *end) for p, end in zip(started, ends)]


class Mpirun(Launchers):
    def test_ranks_meet_under_mpirun(self):
        for n in 1, 4:
            status, out, err = self.mpirun(n, RANK, "meet")
            self.assertEqual(status, 0, err)
            self.assertEqual(sorted(out.splitlines()), expected(n, "pmix"))

    def test_ranks_meet_under_mpirun_without_libpmix(self):
        status, out, err = self.mpirun(3, RANK, "meet", GPULOAD_LIBPMIX="/nowhere/libpmix.so")
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(out.splitlines()), expected(3, "pmix"))

    def test_two_jobs_at_once_do_not_meet_each_other(self):
        if not shutil.which("mpirun"):
            self.skipTest("no mpirun")
        run = f"mpirun {'--allow-run-as-root' if os.geteuid() == 0 else ''} --oversubscribe -n 2 {RANK} meet"
        base = f"{self.folder.name}/job"
        script = f"for i in 1 2; do mkdir {base}$i; OMPI_MCA_orte_tmpdir_base={base}$i {run} & done; wait"
        status, out, err = self.run_command("sh", "-c", script)
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(out.splitlines()), sorted(expected(2, "pmix") * 2), err)

    def test_mpirun_reports_the_status_of_a_rank_that_fails(self):
        script = f"[ $OMPI_COMM_WORLD_RANK = 1 ] && exit 7; exec {RANK} meet"
        status, out, _ = self.mpirun(3, "sh", "-c", script)
        self.assertEqual((status, out), (7, ""))
        # mpirun has ended rank 0, whose socket may be left: the next job removes it.
        self.assertEqual(self.mpirun(2, RANK, "meet")[0], 0)

    def test_gpuloads_launcher_inside_mpirun_starts_a_job_of_its_own(self):
        status, out, err = self.mpirun(1, RANK, "launch", "2", RANK, "meet")
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(out.splitlines()), expected(2, "gpuload"))


class Torchrun(Launchers):
    def test_ranks_meet_with_the_variables_of_torchrun(self):
        ends = self.start_torchrun(3, range(3))
        self.assertEqual([status for status, _, _ in ends], [0, 0, 0], ends)
        self.assertEqual(sorted(out.strip() for _, out, _ in ends), expected(3, "torchrun"))

    def test_ranks_of_several_machines_need_a_secret(self):
        status, _, err = self.run_command(RANK, "meet", RANK="0", WORLD_SIZE="4", LOCAL_WORLD_SIZE="2", LOCAL_RANK="0", MASTER_ADDR="a",
                                          MASTER_PORT="1")
        self.assertEqual(status, 1)
        self.assertTrue(err.startswith("rank: GPULOAD_COMM_SECRET is not set: ranks on several machines need a common secret"), err)

    def store_with_a_free_port_beside(self):
        """Return a socket that listens on MASTER_PORT, as torchrun's own store does; the next port is free."""
        while True:
            with socket.socket() as beside:
                beside.bind(("127.0.0.1", 0))
                try:
                    return socket.create_server(("127.0.0.1", beside.getsockname()[1] - 1))
                except OSError:
                    pass

    def test_ranks_of_two_hosts_meet_beside_torchruns_store(self):
        with self.store_with_a_free_port_beside() as store:
            port = store.getsockname()[1]
            env = dict(LOCAL_WORLD_SIZE="2", MASTER_PORT=str(port), GPULOAD_COMM_SECRET="a secret of the tests")
            ends = self.start_torchrun(4, range(4), each=lambda r: {"GPULOAD_COMM_HOST": "ab"[r // 2], "LOCAL_RANK": str(r % 2)}, **env)
        self.assertEqual([status for status, _, _ in ends], [0] * 4, ends)
        self.assertEqual(sorted(out.strip() for _, out, _ in ends), expected(4, "torchrun"))


class Containers(Launchers):
    def unshare(self, *argv):
        """Run a command in namespaces of its own; skip if this is not permitted."""
        if not shutil.which("unshare") or subprocess.run(["unshare", "-rmpf", "true"], capture_output=True).returncode:
            self.skipTest("unshare is not permitted")
        return self.run_command("unshare", *argv)

    def test_ranks_meet_without_dev_shm(self):
        hide = "mount -t tmpfs -o ro,size=0 none /dev/shm || exit 9; ! touch /dev/shm/x 2>/dev/null || exit 9"
        status, out, err = self.unshare("-rm", "sh", "-c", f"{hide}; exec {RANK} launch 4 {RANK} meet")
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(out.splitlines()), expected(4, "gpuload"))

    def test_ranks_meet_in_different_pid_namespaces(self):
        status, out, err = self.unshare("-r", RANK, "launch", "3", "unshare", "-pf", RANK, "meet")
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(out.splitlines()), expected(3, "gpuload"))

    def test_a_launcher_that_is_process_1(self):
        status, out, err = self.unshare("-rpf", "--mount-proc", RANK, "launch", "3", "sh", "-c", f"sleep 1000 & exec {RANK} meet")
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(out.splitlines()), expected(3, "gpuload"))

    def test_a_launcher_without_proc(self):
        hide = "mount -t tmpfs none /proc || exit 9"
        with open(RANK, "rb") as f:
            if b"__asan_init" in f.read():
                self.skipTest("LeakSanitizer needs /proc")
        status, out, err = self.unshare("-rmpf", "sh", "-c", f"{hide}; {RANK} launch 3 {RANK} meet")
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(out.splitlines()), expected(3, "gpuload"))


if __name__ == "__main__":
    if not os.path.exists(RANK):
        print(f"skipped: {RANK} has not been built")
        sys.exit(77)
    unittest.main()
