// record.js — decodes the record, whose format trace_record_internal.h describes, to arrays with one element for each instruction.

const FLAG = { warp: 1, place: 2, mask: 4, on: 8, values: 16, access: 32, notice: 128 };
const NOTICE = { launch: 0, launchEnds: 1, block: 2, blockEnds: 3, barrier: 4, deadlock: 5 };
const SPACES = ["global", "generic", "shared", "local", "param", "surface"], KINDS = ["", "reads", "writes", "changes"];

function fromBase64(text) {
	const binary = atob(text), bytes = new Uint8Array(binary.length);

	for (let k = 0; k < binary.length; k++)
		bytes[k] = binary.charCodeAt(k);
	return bytes;
}

class Reader {
	constructor(bytes) { this.bytes = bytes; this.at = 0; }
	byte() { return this.bytes[this.at++]; }
	word() { const b = this.bytes, k = this.at; this.at += 4; return (b[k] | b[k + 1] << 8 | b[k + 2] << 16 | b[k + 3] << 24) >>> 0; }

	// Numbers above 2^53 are exact only as BigInt.
	varint() {
		let value = 0, scale = 1;
		for (;;) {
			const b = this.byte();
			value += (b & 127) * scale;
			if (b < 128)
				return value;
			scale *= 128;
		}
	}

	bigVarint() {
		let value = 0n, shift = 0n;
		for (;;) {
			const b = this.byte();
			value |= BigInt(b & 127) << shift;
			if (b < 128)
				return value;
			shift += 7n;
		}
	}

	// Read the values of the lanes in the mask `on` into out: 32 words, then 32 high words if bytes is 8.
	lanes(out, bytes, on) {
		const kind = this.byte();

		if (kind === 3)
			out[0] = out[0] & ~on | this.word();
		else if (kind === 2)
			this.planes(out, bytes, on);
		else if (bytes === 8)
			this.bigRow(out, on, kind);
		else
			this.row(out, on, kind, bytes === 2 ? 0xffff : 0xffffffff);
	}

	row(out, on, kind, mask) {
		const first = this.varint(), code = kind ? this.varint() : 0, step = code % 2 ? -(code + 1) / 2 : code / 2;
		const lane = 31 - Math.clz32(on & -on);

		for (let l = lane; l < 32; l++)
			if (on >>> l & 1)
				out[l] = (first + step * (l - lane)) & mask;
	}

	bigRow(out, on, kind) {
		const first = this.bigVarint(), code = kind ? this.bigVarint() : 0n, step = code & 1n ? -(code + 1n) / 2n : code / 2n;
		const lane = 31 - Math.clz32(on & -on);

		for (let l = lane; l < 32; l++)
			if (on >>> l & 1)
				setBig(out, l, first + step * BigInt(l - lane));
	}

	planes(out, bytes, on) {
		const differ = this.byte();

		for (let l = 0; l < 32; l++)
			if (on >>> l & 1) {
				out[l] = 0;
				if (bytes === 8)
					out[32 + l] = 0;
			}
		for (let k = 0; k < bytes; k++) {
			const base = k < 4 ? 0 : 32, shift = 8 * (k & 3), shared = differ >> k & 1 ? -1 : this.byte();
			for (let l = 0; l < 32; l++)
				if (on >>> l & 1)
					out[base + l] |= (shared < 0 ? this.byte() : shared) << shift;
		}
	}
}

const wordsOf = (bytes) => bytes === 16 ? 128 : bytes === 8 ? 64 : bytes ? 32 : 1;

// An array of numbers that grows.
class Words {
	constructor() { this.at = new Uint32Array(1 << 20); this.n = 0; }
	add(words) {
		const start = this.n;
		if (start + words.length > this.at.length) {
			const grown = new Uint32Array(2 * this.at.length + words.length);
			grown.set(this.at);
			this.at = grown;
		}
		this.at.set(words, start);
		this.n += words.length;
		return start;
	}
}

