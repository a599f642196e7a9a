// SPDX-License-Identifier: BSD-2-Clause
// The model of a report is unpacked. Its texts become text, never markup: there is no innerHTML here.
// The files of this folder are one module, in the order of ../CMakeLists.txt.

const page = document.getElementById("page");
const M = await unpack(document.getElementById("model").textContent)
	.then(JSON.parse)
	.catch((e) => {
		page.textContent = "This report cannot be read: it is damaged, or the browser is too old (" + e + ").";
		throw e;
	});
const E = M.events.length;
const integer = new Intl.NumberFormat("en");
const CONFIDENCE = ["not known", "low", "medium", "high", "exact"];

// The text that was packed (RFC 1950) and spelled in base 64.
async function unpack(text) {
	const raw = atob(text),
		bytes = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
	return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
}

// ---- elements ----------------------------------------------------------------------------------

// make("td", {class: "num"}, "text", element, …)
function make(tag, attributes, ...inside) {
	const el = document.createElement(tag);
	for (const name in attributes || {}) {
		const value = attributes[name];
		if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
		else if (value === true) el.setAttribute(name, "");
		else if (value !== false && value !== undefined && value !== null) el.setAttribute(name, value);
	}
	el.append(...inside.flat().filter((x) => x !== null && x !== undefined && x !== ""));
	return el;
}

function svg(tag, attributes, ...inside) {
	const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const name in attributes) el.setAttribute(name, attributes[name]);
	el.append(...inside);
	return el;
}

const count = (n) => integer.format(n);
const percent = (part, all) => (all ? ((100 * part) / all).toFixed(2) + " %" : "");
const base = (path) => path.slice(path.lastIndexOf("/") + 1) || path;
const note = (...inside) => make("p", { class: "note" }, ...inside);

// As many digits as an estimate has: two.
function about(value) {
	if (!value) return "0";
	for (const [unit, size] of [
		["G", 1e9],
		["M", 1e6],
		["k", 1e3],
	])
		if (value >= size) return Number((value / size).toPrecision(2)) + " " + unit;
	return String(Number(value.toPrecision(2)));
}

// ---- the model ---------------------------------------------------------------------------------

let event = M.event;
const sums = M.events.map((e) => e.samples);
const images = M.images.map((im, i) => ({ ...im, i, procedures: im.left_out || 0 }));
const procedures = M.procedures.map((p, i) => ({
	i,
	name: p[0],
	image: images[p[1]],
	address: p[2],
	samples: p.slice(3),
}));
for (const p of procedures) p.image.procedures++;
for (const im of images)
	if (im.left_out)
		procedures.push({
			i: -1,
			name: "(" + count(im.left_out) + " procedures with few samples)",
			image: im,
			address: "",
			samples: im.rest,
		});
for (const c of M.code) {
	// Instructions that are left out have their number in place of a text.
	c.gaps = [];
	c.insns = (c.insns || []).filter((x, i) => x.length > 2 || !c.gaps.push([i - c.gaps.length, x[0], x[1]]));
	for (const x of c.insns) x[1] = x[1].replace(/^([\w.]+) (?=[^ ])/, (all, name) => name.padEnd(7) + " ");
}
const codes = new Map(M.code.map((c) => [c.p, c]));
const earlier = new Map(M.before ? M.before.rows.filter((r) => r[2] >= 0).map((r) => [r[2], r]) : []);

const of = (x) => x.samples[event] || 0;
const total = () => sums[event] || 0;
const link = (p) =>
	p.i < 0
		? make("span", { title: p.name }, p.name)
		: make("a", { href: "#p" + p.i, title: p.name, tabindex: -1 }, p.name);
