// SPDX-License-Identifier: BSD-2-Clause
// Functions made and dropped all the time, so that their addresses are used again: v8_churn.js SECONDS, with
// --expose-gc. Each has a name of its own and is hot for a while.
'use strict';
const now = () => {
	const u = process.cpuUsage();
	return (u.user + u.system) / 1e6;
};
const seconds = {};
let sink = 0;
const end = now() + Number(process.argv[2] || 3);
for (let i = 0; now() < end; i++) {
	const name = 'turn_' + i % 20;
	const turn = new Function('n', `return function ${name}(n) {
		let x = ${i + 1};
		for (let k = 0; k < n; k++) x = (x * 48271 + k) % 2147483647;
		return x;
	}`)();
	for (let k = 0; k < 30; k++) sink ^= turn(3000);
	const begin = now();
	sink ^= turn(2000000);
	seconds[name] = (seconds[name] || 0) + now() - begin;
	if (i % 3 === 2) globalThis.gc();
}
for (const name in seconds) console.log(name, seconds[name]);
if (sink === 0.5) console.log('never');
