#!/usr/bin/env python3
"""The page of --trace FILE.html shows in a browser what the interpreter recorded: --trace FILE.json of the same run."""
import json, os, re, shutil, struct, subprocess, sys, tempfile, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser

# Two warps in each of two blocks use shared memory, a barrier, a divergent loop, a call, 64-bit and floating-point arithmetic.
SOURCE = "".join(f"line {n}\n" for n in range(1, 21))
PTX = """.version 8.0
.target sm_90
.address_size 64
.func (.reg .f32 %back) third(.reg .f32 %in) { .reg .f32 %t;
.loc 1 3 1
mul.f32 %t, %in, 0f3EAAAAAB; mov.f32 %back, %t; ret; }
.visible .entry play(.param .u64 out) {
.reg .pred %p<4>; .reg .b32 %r<12>; .reg .b64 %d<12>; .reg .f32 %f<8>; .reg .f64 %g<4>;
.shared .align 16 .b8 s[256];
.loc 1 5 1
ld.param.u64 %d1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1;
.loc 1 6 1
cvt.rn.f32.s32 %f1, %r4; fma.rn.f32 %f2, %f1, 0f3F9D70A4, 0f3DCCCCCD; mov.u32 %r5, s; shl.b32 %r6, %r1, 2; add.s32 %r5, %r5, %r6;
.loc 1 7 1
st.shared.f32 [%r5], %f2; bar.sync 0;
.loc 1 8 1
xor.b32 %r7, %r6, 252; mov.u32 %r8, s; add.s32 %r8, %r8, %r7; ld.shared.f32 %f3, [%r8];
.loc 1 10 1
and.b32 %r9, %r1, 3; setp.eq.s32 %p1, %r9, 0; @%p1 bra rare;
LOOP:
.loc 1 11 1
add.f32 %f3, %f3, %f2; sub.s32 %r9, %r9, 1; setp.gt.s32 %p2, %r9, 0; @%p2 bra LOOP; bra.uni done;
rare:
.loc 1 13 1
call.uni (%f3), third, (%f3);
done:
.loc 1 15 1
cvt.f64.f32 %g1, %f3; fma.rn.f64 %g2, %g1, %g1, 0d3FB999999999999A; sqrt.rn.f64 %g3, %g2; cvt.rn.f32.f64 %f4, %g3;
mul.wide.s32 %d2, %r4, 4; add.s64 %d3, %d1, %d2; mul.lo.u64 %d4, %d3, %d3; shr.u64 %d5, %d4, 13; xor.b64 %d6, %d5, %d4;
.loc 1 16 1
@!%p1 atom.shared.add.u32 %r10, [s+4], 1; st.global.f32 [%d3], %f4; ret; }
"""
SHOWN = """(() => {
    const text = (s) => [...document.querySelectorAll(s)].map((e) => e.textContent), e = document.getElementById("event");
    const line = (box) => { const l = document.querySelector(box + " .now"); return l && [l.querySelector(".number").textContent, l.lastChild.textContent.trim()]; };
    return { t: Number(e.dataset.t), warp: Number(e.dataset.warp), lanes: e.dataset.lanes, event: e.textContent, hash: location.hash,
        cuda: line("#cuda"), ptx: line("#ptx"), slider: Number(document.getElementById("time").value),
        states: [...document.querySelectorAll(".warp")].map((w) => [...w.querySelectorAll(".lane")].map((c) => c.dataset.is)),
        registers: [...document.querySelectorAll("#registers tbody tr")].map((r) => [r.cells[0].textContent, r.cells[1].textContent, r.className]),
        words: text("#shared .word"), lit: [...document.querySelectorAll("#shared .word")].map((c, k) => [k, c.dataset.is]).filter((c) => c[1]) };
})()"""


def expand(text, on):
    """Parse the 32 values in a trace's text; None: the lane did not execute."""
    words, lanes = text.split(" "), [l for l in range(32) if on >> l & 1]
    number = lambda w: None if w == "-" else int(w, 16) if w.startswith("0x") else float(w) if re.search(r"[.e]|inf|nan", w) else int(w)
    if text.startswith("{"):
        return [int(text[1:-1], 16) >> l & 1 if on >> l & 1 else None for l in range(32)]
    row = re.fullmatch(r"(\S+), (\S+) \.\.\. \S+", text)
    if row:
        first, second = map(number, row.groups())
        return [first + (second - first) * (l - lanes[0]) if on >> l & 1 else None for l in range(32)]
    return [number(w) for w in words] if len(words) == 32 else [number(text) if on >> l & 1 else None for l in range(32)]


