#!/usr/bin/env python3
"""gpuload's network plug-in for NCCL between two processes, with each version of its interface; and if a process is killed or stopped."""
import os, re, subprocess, sys, unittest

BUILD = os.path.abspath(os.environ.get("GPULOAD_BUILD", "build"))
WALK = f"{BUILD}/tests/nccl/net/walk"
ENV = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "GPULOAD_NET", "GPULOAD_LOG", "GPULOAD_RDMA"))}
ENV.update(GPULOAD_BUILD=BUILD, NCCL_SOCKET_IFNAME="=lo")


def walk(*args, **env):
    r = subprocess.run([WALK, *args], capture_output=True, text=True, env={**ENV, **env}, timeout=300)
    return r.returncode, r.stdout + r.stderr


class Walk(unittest.TestCase):
    def works(self, *args, **env):
        code, text = walk(*args, **env)
        self.assertEqual(code, 0, text)
        return text

    def test_every_version_moves_messages_of_0_bytes_to_64_mib(self):
        for version in ("10", "11", "12"):
            with self.subTest(version=version):
                self.assertRegex(self.works("--version", version, "--groups", "40", "--seed", version), r"^version \d+: 2 connections.*right")

    def test_many_connections_with_a_thread_each(self):
        self.works("--comms", "6", "--groups", "80", "--most", "300000", "--seed", "5")

    def test_ipv6(self):
        if not os.path.exists("/proc/net/if_inet6"):
            self.skipTest("no IPv6")
        self.assertIn("at ::1", self.works("--groups", "10", "--most", "3000", "--show", NCCL_SOCKET_FAMILY="AF_INET6"))

    def test_jobs_with_one_secret(self):
        self.works("--groups", "5", "--most", "3000", GPULOAD_RDMA_SECRET="the secret of this job")

    def test_several_queue_pairs(self):
        self.works("--groups", "20", GPULOAD_NET_QPS="3")

    def test_a_killed_peer_gives_an_error_at_once(self):
        for who in ("sender", "receiver"):
            with self.subTest(who=who):
                text = self.works("--groups", "20", "--most", "1000000", "--end", f"kill:{who}")
                self.assertLess(int(re.search(r"error after (\d+) ms", text)[1]), 5000)

    def test_a_stopped_peer_gives_an_error_after_the_lease(self):
        for who in ("sender", "receiver"):
            with self.subTest(who=who):
                text = self.works("--groups", "20", "--most", "1000000", "--end", f"stop:{who}", GPULOAD_NET_LEASE_MS="1500")
                self.assertLess(int(re.search(r"error after (\d+) ms", text)[1]), 6500)

    def test_a_wrong_setting_is_explained(self):
        for name, value, text in (("GPULOAD_NET_QPS", "99", "GPULOAD_NET_QPS=99: expected a number from 1 to 16"),
                                  ("NCCL_SOCKET_IFNAME", "none-such", "NCCL_SOCKET_IFNAME=none-such selects no interface"),
                                  ("GPULOAD_NET_PROVIDER", "verbs", "RDMA")):
            if value == "verbs" and os.path.exists("/sys/class/infiniband") and os.listdir("/sys/class/infiniband"):
                continue
            code, out = walk("--groups", "1", **{name: value})
            self.assertNotEqual(code, 0)
            self.assertIn(text, out)
        self.assertIn("none-such", walk("--groups", "1", GPULOAD_NET_PROVIDER="none-such")[1])


if __name__ == "__main__":
    sys.exit(77) if not os.path.exists(WALK) else unittest.main()
