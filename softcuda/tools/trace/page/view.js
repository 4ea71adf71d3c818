// view.js — shows source, PTX, warps and registers on the page, and updates only elements that have changed.

const SIGNS = { run: "●", false: "○", apart: "", barrier: "‖", ended: "×", none: "·" };
const MEANINGS = [["run", "executes"], ["false", "guard is false"], ["apart", "waits for other lanes of the warp"], ["barrier", "waits at a barrier"],
	["ended", "has ended"], ["none", "has not begun"]];

const REGISTERS_SHOWN = 40;

function element(name, attributes = {}, ...children) {
	const e = document.createElement(name);

	for (const [key, value] of Object.entries(attributes))
		e.setAttribute(key, value);
	e.append(...children);
	return e;
}

function setText(e, text) {
	if (e.textContent !== text)
		e.textContent = text;
}

function setData(e, key, value) {
	if (e.dataset[key] !== value)
		e.dataset[key] = value;
}

// Scrolls a box so that one of its elements is visible.  Positions are read once, when the box gets new elements: reading them after
// each step would make the browser lay out the whole page again.
class Scroller {
	constructor(box) {
		this.box = box;
		this.tops = new Map();
		this.measure();
		box.addEventListener("scroll", () => { this.top = box.scrollTop; }, { passive: true });
		window.addEventListener("resize", () => this.measure());
	}

	measure() {
		this.top = this.box.scrollTop;
		this.height = this.box.clientHeight;
		this.tops.clear();
	}

	show(element) {
		if (!this.tops.has(element))
			this.tops.set(element, element.offsetTop - this.box.offsetTop);
		const top = this.tops.get(element);
		if (top >= this.top + 20 && top <= this.top + this.height - 40)
			return;
		this.top = Math.max(0, top - this.height / 2);
		this.box.scrollTop = this.top;
	}
}

// A list of source or PTX lines; the line of the current instruction is marked.
class Code {
	constructor(box, heading) {
		Object.assign(this, { box, heading, shown: null, now: null, lines: [], index: 0 });
		this.scroller = new Scroller(box);
		window.addEventListener("beforeprint", () => this.near());
	}

	show(key, title, make) {
		if (this.shown === key)
			return;
		this.shown = key;
		this.now = null;
		this.lines = [];
		setText(this.heading, title);
		this.box.replaceChildren(...make(this.lines));
		this.scroller.measure();
	}

	mark(index) {
		const line = this.lines[index] || null;

		if (line === this.now)
			return;
		if (this.now)
			this.now.classList.remove("now");
		this.now = line;
		if (!line)
			return;
		line.classList.add("now");
		this.index = index;
		this.scroller.show(line);
	}

	// Select the lines near the marked line; only these are printed on paper.
	near() {
		const index = this.index;

		for (const line of this.box.querySelectorAll(".near"))
			line.classList.remove("near");
		for (let k = Math.max(0, index - 20); k < index + 20 && k < this.lines.length; k++)
			if (this.lines[k])
				this.lines[k].classList.add("near");
	}
}

function shortPath(path) {
	return path.split("/").slice(-2).join("/");
}

function codeLine(number, text) {
	return element("div", {}, element("span", { class: "number" }, String(number)), text);
}

class View {
	constructor(trace, state) {
		this.trace = trace;
		this.state = state;
		this.cuda = new Code(document.getElementById("cuda"), document.getElementById("cuda-name"));
		this.ptx = new Code(document.getElementById("ptx"), document.getElementById("ptx-name"));
		this.block = null;
		this.rows = [];
		this.registers = document.querySelector("#registers tbody");
		document.getElementById("legend").replaceChildren(...MEANINGS.flatMap(([is, text]) =>
			[element("span", { class: "lane", "data-is": is }, SIGNS[is]), text]));
	}

	show(t, lane) {
		this.showEvent(t);
		this.showCode(t);
		this.showWarps(t, lane);
		this.showRegisters(t, lane);
	}

	showEvent(t) {
		const warp = this.state.warpAt(t), row = this.state.rowAt(t), e = document.getElementById("event");
		const accesses = (this.trace.accesses.get(t) || []).map((a) => `${KINDS[a.kind]} ${a.bytes} bytes of ${SPACES[a.space]}`);
		const mask = this.trace.on[t].toString(16).padStart(8, "0");

		setText(e, `#${this.trace.data.from + t} block ${warp.block.index.join(",")} warp ${warp.index} lanes ${mask}: ${row.text}` +
			(accesses.length ? "  " + accesses.join(", ") : ""));
		setData(e, "t", String(this.trace.data.from + t));
		setData(e, "warp", String(warp.index));
		setData(e, "lanes", mask);
	}