class Model:
    """Collect the registers and the shared memory that the JSON trace contains."""

    def __init__(self, events):
        self.registers, self.memory = {}, {}
        self.touched = {}
        for event in events:
            self.apply(event)

    def apply(self, event):
        args, on = event["args"], int(event["args"]["lanes"], 16)
        key = event["pid"], event["tid"]
        for name, text in args.items():
            if name.startswith("%"):
                old = self.registers.setdefault((*key, name), [None] * 32)
                self.registers[(*key, name)] = [o if n is None else n for o, n in zip(old, expand(text, on))]
        self.touched = {}
        for kind, state in (("reads", "read"), ("writes", "write"), ("changes", "write")):
            for l, at in enumerate(expand(args[f"{kind} shared"], on) if f"{kind} shared" in args else []):
                if at is None:
                    continue
                self.touched[at // 4] = state
                if kind == "writes":
                    self.memory[event["pid"], at // 4] = self.registers[(*key, args["ptx"].rstrip(";").split()[-1])][l]


def as_number(text):
    return int(text, 16) if text.startswith("0x") else float(text)


def same(shown, want):
    """Compare as 64-bit words, f64 or f32: the trace writes the fewest digits that identify an f32, the page 9 digits."""
    if shown.startswith("0x") or isinstance(want, int):
        return int(as_number(shown)) % 2**64 == int(want) % 2**64
    return abs(as_number(shown) - want) <= 2e-9 * abs(want) or struct.pack("f", as_number(shown)) == struct.pack("f", want)


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="gpuload-page.")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        with open(f"{cls.folder}/play.cu", "w", encoding="utf-8") as f:
            f.write(SOURCE)
        with open(f"{cls.folder}/play.ptx", "w", encoding="utf-8") as f:
            f.write(PTX.replace(".visible", f'.file 1 "{cls.folder}/play.cu"\n.visible', 1))
        subprocess.run(["gpuload", "run", "play.ptx", "out:f32[128]", "--grid", "2", "--block", "64", "--trace", "play.html,play.json"], cwd=cls.folder,
                       check=True, stdout=subprocess.DEVNULL, timeout=300)
        with open(f"{cls.folder}/play.json", encoding="utf-8") as f:
            cls.events = [e for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
        cls.browser = browser.Browser(browser.find(), f"{cls.folder}/profile")
        cls.addClassCleanup(cls.browser.close)

    def open(self, fragment=""):
        self.browser.open(f"file://{self.folder}/play.html{fragment}", "document.readyState === 'complete' && !!window.player")
        return self.browser.evaluate(SHOWN)

    def press(self, *keys, shift=False):
        for key in keys:
            self.browser.press(key, shift)
        return self.browser.evaluate(SHOWN)

    def check(self, shown, lane=0):
        """Compare what the page shows with what has happened up to this event."""
        event, model = self.events[shown["t"]], Model(self.events[:shown["t"] + 1])
        args, on, active = event["args"], int(event["args"]["lanes"], 16), int(event["args"]["active"], 16)
        self.assertEqual((shown["warp"], shown["lanes"], shown["slider"]), (event["tid"], args["lanes"], shown["t"]))
        self.assertEqual(shown["ptx"][1], args["ptx"])
        self.assertIn(args["ptx"], shown["event"])
        self.assertEqual(shown["cuda"], [re.search(r"play\.cu:(\d+)", args["at"])[1], "line " + re.search(r"play\.cu:(\d+)", args["at"])[1]])
        for l, state in enumerate(shown["states"][event["tid"]]):
            if not active >> l & 1:
                self.assertNotIn(state, ("run", "false"), (event, l))
            elif not re.match(r"(@\S+ )?(ret|bar\.sync)", args["ptx"]):
                self.assertEqual(state, "run" if on >> l & 1 else "false", (event, l))
        self.assertEqual(sorted(shown["lit"]), sorted([k, s] for k, s in model.touched.items()), event)
        for name, value, _ in shown["registers"]:
            want = model.registers[(event["pid"], event["tid"], name)][lane]
            if want is not None:
                self.assertTrue(same(value, want), (event, name, value, want))
        if event["name"] != "atom.shared.add.u32":
            for (block, k), want in model.memory.items():
                if block == event["pid"] and k != 1:
                    self.assertAlmostEqual(float(shown["words"][k]), want, delta=1e-5 * abs(want) + 1e-6)

    def test_each_instruction_by_the_right_arrow(self):
        shown = self.open()
        for t in range(100):  # events of the first block
            self.assertEqual((shown["t"], shown["hash"]), (t, f"#t={t}"))
            self.check(shown)
            shown = self.press("ArrowRight")
        for t in range(len(self.events) - 10, len(self.events)):
            shown = self.press("End", *["ArrowLeft"] * (len(self.events) - 1 - t))
            self.assertEqual(shown["t"], t)
            self.check(shown)
        self.assertEqual(self.press("End", "ArrowRight")["t"], len(self.events) - 1)  # the last event stays selected

    def test_a_link_leads_to_a_moment_and_a_lane(self):
        for t, lane in ((0, 0), (37, 5), (len(self.events) - 1, 31), (100, 12)):
            shown = self.open(f"#t={t}&lane={lane}")
            self.assertEqual(shown["t"], t)
            self.check(shown, lane)
        self.browser.evaluate("location.hash = '#t=41'")  # a link within the page
        self.browser.wait("document.getElementById('event').dataset.t === '41'")
        self.check(self.browser.evaluate(SHOWN))

    def test_the_time_line_can_be_clicked_and_dragged(self):
        self.open()
        box = self.browser.evaluate("(() => { const b = document.getElementById('time').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
        x, y, last = (lambda share: box[0] + share * box[2]), box[1] + box[3] / 2, len(self.events) - 1
        self.browser.mouse("mousePressed", x(0.3), y)
        self.assertAlmostEqual(self.browser.evaluate(SHOWN)["t"], 0.3 * last, delta=0.05 * last)
        for share in (0.4, 0.6, 0.8):
            self.browser.mouse("mouseMoved", x(share), y)
            shown = self.browser.evaluate(SHOWN)
            self.assertAlmostEqual(shown["t"], share * last, delta=0.05 * last)
            self.check(shown)
        self.browser.mouse("mouseReleased", x(0.8), y)

    def test_keys_find_warps_lines_divergence_and_barriers(self):
        self.open("#t=3")
        event = lambda shown: self.events[shown["t"]]
        self.assertEqual(self.press("ArrowLeft")["t"], 2)
        self.assertEqual(self.press("End")["t"], len(self.events) - 1)
        self.assertEqual(self.press("Home")["t"], 0)
        line = self.press("n")
        self.assertEqual(line["cuda"][0], "6")
        other = self.press("w")
        self.assertEqual((other["t"], event(other)["tid"]), next((e["ts"], e["tid"]) for e in self.events if e["tid"] != 0))
        back = self.press("W")
        self.assertEqual(event(back)["tid"], 0)
        apart = self.press("Home", "d")
        self.assertNotEqual(event(apart)["args"]["active"], "ffffffff")
        self.check(apart)
        self.assertEqual(self.press("d", "D")["t"], apart["t"])
        again = self.press("ArrowRight", shift=True)
        self.assertEqual(event(again)["tid"], event(apart)["tid"])
        barrier = self.press("Home", "b")
        before = [e for e in self.events[:barrier["t"]] if e["name"] == "bar.sync" and e["pid"] == 0]
        self.assertEqual(len(before), 2)
        self.check(self.press("ArrowDown", "ArrowDown", "ArrowUp"), lane=1)

    def test_lanes_that_wait_and_lanes_that_ended_are_shown(self):
        arrived = next(e["ts"] for e in self.events if e["name"] == "bar.sync")
        self.assertEqual(self.open(f"#t={arrived}")["states"][0], ["barrier"] * 32)
        ended = next(k for k, e in enumerate(self.events) if e["args"]["ptx"] == "ret;" and e["args"]["lanes"] == "ffffffff")
        self.assertEqual(self.open(f"#t={ended}")["states"][self.events[ended]["tid"]], ["ended"] * 32)

    def test_it_plays_to_the_end(self):
        self.open(f"#t={len(self.events) - 60}")
        self.press("+", "+", "+", " ")
        self.browser.wait(f"window.player.t === {len(self.events) - 1} && !window.player.playing")
        self.check(self.browser.evaluate(SHOWN))


if __name__ == "__main__":
    if not browser.find():
        print("no Chromium")
        sys.exit(77)
    unittest.main(verbosity=2)
