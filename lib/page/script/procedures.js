// SPDX-License-Identifier: BSD-2-Clause
// The tables of procedures and of images.

const filter = { text: "", image: "" };

// Each word must be there; case does not count.
function matcher(text) {
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	return (s) => {
		const low = s.toLowerCase();
		return words.every((w) => low.includes(w));
	};
}

function changeColumns() {
	if (!M.before) return [];
	const a = M.before.total[0];
	const change = (r) => (earlier.has(r.i) ? points(earlier.get(r.i)) : 0);
	return [
		{
			head: "before",
			num: true,
			wide: true,
			title: "percent of the samples before",
			sort: (r) => (earlier.get(r.i) || [])[3] || 0,
			cell: (td, r) => {
				const d = earlier.get(r.i);
				return d ? percent(d[3], a) : "";
			},
		},
		{
			head: "change",
			num: true,
			title: "percentage points; ~ where chance may explain it",
			sort: change,
			cell: (td, r) => difference(td, change(r), earlier.get(r.i)),
		},
	];
}

function difference(td, points, d) {
	if (!d) return "";
	if (d[6]) td.classList.add(points > 0 ? "more" : "less");
	return (d[6] ? "" : "~ ") + (points > 0 ? "+" : "") + points.toFixed(2);
}

function drawProcedures(to) {
	const search = make("input", {
		type: "search",
		id: "search",
		placeholder: "search procedures and images  ( / )",
		"aria-label": "search procedures and images",
		value: filter.text,
	});
	const select = make(
		"select",
		{ "aria-label": "image" },
		make("option", { value: "" }, "all images"),
		images
			.slice(0, 500)
			.map((im) =>
				make(
					"option",
					{ value: im.i, selected: String(im.i) === filter.image },
					base(im.name) + "  " + percent(of(im), total()),
				),
			),
	);
	const told = make("span", { class: "dim", role: "status" });
	let sum = [];
	const t = grid(
		"procedures by samples",
		[
			samplesColumn(),
			shareColumn(),
			{
				head: "cum",
				num: true,
				wide: true,
				title: "this row and all above",
				cell: (td, r, i) => percent(sum[i], total()),
			},
			...changeColumns(),
			{
				head: "procedure",
				name: true,
				sort: (r) => r.name.toLowerCase(),
				cell: (td, r) => link(r),
			},
			{
				head: "image",
				sort: (r) => r.image.name,
				cell: (td, r) =>
					make(
						"span",
						{ title: r.image.name, class: "dim" },
						r.image.name === r.name ? "" : base(r.image.name),
					),
			},
			...otherEvents(),
		],
		(r) => r.i >= 0 && (location.hash = "#p" + r.i),
		{ column: 0, up: false },
	);
	t.ordered = (rows) => {
		let n = 0;
		sum = rows.map((r) => (n += of(r)));
	};
	function fill() {
		const is = matcher(filter.text),
			im = filter.image === "" ? null : images[filter.image];
		const rows = procedures.filter((p) => (!im || p.image === im) && is(p.name + " " + p.image.name));
		t.set(rows);
		const n = rows.reduce((s, r) => s + of(r), 0);
		told.textContent = count(rows.length) + " of " + count(procedures.length) + " rows, " + percent(n, total());
	}
	search.addEventListener("input", () => {
		filter.text = search.value;
		fill();
	});
	search.addEventListener("keydown", (e) => {
		if (e.key === "ArrowDown" || e.key === "Enter") {
			t.table.focus();
			t.activate(0);
			e.preventDefault();
		}
	});
	select.addEventListener("change", () => {
		filter.image = select.value;
		fill();
	});
	to.append(make("div", { class: "bar" }, search, select, eventSelect(), told), t.el);
	if (M.procedures_left_out)
		to.append(
			make(
				"p",
				{ class: "dim" },
				count(M.procedures_left_out) +
					" procedures with fewest samples have no row of their own: each image has one row for all of its (a larger page, dcpireport -size, has more).",
			),
		);
	fill();
}

function eventSelect() {
	if (E < 2) return null;
	return make(
		"select",
		{
			"aria-label": "event",
			onchange: (e) => {
				event = Number(e.target.value);
				show();
			},
		},
		M.events.map((e, i) => make("option", { value: i, selected: i === event }, e.name)),
	);
}

// ---- images ------------------------------------------------------------------------------------

function drawImages(to) {
	const open = (im) => {
		filter.image = String(im.i);
		location.hash = "#procedures";
	};
	const t = grid(
		"images by samples",
		[
			samplesColumn(),
			shareColumn(),
			{
				head: "image",
				name: true,
				sort: (r) => r.name,
				cell: (td, r) =>
					make(
						"a",
						{
							href: "#procedures",
							title: r.name,
							tabindex: -1,
							onclick: () => {
								filter.image = String(r.i);
							},
						},
						r.name,
					),
			},
			{
				head: "procedures",
				num: true,
				wide: true,
				sort: (r) => r.procedures,
				cell: (td, r) => count(r.procedures),
			},
			{ head: "kind", wide: true, sort: (r) => r.kind, cell: (td, r) => r.kind },
			{
				head: "not known",
				wide: true,
				sort: (r) => r.problem || "",
				cell: (td, r) =>
					make(
						"span",
						{
							class: "dim",
							title: [r.problem, r.hint].filter(Boolean).join("; "),
						},
						r.problem || "",
					),
			},
			{
				head: "build-id",
				wide: true,
				cell: (td, r) => make("span", { class: "mono dim", title: r.build_id || "" }, (r.build_id || "").slice(0, 12)),
			},
			...otherEvents(),
		],
		open,
		{ column: 0, up: false },
	);
	to.append(make("div", { class: "bar" }, eventSelect()), t.el);
	t.set(images);
}
