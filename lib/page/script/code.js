// SPDX-License-Identifier: BSD-2-Clause
// One procedure: its source and instructions side by side, and what is known of its time.

function address(code, offset) {
	return "0x" + (BigInt("0x" + code.base) + BigInt(offset)).toString(16);
}

const place = (offset) => (offset < 0 ? "-0x" + (-offset).toString(16) : "+0x" + offset.toString(16));

// How a cost is said: in the unit of the samples, or as a multiple of the procedure's average instruction.
const cost = (code, value) =>
	value === null || value === undefined ? "" : about(value) + (code.unit === "x" ? " × average" : " " + code.unit);

function runs(code, value, confidence) {
	if (value === null) return "how often it ran is not known";
	const most = code.most || (code.most = Math.max(...code.blocks.map((b) => b[3] || 0)));
	const text =
		code.unit === "x"
			? (most ? Number((value / most).toPrecision(2)) : 0) + " of the most frequent block"
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
	for (const s of b.slice(8)) parts.push("waits " + cost(code, s[2]) + " for: " + causes(s[0]));
	return parts.filter(Boolean).join("  ·  ");
}

function drawProcedure(to, i, part) {
	const p = procedures[i],
		code = codes.get(i);
	if (!p || p.i < 0) {
		to.append(note("This report has no such procedure."));
		return;
	}
	to.append(
		make("h2", { tabindex: -1 }, p.name),
		make(
			"p",
			{ class: "dim" },
			count(of(p)) + " samples of " + M.events[event].name + ", " + percent(of(p), total()) + " · ",
			make(
				"a",
				{
					href: "#procedures",
					onclick: () => {
						filter.image = String(p.image.i);
					},
				},
				p.image.name,
			),
			p.address ? make("span", { class: "mono" }, " · 0x" + p.address) : "",
		),
	);
	const parts = [
		["", "Source and instructions"],
		["flow", "Flow graph"],
		["calls", "Callers and callees"],
	];
	const now = parts.some((x) => x[0] === part) ? part : "";
	to.append(
		make(
			"nav",
			{ "aria-label": "views of the procedure" },
			parts.map(([id, text]) =>
				make(
					"a",
					{
						href: "#p" + i + (id && "/" + id),
						"aria-current": id === now ? "page" : null,
					},
					text,
				),
			),
		),
	);
	if (now === "calls") drawAround(to, p);
	else if (!code)
		to.append(
			note(
				p.image.problem
					? "Its code is not known: " + p.image.problem + (p.image.hint ? ". " + p.image.hint : "")
					: p.image.kind === "named"
						? "These samples are in no image, and there is no code to show: dcpid(8) tells what the name means."
						: p.address === null
							? "These samples are in no procedure that the image tells of. dcpitopcounts lists them by address."
							: "Its code is not in this report, which has that of the hottest procedures alone (" +
								M.keep +
								" % of the samples, as far as they fit). dcpilist '" +
								p.name +
								"' shows it; dcpireport -keep and -size put more here.",
			),
		);
	else if (code.missing) to.append(note("Its code cannot be shown: " + code.missing));
	else if (now === "flow") drawFlow(to, code);
	else drawCode(to, code, /^i\d+$/.test(part) ? Number(part.slice(1)) : -1);
}

function drawKnown(to, code) {
	const list = [...code.notes];
	list.unshift(code.frequencies ? "Frequencies are " + code.frequencies + "." : "How often code ran is not known.");
	if (code.outside) list.push(count(code.outside) + " samples are at addresses in no block.");
	if (code.places > 1) list.push("Samples of " + code.places + " places of the same code are added up.");
	const p = procedures[code.p],
		here = code.samples;
	if (here !== p.samples[M.event])
		list.push(
			"The row has " +
				count(p.samples[M.event]) +
				" samples, this code " +
				count(here) +
				": the name has other code too, or parts of it lie elsewhere.",
		);
	if (event !== M.event) list.push("Costs and frequencies are by " + M.events[M.event].name + ".");
	to.append(
		make(
			"details",
			{ class: "known" },
			make("summary", null, "What is known of its time, and how well"),
			make(
				"ul",
				null,
				list.map((x) => make("li", null, x)),
			),
			code.summary.length ? make("pre", { tabindex: 0, role: "region", "aria-label": "where its time went" }, code.summary.join("\n")) : "",
		),
	);
}

// Samples of an instruction for the event that is shown.
function own(insn) {
	if (event === M.event) return insn[2];
	const others = insn[9] || [];
	return others[event < M.event ? event : event - 1] || 0;
}

function sourceRows(code, file, lines) {
	const rows = [],
		known = new Map();
	const text = code.files[file] && code.files[file].lines;
	for (let i = 0; text && i < text.length; i += 2) {
		if (i && text[i] !== text[i - 2] + 1) rows.push({ kind: "block", text: "…" });
		const row = { line: text[i], text: text[i + 1], n: lines.get(file + ":" + text[i]) || 0 };
		known.set(text[i], row);
		rows.push(row);
	}
	if (!text)
		for (const [key, n] of [...lines]
			.map(([k, v]) => [k.split(":").map(Number), v])
			.sort((a, b) => a[0][1] - b[0][1]))
			if (key[0] === file) rows.push({ line: key[1], text: "(source not found)", n });
	return rows;
}