class Trace {
	constructor(data) {
		const n = data.n;

		this.data = data;
		this.n = n;
		this.warp = new Uint32Array(n); this.func = new Uint16Array(n); this.depth = new Uint8Array(n); this.row = new Uint32Array(n);
		this.mask = new Uint32Array(n); this.on = new Uint32Array(n);
		this.values = new Words();
		this.valueAt = new Int32Array(n).fill(-1);   // index of the first register's values; those of the others follow
		this.accesses = new Map();                   // by instruction
		this.warps = []; this.blocks = []; this.barriers = []; this.barrierTimes = [];
		this.frames = new Map();                     // values while decoding, and the instructions that wrote them
		this.constants = new Map();
		this.decode(new Reader(fromBase64(data.stream)));
	}

	decode(reader) {
		let warp = null, t = 0;

		while (t < this.n || reader.at < reader.bytes.length) {
			const flags = reader.byte();
			if (flags & FLAG.notice) {
				this.notice(reader, t);
				continue;
			}
			if (flags & FLAG.warp)
				warp = this.warps[reader.varint()];
			this.instruction(reader, flags, warp, t++);
		}
	}

	notice(reader, t) {
		const kind = reader.byte(), number = reader.varint();

		if (kind === NOTICE.block) {
			const first = reader.varint(), n = reader.varint(), launch = reader.varint();
			const block = { number, launch, first, n, index: [reader.varint(), reader.varint(), reader.varint()] };
			const bytes = reader.varint();
			Object.assign(block, { threads: reader.varint(), begins: t, ends: Infinity, log: [], times: [], image: new Uint8Array(bytes), types: new Map() });
			this.blocks[number] = block;
			for (let k = 0; k < n; k++)
				this.warps[first + k] = { number: first + k, index: k, block, events: [], func: 0, depth: 0, row: -1, mask: 0 };
		} else if (kind === NOTICE.blockEnds) {
			this.blocks[number].ends = t;
		} else if (kind === NOTICE.barrier) {
			this.barriers.push({ t, block: number, id: reader.varint() });
			this.barrierTimes.push(t);
		} else if (kind === NOTICE.deadlock) {
			this.blocks[number].deadlock = t;
		}
	}

	instruction(reader, flags, warp, t) {
		if (flags & FLAG.place) {
			warp.func = reader.varint();
			warp.depth = reader.varint();
			warp.row = reader.varint();
		} else {
			warp.row++;
		}
		if (flags & FLAG.mask)
			warp.mask = reader.word();
		this.warp[t] = warp.number; this.func[t] = warp.func; this.depth[t] = warp.depth; this.row[t] = warp.row;
		this.mask[t] = warp.mask;
		this.on[t] = flags & FLAG.on ? reader.word() : warp.mask;
		warp.events.push(t);
		this.registers(reader, flags, warp, t);
		if (flags & FLAG.access)
			this.access(reader, warp, t);
	}

	// Return the registers of a function that a warp executes at a call depth.
	frame(warp, func, depth) {
		const key = (warp * 256 + depth) * 65536 + func;
		let frame = this.frames.get(key);

		if (!frame)
			this.frames.set(key, frame = { regs: [], writes: [] });
		return frame;
	}

	register(frame, func, flat) {
		return frame.regs[flat] || (frame.regs[flat] = new Uint32Array(wordsOf(this.data.functions[func].regs[flat][1])));
	}

	constant(text) {
		let r = this.constants.get(text);

		if (!r) {
			r = new Uint32Array(64);
			for (let l = 0; l < 32; l++)
				setBig(r, l, BigInt(text));
			this.constants.set(text, r);
		}
		return r;
	}

	registers(reader, flags, warp, t) {
		const row = this.data.functions[warp.func].rows[warp.row], on = this.on[t];

		if (!row.dest || !row.dest.length || !on)
			return;
		const frame = this.frame(warp.number, warp.func, warp.depth);
		if (!(flags & FLAG.values))
			this.predict(frame, row, warp, t, on);
		row.dest.forEach(([flat], k) => {
			const r = this.register(frame, warp.func, flat), bytes = this.data.functions[warp.func].regs[flat][1];
			if (flags & FLAG.values)
				this.stored(reader, r, bytes, on);
			const at = this.values.add(r);
			if (k === 0)
				this.valueAt[t] = at;
			(frame.writes[flat] || (frame.writes[flat] = [])).push(t, at);
		});
	}

