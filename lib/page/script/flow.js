// SPDX-License-Identifier: BSD-2-Clause
// The flow graph of a procedure, in layers.

const BOX = { w: 260, h: 74, gap: 28, down: 54, most: 120 };

// The blocks that are drawn: all, or of many those with most samples.
function drawnBlocks(code) {
	const all = code.blocks.map((b, i) => i);
	if (all.length <= BOX.most) return all;
	return all
		.sort((a, b) => code.blocks[b][2] - code.blocks[a][2] || a - b)
		.slice(0, BOX.most)
		.sort((a, b) => a - b);
}

// Nodes in layers: edges lead down but those that close a loop; long ones go through points between.
function layers(code, blocks) {
	const is = new Set(blocks),
		out = new Map(blocks.map((b) => [b, []])),
		state = new Map(),
		back = new Set();
	const edges = code.edges.filter((e) => is.has(e[0]) && is.has(e[1])).map((e) => ({ e, from: e[0], to: e[1] }));
	for (const e of edges) out.get(e.from).push(e);
	for (const start of blocks) {
		const stack = state.has(start) ? [] : [[start, 0]];
		if (stack.length) state.set(start, 1);
		while (stack.length) {
			const top = stack[stack.length - 1],
				next = out.get(top[0])[top[1]++];
			if (!next) {
				state.set(top[0], 2);
				stack.pop();
			} else if (state.get(next.to) === 1) {
				back.add(next);
			} else if (!state.has(next.to)) {
				state.set(next.to, 1);
				stack.push([next.to, 0]);
			}
		}
	}
	const level = new Map(blocks.map((b) => [b, 0])),
		into = new Map(blocks.map((b) => [b, 0]));
	const down = edges
		.filter((e) => e.from !== e.to)
		.map((e) => (back.has(e) ? { ...e, a: e.to, b: e.from, back: true } : { ...e, a: e.from, b: e.to }));
	for (const e of down) into.set(e.b, into.get(e.b) + 1);
	const ready = blocks.filter((b) => !into.get(b));
	while (ready.length) {
		const b = ready.shift();
		for (const e of down.filter((x) => x.a === b)) {
			level.set(e.b, Math.max(level.get(e.b), level.get(b) + 1));
			into.set(e.b, into.get(e.b) - 1);
			if (!into.get(e.b)) ready.push(e.b);
		}
	}
	const rows = [];
	const add = (node, l) => {
		(rows[l] = rows[l] || []).push(node);
		node.l = l;
		return node;
	};
	const nodes = new Map(blocks.map((b) => [b, add({ b, w: BOX.w, near: [] }, level.get(b))]));
	for (const e of down) {
		let last = nodes.get(e.a);
		e.way = [last];
		for (let l = level.get(e.a) + 1; l <= level.get(e.b); l++) {
			const node = l === level.get(e.b) ? nodes.get(e.b) : add({ w: 16, near: [] }, l);
			node.near.push(last);
			last.near.push(node);
			e.way.push(node);
			last = node;
		}
	}
	const loops = edges.filter((e) => e.from === e.to);
	return { rows: rows.map((r) => r || []), nodes, down, loops };
}

// Positions: each layer in the order of its neighbours, a few times down and up.
function arrange(g) {
	const put = (row) => {
		let x = 0;
		for (const n of row) {
			n.x = x + n.w / 2;
			x += n.w + BOX.gap;
		}
		row.width = x - BOX.gap;
	};
	g.rows.forEach(put);
	const wide = Math.max(...g.rows.map((r) => r.width));
	const center = (row) => {
		put(row);
		const d = (wide - row.width) / 2;
		for (const n of row) n.x += d;
	};
	g.rows.forEach(center);
	for (let turn = 0; turn < 8; turn++) {
		const order = turn % 2 ? [...g.rows].reverse() : g.rows;
		for (const row of order) {
			for (const n of row) {
				const near = n.near.filter((m) => (turn % 2 ? m.l > n.l : m.l < n.l));
				n.want = near.length ? near.reduce((s, m) => s + m.x, 0) / near.length : n.x;
			}
			row.sort((a, b) => a.want - b.want);
			center(row);
		}
	}
	for (const row of g.rows)
		// as near to the wish as its neighbours leave
		for (let i = 0, left = -Infinity; i < row.length; i++) {
			const n = row[i],
				rest = row.slice(i + 1).reduce((s, m) => s + m.w + BOX.gap, 0);
			const near = n.near.filter((m) => m.l < n.l);
			const want = near.length ? near.reduce((s, m) => s + m.x, 0) / near.length : n.x;
			n.x = Math.max(left + n.w / 2, Math.min(want, wide - rest - n.w / 2));
			left = n.x + n.w / 2 + BOX.gap;
		}
	g.wide = wide;
	return g;
}

