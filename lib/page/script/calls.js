// SPDX-License-Identifier: BSD-2-Clause
// Who called what: the flame graph, and callers and callees of a procedure.

// The tree of calls: arrays by node; totals are of the node and all below.
let tree = null;
function calls() {
	if (tree || !M.paths) return tree;
	const n = M.paths.nodes.length / 4,
		parent = new Int32Array(n),
		what = new Int32Array(n);
	const self = new Float64Array(n),
		lost = new Float64Array(n),
		all = new Float64Array(n),
		children = [];
	for (let i = 0; i < n; i++) {
		[parent[i], what[i], self[i], lost[i]] = M.paths.nodes.slice(4 * i, 4 * i + 4);
		children.push([]);
	}
	for (let i = n - 1; i >= 0; i--) {
		all[i] += self[i] + lost[i];
		if (i) {
			all[parent[i]] += all[i];
			children[parent[i]].push(i);
		}
	}
	const order = (c) => c.sort((a, b) => all[b] - all[a] || a - b);
	children.forEach(order);
	tree = { n, parent, what, self, lost, all, children, names: M.paths.procedures };
	return tree;
}

// The same from the other end: each procedure with samples, below it its callers.
function inverted() {
	const t = calls();
	if (t.up) return t.up;
	const nodes = [{ what: -1, all: 0, below: new Map(), parent: -1 }];
	const child = (at, what) => {
		let c = nodes[at].below.get(what);
		if (c === undefined) {
			c = nodes.push({ what, all: 0, below: new Map(), parent: at }) - 1;
			nodes[at].below.set(what, c);
		}
		return c;
	};
	const limit = t.all[0] / 5000;
	for (let i = 0; i < t.n; i++) {
		const n = t.self[i];
		nodes[0].all += n + t.lost[i];
		if (!n) continue;
		for (let k = i, at = 0, depth = 0; k > 0 && depth < 40; k = t.parent[k], depth++) {
			at = child(at, t.what[k]);
			nodes[at].all += n;
			if (n < limit && depth > 3) break;
		}
	}
	const children = nodes.map((x) => [...x.below.values()].sort((a, b) => nodes[b].all - nodes[a].all));
	t.up = {
		n: nodes.length,
		parent: nodes.map((x) => x.parent),
		what: nodes.map((x) => x.what),
		all: nodes.map((x) => x.all),
		children,
		names: t.names,
	};
	return t.up;
}

const rowOf = new Map();
function rowNamed(name, image) {
	if (!rowOf.size)
		for (const p of procedures)
			if (!rowOf.has(p.name + "\0" + p.image.name)) rowOf.set(p.name + "\0" + p.image.name, p);
	return rowOf.get(name + "\0" + (image || name));
}

function color(text) {
	let h = 0;
	for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) % 360;
	return "hsl(" + (10 + (h % 50)) + " 78% " + (66 + (h % 14)) + "%)";
}
const imageColor = (text) => {
	let h = 7;
	for (let i = 0; i < text.length; i++) h = (h * 33 + text.charCodeAt(i)) % 3600;
	return "hsl(" + h / 10 + " 55% 74%)";
};

const flame = { up: false, node: 0, text: "" };

