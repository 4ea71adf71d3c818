#!/usr/bin/env python3
"""The guests themselves: their RDMA device, their limits, and the network between two of them."""
import time, unittest

import case, guest  # in this folder

# A server and a client in one guest; perftest's default port.
BOTH = "{0} >/tmp/server.txt 2>&1 & sleep 0.5; {0} 10.9.0.1 && wait $!"
# Retries until the server listens.
CLIENT = "for i in $(seq 50); do {} && exit 0; sleep 0.2; done; exit 1"


class OneGuest(case.OneGuest):
    def test_rxe0_is_an_active_rdma_device(self):
        text = self.check("ibv_devinfo -d rxe0 -v")
        self.assertIn("PORT_ACTIVE", text)
        self.assertIn("GID[  1]:\t\t::ffff:10.9.0.1, RoCE v2", text)

    def test_ib_write_bw_writes_between_two_processes(self):
        self.assertIn("65536", self.check(BOTH.format("ib_write_bw -d rxe0 -x 1 -s 65536 -n 100")))

    def test_ib_write_lat_writes_between_two_processes(self):
        self.assertIn("t_typical", self.check(BOTH.format("ib_write_lat -d rxe0 -x 1 -s 8 -n 200")))

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


class TwoGuests(case.TwoGuests):
    def write(self, netem="off"):
        command = "ib_write_bw -d rxe0 -x 1 -s 65536 -n 100"
        return self.check_both(command, CLIENT.format(f"{command} 10.9.0.2"), netem=netem)[1]

    def test_ib_write_bw_writes_to_the_other_guest(self):
        self.assertIn("65536", self.write())

    def test_ib_write_bw_survives_loss(self):
        self.assertIn("65536", self.write("loss 2%"))


class Stopping(unittest.TestCase):
    def test_a_script_that_does_not_end_is_reported_and_ends_the_guest(self):
        try:
            with guest.Guest() as g:
                start = time.monotonic()
                with self.assertRaisesRegex(guest.Stopped, "(?s)did not end in time.*started"):
                    g.run("echo started; sleep 1000", timeout_s=3)
                self.assertLess(time.monotonic() - start, 60)
                self.assertIsNotNone(g.process.returncode)
        except guest.Missing as why:
            self.skipTest(str(why))


if __name__ == "__main__":
    unittest.main()
