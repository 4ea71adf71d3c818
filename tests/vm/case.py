"""case.py — base classes for tests in virtual machines (guests), which boot once for all the tests of a class.

    class Sends(case.OneGuest):
        def test_a_message_arrives(self):
            self.check("build/tests/rdma/send_one")

    if __name__ == "__main__":
        case.main()

In a file tests/vm/test_*.py, `ninja check-vm` runs it.
"""
import contextlib, os, sys, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import guest


class Guests(unittest.TestCase):
    """The base class of OneGuest and TwoGuests."""

    @classmethod
    def boot(cls, guests):
        """Boot the guests, and stop them after the last test of the class."""
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        return stack.enter_context(guests)

    def check(self, script, timeout_s=guest.RUN_S, on=None):
        """Run a script, which must end with status 0, in the first guest or on the one given; returns its output."""
        status, text = (on or self.a).run(script, timeout_s)
        self.assertEqual(status, 0, f"{script}\n{text}")
        return text


class OneGuest(Guests):
    """self.a is a guest whose RDMA device rxe0 has the address 10.9.0.1; both ends of a connection are processes in this guest."""

    @classmethod
    def setUpClass(cls):
        cls.a = cls.boot(guest.Guest())


class TwoGuests(Guests):
    """self.a and self.b are guests with the addresses 10.9.0.1 and 10.9.0.2; `netem` in a guest disturbs the packets that it sends."""
    n_cpus = 2  # CPUs of each guest

    @classmethod
    def setUpClass(cls):
        cls.a, cls.b = cls.boot(guest.pair(n_cpus=cls.n_cpus))

    def check_both(self, server, client, timeout_s=guest.RUN_S, netem="off"):
        """Run a server in guest b and, when its port is open, a client in guest a; both must succeed.  Returns both outputs."""
        self.check(f"netem {netem}")
        job = self.b.start(server, timeout_s)
        try:
            text = self.check(client, timeout_s)
            status, server_text = job.wait()
            self.assertEqual(status, 0, f"{server}\n{server_text}")
            return server_text, text
        finally:
            self.check("netem off")


def main():
    """Run the file's tests, or skip them if no guest can be booted here."""
    try:
        guest.Guest()  # finds what a guest needs, downloads the kernel, tries KVM; does not boot
    except guest.Missing as why:
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main()