// An edge back to the start of a loop stands beside the one that leads there.
function edgePath(way, back) {
	const aside = back ? 14 : 0,
		y = (n, bottom) => 20 + n.l * (BOX.h + BOX.down) + (bottom ? BOX.h : 0);
	let d = "",
		last = way[0];
	for (const n of way.slice(1)) {
		const y0 = y(last, true),
			y1 = y(n, false),
			mid = (y0 + y1) / 2;
		const x0 = last.x + aside,
			x1 = n.x + aside;
		d += (d ? " L " : "M ") + x0 + " " + y0 + " C " + x0 + " " + mid + " " + x1 + " " + mid + " " + x1 + " " + y1;
		last = n;
	}
	return d;
}

const tip = (x, y, up) =>
	svg("path", { class: "tip", d: "M " + x + " " + y + " l -4 " + (up ? 8 : -8) + " l 8 0 z" });

function drawFlow(to, code) {
	if (!code.blocks.length) {
		to.append(note("Its blocks are not known: " + (code.notes.join("; ") || "its code is not there") + "."));
		return;
	}
	const blocks = drawnBlocks(code),
		g = arrange(layers(code, blocks)),
		pad = 60;
	const width = g.wide + 2 * pad,
		height = 40 + g.rows.length * (BOX.h + BOX.down);
	const art = svg("svg", {
		width,
		height,
		viewBox: -pad + " 0 " + width + " " + height,
		role: "group",
		"aria-label": "flow graph; the tables below have the same blocks and edges",
	});
	const most = Math.max(1, ...code.edges.map((e) => e[3] || 0));
	for (const e of g.down) {
		const heavy = 1 + 3 * Math.sqrt((e.e[3] || 0) / most),
			end = e.way[e.way.length - 1],
			start = e.way[0];
		const yEnd = 20 + end.l * (BOX.h + BOX.down),
			yStart = 20 + start.l * (BOX.h + BOX.down) + BOX.h;
		art.append(
			svg("path", {
				class: e.back ? "back" : "",
				d: edgePath(e.way, e.back),
				"stroke-width": heavy.toFixed(1),
				"stroke-dasharray": e.e[3] === null ? "4 4" : "none",
			}),
			e.back ? tip(start.x + 14, yStart, true) : tip(end.x, yEnd, false),
		);
		if (e.e[3] !== null && e.e[4] > 1) {
			const next = e.way[1];
			art.append(
				svg(
					"text",
					{
						class: "label",
						"text-anchor": "middle",
						x: (start.x + next.x) / 2,
						y: yStart + BOX.down / 2 + 4,
					},
					code.unit === "x" ? String(Number((e.e[3] / most).toPrecision(2))) : about(e.e[3]),
				),
			);
		}
	}
	for (const e of g.loops) {
		const n = g.nodes.get(e.from),
			y = 20 + n.l * (BOX.h + BOX.down),
			x = n.x + n.w / 2;
		art.append(
			svg("path", {
				class: "back",
				"stroke-width": (1 + 3 * Math.sqrt((e.e[3] || 0) / most)).toFixed(1),
				d:
					"M " +
					(x - 20) +
					" " +
					(y + BOX.h) +
					" c 0 26 38 26 38 -6 l 0 " +
					(12 - BOX.h) +
					" c 0 -32 -38 -32 -38 -6",
			}),
			tip(x - 20, y, false),
		);
	}
	for (const [b, n] of g.nodes) art.append(box(code, b, n));
	to.append(
		make(
			"p",
			{ class: "dim" },
			"Blocks as hot as their color, edges as thick as they are frequent (relative to the most frequent one where only proportions are known), blue back to the start of a loop. A block leads to its instructions." +
				(blocks.length < code.blocks.length
					? " The " + blocks.length + " of " + code.blocks.length + " blocks with most samples are drawn."
					: ""),
		),
	);
	to.append(make("div", { class: "graph", tabindex: 0, role: "region", "aria-label": "flow graph" }, art), flowTables(code));
}

