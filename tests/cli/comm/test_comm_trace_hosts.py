#!/usr/bin/env python3
"""gpuload comm --trace with ranks in two network namespaces: host b has another CLOCK_MONOTONIC, by a time namespace, whose offset is known.

The offset that the trace reports is the true one within the reported bound.
"""
import json, os, subprocess, sys, tempfile, unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../comm/bootstrap/hosts"))
from namespaces import ROOT, TwoHosts

GPULOAD = os.path.join(ROOT, os.environ.get("GPULOAD_BUILD", "build"), "gpuload")
LONG = 120  # seconds; a passing test never takes that long
AHEAD_S = 123456
SHIFT = ["unshare", "--time", "--fork", "--kill-child", "--monotonic", str(AHEAD_S), "--"]


def why_not():
    """Return the reason why this machine cannot run the test, or None."""
    try:
        r = subprocess.run([*SHIFT, "true"], capture_output=True, text=True)
        if r.returncode:
            return r.stderr.strip()
        TwoHosts().__enter__().__exit__()
    except OSError as e:
        return str(e)
    return None


class TraceOverHosts(unittest.TestCase):
    def setUp(self):
        self.hosts = TwoHosts()
        self.hosts.__enter__()
        self.addCleanup(self.hosts.__exit__)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = f"{folder.name}/trace"

    def run_job(self, layout, call, file, *options):
        """Run a rank for each letter; the ranks of host b run in a time namespace.  Returns what rank 0 prints."""
        argv = [GPULOAD, "comm", call, "--driver", "soft", *options, "--trace", file]
        ranks = self.hosts.start_job(layout, argv, port=29660, wrap={"b": SHIFT})
        results = [(p.communicate(timeout=LONG), p.returncode) for p in ranks]
        for (_, err), status in results:
            self.assertEqual(status, 0, err)
        return results[0][0][0]

    def test_the_offset_of_the_clocks_is_within_the_bound(self):
        out = self.run_job("aabb", "allreduce", f"{self.file}.json", "--bytes", "64K", "--iters", "3", "--json")
        with open(f"{self.file}.json", encoding="utf-8") as f:
            trace = json.load(f)
        about, hosts = trace["otherData"], trace["otherData"]["hosts"]
        self.assertEqual(json.loads(out)["hosts"], hosts)
        self.assertEqual([h["name"] for h in hosts], ["a", "b"])
        self.assertEqual([hosts[0][k] for k in ("clock_offset_ns", "clock_bound_ns")], [0, 0])
        self.assertGreater(hosts[1]["clock_bound_ns"], 0)
        self.assertLessEqual(abs(hosts[1]["clock_offset_ns"] + AHEAD_S * 10**9), hosts[1]["clock_bound_ns"])
        self.assertLessEqual(abs(hosts[1]["clock_drift_ppm"]), hosts[1]["clock_drift_bound_ppm"])
        self.assertEqual([r["host"] for r in about["ranks_on_hosts"]], ["a", "a", "b", "b"])
        self.assertEqual([r["clock_bound_us"] for r in (k["trace"] for k in json.loads(out)["ranks"])],
                         [r["clock_bound_ns"] / 1000 for r in about["ranks_on_hosts"]])
        for r in about["ranks_on_hosts"][2:]:
            self.assertGreater(r["clock_bound_ns"], hosts[1]["clock_bound_ns"])
        self.check_calls(trace)

    def check_calls(self, trace):
        """All ranks make the same calls at the same time; without the conversion, the calls of host b would appear a day later."""
        calls = [e for e in trace["traceEvents"] if e["name"].startswith("3 calls of allreduce")]
        self.assertEqual(len(calls), 8)
        for place in (", out of place", ", in place"):
            these = [e for e in calls if e["name"].endswith(place)]
            self.assertLess(max(e["ts"] for e in these), min(e["ts"] + e["dur"] for e in these))

    def test_the_work_of_the_proxies_is_linked_to_the_steps_of_the_kernels(self):
        self.run_job("ab", "allreduce", f"{self.file}.json", "--bytes", "256K", "--iters", "2", "--algo", "ring", "--out-of-place", "--json")
        with open(f"{self.file}.json", encoding="utf-8") as f:
            trace = json.load(f)
        self.assertEqual([trace["otherData"][k] for k in ("lost_events", "lost_network_events")], [0, 0])
        slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        puts = [e for e in slices if e["name"].startswith("put to rank")]
        key = lambda e: (e["pid"], e["args"]["peer"], e["args"]["channel"], e["args"]["step"])
        self.assertEqual(len(set(map(key, puts))), len(puts), "a put is recorded twice")
        self.assertEqual({(e["pid"], e["args"]["peer"]) for e in puts}, {(1, 1), (2, 0)})
        self.assertTrue(any(e["name"].startswith("credit to rank 1, up to") for e in slices if e["pid"] == 1))
        self.assertTrue(all(0 < e["args"]["bytes"] <= 1 << 20 for e in puts))
        n = {kind: sum(e["name"].startswith(kind + ",") for e in slices) for kind in ("send", "reduce", "copy", "recv")}
        self.assertGreater(n["send"], 0)
        # Each sent step has a put, and a step reads the data of each put.  Arrows that go backwards because of a clock error are only counted.
        arrows = {(e["cat"], e["id"]): {} for e in trace["traceEvents"] if e["ph"] in "sf"}
        for e in trace["traceEvents"]:
            if e["ph"] in "sf":
                arrows[e["cat"], e["id"]][e["ph"]] = e
        expected = n["send"] + 2 * (n["reduce"] + n["copy"]) + n["recv"]
        self.assertEqual(len(arrows) + trace["arrows_left_out"], expected)
        for (cat, _), a in arrows.items():
            self.assertLessEqual(a["s"]["ts"], a["f"]["ts"])
            self.check_ends(cat, a["s"], a["f"], slices)

    def check_ends(self, cat, start, finish, slices):
        """Check that an arrow begins and ends at slices of the same step."""
        def around(e):
            return [s for s in slices if (s["pid"], s["tid"]) == (e["pid"], e["tid"]) and s["name"] != "kernel"
                    and s["ts"] - 0.002 <= e["ts"] <= s["ts"] + s["dur"] + 0.002]

        put, step = (around(finish), around(start)) if cat == "posted" else (around(start), around(finish))
        put = [s for s in put if s["name"].startswith("put to")]
        self.assertTrue(put and step, cat)
        self.assertEqual(cat == "arrived", start["pid"] != finish["pid"])
        if cat == "arrived":
            self.assertIn(put[0]["args"]["step"], [s["args"]["step"] for s in step])

    def test_the_picture_names_the_hosts(self):
        self.run_job("ab", "broadcast", f"{self.file}.svg", "--bytes", "4K", "--iters", "1")
        with open(f"{self.file}.svg", encoding="utf-8") as f:
            svg = f.read()
        self.assertRegex(svg, r">rank 0 on host a, rank 1 on host b \(within [0-9.e+]+ us\)</text>")
        self.assertIn('<path class="send"', svg)


if __name__ == "__main__":
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
