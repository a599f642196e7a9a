// SPDX-License-Identifier: BSD-2-Clause
// Whose the samples were, and when: by process, user, service, container, and over time.

const KEYS = {
	comm: "process name",
	unit: "service (unit)",
	container: "container",
	exe: "program",
	uid: "user",
	cgroup: "cgroup",
	thread: "thread",
	label: "label",
	pid: "process",
};
const chosen = { key: "", time: 0 };

const notKept = () => note("Not known: " + (M.no_workloads || "no process was recorded") + ".");

function keySelect(all, now, name, fn) {
	return make(
		"select",
		{ "aria-label": name, onchange: (e) => (fn(e.target.value), show()) },
		all.map((k, i) => make("option", { value: i, selected: k === now }, KEYS[k.by] || k.by)),
	);
}

function drawWorkloads(to) {
	if (!M.workloads || !M.workloads.length) {
		to.append(notKept());
		return;
	}
	const g = M.workloads.find((k) => k.by === chosen.key) || M.workloads[0];
	const rows = g.rows.map(([name, comm, processes, ...samples]) => ({ name, comm, processes, samples }));
	const rest = M.events.map((e, i) => e.samples - g.others[i + 1] - rows.reduce((n, r) => n + r.samples[i], 0));
	if (g.others[0]) rows.push({ name: "(" + count(g.others[0]) + " others)", comm: "", processes: 0, samples: g.others.slice(1) });
	if (rest.some((n) => n > 0)) rows.push({ name: "(not recorded)", comm: "", processes: 0, samples: rest });
	const t = grid(
		"samples by " + (KEYS[g.by] || g.by),
		[
			samplesColumn(),
			shareColumn(),
			{
				head: "processes",
				num: true,
				sort: (r) => r.processes,
				cell: (td, r) => (r.processes ? count(r.processes) : ""),
			},
			{
				head: KEYS[g.by] || g.by,
				name: true,
				sort: (r) => r.name.toLowerCase(),
				cell: (td, r) => make("span", { title: r.name }, r.name + (r.comm ? " " + r.comm : "")),
			},
			...otherEvents(),
		],
		null,
		{ column: 0, up: false },
	);
	to.append(
		make("div", { class: "bar" }, keySelect(M.workloads, g, "by", (i) => (chosen.key = M.workloads[i].by)), eventSelect()),
		t.el,
		make(
			"p",
			{ class: "dim" },
			"The rows add up to all samples. dcpireport -" + g.by + " NAME makes a report of one of them alone.",
		),
	);
	t.set(rows);
}

// ---- time --------------------------------------------------------------------------------------

function said(seconds, span) {
	const t = new Date(1000 * seconds),
		two = (n) => String(n).padStart(2, "0");
	const day = t.getFullYear() + "-" + two(t.getMonth() + 1) + "-" + two(t.getDate());
	return span >= 86400 ? day : day + " " + two(t.getHours()) + ":" + two(t.getMinutes());
}

// The rows of a table of slices, and what is in none of them.
function bands(T) {
	const list = T.rows.map(([name, ...n], i) => ({ name, n, color: "hsl(" + ((i * 137 + 210) % 360) + " 55% 66%)" }));
	const others = T.total.map((n, i) => n - list.reduce((s, b) => s + b.n[i], 0));
	if (others.some((n) => n > 0)) list.push({ name: "others", n: others, color: "var(--line)" });
	for (const b of list) b.sum = b.n.reduce((s, n) => s + n, 0);
	return list;
}

function drawBars(T, list) {
	const high = 220,
		wide = 1000,
		step = wide / T.total.length,
		most = Math.max(1, ...T.total);
	const picture = svg("svg", { viewBox: "0 0 " + wide + " " + high, preserveAspectRatio: "none", "aria-hidden": "true" });
	T.total.forEach((n, i) => {
		let y = high;
		for (const b of list) {
			const h = (high * b.n[i]) / most;
			if (!h) continue;
			y -= h;
			const box = svg("rect", { x: i * step + step * 0.04, y, width: step * 0.92, height: h });
			box.style.fill = b.color;
			box.append(svg("title", {}, said(T.begin + i * T.span, T.span) + "\n" + b.name + "\n" + count(b.n[i]) + " samples, " + percent(b.n[i], n)));
			picture.append(box);
		}
	});
	return make("div", { class: "plane times" }, picture);
}

function drawTime(to) {
	if (!M.times || !M.times.length) {
		to.append(M.no_workloads ? notKept() : note("Not known: these epochs keep no minutes."));
		return;
	}
	const T = M.times[chosen.time] || M.times[0],
		list = bands(T),
		all = T.total.reduce((s, n) => s + n, 0);
	const minutes = T.span / 60,
		slots = T.total.map((n, i) => ({ i, n, begin: T.begin + i * T.span }));
	const legend = grid(
		"samples over time by " + (KEYS[T.by] || T.by),
		[
			{ head: M.events[M.event].name, num: true, sort: (b) => b.sum, cell: (td, b) => count(b.sum) },
			{ head: "%", num: true, sort: (b) => b.sum, cell: (td, b) => percent(b.sum, all) },
			{
				head: KEYS[T.by] || T.by,
				name: true,
				sort: (b) => b.name.toLowerCase(),
				cell: (td, b) => {
					const box = make("span", { class: "swatch", "aria-hidden": "true" });
					box.style.background = b.color;
					return make("span", { title: b.name }, box, b.name);
				},
			},
			{
				head: "most in",
				wide: true,
				title: "the slice with most of its samples",
				cell: (td, b) => said(T.begin + b.n.indexOf(Math.max(...b.n)) * T.span, T.span),
			},
		],
		null,
		{ column: 0, up: false },
	);
	const table = make(
		"details",
		null,
		make("summary", null, "The same as a table"),
		make(
			"div",
			{ class: "scroll" },
			make(
				"table",
				{ "aria-label": "samples of each slice of time" },
				make("thead", null, make("tr", null, ["from", "all", ...list.map((b) => b.name)].map((h) => make("th", { scope: "col" }, make("span", null, base(h)))))),
				make(
					"tbody",
					null,
					slots.map((s) =>
						make(
							"tr",
							null,
							make("th", { scope: "row" }, make("span", null, said(s.begin, T.span))),
							make("td", { class: "num" }, T.recorded[s.i] ? count(s.n) : "not recorded"),
							list.map((b) => make("td", { class: "num" }, b.n[s.i] ? count(b.n[s.i]) : "")),
						),
					),
				),
			),
		),
	);
	to.append(
		make("div", { class: "bar" }, keySelect(M.times, T, "by", (i) => (chosen.time = Number(i)))),
		drawBars(T, list),
		make(
			"p",
			{ class: "dim" },
			said(T.begin, 60) +
				" to " +
				said(T.begin + T.total.length * T.span, 60) +
				": " +
				count(T.total.length) +
				(T.total.length === 1 ? " slice" : " slices") +
				" of " +
				count(minutes) +
				(minutes === 1 ? " minute" : " minutes") +
				", the tallest of " +
				count(Math.max(...T.total)) +
				" samples of " +
				M.events[M.event].name +
				". Times are those of this machine.",
		),
		legend.el,
		table,
	);
	legend.set(list);
}
