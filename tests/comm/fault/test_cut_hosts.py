#!/usr/bin/env python3
"""The network between two hosts is cut: both ranks end, name each other, and leave nothing
behind."""
import sys, unittest

from cut_hosts import Cut, TwoHosts  # in this folder


class CutHosts(unittest.TestCase):
    def test_ranks_end_with_a_message_when_the_network_is_cut(self):
        with TwoHosts(seed=1) as hosts:
            cut = Cut(hosts, seed=1, lost_ms=1000, delay_ms=0, earliest_s=0.7, latest_s=0.7, grace_s=60)
            _, _, wrong = cut.round("ab", "both", 0)
            self.assertIsNone(wrong)


if __name__ == "__main__":
    try:
        TwoHosts(seed=1).__enter__().__exit__()
    except OSError as reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