	stored(reader, r, bytes, on) {
		if (bytes === 16)
			for (let half = 0; half < 2; half++)
				reader.lanes(r.subarray(64 * half, 64 * half + 64), 8, on);
		else
			reader.lanes(r, bytes, on);
	}

	predict(frame, row, warp, t, on) {
		if (!row.rule) {
			this.pendingLoad = row;  // a load from shared memory, whose addresses access() decodes
			return;
		}
		const [name, sources, imm] = row.rule, out = this.register(frame, warp.func, row.dest[0][0]);
		const values = sources.map((s) => typeof s === "string" ? this.constant(s) : this.register(frame, warp.func, s));

		if (name.startsWith("SELP"))
			values[2] = Uint32Array.from({ length: 32 }, (_, l) => typeof sources[2] === "string" ? values[2][l] : values[2][0] >>> l & 1);
		applyRule(name, out, values, on, imm);
		if (this.data.functions[warp.func].regs[row.dest[0][0]][1] === 2)
			for (let l = 0; l < 32; l++)
				out[l] &= 0xffff;
	}

	access(reader, warp, t) {
		const list = [], n = reader.varint();

		for (let k = 0; k < n; k++) {
			const code = reader.byte(), bytes = reader.varint(), lanes = reader.word(), at = new Uint32Array(64);
			const a = { kind: code & 3, space: code >> 2 & 31, bytes, lanes, at };
			reader.lanes(at, 8, lanes);
			if (code & 128)
				this.write(reader, warp, t, a);
			list.push(a);
		}
		this.accesses.set(t, list);
		if (this.pendingLoad)
			this.load(warp, t, list[0]);
	}

	write(reader, warp, t, a) {
		const predicted = reader.byte(), image = warp.block.image, words = new Uint32Array(32);
		const row = this.data.functions[warp.func].rows[warp.row], frame = this.frame(warp.number, warp.func, warp.depth);
		const n = Math.ceil(a.bytes / 4), parts = predicted ? this.storedParts(row, frame, warp) : [];

		for (let k = 0; k < n; k++) {
			let from = words, offset = 0;
			if (predicted)
				({ from, offset } = parts[k]);
			else
				reader.lanes(words, 4, a.lanes);
			for (let l = 0; l < 32; l++)
				for (let b = 0; a.lanes >>> l & 1 && b < 4 && 4 * k + b < a.bytes; b++)
					image[a.at[l] + 4 * k + b] = from[offset + l] >>> 8 * b & 255;
		}
		const type = row.stored ? this.data.functions[warp.func].regs[row.stored[0]][2] : "b";
		const lanes = [];
		for (let l = 0; l < 32; l++)
			if (a.lanes >>> l & 1) {
				lanes.push([a.at[l], image.slice(a.at[l], a.at[l] + a.bytes)]);
				for (let k = 0; k < a.bytes; k += 4)
					warp.block.types.set(a.at[l] + k >> 2, type);
			}
		warp.block.log.push({ t, lanes });
		warp.block.times.push(t);
	}

	// Return the registers that a store writes to memory: {from, offset} for each word; from[offset + l] is the word of lane l.
	storedParts(row, frame, warp) {
		return row.stored.flatMap((flat) => {
			const from = this.register(frame, warp.func, flat);
			return from.length === 64 ? [{ from, offset: 0 }, { from, offset: 32 }] : [{ from, offset: 0 }];
		});
	}

	// For a load from shared memory whose contents the page knows, fill in the values; registers() has reserved space for them.
	load(warp, t, a) {
		const frame = this.frame(warp.number, warp.func, warp.depth), row = this.pendingLoad, image = warp.block.image;
		let at = this.valueAt[t], offset = 0;

		for (const [flat] of row.dest) {
			const r = this.register(frame, warp.func, flat);
			for (let half = 0; half < r.length / 32; half++, offset += 4)
				for (let l = 0; l < 32; l++)
					if (a.lanes >>> l & 1)
						r[32 * half + l] = (image[a.at[l] + offset] | image[a.at[l] + offset + 1] << 8 |
							image[a.at[l] + offset + 2] << 16 | image[a.at[l] + offset + 3] << 24) >>> 0;
			this.values.at.set(r, at);
			at += r.length;
		}
		this.pendingLoad = null;
	}
}
