#!/usr/bin/env python3
"""Tests the virtual machines themselves: their RDMA device, their limits, and the network between two of them."""
import case, guest  # in this folder

PINGPONG = "ibv_rc_pingpong -d rxe0 -g 1 -m 4096 -s 65536 -n 50 -e -c"  # -e: sleeps until an event, -c: checks the received bytes


class OneGuest(case.OneGuest):
    def test_rxe0_is_an_active_rdma_device(self):
        text = self.check("ibv_devinfo -d rxe0 -v")
        self.assertIn("PORT_ACTIVE", text)
        self.assertIn("GID[  1]:\t\t::ffff:10.9.0.1, RoCE v2", text)

    def test_perftest_writes_between_two_processes(self):
        text = self.check("TIMES=1 SIZES=65536 QPS=4 TOTAL=2097152 tests/vm/perftest.sh")
        self.assertRegex(text, r"ib_write_bw .* -s 65536 -q 4 .*: [0-9.]+ MiB/s")
        self.assertRegex(text, r"ib_write_lat .* -s 8 .*: [0-9.]+ us")

    def test_a_user_without_rights_has_a_limit_of_locked_memory(self):
        pingpong = "ulimit -l 64; exec nobody ibv_rc_pingpong -d rxe0 -g 1 -s 1000000"
        status, text = self.a.run(pingpong)
        self.assertEqual(status, 1, text)
        self.assertIn("Couldn't register MR", text)

    def test_scripts_run_at_the_same_time(self):
        waits = self.a.start("until [ -e /tmp/now ]; do sleep 0.1; done; echo seen")
        self.check("touch /tmp/now")
        self.assertEqual(waits.wait(), (0, "seen\n"))

    def test_the_host_gets_exit_status_and_files(self):
        self.assertEqual(self.a.run("echo data >/share/file; exit 3"), (3, ""))
        with open(f"{self.a.share}/file", encoding="utf-8") as f:
            self.assertEqual(f.read(), "data\n")

    def test_a_script_that_does_not_end_is_killed_and_the_guest_goes_on(self):
        with self.assertRaisesRegex(guest.Stopped, "(?s)did not end within 2 s.*started"):
            self.a.run("sleep 1234 & echo started; sleep 1000", timeout_s=2)
        self.assertEqual(self.check("grep -lsaE '^sleep.1234.$' /proc/[0-9]*/cmdline; echo goes on"), "goes on\n")


class TwoGuests(case.TwoGuests):
    def exchange(self, netem="off"):
        server = self.b.start(f"echo $$ >/tmp/pid; exec {PINGPONG}")
        try:
            text = self.check(f"netem {netem}; for i in $(seq 50); do {PINGPONG} 10.9.0.2 && exit 0; sleep 0.2; done; exit 1")
        finally:
            self.check("netem off")
            # The client exits after the last message.  If its acknowledgement is lost, the server never ends, because it
            # sets retry_cnt to 7, which rxe treats as infinite.
            self.check("kill $(cat /tmp/pid) || true", on=self.b)
            server.wait()
        self.assertIn("50 iters in", text)
        self.assertNotIn("invalid data", text)

    def test_messages_reach_the_other_guest(self):
        self.exchange()

    def test_messages_arrive_in_spite_of_loss(self):
        self.exchange("loss 2%")

    def test_nothing_arrives_through_a_black_hole(self):
        server = self.b.start("timeout 20 ibv_rc_pingpong -d rxe0 -g 1 -n 1000000")
        connect = "exec 3<>/dev/tcp/10.9.0.2/18515"
        self.check(f"for i in $(seq 50); do ( {connect} ) 2>/dev/null && exit 0; sleep 0.2; done; exit 1")
        status, text = self.a.run(f"netem loss 100%; timeout 2 bash -c '{connect}'; echo $?; netem off")
        self.assertEqual((status, text), (0, "124\n"))
        server.wait()


if __name__ == "__main__":
    case.main()
