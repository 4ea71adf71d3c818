#!/usr/bin/env python3
"""Collectives over libibverbs between two virtual machines, with and without packet loss; comm_guests.py is the long version."""
import case, hosts  # in this folder

GPULOAD, RANDOM = f"{hosts.BUILD}/gpuload", f"{hosts.BUILD}/tests/comm/soak/comm_random"


class Collectives(case.TwoGuests):
    n_cpus = 1  # on a machine with other work, a second emulated CPU makes the guest slower

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hosts = hosts.Hosts((cls.a, cls.b))

    def disturb(self, **how):
        for host in "ab":
            self.hosts.disturb(host, **how)

    def outputs(self, ranks):
        """Wait for the ranks, which must all succeed; return their outputs."""
        texts = [r.communicate()[0] for r in ranks]
        self.assertEqual([r.returncode for r in ranks], [0] * len(ranks), texts)
        return texts

    def random_cases(self, n):
        for text in self.outputs([self.hosts.start(h, [RANDOM, "--host", str(i), "--address", hosts.ADDRESS["a"], "--cases", str(n), "--ranks", "2:3",
                                                       "--seed", "300"]) for i, h in enumerate("ab")]):
            self.assertIn(f"{n} cases of seed 300: 0 wrong", text)

    def test_a_call_is_right_over_verbs(self):
        ranks = self.hosts.start_job("ab", [GPULOAD, "comm", "allreduce", "--bytes", "40K", "--iters", "1", "--backend", "verbs", "--qps", "2"])
        text = self.outputs(ranks)[0]
        self.assertIn("verbs, rxe0", text)
        self.assertIn("# wrong elements: 0 OK", text)

    def test_random_cases_are_right_in_spite_of_loss(self):
        self.disturb(loss=1)
        self.addCleanup(self.disturb)
        self.random_cases(6)

    def test_slots_in_device_memory_are_right_over_verbs(self):
        for qps in ("1", "3"):
            ranks = self.hosts.start_job("ab", [GPULOAD, "comm", "allreduce", "--bytes", "40K", "--iters", "2", "--transport", "net", "--backend", "verbs",
                                                "--qps", qps, "--gpu-direct", "yes"])
            text = self.outputs(ranks)[0]
            self.assertIn(", GPU-direct)", text)
            self.assertIn("# wrong elements: 0 OK", text)


if __name__ == "__main__":
    case.main()
