// SPDX-License-Identifier: BSD-2-Clause
// The source lines with most samples, of all code in the page.

// Rows {p, name, line, text, samples by event, first}: a line of a procedure. Code without lines is one row of each.
function linesOfAll() {
	const rows = [];
	for (const code of M.code) {
		const own = new Map();
		(code.insns || []).forEach((x, i) => {
			const key = x[5] ? x[4] + ":" + x[5] : "",
				all = M.events.map((e, k) => (k === M.event ? x[2] : (x[9] || [])[k < M.event ? k : k - 1] || 0));
			if (!all.some(Boolean)) return;
			let row = own.get(key);
			if (!row) {
				row = { p: procedures[code.p], code, file: x[5] ? x[4] : -1, line: x[5], samples: all, best: all[M.event], first: i };
				own.set(key, row);
				rows.push(row);
				return;
			}
			all.forEach((n, k) => (row.samples[k] += n));
			if (all[M.event] > row.best) Object.assign(row, { best: all[M.event], first: i });
		});
	}
	for (const r of rows) {
		const file = r.code.files[r.file],
			at = file && file.lines ? file.lines.findIndex((x, i) => i % 2 === 0 && x === r.line) : -1;
		r.name = file ? base(file.name) + ":" + r.line : "(no source line)";
		r.path = file ? file.name : "";
		r.text = at >= 0 ? file.lines[at + 1].trim() : "";
	}
	return rows;
}

let allLines = null;
function drawLines(to) {
	allLines = allLines || linesOfAll();
	const search = make("input", {
		type: "search",
		id: "search",
		placeholder: "search lines  ( / )",
		"aria-label": "search lines",
	});
	const told = make("span", { class: "dim", role: "status" }),
		shown = allLines.reduce((n, r) => n + of(r), 0);
	const t = grid(
		"source lines by samples",
		[
			samplesColumn(),
			shareColumn(),
			{
				head: "line",
				sort: (r) => r.name,
				cell: (td, r) =>
					make("a", { href: "#p" + r.p.i + "/i" + r.first, title: r.path, tabindex: -1 }, r.name),
			},
			{ head: "source", name: true, cell: (td, r) => make("span", { class: "mono", title: r.text }, r.text) },
			{ head: "procedure", wide: true, sort: (r) => r.p.name, cell: (td, r) => link(r.p) },
			{
				head: "image",
				wide: true,
				sort: (r) => r.p.image.name,
				cell: (td, r) => make("span", { class: "dim", title: r.p.image.name }, base(r.p.image.name)),
			},
			...otherEvents(),
		],
		(r) => (location.hash = "#p" + r.p.i + "/i" + r.first),
		{ column: 0, up: false },
	);
	function fill() {
		const is = matcher(search.value),
			rows = allLines.filter((r) => is(r.name + " " + r.text + " " + r.p.name + " " + r.p.image.name));
		t.set(rows);
		told.textContent =
			count(rows.length) + " of " + count(allLines.length) + " rows, " + percent(rows.reduce((n, r) => n + of(r), 0), total());
	}
	search.addEventListener("input", fill);
	search.addEventListener("keydown", (e) => {
		if (e.key !== "ArrowDown" && e.key !== "Enter") return;
		t.table.focus();
		t.activate(0);
		e.preventDefault();
	});
	to.append(
		make("div", { class: "bar" }, search, eventSelect(), told),
		t.el,
		make(
			"p",
			{ class: "dim" },
			"These are lines of the procedures whose code is in this report, " +
				percent(shown, total()) +
				" of the samples. A line that is inlined in several procedures has a row in each.",
		),
	);
	fill();
}
