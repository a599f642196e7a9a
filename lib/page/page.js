// SPDX-License-Identifier: BSD-2-Clause
// Shows the model of a report. Texts of the model become text, never markup: there is no innerHTML here.
"use strict";
(async function () {

const page = document.getElementById("page");
let M;
try {
	M = JSON.parse(await unpack(document.getElementById("model").textContent));
} catch (e) {
	page.textContent = "This report cannot be read: it is damaged, or the browser is too old (" + e + ").";
	return;
}
const E = M.events.length;
const integer = new Intl.NumberFormat("en");
const CONFIDENCE = ["not known", "low", "medium", "high", "exact"];

// The text that was packed (RFC 1950) and spelled in base 64.
async function unpack(text) {
	const raw = atob(text), bytes = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++)
		bytes[i] = raw.charCodeAt(i);
	return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

// ---- elements --------------------------------------------------------------------------------

// make("td", {class: "num"}, "text", element, …)
function make(tag, attributes, ...inside) {
	const el = document.createElement(tag);
	for (const name in attributes || {}) {
		const value = attributes[name];
		if (name.startsWith("on"))
			el.addEventListener(name.slice(2), value);
		else if (value === true)
			el.setAttribute(name, "");
		else if (value !== false && value !== undefined && value !== null)
			el.setAttribute(name, value);
	}
	el.append(...inside.flat().filter((x) => x !== null && x !== undefined && x !== ""));
	return el;
}

function svg(tag, attributes, ...inside) {
	const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const name in attributes)
		el.setAttribute(name, attributes[name]);
	el.append(...inside);
	return el;
}

const count = (n) => integer.format(n);
const percent = (part, all) => (all ? (100 * part / all).toFixed(2) + " %" : "");
const base = (path) => path.slice(path.lastIndexOf("/") + 1) || path;
const note = (...inside) => make("p", { class: "note" }, ...inside);

// As many digits as an estimate has: two.
function about(value) {
	if (!value)
		return "0";
	for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
		if (value >= size)
			return Number((value / size).toPrecision(2)) + " " + unit;
	return String(Number(value.toPrecision(2)));
}

// ---- the model -------------------------------------------------------------------------------

let event = M.event;
const sums = M.events.map((e) => e.samples);
const images = M.images.map((im, i) => ({ ...im, i, procedures: im.left_out || 0 }));
const procedures = M.procedures.map((p, i) =>
	({ i, name: p[0], image: images[p[1]], address: p[2], samples: p.slice(3) }));
for (const p of procedures)
	p.image.procedures++;
for (const im of images)
	if (im.left_out)
		procedures.push({ i: -1, name: "(" + count(im.left_out) + " procedures with few samples)",
			image: im, address: "", samples: im.rest });
for (const c of M.code) {
	// Instructions that are left out have their number in place of a text.
	c.gaps = [];
	c.insns = (c.insns || []).filter((x, i) => x.length > 2 || !c.gaps.push([i - c.gaps.length, x[0], x[1]]));
	for (const x of c.insns)
		x[1] = x[1].replace(/^([\w.]+) (?=[^ ])/, (all, name) => name.padEnd(7) + " ");
}
const codes = new Map(M.code.map((c) => [c.p, c]));
const earlier = new Map(M.before ? M.before.rows.filter((r) => r[2] >= 0).map((r) => [r[2], r]) : []);

const of = (x) => x.samples[event] || 0;
const total = () => sums[event] || 0;
const link = (p) => (p.i < 0 ? make("span", { title: p.name }, p.name)
	: make("a", { href: "#p" + p.i, title: p.name, tabindex: -1 }, p.name));

// ---- a table that draws the rows in view alone -----------------------------------------------

// columns: {head, num, wide, sort(row), cell(td, row, index)}; opens: called with a row on Enter.
function grid(label, columns, opens, sorted) {
	const table = make("table", { role: "grid", tabindex: 0, "aria-label": label });
	const scroll = make("div", { class: "scroll" }, table);
	const body = make("tbody");
	const heads = columns.map((c, i) => make("th", { scope: "col", class: (c.num ? "num " : "") +
		(c.wide ? "wide " : "") + (c.name ? "name" : ""), title: c.title },
		c.sort ? make("button", { type: "button", tabindex: -1, onclick: () => order(i) }, c.head)
			: make("span", null, c.head)));
	table.append(make("thead", null, make("tr", { "aria-rowindex": 1 }, heads)), body);
	const t = { el: scroll, table, rows: [], active: -1, mark: null };
	const id = "g" + (grid.number = (grid.number || 0) + 1) + "-";
	let height = 0, drawn = "";

	function order(i) {
		sorted = sorted && sorted.column === i ? { column: i, up: !sorted.up }
			: { column: i, up: !columns[i].num };
		t.set(t.rows);
	}
	function draw(all) {
		height = height || parseFloat(getComputedStyle(table).getPropertyValue("--row")) || 26;
		const from = all ? 0 : Math.max(0, Math.floor(scroll.scrollTop / height) - 12);
		const to = Math.min(t.rows.length, all ? 400 : from + Math.ceil((scroll.clientHeight || 700) / height) + 28);
		const key = from + ":" + to + ":" + t.active;
		if (drawn === key)
			return;
		drawn = key;
		const space = (n) => {
			const td = make("td", { colspan: columns.length });
			td.style.height = n * height + "px";
			return n > 0 ? [make("tr", { class: "spacer", "aria-hidden": "true" }, td)] : [];
		};
		const rows = [];
		for (let i = from; i < to; i++)
			rows.push(line(t.rows[i], i));
		const left = t.rows.length - to;
		body.replaceChildren(...(all ? [] : space(from)), ...rows, ...(all ? [] : space(left)));
		if (all && left)
			body.append(make("tr", null, make("td", { colspan: columns.length }, "… " + count(left) + " more")));
	}
	function line(row, i) {
		const tr = make("tr", { id: id + i, "aria-rowindex": i + 2, class: (row.kind || "") +
			(i === t.active ? " active" : "") + (t.mark && t.mark(row) ? " same" : ""),
			onclick: () => { t.activate(i); if (t.picked) t.picked(row); },
			ondblclick: () => opens && opens(row) });
		if (row.kind === "block") {
			tr.append(make("td", { colspan: columns.length, title: row.text }, row.text));
			return tr;
		}
		for (const c of columns) {
			const td = make("td", { class: (c.num ? "num " : "") + (c.wide ? "wide " : "") + (c.name ? "name" : "") });
			const text = c.cell(td, row, i);
			if (text !== undefined && text !== null)
				td.append(text);
			tr.append(td);
		}
		return tr;
	}
	t.set = (rows) => {
		t.rows = rows;
		if (sorted) {
			const value = columns[sorted.column].sort, sign = sorted.up ? 1 : -1;
			const keys = new Map(rows.map((r) => [r, value(r)]));
			t.rows = [...rows].sort((a, b) => {
				const x = keys.get(a), y = keys.get(b);
				return x < y ? -sign : x > y ? sign : 0;
			});
			heads.forEach((h, i) => i === sorted.column
				? h.setAttribute("aria-sort", sorted.up ? "ascending" : "descending")
				: h.removeAttribute("aria-sort"));
		}
		t.active = -1;
		table.setAttribute("aria-rowcount", t.rows.length + 1);
		if (t.ordered)
			t.ordered(t.rows, sorted);
		t.redraw();
	};
	t.redraw = () => { drawn = ""; draw(); };
	t.activate = (i, jump) => {
		t.active = Math.max(0, Math.min(t.rows.length - 1, i));
		const top = t.active * height, view = scroll.clientHeight - 2 * height;
		if (jump)
			scroll.scrollTop = top - view / 3;
		else if (top < scroll.scrollTop)
			scroll.scrollTop = top;
		else if (top > scroll.scrollTop + view)
			scroll.scrollTop = top - view;
		draw();
		table.setAttribute("aria-activedescendant", id + t.active);
	};
	t.all = draw;
	table.addEventListener("keydown", (e) => {
		const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[e.key];
		if (e.key === "Enter" && t.active >= 0 && opens && e.target === table)
			opens(t.rows[t.active]);
		else if (by && t.rows.length)
			t.activate(by === Infinity ? t.rows.length - 1 : t.active < 0 ? 0 : t.active + by);
		else
			return;
		if (by && t.picked)
			t.picked(t.rows[t.active]);
		e.preventDefault();
	});
	scroll.addEventListener("scroll", () => requestAnimationFrame(() => draw()), { passive: true });
	shown.push(t);
	return t;
}
let shown = [];
addEventListener("beforeprint", () => shown.forEach((t) => { t.redraw(); t.all(true); }));
addEventListener("afterprint", () => shown.forEach((t) => t.redraw()));
addEventListener("resize", () => shown.forEach((t) => t.redraw()));

const samplesColumn = (all) => ({ head: M.events[event].name, num: true, sort: of, cell: (td, r) => count(of(r)) });
const shareColumn = () => ({ head: "%", num: true, sort: of, title: "of all samples", cell: (td, r) => {
	td.classList.add("share");
	td.style.setProperty("--w", (total() ? 100 * of(r) / total() : 0).toFixed(2) + "%");
	return percent(of(r), total());
} });
function otherEvents() {
	return M.events.map((e, i) => ({ head: e.name, num: true, wide: true, sort: (r) => r.samples[i],
		cell: (td, r) => (r.samples[i] ? count(r.samples[i]) : "") })).filter((c, i) => i !== event);
}

// ---- procedures ------------------------------------------------------------------------------

const filter = { text: "", image: "" };

// Each word must be there; case does not count.
function matcher(text) {
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	return (s) => { const low = s.toLowerCase(); return words.every((w) => low.includes(w)); };
}

function changeColumns() {
	if (!M.before)
		return [];
	const [a, b] = M.before.total;
	const points = (r) => { const d = earlier.get(r.i); return d ? 100 * (d[4] / b - d[3] / a) : 0; };
	return [{ head: "before", num: true, wide: true, title: "percent of the samples before",
		sort: (r) => (earlier.get(r.i) || [])[3] || 0,
		cell: (td, r) => { const d = earlier.get(r.i); return d ? percent(d[3], a) : ""; } },
	{ head: "change", num: true, title: "percentage points; ~ where chance may explain it", sort: points,
		cell: (td, r) => difference(td, points(r), earlier.get(r.i)) }];
}

function difference(td, points, d) {
	if (!d)
		return "";
	if (d[6])
		td.classList.add(points > 0 ? "more" : "less");
	return (d[6] ? "" : "~ ") + (points > 0 ? "+" : "") + points.toFixed(2);
}

function drawProcedures(to) {
	const search = make("input", { type: "search", id: "search", placeholder: "search procedures and images  ( / )",
		"aria-label": "search procedures and images", value: filter.text });
	const select = make("select", { "aria-label": "image" }, make("option", { value: "" }, "all images"),
		images.slice(0, 500).map((im) => make("option", { value: im.i, selected: String(im.i) === filter.image },
			base(im.name) + "  " + percent(of(im), total()))));
	const told = make("span", { class: "dim", role: "status" });
	let sum = [];
	const t = grid("procedures by samples", [samplesColumn(), shareColumn(),
		{ head: "cum", num: true, wide: true, title: "this row and all above", cell: (td, r, i) => percent(sum[i], total()) },
		...changeColumns(),
		{ head: "procedure", name: true, sort: (r) => r.name.toLowerCase(), cell: (td, r) => link(r) },
		{ head: "image", sort: (r) => r.image.name, cell: (td, r) => make("span", { title: r.image.name, class: "dim" },
			r.image.name === r.name ? "" : base(r.image.name)) },
		...otherEvents()], (r) => r.i >= 0 && (location.hash = "#p" + r.i), { column: 0, up: false });
	t.ordered = (rows) => { let n = 0; sum = rows.map((r) => (n += of(r))); };
	function fill() {
		const is = matcher(filter.text), im = filter.image === "" ? null : images[filter.image];
		const rows = procedures.filter((p) => (!im || p.image === im) && is(p.name + " " + p.image.name));
		t.set(rows);
		const n = rows.reduce((s, r) => s + of(r), 0);
		told.textContent = count(rows.length) + " of " + count(procedures.length) + " rows, " + percent(n, total());
	}
	search.addEventListener("input", () => { filter.text = search.value; fill(); });
	search.addEventListener("keydown", (e) => {
		if (e.key === "ArrowDown" || e.key === "Enter") {
			t.table.focus();
			t.activate(0);
			e.preventDefault();
		}
	});
	select.addEventListener("change", () => { filter.image = select.value; fill(); });
	to.append(make("div", { class: "bar" }, search, select, eventSelect(), told), t.el);
	if (M.procedures_left_out)
		to.append(make("p", { class: "dim" }, count(M.procedures_left_out) +
			" procedures with fewest samples have no row of their own: each image has one row for all of its (a larger page, dcpireport -size, has more)."));
	fill();
}

function eventSelect() {
	if (E < 2)
		return null;
	return make("select", { "aria-label": "event", onchange: (e) => { event = Number(e.target.value); show(); } },
		M.events.map((e, i) => make("option", { value: i, selected: i === event }, e.name)));
}

// ---- images ----------------------------------------------------------------------------------

function drawImages(to) {
	const open = (im) => { filter.image = String(im.i); location.hash = "#procedures"; };
	const t = grid("images by samples", [samplesColumn(), shareColumn(),
		{ head: "image", name: true, sort: (r) => r.name, cell: (td, r) => make("a", { href: "#procedures", title: r.name,
			tabindex: -1, onclick: () => { filter.image = String(r.i); } }, r.name) },
		{ head: "procedures", num: true, wide: true, sort: (r) => r.procedures, cell: (td, r) => count(r.procedures) },
		{ head: "kind", wide: true, sort: (r) => r.kind, cell: (td, r) => r.kind },
		{ head: "not known", wide: true, sort: (r) => r.problem || "", cell: (td, r) =>
			make("span", { class: "dim", title: [r.problem, r.hint].filter(Boolean).join("; ") }, r.problem || "") },
		{ head: "build-id", wide: true, cell: (td, r) => make("span", { class: "mono dim", title: r.id || "" },
			(r.id || "").slice(0, 12)) },
		...otherEvents()], open, { column: 0, up: false });
	to.append(make("div", { class: "bar" }, eventSelect()), t.el);
	t.set(images);
}

// ---- one procedure ---------------------------------------------------------------------------

function address(code, offset) {
	return "0x" + (BigInt("0x" + code.base) + BigInt(offset)).toString(16);
}

const place = (offset) => (offset < 0 ? "-0x" + (-offset).toString(16) : "+0x" + offset.toString(16));

// How a cost is said: in the unit of the samples, or as a multiple of the procedure's average instruction.
const cost = (code, value) => (value === null || value === undefined ? "" :
	about(value) + (code.unit === "x" ? " × average" : " " + code.unit));

function runs(code, value, confidence) {
	if (value === null)
		return "how often it ran is not known";
	const most = code.most || (code.most = Math.max(...code.blocks.map((b) => b[3] || 0)));
	const text = code.unit === "x" ? (most ? Number((value / most).toPrecision(2)) : 0) + " of the most frequent block"
		: about(value) + " runs";
	return (confidence < 2 ? "perhaps " : "") + text + " (" + CONFIDENCE[confidence] + " confidence)";
}

function causes(letters) {
	return [...letters].map((l) => M.causes[l] || l).join(", ");
}

function blockText(code, b, i) {
	const parts = ["block " + i, percent(b[2], code.samples), runs(code, b[3], b[4])];
	if (b[6] !== null)
		parts.push(cost(code, b[6]) + " a run" + (b[5] !== null ? ", " + cost(code, b[5]) + " at best" : ""));
	for (const s of b.slice(8))
		parts.push("waits " + cost(code, s[2]) + " for: " + causes(s[0]));
	return parts.filter(Boolean).join("  ·  ");
}

function drawProcedure(to, i, part) {
	const p = procedures[i], code = codes.get(i);
	if (!p || p.i < 0) {
		to.append(note("This report has no such procedure."));
		return;
	}
	to.append(make("h2", { tabindex: -1 }, p.name),
		make("p", { class: "dim" }, count(of(p)) + " samples of " + M.events[event].name + ", " + percent(of(p), total()) + " · ",
			make("a", { href: "#procedures", onclick: () => { filter.image = String(p.image.i); } }, p.image.name),
			p.address ? make("span", { class: "mono" }, " · 0x" + p.address) : ""));
	const parts = [["", "Source and instructions"], ["flow", "Flow graph"], ["calls", "Callers and callees"]];
	const now = parts.some((x) => x[0] === part) ? part : "";
	to.append(make("nav", { "aria-label": "views of the procedure" }, parts.map(([id, text]) =>
		make("a", { href: "#p" + i + (id && "/" + id), "aria-current": id === now ? "page" : null }, text))));
	if (now === "calls")
		drawAround(to, p);
	else if (!code)
		to.append(note(p.image.problem ? "Its code is not known: " + p.image.problem + (p.image.hint ? ". " + p.image.hint : "")
			: p.image.kind === "named" ? "These samples are in no image, and there is no code to show: dcpid(8) tells what the name means."
			: p.address === null ? "These samples are in no procedure that the image tells of. dcpitopcounts lists them by address." :
			"Its code is not in this report, which has that of the hottest procedures alone (" + M.keep +
			" % of the samples, as far as they fit). dcpilist '" + p.name + "' shows it; dcpireport -keep and -size put more here."));
	else if (code.missing)
		to.append(note("Its code cannot be shown: " + code.missing));
	else if (now === "flow")
		drawFlow(to, code);
	else
		drawCode(to, code, /^i\d+$/.test(part) ? Number(part.slice(1)) : -1);
}

function drawKnown(to, code) {
	const list = [...code.notes];
	list.unshift(code.frequencies ? "Frequencies are " + code.frequencies + "." : "How often code ran is not known.");
	if (code.outside)
		list.push(count(code.outside) + " samples are at addresses in no block.");
	if (code.places > 1)
		list.push("Samples of " + code.places + " places of the same code are added up.");
	const p = procedures[code.p], here = code.samples;
	if (here !== p.samples[M.event])
		list.push("The row has " + count(p.samples[M.event]) + " samples, this code " + count(here) +
			": the name has other code too, or parts of it lie elsewhere.");
	if (event !== M.event)
		list.push("Costs and frequencies are by " + M.events[M.event].name + ".");
	to.append(make("details", { class: "known" }, make("summary", null, "What is known of its time, and how well"),
		make("ul", null, list.map((x) => make("li", null, x))),
		code.summary.length ? make("pre", { tabindex: 0 }, code.summary.join("\n")) : ""));
}

// Samples of an instruction for the event that is shown.
function own(insn) {
	if (event === M.event)
		return insn[2];
	const others = insn[9] || [];
	return others[event < M.event ? event : event - 1] || 0;
}

function sourceRows(code, file, lines) {
	const rows = [], known = new Map();
	const text = code.files[file] && code.files[file].lines;
	for (let i = 0; text && i < text.length; i += 2) {
		if (i && text[i] !== text[i - 2] + 1)
			rows.push({ kind: "block", text: "…" });
		const row = { line: text[i], text: text[i + 1], n: lines.get(file + ":" + text[i]) || 0 };
		known.set(text[i], row);
		rows.push(row);
	}
	if (!text)
		for (const [key, n] of [...lines].map(([k, v]) => [k.split(":").map(Number), v]).sort((a, b) => a[0][1] - b[0][1]))
			if (key[0] === file)
				rows.push({ line: key[1], text: "(source not found)", n });
	return rows;
}

function drawCode(to, code, wanted) {
	const all = code.insns.reduce((n, x) => n + own(x), 0), lines = new Map(), by = code.files.map(() => 0);
	let most = 1, mostLine = 1, hottest = 0;
	code.insns.forEach((x, i) => {
		if (own(x) > own(code.insns[hottest]))
			hottest = i;
		most = Math.max(most, own(x));
		if (x[5]) {
			const key = x[4] + ":" + x[5], n = (lines.get(key) || 0) + own(x);
			lines.set(key, n);
			mostLine = Math.max(mostLine, n);
			by[x[4]] += own(x);
		}
	});
	const rows = [], at = [], gaps = new Map(code.gaps.map((g) => [g[0], g]));
	const gap = (i) => gaps.has(i) && rows.push({ kind: "block", text: "… " + count(gaps.get(i)[2]) +
		" instructions from " + place(gaps.get(i)[1]) + " on without samples" });
	code.insns.forEach((x, i) => {
		gap(i);
		if (x[3] >= 0 && (!i || code.insns[i - 1][3] !== x[3]))
			rows.push({ kind: "block", text: blockText(code, code.blocks[x[3]], x[3]) });
		at[i] = rows.length;
		rows.push({ x, i });
	});
	gap(code.insns.length);
	const heat = (td, n, max) => { td.classList.add("heat"); td.style.setProperty("--h", Math.sqrt(n / max).toFixed(2)); };
	const left = grid("source lines", [
		{ head: "samples", num: true, cell: (td, r) => { heat(td, r.n, mostLine); return r.n ? count(r.n) : ""; } },
		{ head: "%", num: true, wide: true, cell: (td, r) => (r.n ? percent(r.n, all) : "") },
		{ head: "line", num: true, cell: (td, r) => r.line },
		{ head: "source", name: true, cell: (td, r) => r.text }]);
	const has = (k) => code.insns.some((x) => x[k] && x[k].length !== 0);
	const right = grid("instructions", [
		{ head: "samples", num: true, cell: (td, r) => { heat(td, own(r.x), most); return own(r.x) ? count(own(r.x)) : ""; } },
		{ head: "%", num: true, cell: (td, r) => (own(r.x) ? percent(own(r.x), all) : "") },
		...(has(7) ? [{ head: "each", num: true, title: "cost of one execution", cell: (td, r) => cost(code, r.x[7]) }] : []),
		{ head: "address", wide: true, cell: (td, r) => make("span", { class: "dim", title: address(code, r.x[0]) }, place(r.x[0])) },
		{ head: "instruction", name: true, cell: (td, r) => r.x[1] },
		...(has(8) ? [{ head: "waited for", wide: true, title: "the instruction whose result it waited for",
			cell: (td, r) => (r.x[8] || []).map(place).join(" ") }] : []),
		...(has(10) ? [{ head: "values", wide: true, title: "the most frequent values of its result, and their part of all that were seen",
			cell: (td, r) => values(r.x[10]) }] : []),
		{ head: "line", wide: true, cell: (td, r) => lineOf(r.x) }]);
	function values(v) {
		const list = [];
		for (let i = 1; v && i < v.length; i += 2)
			list.push("0x" + v[i] + " (" + v[i + 1].toFixed(0) + " %)");
		return list.length ? make("span", { title: list.join("\n") + "\nof " + count(v[0]) + " seen" }, list.slice(0, 2).join("  ")) : "";
	}
	function lineOf(x) {
		const stack = x[6] ? code.stacks[x[6] - 1] : [];
		return x[5] ? make("span", { class: "dim", title: [code.files[x[4]].name + ":" + x[5], ...stack].join("\n") },
			base(code.files[x[4]].name) + ":" + x[5] + (stack && stack.length ? " (inlined)" : "")) : "";
	}
	let file = by.indexOf(Math.max(...by, 0)), marked = "";
	const files = make("select", { "aria-label": "source file", onchange: (e) => { file = Number(e.target.value); fill(); } },
		code.files.map((f, i) => make("option", { value: i, selected: i === file }, base(f.name) + "  " + percent(by[i], all))));
	const path = make("span", { class: "dim" });
	function fill() {
		if (file >= 0) {
			files.value = file;
			path.textContent = code.files[file].name + (code.files[file].lines ? "" : ": not found here");
		}
		left.set(file >= 0 ? sourceRows(code, file, lines) : []);
	}
	left.mark = (r) => marked === file + ":" + r.line;
	right.mark = (r) => r.x && marked === r.x[4] + ":" + r.x[5] && r.x[5];
	function pick(key, fromLeft) {
		marked = key;
		left.redraw();
		right.redraw();
		if (fromLeft) {
			const first = rows.findIndex((r) => r.x && r.x[5] && r.x[4] + ":" + r.x[5] === key);
			if (first >= 0)
				right.activate(first, true);
			return;
		}
		const row = left.rows.findIndex((r) => file + ":" + r.line === key);
		if (row >= 0)
			left.activate(row, true);
	}
	left.picked = (r) => r.line && pick(file + ":" + r.line, true);
	right.picked = (r) => {
		if (!r.x || !r.x[5])
			return;
		if (r.x[4] !== file) {
			file = r.x[4];
			fill();
		}
		pick(r.x[4] + ":" + r.x[5], false);
	};
	const jump = (i) => { right.activate(at[i], true); right.picked(rows[at[i]]); };
	drawKnown(to, code);
	to.append(make("div", { class: "bar" }, make("button", { type: "button", id: "hottest", onclick: () => { jump(hottest); right.table.focus(); } },
		"hottest instruction (h)"), code.files.length ? files : "", path, eventSelect()));
	const panes = make("div", { class: "panes code" });
	if (code.files.length)
		panes.append(left.el);
	else
		to.append(note("No source line is known of its instructions: the image has no debug information of lines."));
	panes.append(right.el);
	if (!code.files.length)
		panes.style.gridTemplateColumns = "minmax(0, 1fr)";
	to.append(panes);
	fill();
	right.set(rows);
	jump(wanted >= 0 && wanted < code.insns.length ? wanted : hottest);
}

// ---- flow graph ------------------------------------------------------------------------------

const BOX = { w: 260, h: 74, gap: 28, down: 54, most: 120 };

// The blocks that are drawn: all, or of many those with most samples.
function drawnBlocks(code) {
	const all = code.blocks.map((b, i) => i);
	if (all.length <= BOX.most)
		return all;
	return all.sort((a, b) => code.blocks[b][2] - code.blocks[a][2] || a - b).slice(0, BOX.most).sort((a, b) => a - b);
}

// Nodes in layers: edges lead down but those that close a loop; long ones go through points between.
function layers(code, blocks) {
	const is = new Set(blocks), out = new Map(blocks.map((b) => [b, []])), state = new Map(), back = new Set();
	const edges = code.edges.filter((e) => is.has(e[0]) && is.has(e[1])).map((e) => ({ e, from: e[0], to: e[1] }));
	for (const e of edges)
		out.get(e.from).push(e);
	for (const start of blocks) {
		const stack = state.has(start) ? [] : [[start, 0]];
		if (stack.length)
			state.set(start, 1);
		while (stack.length) {
			const top = stack[stack.length - 1], next = out.get(top[0])[top[1]++];
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
	const level = new Map(blocks.map((b) => [b, 0])), into = new Map(blocks.map((b) => [b, 0]));
	const down = edges.filter((e) => e.from !== e.to).map((e) => (back.has(e) ? { ...e, a: e.to, b: e.from, back: true }
		: { ...e, a: e.from, b: e.to }));
	for (const e of down)
		into.set(e.b, into.get(e.b) + 1);
	const ready = blocks.filter((b) => !into.get(b));
	while (ready.length) {
		const b = ready.shift();
		for (const e of down.filter((x) => x.a === b)) {
			level.set(e.b, Math.max(level.get(e.b), level.get(b) + 1));
			into.set(e.b, into.get(e.b) - 1);
			if (!into.get(e.b))
				ready.push(e.b);
		}
	}
	const rows = [];
	const add = (node, l) => { (rows[l] = rows[l] || []).push(node); node.l = l; return node; };
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
	const put = (row) => { let x = 0; for (const n of row) { n.x = x + n.w / 2; x += n.w + BOX.gap; } row.width = x - BOX.gap; };
	g.rows.forEach(put);
	const wide = Math.max(...g.rows.map((r) => r.width));
	const center = (row) => { put(row); const d = (wide - row.width) / 2; for (const n of row) n.x += d; };
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
	for (const row of g.rows) // as near to the wish as its neighbours leave
		for (let i = 0, left = -Infinity; i < row.length; i++) {
			const n = row[i], rest = row.slice(i + 1).reduce((s, m) => s + m.w + BOX.gap, 0);
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
	const aside = back ? 14 : 0, y = (n, bottom) => 20 + n.l * (BOX.h + BOX.down) + (bottom ? BOX.h : 0);
	let d = "", last = way[0];
	for (const n of way.slice(1)) {
		const y0 = y(last, true), y1 = y(n, false), mid = (y0 + y1) / 2;
		const x0 = last.x + aside, x1 = n.x + aside;
		d += (d ? " L " : "M ") + x0 + " " + y0 + " C " + x0 + " " + mid + " " + x1 + " " + mid + " " + x1 + " " + y1;
		last = n;
	}
	return d;
}

const tip = (x, y, up) => svg("path", { class: "tip", d: "M " + x + " " + y + " l -4 " + (up ? 8 : -8) + " l 8 0 z" });

function drawFlow(to, code) {
	if (!code.blocks.length) {
		to.append(note("Its blocks are not known: " + (code.notes.join("; ") || "its code is not there") + "."));
		return;
	}
	const blocks = drawnBlocks(code), g = arrange(layers(code, blocks)), pad = 60;
	const width = g.wide + 2 * pad, height = 40 + g.rows.length * (BOX.h + BOX.down);
	const art = svg("svg", { width, height, viewBox: -pad + " 0 " + width + " " + height, role: "img",
		"aria-label": "flow graph; the tables below have the same blocks and edges" });
	const most = Math.max(1, ...code.edges.map((e) => e[3] || 0));
	for (const e of g.down) {
		const heavy = 1 + 3 * Math.sqrt((e.e[3] || 0) / most), end = e.way[e.way.length - 1], start = e.way[0];
		const yEnd = 20 + end.l * (BOX.h + BOX.down), yStart = 20 + start.l * (BOX.h + BOX.down) + BOX.h;
		art.append(svg("path", { class: e.back ? "back" : "", d: edgePath(e.way, e.back), "stroke-width": heavy.toFixed(1),
			"stroke-dasharray": e.e[3] === null ? "4 4" : "none" }), e.back ? tip(start.x + 14, yStart, true) : tip(end.x, yEnd, false));
		if (e.e[3] !== null && e.e[4] > 1) {
			const next = e.way[1];
			art.append(svg("text", { class: "label", "text-anchor": "middle", x: (start.x + next.x) / 2, y: yStart + BOX.down / 2 + 4 },
				code.unit === "x" ? String(Number((e.e[3] / most).toPrecision(2))) : about(e.e[3])));
		}
	}
	for (const e of g.loops) {
		const n = g.nodes.get(e.from), y = 20 + n.l * (BOX.h + BOX.down), x = n.x + n.w / 2;
		art.append(svg("path", { class: "back", "stroke-width": (1 + 3 * Math.sqrt((e.e[3] || 0) / most)).toFixed(1),
			d: "M " + (x - 20) + " " + (y + BOX.h) + " c 0 26 38 26 38 -6 l 0 " + (12 - BOX.h) + " c 0 -32 -38 -32 -38 -6" }),
			tip(x - 20, y, false));
	}
	for (const [b, n] of g.nodes)
		art.append(box(code, b, n));
	to.append(make("p", { class: "dim" }, "Blocks as hot as their color, edges as thick as they are frequent (relative to the most frequent one where only proportions are known), blue back to the start of a loop. A block leads to its instructions." +
		(blocks.length < code.blocks.length ? " The " + blocks.length + " of " + code.blocks.length + " blocks with most samples are drawn." : "")));
	to.append(make("div", { class: "graph", tabindex: 0 }, art), flowTables(code));
}

function box(code, i, n) {
	const b = code.blocks[i], y = 20 + n.l * (BOX.h + BOX.down), x = n.x - n.w / 2;
	const hot = Math.sqrt(b[2] / Math.max(1, ...code.blocks.map((c) => c[2])));
	const first = code.insns.findIndex((c) => c[3] === i), insns = code.insns.filter((c) => c[3] === i);
	const letters = b.slice(8).map((s) => causes(s[0])).join(", ");
	const text = (k, s) => svg("text", { x: x + 8, y: y + 16 + 16 * k }, s.length > 38 ? s.slice(0, 37) + "…" : s);
	return svg("a", { href: "#p" + code.p + "/i" + Math.max(first, 0) },
		svg("title", {}, blockText(code, b, i) + "\n" + insns.slice(0, 30).map((c) => c[1]).join("\n")),
		svg("rect", { x, y, width: n.w, height: BOX.h, rx: 5 }),
		svg("rect", { class: "warm", x, y, width: n.w, height: BOX.h, rx: 5, "fill-opacity": (0.65 * hot).toFixed(2) }),
		text(0, "block " + i + "  " + place(b[0]) + "  " + b[7] + (b[7] === 1 ? " instruction" : " instructions")),
		text(1, percent(b[2], code.samples) + (b[6] !== null ? "  " + cost(code, b[6]) + " a run" : "")),
		text(2, b[3] === null ? "runs not known" : (code.unit === "x" ? "runs " + Number((b[3] / Math.max(...code.blocks.map((c) => c[3] || 0), 1e-300)).toPrecision(2)) : "runs " + about(b[3])) +
			", " + CONFIDENCE[b[4]] + " confidence"),
		text(3, letters ? "waits: " + letters : insns.length ? insns[insns.length - 1][1] : ""));
}

function flowTables(code) {
	const row = (cells, tag) => make("tr", null, cells.map((c) => make(tag || "td", null, tag ? make("span", null, c) : c)));
	const end = (b) => (b < 0 ? "outside" : "block " + b);
	return make("details", null, make("summary", null, "Blocks and edges as tables"),
		make("div", { class: "scroll" }, make("table", { "aria-label": "blocks" }, make("thead", null, row(["block", "address", "what is known"], "th")),
			make("tbody", null, code.blocks.slice(0, 1000).map((b, i) => row([String(i), address(code, b[0]), blockText(code, b, i)]))))),
		make("div", { class: "scroll" }, make("table", { "aria-label": "edges" }, make("thead", null, row(["from", "to", "kind", "how often"], "th")),
			make("tbody", null, code.edges.slice(0, 2000).map((e) => row([end(e[0]), end(e[1]),
				["next", "branch", "table", "entry", "exit"][e[2]], runs(code, e[3], e[4])]))))));
}

// ---- calls -----------------------------------------------------------------------------------

// The tree of calls: arrays by node; totals are of the node and all below.
let tree = null;
function calls() {
	if (tree || !M.paths)
		return tree;
	const n = M.paths.nodes.length / 4, parent = new Int32Array(n), what = new Int32Array(n);
	const self = new Float64Array(n), lost = new Float64Array(n), all = new Float64Array(n), children = [];
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
	if (t.up)
		return t.up;
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
		if (!n)
			continue;
		for (let k = i, at = 0, depth = 0; k > 0 && depth < 40; k = t.parent[k], depth++) {
			at = child(at, t.what[k]);
			nodes[at].all += n;
			if (n < limit && depth > 3)
				break;
		}
	}
	const children = nodes.map((x) => [...x.below.values()].sort((a, b) => nodes[b].all - nodes[a].all));
	t.up = { n: nodes.length, parent: nodes.map((x) => x.parent), what: nodes.map((x) => x.what), all: nodes.map((x) => x.all),
		children, names: t.names };
	return t.up;
}

const rowOf = new Map();
function rowNamed(name, image) {
	if (!rowOf.size)
		for (const p of procedures)
			if (!rowOf.has(p.name + "\0" + p.image.name))
				rowOf.set(p.name + "\0" + p.image.name, p);
	return rowOf.get(name + "\0" + (image || name));
}

function color(text) {
	let h = 0;
	for (let i = 0; i < text.length; i++)
		h = (h * 31 + text.charCodeAt(i)) % 360;
	return "hsl(" + (10 + h % 50) + " 78% " + (66 + h % 14) + "%)";
}
const imageColor = (text) => {
	let h = 7;
	for (let i = 0; i < text.length; i++)
		h = (h * 33 + text.charCodeAt(i)) % 3600;
	return "hsl(" + h / 10 + " 55% 74%)";
};

const flame = { up: false, node: 0, text: "" };

function drawCalls(to) {
	if (!M.paths) {
		to.append(note("No callers: " + (M.no_paths || "none were kept") + ". The map shows where the time went without them: ",
			make("a", { href: "#map" }, "map of images, procedures and lines")));
		return;
	}
	const t = flame.up ? inverted() : calls(), plane = make("div", { class: "plane" });
	const name = (i) => (i === 0 || t.what[i] < 0 ? "all samples" : t.names[t.what[i]][0]);
	const image = (i) => (t.what[i] < 0 ? "" : t.names[t.what[i]][1]);
	const told = make("span", { class: "dim", role: "status" }), under = make("div");
	const search = make("input", { type: "search", id: "search", placeholder: "search frames  ( / )", "aria-label": "search frames", value: flame.text });
	let frames = new Map();
	function go(i, keep) {
		flame.node = i;
		draw();
		if (keep && frames.has(i))
			frames.get(i).focus();
	}
	function draw() {
		const width = plane.clientWidth || 1000, all = t.all[flame.node] || 1, high = 19, els = [];
		const is = flame.text ? matcher(flame.text) : null, above = [];
		let deepest = 0, hits = 0;
		frames = new Map();
		const frame = (i, x, w, depth, faded, hit) => {
			const el = make("button", { type: "button", class: (faded ? "faded " : "") + (hit ? "hit" : ""), tabindex: i === flame.node ? 0 : -1,
				title: name(i) + "\n" + image(i) + "\n" + count(t.all[i]) + " samples, " + percent(t.all[i], t.all[0]) });
			if (w > 22)
				el.textContent = name(i);
			Object.assign(el.style, { left: x + "px", top: depth * high + "px", width: Math.max(1, w - 0.5) + "px", height: high - 1 + "px",
				background: faded ? "#bbb" : color(image(i) + name(i)) });
			el.setAttribute("aria-label", name(i) + ", " + percent(t.all[i], t.all[0]));
			el.dataset.node = i;
			frames.set(i, el);
			els.push(el);
			deepest = Math.max(deepest, depth);
		};
		for (let i = t.parent[flame.node]; i >= 0; i = t.parent[i])
			above.unshift(i);
		above.forEach((i, d) => frame(i, 0, width, d, true));
		const stack = [[flame.node, 0, above.length, false]];
		while (stack.length) {
			const [i, x, depth, inside] = stack.pop(), w = width * t.all[i] / all;
			const hit = is && t.what[i] >= 0 && is(name(i) + " " + image(i));
			if (hit && !inside)
				hits += t.all[i];
			frame(i, x, w, depth, false, hit);
			let at = x;
			for (const c of t.children[i]) {
				const cw = width * t.all[c] / all;
				if (cw >= 1.5)
					stack.push([c, at, depth + 1, inside || hit]);
				at += cw;
			}
		}
		plane.style.height = (deepest + 1) * high + 2 + "px";
		plane.replaceChildren(...els);
		told.textContent = is ? percent(hits, all) + " in frames that match" : "";
		under.replaceChildren(list());
	}
	function list() {
		const i = flame.node, p = t.what[i] >= 0 && rowNamed(name(i), image(i));
		const rows = t.children[i].slice(0, 200);
		return make("div", null, make("h3", null, name(i), " ", make("span", { class: "dim" }, percent(t.all[i], t.all[0]) + " of the samples ",
			p && p.i >= 0 ? make("a", { href: "#p" + p.i }, "its code") : "")),
			make("div", { class: "scroll" }, make("table", { "aria-label": flame.up ? "its callers" : "what it called" }, make("thead", null, make("tr", null,
				["samples", "%", flame.up ? "called by" : "called", "image"].map((h, k) => make("th", { class: k < 2 ? "num" : "" }, make("span", null, h))))),
			make("tbody", null, t.self && t.self[i] ? make("tr", null, make("td", { class: "num" }, count(t.self[i])), make("td", { class: "num" },
				percent(t.self[i], t.all[0])), make("td", null, "(in itself)"), make("td")) : "",
			rows.map((c) => make("tr", null, make("td", { class: "num" }, count(t.all[c])), make("td", { class: "num" }, percent(t.all[c], t.all[0])),
				make("td", { class: "name" }, make("a", { href: "#calls", onclick: (e) => { e.preventDefault(); go(c, true); } }, name(c))),
				make("td", { class: "dim" }, base(image(c)))))))));
	}
	plane.addEventListener("click", (e) => e.target.dataset.node !== undefined && go(Number(e.target.dataset.node), true));
	plane.addEventListener("keydown", (e) => {
		const i = Number(e.target.dataset.node), up = t.parent[i], mates = up >= 0 ? t.children[up] : [i], k = mates.indexOf(i);
		const next = { ArrowDown: t.children[i][0], ArrowUp: up, ArrowRight: mates[k + 1], ArrowLeft: mates[k - 1] }[e.key];
		if (next !== undefined && next >= 0 && frames.has(next))
			frames.get(next).focus();
		else if (!e.key.startsWith("Arrow"))
			return;
		e.preventDefault();
	});
	search.addEventListener("input", () => { flame.text = search.value; draw(); });
	to.append(make("div", { class: "bar" }, search,
		make("button", { type: "button", onclick: () => { flame.up = !flame.up; flame.node = 0; show(); } }, flame.up ? "show callers above" : "show callers below"),
		make("button", { type: "button", onclick: () => go(0) }, "all"), told),
		make("p", { class: "dim" }, (flame.up ? "Procedures with samples on top, below each its callers." : "Callers on top, below each what it called.") +
			" Width is time; a click enlarges, arrows move, Esc shows all. " + pathsText()), plane, under);
	drawLater = draw;
	if (flame.node >= t.n)
		flame.node = 0;
	draw();
}

function pathsText() {
	const P = M.paths, bad = Object.entries(P.ends).filter(([k, v]) => v && k !== "complete").map(([k, v]) => count(v) + " " + k);
	return "It rests on " + count(P.number) + " call paths of " + M.events[M.event].name + ", " + percent(P.ends.complete, P.number) + " complete" +
		(bad.length ? " (" + bad.join(", ") + ")" : "") + ", scaled to all samples." +
		(P.without ? " " + percent(P.without, sums[M.event]) + " of the samples are of procedures that no path ends in." : "") +
		(P.least > 1 ? " Calls with fewer than " + count(P.least) + " samples are left out." : "");
}

// A path counts once: for the caller of its outermost frame, and for what its innermost one called.
function around(p) {
	const t = calls(), is = t.names.map((x) => x[0] === p.name && (x[1] || x[0]) === p.image.name);
	const callers = new Map(), callees = new Map(), near = new Int32Array(t.n).fill(-1), outer = new Int32Array(t.n).fill(-1);
	const via = new Int32Array(t.n).fill(-1);
	const add = (m, key, n) => m.set(key, (m.get(key) || 0) + n);
	let all = 0, self = 0;
	for (let i = 1; i < t.n; i++) {
		const up = t.parent[i], n = t.self[i] + t.lost[i], me = is[t.what[i]];
		outer[i] = outer[up] >= 0 ? outer[up] : me ? i : -1;
		near[i] = me ? i : near[up];
		via[i] = me ? -1 : via[up] >= 0 ? via[up] : near[up] === up && near[up] >= 0 ? i : -1;
		if (outer[i] < 0 || !n)
			continue;
		all += n;
		add(callers, t.what[t.parent[outer[i]]], n);
		if (near[i] === i) {
			self += t.self[i];
			if (t.lost[i])
				add(callees, -1, t.lost[i]);
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
	const t = calls(), x = around(p);
	if (!x.all) {
		to.append(note("No call path has this procedure, or only paths with few samples."));
		return;
	}
	const list = (title, m) => {
		const rows = [...m].sort((a, b) => b[1] - a[1]).slice(0, 300);
		return make("div", null, make("h3", null, title), make("div", { class: "scroll" }, make("table", { "aria-label": title },
			make("tbody", null, rows.map(([w, n]) => {
				const q = w >= 0 ? t.names[w] : ["(calls with few samples)", ""], r = rowNamed(q[0], q[1]);
				return make("tr", null, make("td", { class: "num" }, count(n)), make("td", { class: "num" }, percent(n, x.all)),
					make("td", { class: "name" }, r && r.i >= 0 ? make("a", { href: "#p" + r.i + "/calls" }, q[0]) : q[0]),
					make("td", { class: "dim wide" }, base(q[1])));
			})))));
	};
	to.append(make("p", null, count(x.all) + " samples, " + percent(x.all, sums[M.event]) + ", are in it or in what it called; " + count(x.self) + " in itself."),
		make("p", { class: "dim" }, pathsText()),
		make("div", { class: "panes" }, list("Called by", x.callers), list("Called", x.callees)));
}

// ---- map -------------------------------------------------------------------------------------

// Rectangles as square as can be (Bruls, Huizing and van Wijk 2000): items {n} get x, y, w, h.
function squarify(items, x, y, w, h) {
	let rest = items.filter((i) => i.n > 0).sort((a, b) => b.n - a.n), sum = rest.reduce((s, i) => s + i.n, 0);
	const out = [];
	while (rest.length && w > 0.5 && h > 0.5) {
		const scale = w * h / sum, side = Math.min(w, h);
		let row = 0, worst = Infinity, k = 0;
		for (; k < rest.length; k++) {
			const next = row + rest[k].n * scale;
			const ratio = Math.max(side * side * rest[0].n * scale / (next * next), next * next / (side * side * rest[k].n * scale));
			if (ratio > worst)
				break;
			worst = ratio;
			row = next;
		}
		const thick = row / side;
		let at = 0;
		for (const item of rest.slice(0, k)) {
			const len = item.n * scale / thick;
			out.push(w >= h ? Object.assign(item, { x, y: y + at, w: thick, h: len }) : Object.assign(item, { x: x + at, y, w: len, h: thick }));
			at += len;
			sum -= item.n;
		}
		if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
		rest = rest.slice(k);
	}
	return out;
}

const map = { image: -1, procedure: -1 };

function linesOf(code) {
	const lines = new Map();
	code.insns.forEach((x, i) => {
		const key = x[5] ? base(code.files[x[4]].name) + ":" + x[5] : "(no source line)", old = lines.get(key);
		if (!old)
			lines.set(key, { name: key, n: own(x), best: own(x), first: i });
		else {
			old.n += own(x);
			if (own(x) > old.best)
				Object.assign(old, { best: own(x), first: i });
		}
	});
	return [...lines.values()];
}

function drawMap(to) {
	const plane = make("div", { class: "plane" }), way = make("div", { class: "bar" });
	to.append(way, make("p", { class: "dim" }, "Area is time. A click leads from images to procedures, to lines, to instructions. The ",
		make("a", { href: "#procedures" }, "table"), " has the same."), plane);
	function draw() {
		const w = plane.clientWidth || 1000, h = Math.max(320, Math.min(innerHeight - 230, 700)), els = [];
		plane.style.height = h + "px";
		const put = (item, text, title, back, click, href) => {
			const el = make("a", { title, href: href || "#map", onclick: click && ((e) => { e.preventDefault(); click(); }) });
			if (item.w > 24 && item.h > 14)
				el.textContent = text;
			Object.assign(el.style, { left: item.x + "px", top: item.y + "px", width: item.w + "px", height: item.h + "px", background: back });
			el.setAttribute("aria-label", title);
			els.push(el);
		};
		const say = (name, n) => name + "\n" + count(n) + " samples, " + percent(n, total());
		const im = images[map.image], p = procedures[map.procedure];
		if (p)
			for (const l of squarify(linesOf(codes.get(p.i)), 0, 0, w, h))
				put(l, l.name, say(l.name, l.n), color(l.name), null, "#p" + p.i + "/i" + l.first);
		else if (im)
			procedureBoxes(im, 0, 0, w, h).forEach((b) => put(b, b.p.name, say(b.p.name, b.n), color(b.p.name), () => into(b.p)));
		else
			for (const b of squarify(images.map((x) => ({ im: x, n: of(x) })), 0, 0, w, h)) {
				put(b, base(b.im.name) + "  " + percent(b.n, total()), say(b.im.name, b.n), imageColor(b.im.name), () => { map.image = b.im.i; draw(); });
				if (b.w > 50 && b.h > 40)
					procedureBoxes(b.im, b.x + 2, b.y + 18, b.w - 4, b.h - 20).filter((q) => q.w > 5 && q.h > 5)
						.forEach((q) => put(q, q.p.name, say(q.p.name, q.n), color(q.p.name), () => { map.image = b.im.i; into(q.p); }));
			}
		plane.replaceChildren(...els);
		way.replaceChildren(make("button", { type: "button", onclick: () => { map.image = map.procedure = -1; draw(); } }, "all"),
			...(im ? [" › ", make("button", { type: "button", onclick: () => { map.procedure = -1; draw(); } }, base(im.name))] : []),
			...(p ? [" › ", make("a", { href: "#p" + p.i }, p.name)] : []), eventSelect() || "");
	}
	function into(p) {
		const code = codes.get(p.i);
		if (code && !code.missing) {
			map.procedure = p.i;
			draw();
		} else if (p.i >= 0) {
			location.hash = "#p" + p.i;
		}
	}
	drawLater = draw;
	draw();
}

function procedureBoxes(im, x, y, w, h) {
	const mine = procedures.filter((p) => p.image === im && of(p)).sort((a, b) => of(b) - of(a));
	const items = mine.slice(0, 150).map((p) => ({ p, n: of(p) })), rest = mine.slice(150).reduce((s, p) => s + of(p), 0);
	if (rest)
		items.push({ p: { i: -1, name: "(" + count(mine.length - 150) + " others)" }, n: rest });
	return squarify(items, x, y, w, h);
}

// ---- changes ---------------------------------------------------------------------------------

function drawChanges(to) {
	const B = M.before, [a, b] = B.total, points = (r) => 100 * ((b ? r[4] / b : 0) - (a ? r[3] / a : 0));
	const said = (s, e) => s.database + ", epoch" + (s.epochs.length > 1 ? "s " : " ") + s.epochs.map((x) => x.name).join(", ") + ": " + count(e) + " samples";
	to.append(make("ul", null, make("li", null, "before: " + said(B, a)), make("li", null, "now: " + said(M, b))),
		make("p", { class: "dim" }, "Shares are percent of a side's samples of " + M.events[M.event].name + ", change is in points. ~ marks what is within " +
			B.bound.toFixed(2) + " standard errors: chance may explain it."));
	const search = make("input", { type: "search", id: "search", placeholder: "search  ( / )", "aria-label": "search changes" });
	const t = grid("changes by procedure", [
		{ head: "before", num: true, sort: (r) => r[3], cell: (td, r) => percent(r[3], a) },
		{ head: "now", num: true, sort: (r) => r[4], cell: (td, r) => percent(r[4], b) },
		{ head: "change", num: true, sort: (r) => (r[6] ? 1000 : 1) * Math.abs(points(r)), cell: (td, r) => difference(td, points(r), r) },
		{ head: "± error", num: true, wide: true, sort: (r) => r[5], cell: (td, r) => (100 * r[5]).toFixed(2) },
		{ head: "procedure", name: true, sort: (r) => r[0].toLowerCase(), cell: (td, r) => (r[2] >= 0 ? link(procedures[r[2]]) : make("span", { title: r[0] }, r[0])) },
		{ head: "image", sort: (r) => r[1], cell: (td, r) => make("span", { class: "dim", title: r[1] }, r[1] === r[0] ? "" : base(r[1])) },
		{ head: "code", wide: true, sort: (r) => r[7], cell: (td, r) => r[7] }],
		(r) => r[2] >= 0 && (location.hash = "#p" + r[2]), { column: 2, up: false });
	search.addEventListener("input", () => { const is = matcher(search.value); t.set(B.rows.filter((r) => is(r[0] + " " + r[1]))); });
	to.append(make("div", { class: "bar" }, search), t.el);
	if (B.left_out)
		to.append(make("p", { class: "dim" }, count(B.left_out) + " more procedures had " + count(B.rest[0]) + " samples before and " + count(B.rest[1]) + " now."));
	t.set(B.rows);
}

// ---- what is not known -----------------------------------------------------------------------

// Samples in blocks whose frequency is estimated with medium or high confidence, or counted.
function estimated() {
	let n = 0;
	for (const c of M.code)
		for (const b of c.blocks || [])
			if (b[4] >= 2)
				n += b[2];
	return n;
}

function unknowns() {
	const list = [], all = sums[M.event] || 0, name = E ? M.events[M.event].name : "";
	const nameless = procedures.filter((p) => p.address === null && p.image.kind !== "named")
		.reduce((s, p) => s + p.samples[M.event], 0);
	for (const e of M.epochs) {
		if (e.open)
			list.push(["Epoch " + e.name + " is still being written: the report shows its last flush."]);
		if (e.lost)
			list.push(["Epoch " + e.name + " lacks " + count(e.lost) + " samples that its daemon could not write before it ended."]);
	}
	for (const e of M.events)
		if (e.enabled < 0.9995)
			list.push([e.name + " was counted " + (100 * e.enabled).toFixed(1) + " % of the time."]);
	if (all)
		list.push(["Code is shown of procedures with " + percent(M.code.reduce((s, c) => s + (c.missing ? 0 : procedures[c.p].samples[M.event]), 0), all) +
			" of the samples of " + name + (M.code_left_out ? "; " + count(M.code_left_out) + " hot procedures did not fit (dcpireport -size)" : "") + "."],
		["Frequencies of medium or higher confidence cover " + percent(estimated(), all) + " of the samples" +
			(estimated() < all / 2 ? ": for most of the time this report does not know how often code ran" : "") + "."],
		[percent(nameless, all) + " of the samples are in code without a known name."]);
	if (M.values_denied)
		list.push([count(M.values_denied) + " files of values belong to other users and were not read."]);
	if (!M.paths)
		list.push(["Who called what is not known: " + (M.no_paths || "no call paths") + "."]);
	for (const x of M.problems)
		list.push([x]);
	for (const c of M.code)
		if (c.missing)
			list.push(["The code of " + procedures[c.p].name + " cannot be shown: " + c.missing + "."]);
	for (const im of images)
		if (im.problem)
			list.push([(im.samples[M.event] ? percent(im.samples[M.event], all) + ": " : "") + im.name + ": " + im.problem, im.hint]);
	return list;
}

function drawUnknown(to) {
	to.append(make("h2", null, "What this report does not know"), make("ul", null, unknowns().map(([text, hint]) =>
		make("li", null, text, hint ? make("div", { class: "dim" }, "hint: " + hint) : ""))));
}

// ---- sections --------------------------------------------------------------------------------

// A section of the page: {id, title, when: is it in the model, draw(element)}. To add one, add a line.
const sections = [
	{ id: "procedures", title: "Procedures", when: () => true, draw: drawProcedures },
	{ id: "images", title: "Images", when: () => true, draw: drawImages },
	{ id: "calls", title: "Calls", when: () => true, draw: drawCalls },
	{ id: "map", title: "Map", when: () => true, draw: drawMap },
	{ id: "changes", title: "Changes", when: () => M.before, draw: drawChanges },
	{ id: "unknown", title: "Not known", when: () => true, draw: drawUnknown },
];

let drawLater = null;
const nav = make("nav", { "aria-label": "sections" });
const main = make("main", { tabindex: -1 });
const help = make("dialog", { "aria-label": "keys" }, make("h2", null, "Keys"), make("table", null, make("tbody", null, [
	["/", "search"], ["↑ ↓ PgUp PgDn Home End", "move in the table"], ["Enter", "open the row"], ["Esc", "back: clear the search, then the list before"],
	["1 … 6", "the sections"], ["h", "the hottest instruction"], ["s f c", "source, flow graph, callers of the procedure"], ["?", "this help"],
].map(([k, t]) => make("tr", null, make("td", null, make("kbd", null, k)), make("td", null, t))))),
	make("form", { method: "dialog" }, make("button", null, "close")));

function head() {
	const epochs = M.epochs.map((e) => e.name), say = epochs.length > 2 ? epochs[0] + " … " + epochs[epochs.length - 1] : epochs.join(", ");
	return make("header", { class: "top" }, make("h1", null, "DCPI report"),
		make("span", { class: "dim" }, M.database + " · epoch" + (epochs.length > 1 ? "s " : " ") + say + " · " + M.platforms.join(", ") +
			(M.labels.length ? " · label " + M.labels.join(", ") : "")),
		make("span", { class: "dim" }, E ? M.events.map((e) => e.name + ": " + count(e.samples) + " samples" +
			(e.period ? ", one per " + count(e.period) + " " + e.unit : ", of different periods")).join(" · ") : "no samples"));
}

let last = "procedures";
function show() {
	const [where, part] = location.hash.slice(1).split("/"), one = /^p(\d+)$/.exec(where);
	const section = sections.find((s) => s.id === where && s.when()) || sections[0];
	shown = [];
	drawLater = null;
	main.replaceChildren();
	nav.replaceChildren(...sections.filter((s) => s.when()).map((s) => make("a", { href: "#" + s.id,
		"aria-current": !one && s === section ? "page" : null }, s.title)),
		make("a", { href: "#help", class: "help", onclick: (e) => { e.preventDefault(); help.showModal(); } }, "? keys"));
	if (!E)
		main.append(note("No samples were found in the chosen epochs."));
	else if (one)
		drawProcedure(main, Number(one[1]), part || "");
	else
		section.draw(main);
	if (!one)
		last = section.id;
	const first = main.querySelector("[role=grid]");
	if (first && !matchMedia("(pointer: coarse)").matches)
		(one ? [...main.querySelectorAll("[role=grid]")].pop() : first).focus({ preventScroll: true });
}

function back() {
	const search = document.getElementById("search");
	if (search && search.value) {
		search.value = "";
		search.dispatchEvent(new Event("input"));
	} else if (/^#p\d/.test(location.hash)) {
		location.hash = "#" + last;
	} else if (location.hash === "#calls" && flame.node) {
		flame.node = 0;
		show();
	} else if (filter.image !== "") {
		filter.image = "";
		show();
	}
}

addEventListener("keydown", (e) => {
	const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName), one = /^#p\d+/.exec(location.hash);
	if (e.ctrlKey || e.altKey || e.metaKey || help.open)
		return;
	const search = document.getElementById("search"), hottest = document.getElementById("hottest");
	const usable = sections.filter((s) => s.when());
	if (e.key === "Escape")
		back();
	else if (typing)
		return;
	else if (e.key === "/") {
		if (search)
			search.focus();
		else {
			location.hash = "#procedures";
			setTimeout(() => document.getElementById("search").focus());
		}
	} else if (e.key === "?")
		help.showModal();
	else if (e.key === "h" && hottest)
		hottest.click();
	else if (one && "sfc".includes(e.key))
		location.hash = one[0] + { s: "", f: "/flow", c: "/calls" }[e.key];
	else if (e.key >= "1" && e.key <= "9" && usable[e.key - 1])
		location.hash = "#" + usable[e.key - 1].id;
	else
		return;
	e.preventDefault();
});
addEventListener("hashchange", show);
let resizing = 0;
addEventListener("resize", () => { clearTimeout(resizing); resizing = setTimeout(() => drawLater && drawLater(), 100); });

document.title = "DCPI report: " + base(M.database);
page.replaceChildren(head(), nav, main, help);
show();
document.documentElement.dataset.ready = Math.round(performance.now());
})();
