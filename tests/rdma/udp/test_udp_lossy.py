#!/usr/bin/env python3
"""reliable-udp between two network namespaces, over a wire that loses, delays and reorders packets: all data is right, and a killed peer is an error."""
import os, re, signal, sys, time, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../comm/bootstrap/hosts"))
from namespaces import BUILD, TwoHosts

GPULOAD = f"{BUILD}/gpuload"
OURS = ("--provider", "reliable-udp")


class Lossy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.hosts = TwoHosts(7)
        try:
            cls.hosts.__enter__()
        except OSError as reason:
            raise unittest.SkipTest(str(reason))
        cls.addClassCleanup(cls.hosts.__exit__)

    def bench(self, *options, **how):
        """Run a server and a client while the wire disturbs packets; return (exit status, output) of the client and of the server."""
        for h in "ab":
            self.hosts.disturb(h, **how)
        server = self.hosts.start("b", [GPULOAD, "rdma", "serve", "--once", *OURS], GPULOAD_DRIVER="soft")
        client = self.hosts.start("a", [GPULOAD, "rdma", "bench", self.hosts.address["b"], *OURS, *options], GPULOAD_DRIVER="soft", GPULOAD_LOG="info")
        results = []
        for p in (client, server):
            if p is server and client.returncode:
                server.kill()
            out, err = p.communicate(timeout=200)
            results.append((p.returncode, out + err))
        return results

    def check(self, *options, **how):
        (client, text), (server, server_text) = self.bench(*options, **how)
        self.assertEqual((client, server), (0, 0), text + server_text)
        return text

    def test_messages_of_odd_sizes_arrive_in_spite_of_loss_and_reordering(self):
        text = self.check("--mode", "basic", "--sizes", "1:300K:7", "--nreq", "4", loss=2, delay_ms=1, reorder=30)
        self.assertRegex(text, r"reliable-udp: \d+ chunks sent, [1-9]\d* of them again", "nothing was lost")

    def test_throughput_with_loss(self):
        (client, text), (server, server_text) = self.bench("--mode", "tpt", "--sizes", "1M", "--nreq", "4", "--iterations", "8", "--trace", "-", loss=1, delay_ms=2)
        self.assertEqual((client, server), (0, 0), text + server_text)
        again, lost, timeouts = map(int, re.search(r"^ +0 +\d+ +(\d+) +(\d+) +(\d+)(?: +\d+){4} +-$", text, re.M).groups())
        self.assertGreaterEqual(again, lost)
        self.assertGreaterEqual(lost + timeouts, 1, text)
        self.assertRegex(server_text, r"(?m)^ +0 +[0-7] +yes ", "the server has no table of the paths")
        datagrams = re.findall(r"^ +([0-9.]+) +(\d+) +(\d) +\d+  (sent again; )?(\w+)", text, re.M)
        for at, chunk, _, _, end in datagrams:
            if end in ("lost", "given"):
                later = [d for d in datagrams if d[1] == chunk and float(d[0]) > float(at)]
                self.assertTrue(later and all(d[3] for d in later), f"chunk {chunk} was lost, and not sent again\n{text}")

    def test_puts_and_their_signals_keep_their_order(self):
        self.check("--mode", "put", "--sizes", "8:64K:16", "--iterations", "20", loss=2, delay_ms=1, reorder=20)

    def test_a_killed_server_is_an_error(self):
        for h in "ab":
            self.hosts.disturb(h)
        server = self.hosts.start("b", [GPULOAD, "rdma", "serve", *OURS], GPULOAD_DRIVER="soft")
        client = self.hosts.start("a", [GPULOAD, "rdma", "bench", self.hosts.address["b"], *OURS, "--mode", "tpt", "--sizes", "64K", "--iterations", "1000000"],
                                  GPULOAD_DRIVER="soft")
        time.sleep(2)
        self.assertIsNone(client.poll(), "the client ended too early")
        server.send_signal(signal.SIGKILL)
        _, err = client.communicate(timeout=30)
        self.assertEqual(client.returncode, 1)
        self.assertRegex(err, r"ended|closed|reset")


if __name__ == "__main__":
    unittest.main()
