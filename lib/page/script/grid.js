// SPDX-License-Identifier: BSD-2-Clause
// A table that draws the rows in view alone, with order, keyboard and columns.

// columns: {head, num, wide, sort(row), cell(td, row, index)}; opens: called with a row on Enter.
function grid(label, columns, opens, sorted) {
	const table = make("table", { role: "grid", tabindex: 0, "aria-label": label });
	const scroll = make("div", { class: "scroll" }, table);
	const body = make("tbody");
	const heads = columns.map((c, i) =>
		make(
			"th",
			{
				scope: "col",
				class: (c.num ? "num " : "") + (c.wide ? "wide " : "") + (c.name ? "name" : ""),
				title: c.title,
			},
			c.sort
				? make("button", { type: "button", tabindex: -1, onclick: () => order(i) }, c.head)
				: make("span", null, c.head),
		),
	);
	table.append(make("thead", null, make("tr", { "aria-rowindex": 1 }, heads)), body);
	const t = { el: scroll, table, rows: [], active: -1, mark: null };
	const id = "g" + (grid.number = (grid.number || 0) + 1) + "-";
	let height = 0,
		drawn = "";

	function order(i) {
		sorted = sorted && sorted.column === i ? { column: i, up: !sorted.up } : { column: i, up: !columns[i].num };
		t.set(t.rows);
	}
	function draw(all) {
		height = height || parseFloat(getComputedStyle(table).getPropertyValue("--row")) || 26;
		const from = all ? 0 : Math.max(0, Math.floor(scroll.scrollTop / height) - 12);
		const to = Math.min(t.rows.length, all ? 400 : from + Math.ceil((scroll.clientHeight || 700) / height) + 28);
		const key = from + ":" + to + ":" + t.active;
		if (drawn === key) return;
		drawn = key;
		const space = (n) => {
			const td = make("td", { colspan: columns.length });
			td.style.height = n * height + "px";
			return n > 0 ? [make("tr", { class: "spacer", "aria-hidden": "true" }, td)] : [];
		};
		const rows = [];
		for (let i = from; i < to; i++) rows.push(line(t.rows[i], i));
		const left = t.rows.length - to;
		body.replaceChildren(...(all ? [] : space(from)), ...rows, ...(all ? [] : space(left)));
		if (all && left)
			body.append(make("tr", null, make("td", { colspan: columns.length }, "… " + count(left) + " more")));
	}
	function line(row, i) {
		const tr = make("tr", {
			id: id + i,
			"aria-rowindex": i + 2,
			class: (row.kind || "") + (i === t.active ? " active" : "") + (t.mark && t.mark(row) ? " same" : ""),
			onclick: () => {
				t.activate(i);
				if (t.picked) t.picked(row);
			},
			ondblclick: () => opens && opens(row),
		});
		if (row.kind === "block") {
			tr.append(make("td", { colspan: columns.length, title: row.text }, row.text));
			return tr;
		}
		for (const c of columns) {
			const td = make("td", {
				class: (c.num ? "num " : "") + (c.wide ? "wide " : "") + (c.name ? "name" : ""),
			});
			const text = c.cell(td, row, i);
			if (text !== undefined && text !== null) td.append(text);
			tr.append(td);
		}
		return tr;
	}
	t.set = (rows) => {
		t.rows = rows;
		if (sorted) {
			const value = columns[sorted.column].sort,
				sign = sorted.up ? 1 : -1;
			const keys = new Map(rows.map((r) => [r, value(r)]));
			t.rows = [...rows].sort((a, b) => {
				const x = keys.get(a),
					y = keys.get(b);
				return x < y ? -sign : x > y ? sign : 0;
			});
			heads.forEach((h, i) =>
				i === sorted.column
					? h.setAttribute("aria-sort", sorted.up ? "ascending" : "descending")
					: h.removeAttribute("aria-sort"),
			);
		}
		t.active = -1;
		table.setAttribute("aria-rowcount", t.rows.length + 1);
		if (t.ordered) t.ordered(t.rows, sorted);
		t.redraw();
	};
	t.redraw = () => {
		drawn = "";
		draw();
	};
	t.activate = (i, jump) => {
		t.active = Math.max(0, Math.min(t.rows.length - 1, i));
		const top = t.active * height,
			view = scroll.clientHeight - 2 * height;
		if (jump) scroll.scrollTop = top - view / 3;
		else if (top < scroll.scrollTop) scroll.scrollTop = top;
		else if (top > scroll.scrollTop + view) scroll.scrollTop = top - view;
		draw();
		table.setAttribute("aria-activedescendant", id + t.active);
	};
	t.all = draw;
	table.addEventListener("keydown", (e) => {
		const by = {
			ArrowDown: 1,
			ArrowUp: -1,
			PageDown: 20,
			PageUp: -20,
			Home: -Infinity,
			End: Infinity,
		}[e.key];
		if (e.key === "Enter" && t.active >= 0 && opens && e.target === table) opens(t.rows[t.active]);
		else if (by && t.rows.length)
			t.activate(by === Infinity ? t.rows.length - 1 : t.active < 0 ? 0 : t.active + by);
		else return;
		if (by && t.picked) t.picked(t.rows[t.active]);
		e.preventDefault();
	});
	scroll.addEventListener("scroll", () => requestAnimationFrame(() => draw()), { passive: true });
	shown.push(t);
	return t;
}
let shown = [];
addEventListener("beforeprint", () =>
	shown.forEach((t) => {
		t.redraw();
		t.all(true);
	}),
);
addEventListener("afterprint", () => shown.forEach((t) => t.redraw()));
addEventListener("resize", () => shown.forEach((t) => t.redraw()));

const samplesColumn = (all) => ({
	head: M.events[event].name,
	num: true,
	sort: of,
	cell: (td, r) => count(of(r)),
});
const shareColumn = () => ({
	head: "%",
	num: true,
	sort: of,
	title: "of all samples",
	cell: (td, r) => {
		td.classList.add("share");
		td.style.setProperty("--w", (total() ? (100 * of(r)) / total() : 0).toFixed(2) + "%");
		return percent(of(r), total());
	},
});
function otherEvents() {
	return M.events
		.map((e, i) => ({
			head: e.name,
			num: true,
			wide: true,
			sort: (r) => r.samples[i],
			cell: (td, r) => (r.samples[i] ? count(r.samples[i]) : ""),
		}))
		.filter((c, i) => i !== event);
}