function drawCode(to, code, wanted) {
	const all = code.insns.reduce((n, x) => n + own(x), 0),
		lines = new Map(),
		by = code.files.map(() => 0);
	let most = 1,
		mostLine = 1,
		hottest = 0;
	code.insns.forEach((x, i) => {
		if (own(x) > own(code.insns[hottest])) hottest = i;
		most = Math.max(most, own(x));
		if (x[5]) {
			const key = x[4] + ":" + x[5],
				n = (lines.get(key) || 0) + own(x);
			lines.set(key, n);
			mostLine = Math.max(mostLine, n);
			by[x[4]] += own(x);
		}
	});
	const rows = [],
		at = [],
		gaps = code.gaps.slice();
	// One at the end of a part and one at the beginning of the next are at the same place.
	const gap = (i) => {
		while (gaps.length && gaps[0][0] === i) {
			const [, from, nr] = gaps.shift();
			rows.push({
				kind: "block",
				text: "… " + count(nr) + " instructions from " + place(from) + " on without samples",
			});
		}
	};
	code.insns.forEach((x, i) => {
		gap(i);
		if (x[3] >= 0 && (!i || code.insns[i - 1][3] !== x[3]))
			rows.push({ kind: "block", text: blockText(code, code.blocks[x[3]], x[3]) });
		at[i] = rows.length;
		rows.push({ x, i });
	});
	gap(code.insns.length);
	const heat = (td, n, max) => {
		td.classList.add("heat");
		td.style.setProperty("--h", Math.sqrt(n / max).toFixed(2));
	};
	const left = grid("source lines", [
		{
			head: "samples",
			num: true,
			cell: (td, r) => {
				heat(td, r.n, mostLine);
				return r.n ? count(r.n) : "";
			},
		},
		{ head: "%", num: true, wide: true, cell: (td, r) => (r.n ? percent(r.n, all) : "") },
		{ head: "line", num: true, cell: (td, r) => r.line },
		{ head: "source", name: true, cell: (td, r) => r.text },
	]);
	const has = (k) => code.insns.some((x) => x[k] && x[k].length !== 0);
	const right = grid("instructions", [
		{
			head: "samples",
			num: true,
			cell: (td, r) => {
				heat(td, own(r.x), most);
				return own(r.x) ? count(own(r.x)) : "";
			},
		},
		{ head: "%", num: true, cell: (td, r) => (own(r.x) ? percent(own(r.x), all) : "") },
		...(has(7)
			? [
					{
						head: "each",
						num: true,
						title: "cost of one execution",
						cell: (td, r) => cost(code, r.x[7]),
					},
				]
			: []),
		{
			head: "address",
			wide: true,
			cell: (td, r) => make("span", { class: "dim", title: address(code, r.x[0]) }, place(r.x[0])),
		},
		{ head: "instruction", name: true, cell: (td, r) => r.x[1] },
		...(has(8)
			? [
					{
						head: "waited for",
						wide: true,
						title: "the instruction whose result it waited for",
						cell: (td, r) => (r.x[8] || []).map(place).join(" "),
					},
				]
			: []),
		...(has(10)
			? [
					{
						head: "values",
						wide: true,
						title: "the most frequent values of its result, and their part of all that were seen",
						cell: (td, r) => values(r.x[10]),
					},
				]
			: []),
		{ head: "line", wide: true, cell: (td, r) => lineOf(r.x) },
	]);
	function values(v) {
		const list = [];
		for (let i = 1; v && i < v.length; i += 2) list.push("0x" + v[i] + " (" + v[i + 1].toFixed(0) + " %)");
		return list.length
			? make("span", { title: list.join("\n") + "\nof " + count(v[0]) + " seen" }, list.slice(0, 2).join("  "))
			: "";
	}
	function lineOf(x) {
		const stack = x[6] ? code.stacks[x[6] - 1] : [];
		return x[5]
			? make(
					"span",
					{
						class: "dim",
						title: [code.files[x[4]].name + ":" + x[5], ...stack].join("\n"),
					},
					base(code.files[x[4]].name) + ":" + x[5] + (stack && stack.length ? " (inlined)" : ""),
				)
			: "";
	}
	let file = by.indexOf(Math.max(...by, 0)),
		marked = "";
	const files = make(
		"select",
		{
			"aria-label": "source file",
			onchange: (e) => {
				file = Number(e.target.value);
				fill();
			},
		},
		code.files.map((f, i) =>
			make("option", { value: i, selected: i === file }, base(f.name) + "  " + percent(by[i], all)),
		),
	);
	const path = make("span", { class: "dim" });
	function fill() {
		if (file >= 0) {
			files.value = file;
			path.textContent = code.files[file].name + (code.files[file].lines ? "" : code.files[file].private ? ": not everybody may read it" : ": not found here");
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
			if (first >= 0) right.activate(first, true);
			return;
		}
		const row = left.rows.findIndex((r) => file + ":" + r.line === key);
		if (row >= 0) left.activate(row, true);
	}
	left.picked = (r) => r.line && pick(file + ":" + r.line, true);
	right.picked = (r) => {
		if (!r.x || !r.x[5]) return;
		if (r.x[4] !== file) {
			file = r.x[4];
			fill();
		}
		pick(r.x[4] + ":" + r.x[5], false);
	};
	const jump = (i) => {
		right.activate(at[i], true);
		right.picked(rows[at[i]]);
	};
	drawKnown(to, code);
	to.append(
		make(
			"div",
			{ class: "bar" },
			make(
				"button",
				{
					type: "button",
					id: "hottest",
					onclick: () => {
						jump(hottest);
						right.table.focus();
					},
				},
				"hottest instruction (h)",
			),
			code.files.length ? files : "",
			path,
			eventSelect(),
		),
	);
	const panes = make("div", { class: "panes code" });
	if (code.files.length) panes.append(left.el);
	else to.append(note("No source line is known of its instructions: the image has no debug information of lines."));
	panes.append(right.el);
	if (!code.files.length) panes.style.gridTemplateColumns = "minmax(0, 1fr)";
	to.append(panes);
	fill();
	right.set(rows);
	jump(wanted >= 0 && wanted < code.insns.length ? wanted : hottest);
}