function box(code, i, n) {
	const b = code.blocks[i],
		y = 20 + n.l * (BOX.h + BOX.down),
		x = n.x - n.w / 2;
	const hot = Math.sqrt(b[2] / Math.max(1, ...code.blocks.map((c) => c[2])));
	const first = code.insns.findIndex((c) => c[3] === i),
		insns = code.insns.filter((c) => c[3] === i);
	const letters = b
		.slice(8)
		.map((s) => causes(s[0]))
		.join(", ");
	const text = (k, s) => svg("text", { x: x + 8, y: y + 16 + 16 * k }, s.length > 38 ? s.slice(0, 37) + "…" : s);
	return svg(
		"a",
		{ href: "#p" + code.p + "/i" + Math.max(first, 0) },
		svg(
			"title",
			{},
			blockText(code, b, i) +
				"\n" +
				insns
					.slice(0, 30)
					.map((c) => c[1])
					.join("\n"),
		),
		svg("rect", { x, y, width: n.w, height: BOX.h, rx: 5 }),
		svg("rect", {
			class: "warm",
			x,
			y,
			width: n.w,
			height: BOX.h,
			rx: 5,
			"fill-opacity": (0.65 * hot).toFixed(2),
		}),
		text(0, "block " + i + " · " + place(b[0]) + " · " + b[7] + (b[7] === 1 ? " instruction" : " instructions")),
		text(1, percent(b[2], code.samples) + (b[6] !== null ? " · " + cost(code, b[6]) + " a run" : "")),
		text(
			2,
			b[3] === null
				? "runs not known"
				: (code.unit === "x"
						? "runs " +
							Number((b[3] / Math.max(...code.blocks.map((c) => c[3] || 0), 1e-300)).toPrecision(2))
						: "runs " + about(b[3])) +
						", " +
						CONFIDENCE[b[4]] +
						" confidence",
		),
		text(3, letters ? "waits: " + letters : insns.length ? insns[insns.length - 1][1] : ""),
	);
}

function flowTables(code) {
	const row = (cells, tag) =>
		make(
			"tr",
			null,
			cells.map((c) => make(tag || "td", null, tag ? make("span", null, c) : c)),
		);
	const end = (b) => (b < 0 ? "outside" : "block " + b);
	return make(
		"details",
		null,
		make("summary", null, "Blocks and edges as tables"),
		make(
			"div",
			{ class: "scroll" },
			make(
				"table",
				{ "aria-label": "blocks" },
				make("thead", null, row(["block", "address", "what is known"], "th")),
				make(
					"tbody",
					null,
					code.blocks
						.slice(0, 1000)
						.map((b, i) => row([String(i), address(code, b[0]), blockText(code, b, i)])),
				),
			),
		),
		make(
			"div",
			{ class: "scroll" },
			make(
				"table",
				{ "aria-label": "edges" },
				make("thead", null, row(["from", "to", "kind", "how often"], "th")),
				make(
					"tbody",
					null,
					code.edges
						.slice(0, 2000)
						.map((e) =>
							row([
								end(e[0]),
								end(e[1]),
								["next", "branch", "table", "entry", "exit"][e[2]],
								runs(code, e[3], e[4]),
							]),
						),
				),
			),
		),
	);
}
