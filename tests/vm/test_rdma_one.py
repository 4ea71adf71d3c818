#!/usr/bin/env python3
"""The send path (rdma/) over libibverbs, with both ends in one virtual machine: data of every size class, several queue pairs and
connections, and errors, which both ends must report."""
import os, unittest

import case  # in this folder

BUILD = os.environ.get("GPULOAD_BUILD", "build")
EXCHANGE = f"{BUILD}/tests/rdma/exchange/exchange"


def both(client, server=""):
    """Return a script that runs both ends of tests/rdma/exchange; it succeeds if both do."""
    return (f"{EXCHANGE} serve --backend verbs --listen 10.9.0.1 {server} & s=$!; {EXCHANGE} 10.9.0.1 --backend verbs {client}; c=$?; "
            "wait $s; s=$?; echo client $c, server $s; [[ $c$s == 00 ]]")


class Exchanges(case.OneGuest):
    @classmethod
    def setUpClass(cls):
        cls.a = cls.boot(case.guest.Guest(memory_mb=2048))

    def test_the_unit_programs(self):
        env = "GPULOAD_TEST_BACKEND=verbs GPULOAD_LOG=off"
        limit_s = 300  # rxe of Linux 6.12 sometimes waits 50 s for a broken queue pair when it is destroyed ("cleanup failed, err = -110")
        for program in ("test_rdma", "test_closing", "verbs/device_faults"):
            self.assertIn("[  PASSED  ]", self.check(f"{env} {BUILD}/tests/rdma/{program} 2>&1", limit_s))

    def test_every_size_class_over_several_queue_pairs(self):
        for options in ("", "--qps 4", "--qps 16 --round-robin --messages 8 --puts 8", "--datagrams --messages 8"):
            self.check(both(options, "--datagrams" if "--datagrams" in options else ""))

    def test_a_message_of_100_mb(self):
        self.check(both("--messages 1 --puts 0 --max 100000000"))

    def test_eight_connections_at_once(self):
        self.check(both("--connections 8 --messages 4 --puts 4 --max 70000", "--connections 8"))

    def test_both_sides_get_the_right_error(self):
        for fault in ("short", "tag", "key", "no-receive", "no-send", "close"):
            self.check(both(f"--fault {fault} --deadline 1500 --messages 4 --puts 4 --max 5000"))

    def test_killed_processes_are_noticed(self):
        for fault in ("kill-server", "kill-client"):
            for outstanding in ("none", "send", "receive", "puts"):
                self.check(f"{both(f'--fault {fault} --outstanding {outstanding} --messages 2 --puts 2 --max 5000')} || [[ $c == 0 || $s == 0 ]]")
        self.assertNotIn("qp", self.check("rdma resource show qp link rxe0 | grep -v GSI || true").replace("lqpn 1 ", ""))

    def test_locked_memory_is_limited(self):
        text = self.check(f"nobody bash -c 'ulimit -l 64; ! {EXCHANGE} open --backend verbs --bytes 4194304' 2>&1")
        self.assertIn("ulimit -l", text)

    def test_uc_needs_a_lossless_fabric(self):
        self.assertIn("Ethernet", self.check(f"! {EXCHANGE} open --backend verbs --uc 2>&1"))
        self.check(both("--uc --lossless --messages 4 --puts 0 --max 70000", "--uc --lossless"))


if __name__ == "__main__":
    case.main()
