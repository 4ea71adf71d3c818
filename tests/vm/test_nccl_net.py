#!/usr/bin/env python3
"""gpuload's network plug-in for NCCL over libibverbs, between two virtual machines: all message sizes, packet loss, the peer's end."""
import os

import case  # in this folder

BUILD = os.environ.get("GPULOAD_BUILD", "build")
WALK = f"GPULOAD_BUILD={BUILD} GPULOAD_NET_PROVIDER=verbs NCCL_SOCKET_IFNAME==eth0 {BUILD}/tests/nccl/net/walk"


class Walks(case.TwoGuests):
    def both(self, options, netem="off", before="", server="", client=""):
        """Run receiver and sender; `server` and `client` are appended to their command lines, `before` sets environment variables of
        both."""
        meet = f"--meet 10.9.0.2:7000 {options} 2>&1"
        return self.check_both(f"{before} {WALK} --role receiver {meet} {server}", f"{before} {WALK} --role sender {meet} {client}", netem=netem)

    def test_messages_of_every_size(self):
        server, client = self.both("--groups 20 --show")
        self.assertIn("rxe0", server)
        self.assertIn("sender: right", client)

    def test_messages_arrive_in_spite_of_loss(self):
        self.both("--groups 40 --most 60000", netem="loss 2%")

    def test_a_killed_sender_gives_the_receiver_an_error(self):
        self.both("--groups 20 --most 60000 --end kill:sender", server="; [[ $? == 3 ]]", client="; [[ $? == 137 ]]")

    def test_a_cut_network_gives_both_an_error_after_the_lease(self):
        lease, failed = "GPULOAD_NET_LEASE_MS=3000", "; [[ $? == 3 ]]"
        self.both("--groups 40 --comms 1 --most 60000 --end cut:sender", before=lease, server=failed, client=failed)


if __name__ == "__main__":
    case.main()
