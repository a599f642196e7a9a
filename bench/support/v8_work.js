// SPDX-License-Identifier: BSD-2-Clause
// A fixed amount of work for V8 (8 rounds, or as many as its argument says): 400 functions made at run
// time, each hot for a moment, and a few that are hot all the time.
'use strict';
const functions = [];
for (let i = 0; i < 400; i++)
	functions.push(new Function('n', `return function made_${i}(n) {
		let x = ${i + 1}, s = 0;
		for (let k = 0; k < n; k++) { x = (x * 48271 + k) % 2147483647; s += x & ${(i % 7) + 1}; }
		return s;
	}`)());
function sort(n) {
	const a = new Array(n);
	for (let i = 0; i < n; i++) a[i] = (i * 7919) % 10007;
	a.sort((x, y) => x - y);
	return a[n >> 1];
}
function words(n) {
	const m = new Map();
	for (let i = 0; i < n; i++) {
		const w = 'w' + (i * 31 % 997);
		m.set(w, (m.get(w) || 0) + 1);
	}
	return m.size;
}
let sink = 0;
for (let round = 0; round < Number(process.argv[2] || 8); round++) {
	for (const f of functions) sink += f(40000);
	for (let i = 0; i < 8; i++) sink += sort(20000) + words(20000);
}
if (sink === 0.5) console.log('never');