	showCode(t) {
		const func = this.trace.func[t], f = this.trace.data.functions[func], row = f.rows[this.trace.row[t]];
		const file = this.trace.data.files[row.file];

		this.ptx.show(func, `PTX: ${f.name}`, (lines) => this.ptxLines(f, lines));
		this.ptx.mark(this.trace.row[t]);
		if (file && file.text !== undefined) {
			this.cuda.show(row.file, shortPath(file.name), (lines) => file.text.replace(/\n$/, "").split("\n").map((text, k) => lines[k + 1] = codeLine(k + 1, text)));
			this.cuda.mark(row.line);
		} else if (file) {
			this.cuda.show(file.name, shortPath(file.name), () => [codeLine(row.line, "the source was not found when the trace was written")]);
		} else if (this.cuda.shown === null) {
			this.cuda.show(-1, "CUDA source", () => [codeLine("", "the PTX has no lines of CUDA C++: compile with -lineinfo")]);
		}
	}

	ptxLines(f, lines) {
		const labels = new Map();

		for (const [row, name] of f.labels)
			labels.set(row, [...labels.get(row) || [], name]);
		return f.rows.flatMap((row, k) => {
			const line = lines[k] = codeLine(row.ptx, "\t" + row.text);
			return [...(labels.get(k) || []).map((name) => element("div", { class: "label" }, name + ":")), line];
		});
	}

	makeWarps(block) {
		this.block = block;
		this.rows = Array.from({ length: block.n }, (_, k) => {
			const cells = Array.from({ length: 32 }, (_, l) => element("span", { class: "lane", title: `lane ${l}`, "data-lane": l }));
			const at = element("span", { class: "at" });
			const box = element("div", { class: "warp", "data-warp": k }, element("span", { class: "name" }, `warp ${k}`), ...cells, at);
			return { box, cells, at };
		});
		document.getElementById("warps").replaceChildren(...this.rows.map((r) => r.box));
	}

	showWarps(t, lane) {
		const now = this.state.warpAt(t), block = now.block, launch = this.trace.data.launches.find((l) => l.number === block.launch);

		if (this.block !== block)
			this.makeWarps(block);
		setText(document.getElementById("warps-name"), `Warps of block ${block.index.join(",")}` + (launch ? ` of ${launch.kernel}` : ""));
		this.rows.forEach((r, k) => {
			const warp = this.trace.warps[block.first + k], last = this.state.lastOf(warp, t);

			if (r.last === last && r.lane === lane && r.barriers === this.barriersUpTo(t) && (warp === now) === r.now)
				return;
			Object.assign(r, { last, lane, barriers: this.barriersUpTo(t), now: warp === now });
			r.box.classList.toggle("now", warp === now);
			this.state.lanes(warp, t).forEach(([is], l) => {
				const cell = r.cells[l], absent = 32 * k + l >= block.threads;
				setData(cell, "is", absent ? "ended" : is);
				setText(cell, absent ? "" : SIGNS[is]);
				cell.classList.toggle("chosen", warp === now && l === lane);
			});
			setText(r.at, last < 0 ? "" : this.state.rowAt(last).text);
		});
		this.showBarriers(block, t);
	}

	barriersUpTo(t) {
		return countUpTo(this.trace.barrierTimes, t);
	}

	showBarriers(block, t) {
		const waiting = this.rows.filter((r) => r.cells.some((c) => c.dataset.is === "barrier")).map((r) => r.box.dataset.warp);
		const done = this.trace.barriers.slice(0, this.barriersUpTo(t)).filter((b) => b.block === block.number), last = done[done.length - 1];
		const words = [];

		if (waiting.length)
			words.push(`waiting at a barrier: warp ${waiting.join(", ")}`);
		if (last)
			words.push(`barrier ${last.id} completed ${done.length} time${done.length > 1 ? "s" : ""}, last before #${this.trace.data.from + last.t}`);
		if (block.deadlock <= t + 1)
			words.push("deadlock: no warp can continue");
		setText(document.getElementById("barriers"), words.join("; "));
	}

	showRegisters(t, lane) {
		const { list, n } = this.state.registers(t, REGISTERS_SHOWN), warp = this.state.warpAt(t), depth = this.trace.depth[t];
		const rows = this.registers.rows, all = this.trace.warps[this.trace.warp[t]].block.threads - 32 * warp.index;
		const exist = all >= 32 ? 0xffffffff : 2 ** Math.max(all, 0) - 1;

		setText(document.getElementById("registers-name"), `Registers of warp ${warp.index}, lane ${lane}` + (depth ? `, in a call of depth ${depth}` : "") +
			(n > list.length ? ` (of ${n}, those that were written last)` : ""));
		while (rows.length > list.length)
			this.registers.lastChild.remove();
		while (rows.length < list.length)
			this.registers.append(element("tr", {}, element("td"), element("td"), element("td")));
		list.forEach((r, k) => {
			const [name, value, values] = rows[k].cells;
			setText(name, r.name);
			if (rows[k].words !== r.words.byteOffset || rows[k].lane !== lane) {
				setText(value, laneText(r, lane));
				setText(values, lanesText(r, exist));
				Object.assign(rows[k], { words: r.words.byteOffset, lane });
			}
			rows[k].classList.toggle("now", r.by === t);
		});
	}
}
