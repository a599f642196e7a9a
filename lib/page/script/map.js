// SPDX-License-Identifier: BSD-2-Clause
// Images, procedures and lines as rectangles whose area is their time.

// Rectangles as square as can be (Bruls, Huizing and van Wijk 2000): items {n} get x, y, w, h.
function squarify(items, x, y, w, h) {
	let rest = items.filter((i) => i.n > 0).sort((a, b) => b.n - a.n),
		sum = rest.reduce((s, i) => s + i.n, 0);
	const out = [];
	while (rest.length && w > 0.5 && h > 0.5) {
		const scale = (w * h) / sum,
			side = Math.min(w, h);
		let row = 0,
			worst = Infinity,
			k = 0;
		for (; k < rest.length; k++) {
			const next = row + rest[k].n * scale;
			const ratio = Math.max(
				(side * side * rest[0].n * scale) / (next * next),
				(next * next) / (side * side * rest[k].n * scale),
			);
			if (ratio > worst) break;
			worst = ratio;
			row = next;
		}
		const thick = row / side;
		let at = 0;
		for (const item of rest.slice(0, k)) {
			const len = (item.n * scale) / thick;
			out.push(
				w >= h
					? Object.assign(item, { x, y: y + at, w: thick, h: len })
					: Object.assign(item, { x: x + at, y, w: len, h: thick }),
			);
			at += len;
			sum -= item.n;
		}
		if (w >= h) {
			x += thick;
			w -= thick;
		} else {
			y += thick;
			h -= thick;
		}
		rest = rest.slice(k);
	}
	return out;
}

const map = { image: -1, procedure: -1 };

function linesOf(code) {
	const lines = new Map();
	code.insns.forEach((x, i) => {
		const key = x[5] ? base(code.files[x[4]].name) + ":" + x[5] : "(no source line)",
			old = lines.get(key);
		if (!old) lines.set(key, { name: key, n: own(x), best: own(x), first: i });
		else {
			old.n += own(x);
			if (own(x) > old.best) Object.assign(old, { best: own(x), first: i });
		}
	});
	return [...lines.values()];
}

function drawMap(to) {
	const plane = make("div", { class: "plane" }),
		way = make("div", { class: "bar" });
	to.append(
		way,
		make(
			"p",
			{ class: "dim" },
			"Area is time. A click leads from images to procedures, to lines, to instructions. The ",
			make("a", { href: "#procedures" }, "table"),
			" has the same.",
		),
		plane,
	);
	function draw() {
		const w = plane.clientWidth || 1000,
			h = Math.max(320, Math.min(innerHeight - 230, 700)),
			els = [];
		plane.style.height = h + "px";
		const put = (item, text, title, back, click, href) => {
			const el = make("a", {
				title,
				href: href || "#map",
				onclick:
					click &&
					((e) => {
						e.preventDefault();
						click();
					}),
			});
			if (item.w > 24 && item.h > 14) el.textContent = text;
			Object.assign(el.style, {
				left: item.x + "px",
				top: item.y + "px",
				width: item.w + "px",
				height: item.h + "px",
				background: back,
			});
			el.setAttribute("aria-label", title);
			els.push(el);
		};
		const say = (name, n) => name + "\n" + count(n) + " samples, " + percent(n, total());
		const im = images[map.image],
			p = procedures[map.procedure];
		if (p)
			for (const l of squarify(linesOf(codes.get(p.i)), 0, 0, w, h))
				put(l, l.name, say(l.name, l.n), color(l.name), null, "#p" + p.i + "/i" + l.first);
		else if (im)
			procedureBoxes(im, 0, 0, w, h).forEach((b) =>
				put(b, b.p.name, say(b.p.name, b.n), color(b.p.name), () => into(b.p)),
			);
		else
			for (const b of squarify(
				images.map((x) => ({ im: x, n: of(x) })),
				0,
				0,
				w,
				h,
			)) {
				put(
					b,
					base(b.im.name) + "  " + percent(b.n, total()),
					say(b.im.name, b.n),
					imageColor(b.im.name),
					() => {
						map.image = b.im.i;
						draw();
					},
				);
				if (b.w > 50 && b.h > 40)
					procedureBoxes(b.im, b.x + 2, b.y + 18, b.w - 4, b.h - 20)
						.filter((q) => q.w > 5 && q.h > 5)
						.forEach((q) =>
							put(q, q.p.name, say(q.p.name, q.n), color(q.p.name), () => {
								map.image = b.im.i;
								into(q.p);
							}),
						);
			}
		plane.replaceChildren(...els);
		way.replaceChildren(
			make(
				"button",
				{
					type: "button",
					onclick: () => {
						map.image = map.procedure = -1;
						draw();
					},
				},
				"all",
			),
			...(im
				? [
						" › ",
						make(
							"button",
							{
								type: "button",
								onclick: () => {
									map.procedure = -1;
									draw();
								},
							},
							base(im.name),
						),
					]
				: []),
			...(p ? [" › ", make("a", { href: "#p" + p.i }, p.name)] : []),
			eventSelect() || "",
		);
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
	const items = mine.slice(0, 150).map((p) => ({ p, n: of(p) })),
		rest = mine.slice(150).reduce((s, p) => s + of(p), 0);
	if (rest) items.push({ p: { i: -1, name: "(" + count(mine.length - 150) + " others)" }, n: rest });
	return squarify(items, x, y, w, h);
}
