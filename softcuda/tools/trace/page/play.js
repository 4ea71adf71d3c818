// play.js — handles the time line, the keyboard, and links to an instruction.

class Player {
	constructor(trace) {
		this.trace = trace;
		this.state = new State(trace);
		this.view = new View(trace, this.state);
		this.memory = new MemoryView(trace, this.state);
		this.t = -1;
		this.lane = 0;
		this.playing = false;
		this.steps = 0;      // number of steps shown so far while playing
		this.find = (id) => document.getElementById(id);
	}

	seek(t, lane = this.lane) {
		t = Math.max(0, Math.min(this.trace.n - 1, t));
		lane = (lane + 32) % 32;
		if (t === this.t && lane === this.lane)
			return;
		this.t = t;
		this.lane = lane;
		this.view.show(t, lane);
		this.memory.show(t);
		this.find("time").value = t;
		this.find("lane").value = lane;
		const hash = `#t=${this.trace.data.from + t}` + (lane ? `&lane=${lane}` : "");
		this.find("link").setAttribute("href", hash);
		setText(this.find("link"), `#${this.trace.data.from + t}`);
		if (!this.playing)
			history.replaceState(null, "", hash);
	}

	// Return the next instruction in a direction for which accept() is true; if there is none, the current one.
	search(direction, accept) {
		for (let t = this.t + direction; t >= 0 && t < this.trace.n; t += direction)
			if (accept(t))
				return t;
		return this.t;
	}

	seekWarp(direction) {
		const warp = this.state.warpAt(this.t), k = countUpTo(warp.events, this.t) - 1 + direction;

		if (k >= 0 && k < warp.events.length)
			this.seek(warp.events[k]);
	}

	seekLine(direction) {
		const trace = this.trace, now = this.state.rowAt(this.t), warp = trace.warp[this.t];

		this.seek(this.search(direction, (t) => trace.warp[t] === warp && this.state.rowAt(t).line &&
			(this.state.rowAt(t).line !== now.line || this.state.rowAt(t).file !== now.file)));
	}

	seekDivergence(direction) {
		const last = new Map(), trace = this.trace;

		if (direction > 0) {
			this.seek(this.search(1, (t) => {
				const warp = trace.warps[trace.warp[t]], k = countUpTo(warp.events, t) - 1;
				return k > 0 && trace.mask[warp.events[k - 1]] !== trace.mask[t];
			}));
			return;
		}
		this.seek(this.search(-1, (t) => {
			const warp = trace.warps[trace.warp[t]], k = countUpTo(warp.events, t) - 1;
			return k > 0 && trace.mask[warp.events[k - 1]] !== trace.mask[t] && !last.has(t);
		}));
	}

	seekBarrier(direction) {
		const times = this.trace.barriers.map((b) => Math.min(b.t, this.trace.n - 1));

		if (direction > 0)
			this.seek(times.find((t) => t > this.t) ?? this.t);
		else
			this.seek(times.filter((t) => t < this.t).pop() ?? this.t);
	}

	toggle() {
		this.playing = !this.playing;
		setText(this.find("play"), this.playing ? "pause" : "play");
		if (!this.playing) {
			history.replaceState(null, "", this.find("link").getAttribute("href"));
			return;
		}
		if (this.t === this.trace.n - 1)
			this.seek(0);
		this.began = performance.now();
		this.due = 0;
		requestAnimationFrame((now) => this.tick(now));
	}

	tick(now) {
		if (!this.playing)
			return;
		this.due += Math.max(0, now - this.began) / 1000 * Number(this.find("speed").value);
		this.began = now;
		// tick() is called for each frame, about 60 times a second; at a higher speed, some instructions are not shown.
		const n = Math.floor(this.due);
		this.due -= n;
		if (n) {
			this.seek(this.t + n);
			this.steps += n;
		}
		if (this.t >= this.trace.n - 1)
			this.toggle();
		else
			requestAnimationFrame((next) => this.tick(next));
	}

	faster(direction) {
		const speed = this.find("speed");

		speed.selectedIndex = Math.max(0, Math.min(speed.length - 1, speed.selectedIndex + direction));
	}

	key(event) {
		const other = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
		const keys = {
			n: () => this.seekLine(1), p: () => this.seekLine(-1),
			w: () => this.seek(this.search(1, (t) => this.trace.warp[t] !== this.trace.warp[this.t])),
			W: () => this.seek(this.search(-1, (t) => this.trace.warp[t] !== this.trace.warp[this.t])),
			d: () => this.seekDivergence(1), D: () => this.seekDivergence(-1), b: () => this.seekBarrier(1), B: () => this.seekBarrier(-1),
			ArrowDown: () => this.seek(this.t, this.lane + 1), ArrowUp: () => this.seek(this.t, this.lane - 1),
			" ": () => this.toggle(), "+": () => this.faster(1), "-": () => this.faster(-1),
			Home: () => this.seek(0), End: () => this.seek(this.trace.n - 1),
		};

		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (other && event.shiftKey)
			this.seekWarp(other);
		else if (other)
			this.seek(this.t + other);
		else if (keys[event.key])
			keys[event.key]();
		else
			return;
		event.preventDefault();
	}

	// Format of the link: "#t=123&lane=4"
	readHash() {
		const values = new URLSearchParams(location.hash.slice(1));

		this.seek(Number(values.get("t") || this.trace.data.from) - this.trace.data.from, Number(values.get("lane") || 0));
	}

	start() {
		const click = (id, f) => this.find(id).addEventListener("click", (event) => { event.currentTarget.blur(); f(); });

		this.find("time").max = this.trace.n - 1;
		this.find("time").addEventListener("input", (event) => this.seek(Number(event.target.value)));
		this.find("lane").append(...Array.from({ length: 32 }, (_, l) => element("option", {}, String(l))));
		this.find("lane").addEventListener("change", (event) => this.seek(this.t, Number(event.target.value)));
		click("first", () => this.seek(0));
		click("back", () => this.seek(this.t - 1));
		click("play", () => this.toggle());
		click("forward", () => this.seek(this.t + 1));
		click("last", () => this.seek(this.trace.n - 1));
		this.find("warps").addEventListener("click", (event) => {
			if (event.target.dataset.lane)
				this.seek(this.t, Number(event.target.dataset.lane));
		});
		document.addEventListener("keydown", (event) => this.key(event));
		window.addEventListener("hashchange", () => this.readHash());
		this.readHash();
	}
}

function describeTrace(trace) {
	const { launches, limited, running, from, n } = trace.data, first = launches[0], notes = [];

	if (first)
		document.getElementById("title").textContent = `${first.kernel}: grid ${first.grid.join(",")}, block ${first.block.join(",")}`;
	document.title = first ? `${first.kernel}: gpuload trace` : "gpuload trace";
	if (launches.length > 1)
		notes.push(`and ${launches.length - 1} more launches`);
	if (limited)
		notes.push(`the limit is reached: instructions ${from} to ${from + n - 1} were recorded, and more were executed (--trace-limit)`);
	else if (running)
		notes.push(`the trace ends at instruction ${from + n - 1}, while the kernel is still running`);
	for (const launch of launches)
		if (launch.fault)
			notes.push(launch.fault);
	document.getElementById("note").textContent = notes.join("; ");
}

function startPage() {
	const trace = new Trace(JSON.parse(document.getElementById("record").textContent));

	describeTrace(trace);
	if (!trace.n) {
		document.getElementById("event").textContent = "no instruction was recorded";
		return;
	}
	window.player = new Player(trace);
	window.player.start();
}

startPage();
