// memory.js — shared memory as cells of 4 bytes, 32 in a row: a column is a bank.

const WORDS_SHOWN = 4096;

class MemoryView {
	constructor(trace, state) {
		this.trace = trace;
		this.state = state;
		this.box = document.getElementById("shared");
		this.scroller = new Scroller(this.box);
		this.block = null;
		this.cells = [];
		this.values = new Uint32Array(0);
		this.lit = [];
	}

	make(block) {
		const n = Math.min(Math.ceil(this.used(block) / 4), WORDS_SHOWN);

		this.block = block;
		this.values = new Uint32Array(n);
		this.lit = [];
		this.cells = Array.from({ length: n }, (_, k) => element("span", { class: "word", title: `bytes ${4 * k} to ${4 * k + 3}, bank ${k % 32}` }, "0"));
		this.box.replaceChildren(...Array.from({ length: Math.ceil(n / 32) }, (_, row) => element("div", { class: "words" },
			element("span", { class: "at" }, String(128 * row)), ...this.cells.slice(32 * row, 32 * row + 32))));
		setText(document.getElementById("shared-name"), n ? `Shared memory of block ${block.index.join(",")}: words of 4 bytes, a column is a bank` +
			(n === WORDS_SHOWN ? ` (the first ${WORDS_SHOWN} words)` : "") : "Shared memory: the block does not use it");
		document.getElementById("shared-part").hidden = !n;
		this.scroller.measure();
	}

	// Return the address after the last byte of shared memory that the block accesses.
	used(block) {
		let end = 0;

		if (block.used !== undefined)
			return block.used;
		for (const [t, list] of this.trace.accesses) {
			if (this.state.warpAt(t).block !== block)
				continue;
			for (const a of list)
				for (let l = 0; a.space === 2 && l < 32; l++)
					if (a.lanes >>> l & 1)
						end = Math.max(end, a.at[l] + a.bytes);
		}
		return block.used = Math.min(end, block.image.length);
	}

	show(t) {
		const block = this.state.warpAt(t).block;

		if (this.block !== block)
			this.make(block);
		if (!this.cells.length)
			return;
		const { bytes, touched } = this.state.shared(block, t);
		const words = new Uint32Array(bytes.buffer, 0, bytes.length >> 2);
		for (let k = 0; k < this.cells.length && k < words.length; k++)
			if (words[k] !== this.values[k]) {
				this.values[k] = words[k];
				this.cells[k].textContent = wordText(block.types.get(k) || "b", words[k], 0, 4).slice(0, 8);
			}
		for (const cell of this.lit)
			delete cell.dataset.is;
		this.lit = [];
		for (const [k, is] of touched)
			if (this.cells[k]) {
				this.cells[k].dataset.is = is;
				this.lit.push(this.cells[k]);
			}
		if (this.lit.length)
			this.scroller.show(this.lit[0].parentElement);
	}
}
