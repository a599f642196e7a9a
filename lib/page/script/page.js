// SPDX-License-Identifier: BSD-2-Clause
// The sections of the page, its head, its keys, and which of them is shown.

// A section of the page: {id, title, when: is it in the model, draw(element)}. To add one, add a line.
const sections = [
	{ id: "procedures", title: "Procedures", when: () => true, draw: drawProcedures },
	{ id: "images", title: "Images", when: () => true, draw: drawImages },
	{ id: "lines", title: "Lines", when: () => true, draw: drawLines },
	{ id: "workloads", title: "Workloads", when: () => true, draw: drawWorkloads },
	{ id: "time", title: "Time", when: () => true, draw: drawTime },
	{ id: "calls", title: "Calls", when: () => true, draw: drawCalls },
	{ id: "map", title: "Map", when: () => true, draw: drawMap },
	{ id: "changes", title: "Changes", when: () => M.before, draw: drawChanges },
	{ id: "unknown", title: "Not known", when: () => true, draw: drawUnknown },
];

let drawLater = null;
const nav = make("nav", { "aria-label": "sections" });
const main = make("main", { tabindex: -1 });
const help = make(
	"dialog",
	{ "aria-label": "keys" },
	make("h2", null, "Keys"),
	make(
		"table",
		null,
		make(
			"tbody",
			null,
			[
				["/", "search"],
				["↑ ↓ PgUp PgDn Home End", "move in the table"],
				["Enter", "open the row"],
				["Esc", "back: clear the search, then the list before"],
				["1 … 9", "the sections"],
				["h", "the hottest instruction"],
				["s f c", "source, flow graph, callers of the procedure"],
				["?", "this help"],
			].map(([k, t]) => make("tr", null, make("td", null, make("kbd", null, k)), make("td", null, t))),
		),
	),
	make("form", { method: "dialog" }, make("button", null, "close")),
);

// The chosen time, in that of the reader's machine.
function between(window) {
	const say = (seconds) => new Date(1000 * seconds).toLocaleString();
	if (!window) return "";
	return (
		(window.since === null ? "" : " · from " + say(window.since)) +
		(window.until === null ? "" : " · up to " + say(window.until))
	);
}

function head() {
	const epochs = M.epochs.map((e) => e.name),
		say = epochs.length > 2 ? epochs[0] + " … " + epochs[epochs.length - 1] : epochs.join(", ");
	return make(
		"header",
		{ class: "top" },
		make("h1", null, "DCPI report"),
		make(
			"span",
			{ class: "dim" },
			M.database +
				" · epoch" +
				(epochs.length > 1 ? "s " : " ") +
				say +
				" · " +
				M.platforms.join(", ") +
				(M.labels.length ? " · label " + M.labels.join(", ") : "") +
				M.only.map(([key, ...globs]) => " · only " + key + " " + globs.join(", ")).join("") +
				between(M.window),
		),
		make(
			"span",
			{ class: "dim" },
			E
				? M.events
						.map(
							(e) =>
								e.name +
								": " +
								count(e.samples) +
								" samples" +
								(e.period ? ", one per " + count(e.period) + " " + e.unit : ", of different periods"),
						)
						.join(" · ")
				: "no samples",
		),
	);
}

let last = "procedures";
function show() {
	const [where, part] = location.hash.slice(1).split("/"),
		one = /^p(\d+)$/.exec(where);
	const section = sections.find((s) => s.id === where && s.when()) || sections[0];
	shown = [];
	drawLater = null;
	main.replaceChildren();
	nav.replaceChildren(
		...sections
			.filter((s) => s.when())
			.map((s) =>
				make(
					"a",
					{
						href: "#" + s.id,
						"aria-current": !one && s === section ? "page" : null,
					},
					s.title,
				),
			),
		make(
			"a",
			{
				href: "#help",
				class: "help",
				onclick: (e) => {
					e.preventDefault();
					help.showModal();
				},
			},
			"? keys",
		),
	);
	if (!E) main.append(note("No samples were found in the chosen epochs."));
	else if (one) drawProcedure(main, Number(one[1]), part || "");
	else section.draw(main);
	if (!one) last = section.id;
	main.setAttribute("aria-label", one && procedures[one[1]] ? procedures[one[1]].name : section.title);
	main.dataset.shown = location.hash;
	const first = main.querySelector("[role=grid]");
	if (first && !matchMedia("(pointer: coarse)").matches)
		(one ? [...main.querySelectorAll("[role=grid]")].pop() : first).focus({
			preventScroll: true,
		});
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
	const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName),
		one = /^#p\d+/.exec(location.hash);
	if (e.ctrlKey || e.altKey || e.metaKey || help.open) return;
	const search = document.getElementById("search"),
		hottest = document.getElementById("hottest");
	const usable = sections.filter((s) => s.when());
	if (e.key === "Escape") back();
	else if (typing) return;
	else if (e.key === "/") {
		if (search) search.focus();
		else {
			location.hash = "#procedures";
			setTimeout(() => document.getElementById("search").focus());
		}
	} else if (e.key === "?") help.showModal();
	else if (e.key === "h" && hottest) hottest.click();
	else if (one && "sfc".includes(e.key)) location.hash = one[0] + { s: "", f: "/flow", c: "/calls" }[e.key];
	else if (e.key >= "1" && e.key <= "9" && usable[e.key - 1]) location.hash = "#" + usable[e.key - 1].id;
	else return;
	e.preventDefault();
});
addEventListener("hashchange", show);
let resizing = 0;
addEventListener("resize", () => {
	clearTimeout(resizing);
	resizing = setTimeout(() => drawLater && drawLater(), 100);
});

document.title = "DCPI report: " + base(M.database);
page.replaceChildren(head(), nav, main, help);
show();
document.documentElement.dataset.ready = Math.round(performance.now());
