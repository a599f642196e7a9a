// SPDX-License-Identifier: BSD-2-Clause
// What the report does not know.

// Samples in blocks whose frequency is estimated with medium or high confidence, or counted.
function estimated() {
	let n = 0;
	for (const c of M.code) for (const b of c.blocks || []) if (b[4] >= 2) n += b[2];
	return n;
}

function unknowns() {
	const list = [],
		all = sums[M.event] || 0,
		name = E ? M.events[M.event].name : "";
	const nameless = procedures
		.filter((p) => p.address === null && p.image.kind !== "named")
		.reduce((s, p) => s + p.samples[M.event], 0);
	for (const side of [M, M.before].filter(Boolean)) {
		const say = (text) => list.push([(side === M ? "" : "Before: ") + text]);
		for (const e of side.epochs) {
			if (e.open) say("Epoch " + e.name + " is still being written: the report shows its last flush.");
			if (e.lost)
				say(
					"Epoch " +
						e.name +
						" lacks " +
						count(e.lost) +
						" samples that its daemon could not write before it ended.",
				);
		}
		for (const x of [...side.remarks, ...side.problems]) say(x);
	}
	for (const e of M.events)
		if (e.enabled < 0.9995)
			list.push([e.name + " was counted " + (100 * e.enabled).toFixed(1) + " % of the time."]);
	if (all)
		list.push(
			[
				"Code is shown of procedures with " +
					percent(
						M.code.reduce((s, c) => s + (c.missing ? 0 : procedures[c.p].samples[M.event]), 0),
						all,
					) +
					" of the samples of " +
					name +
					(M.code_left_out
						? "; " + count(M.code_left_out) + " hot procedures did not fit (dcpireport -size)"
						: "") +
					".",
			],
			[
				"Frequencies of medium or higher confidence cover " +
					percent(estimated(), all) +
					" of the samples" +
					(estimated() < all / 2
						? ": for most of the time this report does not know how often code ran"
						: "") +
					".",
			],
			[percent(nameless, all) + " of the samples are in code without a known name."],
		);
	if (M.values_denied)
		list.push([count(M.values_denied) + " files of values belong to other users and were not read."]);
	if (!M.paths) list.push(["Who called what is not known: " + (M.no_paths || "no call paths") + "."]);
	if (M.no_workloads && E) list.push(["Whose the samples were, and when, is not known: " + M.no_workloads + "."]);
	for (const c of M.code)
		if (c.missing) list.push(["The code of " + procedures[c.p].name + " cannot be shown: " + c.missing + "."]);
	for (const im of images)
		if (im.problem)
			list.push([
				(im.samples[M.event] ? percent(im.samples[M.event], all) + ": " : "") + im.name + ": " + im.problem,
				im.hint,
			]);
	return list;
}

function drawUnknown(to) {
	to.append(
		make("h2", null, "What this report does not know"),
		make(
			"ul",
			null,
			unknowns().map(([text, hint]) =>
				make("li", null, text, hint ? make("div", { class: "dim" }, "hint: " + hint) : ""),
			),
		),
	);
}