function drawCalls(to) {
	if (!M.paths) {
		to.append(
			note(
				"No callers: " +
					(M.no_paths || "none were kept") +
					". The map shows where the time went without them: ",
				make("a", { href: "#map" }, "map of images, procedures and lines"),
			),
		);
		return;
	}
	const t = flame.up ? inverted() : calls(),
		plane = make("div", { class: "plane" });
	const name = (i) => (i === 0 || t.what[i] < 0 ? "all samples" : t.names[t.what[i]][0]);
	const image = (i) => (t.what[i] < 0 ? "" : t.names[t.what[i]][1]);
	const told = make("span", { class: "dim", role: "status" }),
		under = make("div");
	const search = make("input", {
		type: "search",
		id: "search",
		placeholder: "search frames  ( / )",
		"aria-label": "search frames",
		value: flame.text,
	});
	let frames = new Map();
	function go(i, keep) {
		flame.node = i;
		draw();
		if (keep && frames.has(i)) frames.get(i).focus();
	}
	function draw() {
		const width = plane.clientWidth || 1000,
			all = t.all[flame.node] || 1,
			high = 19,
			els = [];
		const is = flame.text ? matcher(flame.text) : null,
			above = [];
		let deepest = 0,
			hits = 0;
		frames = new Map();
		const frame = (i, x, w, depth, faded, hit) => {
			const el = make("button", {
				type: "button",
				class: (faded ? "faded " : "") + (hit ? "hit" : ""),
				tabindex: i === flame.node ? 0 : -1,
				title:
					name(i) + "\n" + image(i) + "\n" + count(t.all[i]) + " samples, " + percent(t.all[i], t.all[0]),
			});
			if (w > 22) el.textContent = name(i);
			Object.assign(el.style, {
				left: x + "px",
				top: depth * high + "px",
				width: Math.max(1, w - 0.5) + "px",
				height: high - 1 + "px",
				background: faded ? "#bbb" : color(image(i) + name(i)),
			});
			el.setAttribute("aria-label", name(i) + ", " + percent(t.all[i], t.all[0]));
			el.dataset.node = i;
			frames.set(i, el);
			els.push(el);
			deepest = Math.max(deepest, depth);
		};
		for (let i = t.parent[flame.node]; i >= 0; i = t.parent[i]) above.unshift(i);
		above.forEach((i, d) => frame(i, 0, width, d, true));
		const stack = [[flame.node, 0, above.length, false]];
		while (stack.length) {
			const [i, x, depth, inside] = stack.pop(),
				w = (width * t.all[i]) / all;
			const hit = is && t.what[i] >= 0 && is(name(i) + " " + image(i));
			if (hit && !inside) hits += t.all[i];
			frame(i, x, w, depth, false, hit);
			let at = x;
			for (const c of t.children[i]) {
				const cw = (width * t.all[c]) / all;
				if (cw >= 1.5) stack.push([c, at, depth + 1, inside || hit]);
				at += cw;
			}
		}
		plane.style.height = (deepest + 1) * high + 2 + "px";
		plane.replaceChildren(...els);
		told.textContent = is ? percent(hits, all) + " in frames that match" : "";
		under.replaceChildren(list());
	}
	function list() {
		const i = flame.node,
			p = t.what[i] >= 0 && rowNamed(name(i), image(i));
		const rows = t.children[i].slice(0, 200);
		return make(
			"div",
			null,
			make(
				"h3",
				null,
				name(i),
				" ",
				make(
					"span",
					{ class: "dim" },
					percent(t.all[i], t.all[0]) + " of the samples ",
					p && p.i >= 0 ? make("a", { href: "#p" + p.i }, "its code") : "",
				),
			),
			make(
				"div",
				{ class: "scroll" },
				make(
					"table",
					{ "aria-label": flame.up ? "its callers" : "what it called" },
					make(
						"thead",
						null,
						make(
							"tr",
							null,
							["samples", "%", flame.up ? "called by" : "called", "image"].map((h, k) =>
								make("th", { class: k < 2 ? "num" : "" }, make("span", null, h)),
							),
						),
					),
					make(
						"tbody",
						null,
						t.self && t.self[i]
							? make(
									"tr",
									null,
									make("td", { class: "num" }, count(t.self[i])),
									make("td", { class: "num" }, percent(t.self[i], t.all[0])),
									make("td", null, "(in itself)"),
									make("td"),
								)
							: "",
						rows.map((c) =>
							make(
								"tr",
								null,
								make("td", { class: "num" }, count(t.all[c])),
								make("td", { class: "num" }, percent(t.all[c], t.all[0])),
								make(
									"td",
									{ class: "name" },
									make(
										"a",
										{
											href: "#calls",
											onclick: (e) => {
												e.preventDefault();
												go(c, true);
											},
										},
										name(c),
									),
								),
								make("td", { class: "dim" }, base(image(c))),
							),
						),
					),
				),
			),
		);
	}
	plane.addEventListener(
		"click",
		(e) => e.target.dataset.node !== undefined && go(Number(e.target.dataset.node), true),
	);
	plane.addEventListener("keydown", (e) => {
		const i = Number(e.target.dataset.node),
			up = t.parent[i],
			mates = up >= 0 ? t.children[up] : [i],
			k = mates.indexOf(i);
		const next = {
			ArrowDown: t.children[i][0],
			ArrowUp: up,
			ArrowRight: mates[k + 1],
			ArrowLeft: mates[k - 1],
		}[e.key];
		if (next !== undefined && next >= 0 && frames.has(next)) frames.get(next).focus();
		else if (!e.key.startsWith("Arrow")) return;
		e.preventDefault();
	});
	search.addEventListener("input", () => {
		flame.text = search.value;
		draw();
	});
	to.append(
		make(
			"div",
			{ class: "bar" },
			search,
			make(
				"button",
				{
					type: "button",
					onclick: () => {
						flame.up = !flame.up;
						flame.node = 0;
						show();
					},
				},
				flame.up ? "show callers above" : "show callers below",
			),
			make("button", { type: "button", onclick: () => go(0) }, "all"),
			told,
		),
		make(
			"p",
			{ class: "dim" },
			(flame.up
				? "Procedures with samples on top, below each its callers."
				: "Callers on top, below each what it called.") +
				" Width is time; a click enlarges, arrows move, Esc shows all. " +
				pathsText(),
		),
		plane,
		under,
	);
	drawLater = draw;
	if (flame.node >= t.n) flame.node = 0;
	draw();
}

