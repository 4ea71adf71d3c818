#!/usr/bin/env python3
"""The send path (rdma/) between two virtual machines, over a network that loses, duplicates, damages or delays packets, or drops all."""
import os, unittest

import case  # in this folder

BUILD = os.environ.get("GPULOAD_BUILD", "build")
EXCHANGE = f"{BUILD}/tests/rdma/exchange/exchange"
# rxe retransmits after 4.096 us x 2^15 = 134 ms, 6 times: it survives a loss of all packets for 400 ms, but reports a permanent loss.
TIMES = "--timeout 15 --retry 6 --lease 3000"


class Exchanges(case.TwoGuests):
    def both(self, client, server="", netem="off"):
        """Run server and client; both must succeed."""
        return self.check_both(f"{EXCHANGE} serve --backend verbs --listen 10.9.0.2 {TIMES} {server}",
                               f"{EXCHANGE} 10.9.0.2 --backend verbs {TIMES} {client}", netem=netem)

    def test_data_is_right_in_spite_of_the_network(self):
        small = "--messages 3 --puts 3 --max 70000"
        for netem in ("loss 0.5%", "loss 2%", "loss 10%", "duplicate 5%", "corrupt 1%"):
            self.both(small, netem=netem)
        self.both("--messages 1 --puts 1 --max 5000", netem="delay 5ms reorder 25%")

    def test_queue_pairs_that_lose_packets_are_made_reliable(self):
        for qp in ("uc", "ud"):
            for netem in ("off", "loss 1%", "loss 10%"):
                serve = f"{BUILD}/gpuload rdma serve --listen 10.9.0.2 --qp {qp} --reliable --once"
                bench = f"{BUILD}/gpuload rdma bench 10.9.0.2 --qp {qp} --reliable --mode bi --sizes 1:300000:100 --iterations 20"
                _, text = self.check_both(serve, bench, netem=netem)
                self.assertIn("reliable-verbs, rxe0 port 1", text)

    def test_a_black_hole_of_400_ms_is_overcome(self):
        self.both("--messages 3 --puts 3 --max 70000 --rounds 3 --disturb 'netem loss 100%; sleep 0.4; netem off'")

    def test_a_black_hole_for_ever_is_an_error_on_both_sides(self):
        self.addCleanup(self.check, "netem off", on=self.b)
        hole = "--fails --disturb 'netem loss 100%'"
        self.both(f"--messages 3 --puts 3 --max 70000 --rounds 1000 {hole}", hole)

    def test_killed_processes_are_noticed(self):
        for fault in ("kill-server", "kill-client"):
            for outstanding in ("none", "send"):
                self.kill(fault, outstanding)

    def kill(self, fault, outstanding):
        """One end kills itself; the other must notice this in time and end with status 0."""
        job = self.b.start(f"{EXCHANGE} serve --backend verbs --listen 10.9.0.2 {TIMES}; echo status $?", 60)
        _, text = self.a.run(f"{EXCHANGE} 10.9.0.2 --backend verbs {TIMES} --fault {fault} --outstanding {outstanding} "
                             "--messages 2 --puts 2 --max 5000; echo status $?", 60)
        _, server_text = job.wait()
        killed, survivor = (server_text, text) if fault == "kill-server" else (text, server_text)
        self.assertIn("status 137", killed)
        self.assertIn("status 0", survivor, f"{fault}, {outstanding}")


if __name__ == "__main__":
    case.main()
