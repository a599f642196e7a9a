// SPDX-License-Identifier: BSD-2-Clause
// The comparison with samples of before.

// The change of a row's share, in percentage points.
function points(r) {
	const [a, b] = M.before.total;
	return 100 * ((b ? r[4] / b : 0) - (a ? r[3] / a : 0));
}

function drawChanges(to) {
	const B = M.before,
		[a, b] = B.total;
	const said = (s, e) =>
		s.database +
		", epoch" +
		(s.epochs.length > 1 ? "s " : " ") +
		s.epochs.map((x) => x.name).join(", ") +
		between(s.window) +
		": " +
		count(e) +
		" samples";
	to.append(
		make("ul", null, make("li", null, "before: " + said(B, a)), make("li", null, "now: " + said(M, b))),
		make(
			"p",
			{ class: "dim" },
			"Shares are percent of a side's samples of " +
				M.events[M.event].name +
				", change is in points. ~ marks what is within " +
				B.bound.toFixed(2) +
				" standard errors: chance may explain it.",
		),
	);
	const search = make("input", {
		type: "search",
		id: "search",
		placeholder: "search  ( / )",
		"aria-label": "search changes",
	});
	const t = grid(
		"changes by procedure",
		[
			{ head: "before", num: true, sort: (r) => r[3], cell: (td, r) => percent(r[3], a) },
			{ head: "now", num: true, sort: (r) => r[4], cell: (td, r) => percent(r[4], b) },
			{
				head: "change",
				num: true,
				sort: (r) => (r[6] ? 1000 : 1) * Math.abs(points(r)),
				cell: (td, r) => difference(td, points(r), r),
			},
			{
				head: "± error",
				num: true,
				wide: true,
				sort: (r) => r[5],
				cell: (td, r) => (100 * r[5]).toFixed(2),
			},
			{
				head: "procedure",
				name: true,
				sort: (r) => r[0].toLowerCase(),
				cell: (td, r) => (r[2] >= 0 ? link(procedures[r[2]]) : make("span", { title: r[0] }, r[0])),
			},
			{
				head: "image",
				sort: (r) => r[1],
				cell: (td, r) => make("span", { class: "dim", title: r[1] }, r[1] === r[0] ? "" : base(r[1])),
			},
			{ head: "code", wide: true, sort: (r) => r[7], cell: (td, r) => r[7] },
		],
		(r) => r[2] >= 0 && (location.hash = "#p" + r[2]),
		{ column: 2, up: false },
	);
	search.addEventListener("input", () => {
		const is = matcher(search.value);
		t.set(B.rows.filter((r) => is(r[0] + " " + r[1])));
	});
	to.append(make("div", { class: "bar" }, search), t.el);
	if (B.left_out)
		to.append(
			make(
				"p",
				{ class: "dim" },
				count(B.left_out) +
					" more procedures had " +
					count(B.rest[0]) +
					" samples before and " +
					count(B.rest[1]) +
					" now.",
			),
		);
	t.set(B.rows);
}
