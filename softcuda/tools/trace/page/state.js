// state.js — computes the state of the kernel after instruction t has been executed.

// Return how many groups of a list, each of `step` elements, begin with a number <= t; the groups are sorted.
function countUpTo(list, t, step = 1) {
	let low = 0, high = list.length / step;

	while (low < high) {
		const middle = (low + high) >> 1;
		if (list[middle * step] <= t)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

class State {
	constructor(trace) { this.trace = trace; }

	rowAt(t) { return this.trace.data.functions[this.trace.func[t]].rows[this.trace.row[t]]; }
	opcodeAt(t) { return this.rowAt(t).text.replace(/^@\S+ /, ""); }
	warpAt(t) { return this.trace.warps[this.trace.warp[t]]; }

	// Return the last instruction that the warp has executed up to t; -1: none.
	lastOf(warp, t) {
		const k = countUpTo(warp.events, t);
		return k ? warp.events[k - 1] : -1;
	}

	// Return [state, last instruction] for each lane.  States: run: executed the warp's last instruction; false: its guard was false;
	// apart: only other lanes executed the warp's last instruction; barrier: waits at a barrier; ended; none: executed nothing.
	lanes(warp, t) {
		const trace = this.trace, out = Array.from({ length: 32 }, () => ["none", -1]), k = countUpTo(warp.events, t);
		let rest = 0xffffffff >>> 0;

		for (let n = k - 1; n >= 0 && rest && n > k - 5000; n--) {
			const at = warp.events[n], mask = (trace.mask[at] & rest) >>> 0;
			if (!mask)
				continue;
			const ends = this.endsLanes(at), waits = this.waitsAt(warp, at, t);
			for (let l = 0; l < 32; l++)
				if (mask >>> l & 1) {
					const on = trace.on[at] >>> l & 1;
					out[l] = [ends && on ? "ended" : waits && on ? "barrier" : n < k - 1 ? "apart" : on ? "run" : "false", at];
				}
			rest = (rest & ~mask) >>> 0;
		}
		return out;
	}

	endsLanes(t) {
		return /^exit\b/.test(this.opcodeAt(t)) || (this.trace.depth[t] === 0 && /^ret\b/.test(this.opcodeAt(t)));
	}

	// Returns true if the instruction is a barrier that has not completed at t.
	waitsAt(warp, at, t) {
		const text = this.opcodeAt(at), list = this.trace.barriers;

		if (!/^(bar|barrier)\./.test(text) || /^(bar\.warp|bar\.arrive|barrier\.cta\.arrive)/.test(text))
			return false;
		for (let k = countUpTo(this.trace.barrierTimes, t) - 1; k >= 0 && list[k].t > at; k--)
			if (list[k].block === warp.block.number)
				return false;
		return true;
	}

	// Return a register's value at t, 32 (64, 128, or 1) words, and the instruction that wrote it; null: not written yet.
	register(warp, func, depth, flat, t) {
		const frame = this.trace.frames.get((warp * 256 + depth) * 65536 + func), list = frame && frame.writes[flat];
		const k = list ? countUpTo(list, t, 2) : 0;

		if (!k)
			return null;
		const length = this.trace.data.functions[func].regs[flat], words = wordsOf(length[1]), at = list[2 * k - 1];
		return { words: this.trace.values.at.subarray(at, at + words), by: list[2 * k - 2] };
	}

	// Return the registers that the warp's current function has written; if more than `most`, those written last.
	registers(t, most) {
		const trace = this.trace, func = trace.func[t], warp = trace.warp[t], depth = trace.depth[t], out = [];

		trace.data.functions[func].regs.forEach(([name, bytes, type], flat) => {
			const r = this.register(warp, func, depth, flat, t);
			if (r)
				out.push({ name, bytes, type, words: r.words, by: r.by });
		});
		if (out.length <= most)
			return { list: out, n: out.length };
		const oldest = out.map((r) => r.by).sort((a, b) => b - a)[most - 1];
		return { list: out.filter((r) => r.by >= oldest), n: out.length };
	}

	// Return the shared memory of a block at t, and which words instruction t reads or writes.
	shared(block, t) {
		const k = countUpTo(block.times, t);

		if (!this.image || this.image.block !== block || this.image.k > k)
			this.image = { block, k: 0, bytes: new Uint8Array(block.image.length) };
		for (; this.image.k < k; this.image.k++)
			for (const [at, bytes] of block.log[this.image.k].lanes)
				this.image.bytes.set(bytes, at);
		const touched = new Map();
		for (const a of this.trace.accesses.get(t) || [])
			for (let l = 0; a.space === 2 && l < 32; l++)
				for (let b = 0; a.lanes >>> l & 1 && b < a.bytes; b += 4)
					touched.set(a.at[l] + b >> 2, a.kind === 1 ? "read" : "write");
		return { bytes: this.image.bytes, touched };
	}
}

// ---- text of values --------------------------------------------------------------------------------------------------

function doubleText(x) {
	return Object.is(x, -0) ? "-0" : String(x);
}

// Write a float with the smallest number of digits (7, 8 or 9) that distinguishes the float from its neighbours, as in decimals.c.
function floatText(x) {
	let digits = Math.abs(x) < 16777216 ? 7 : 9;

	while (digits < 9 && Math.fround(Number(x.toPrecision(digits))) !== x)
		digits++;
	return doubleText(Number(x.toPrecision(digits)));
}

function wordText(type, low, high, bytes) {
	if (bytes === 8) {
		if (type === "f")
			return doubleText(toDouble(low, high));
		const top = high | 0;
		if (type === "s" && top >= -256 && top < 256)
			return String(top * 4294967296 + low);
		return high ? "0x" + high.toString(16) + low.toString(16).padStart(8, "0") : String(low);
	}
	if (type === "f" && bytes === 4)
		return floatText(toFloat(low));
	if (type === "s")
		return String(bytes === 2 ? low << 16 >> 16 : low | 0);
	return type === "u" || low < 0x10000 ? String(low) : "0x" + low.toString(16);
}

function laneText(r, lane) {
	if (r.bytes === 0)
		return String(r.words[0] >>> lane & 1);
	if (r.bytes === 16)
		return "0x" + [3, 2, 1, 0].map((k) => (k < 2 ? r.words[32 * k + lane] : r.words[32 * k + lane]).toString(16).padStart(8, "0")).join("");
	return wordText(r.type, r.words[lane], r.bytes === 8 ? r.words[32 + lane] : 0, r.bytes);
}

function isRow64(words, on, first, last) {
	const step = toBig(words, first + 1) - toBig(words, first);

	for (let l = first; l <= last; l++)
		if (on >>> l & 1 && BigInt.asUintN(64, toBig(words, first) + step * BigInt(l - first)) !== toBig(words, l))
			return false;
	return true;
}

// Return a text such as "0, 4 ... 124"; null: the values are not an arithmetic sequence.
function rowText(r, on) {
	const words = r.words, first = 31 - Math.clz32(on & -on), second = first + 1, last = 31 - Math.clz32(on);
	const mask = r.bytes === 2 ? 0xffff : 0xffffffff, step = words[second] - words[first];

	for (let l = first; l <= last; l++)
		if (on >>> l & 1 && ((words[first] + step * (l - first)) & mask) >>> 0 !== words[l])
			return null;
	if (!(on >>> second & 1) || (r.bytes === 8 && !isRow64(words, on, first, last)))
		return null;
	return `${laneText(r, first)}, ${laneText(r, second)} ... ${laneText(r, last)}`;
}

// Return the values of all lanes as in a text trace: "7" if all are equal, "0, 4 ... 124", or one by one.
function lanesText(r, on) {
	if (r.bytes === 0)
		return "{" + ((r.words[0] & on) >>> 0).toString(16).padStart(8, "0") + "}";
	const texts = Array.from({ length: 32 }, (_, l) => on >>> l & 1 ? laneText(r, l) : "-"), some = texts.filter((x) => x !== "-");
	if (some.length && some.every((x) => x === some[0]))
		return some[0];
	return (r.type !== "f" && some.length > 3 && rowText(r, on)) || texts.join(" ");
}