function pathsText() {
	const P = M.paths,
		bad = Object.entries(P.ends)
			.filter(([k, v]) => v && k !== "complete")
			.map(([k, v]) => count(v) + " " + k);
	return (
		"It rests on " +
		count(P.number) +
		" call paths of " +
		M.events[M.event].name +
		", " +
		percent(P.ends.complete, P.number) +
		" complete" +
		(bad.length ? " (" + bad.join(", ") + ")" : "") +
		", scaled to all samples." +
		(P.without
			? " " + percent(P.without, sums[M.event]) + " of the samples are of procedures that no path ends in."
			: "") +
		(P.least > 1 ? " Calls with fewer than " + count(P.least) + " samples are left out." : "")
	);
}

// A path counts once: for the caller of its outermost frame, and for what its innermost one called.
function around(p) {
	const t = calls(),
		is = t.names.map((x) => x[0] === p.name && (x[1] || x[0]) === p.image.name);
	const callers = new Map(),
		callees = new Map(),
		near = new Int32Array(t.n).fill(-1),
		outer = new Int32Array(t.n).fill(-1);
	const via = new Int32Array(t.n).fill(-1);
	const add = (m, key, n) => m.set(key, (m.get(key) || 0) + n);
	let all = 0,
		self = 0;
	for (let i = 1; i < t.n; i++) {
		const up = t.parent[i],
			n = t.self[i] + t.lost[i],
			me = is[t.what[i]];
		outer[i] = outer[up] >= 0 ? outer[up] : me ? i : -1;
		near[i] = me ? i : near[up];
		via[i] = me ? -1 : via[up] >= 0 ? via[up] : near[up] === up && near[up] >= 0 ? i : -1;
		if (outer[i] < 0 || !n) continue;
		all += n;
		add(callers, t.what[t.parent[outer[i]]], n);
		if (near[i] === i) {
			self += t.self[i];
			if (t.lost[i]) add(callees, -1, t.lost[i]);
		} else {
			add(callees, t.what[via[i]], n);
		}
	}
	return { all, self, callers, callees };
}

function drawAround(to, p) {
	if (!M.paths) {
		to.append(note("No callers: " + (M.no_paths || "none were kept") + "."));
		return;
	}
	const t = calls(),
		x = around(p);
	if (!x.all) {
		to.append(note("No call path has this procedure, or only paths with few samples."));
		return;
	}
	const list = (title, m) => {
		const rows = [...m].sort((a, b) => b[1] - a[1]).slice(0, 300);
		return make(
			"div",
			null,
			make("h3", null, title),
			make(
				"div",
				{ class: "scroll" },
				make(
					"table",
					{ "aria-label": title },
					make(
						"tbody",
						null,
						rows.map(([w, n]) => {
							const q = w >= 0 ? t.names[w] : ["(calls with few samples)", ""],
								r = rowNamed(q[0], q[1]);
							return make(
								"tr",
								null,
								make("td", { class: "num" }, count(n)),
								make("td", { class: "num" }, percent(n, x.all)),
								make(
									"td",
									{ class: "name" },
									r && r.i >= 0
										? make(
												"a",
												{
													href: "#p" + r.i + "/calls",
												},
												q[0],
											)
										: q[0],
								),
								make("td", { class: "dim wide" }, base(q[1])),
							);
						}),
					),
				),
			),
		);
	};
	to.append(
		make(
			"p",
			null,
			count(x.all) +
				" samples, " +
				percent(x.all, sums[M.event]) +
				", are in it or in what it called; " +
				count(x.self) +
				" in itself.",
		),
		make("p", { class: "dim" }, pathsText()),
		make("div", { class: "panes" }, list("Called by", x.callers), list("Called", x.callees)),
	);
}
