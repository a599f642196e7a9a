// SPDX-License-Identifier: BSD-2-Clause
// Two routines of known CPU time: v8_hot.js SECONDS.
'use strict';
function hot_a(n) {
	let x = 1;
	for (let i = 0; i < n; i++) x = (x * 48271 + i) % 2147483647;
	return x;
}
function hot_b(n) {
	let x = 7;
	for (let i = 0; i < n; i++) x = (x ^ (x << 3) ^ i) >>> 1;
	return x;
}
const seconds = { hot_a: 0, hot_b: 0 };
const work = { hot_a: [hot_a, 400000], hot_b: [hot_b, 1500000] };
const now = () => {
	const u = process.cpuUsage();
	return (u.user + u.system) / 1e6;
};
let sink = 0;
// Until both are compiled.
for (let i = 0; i < 40; i++) sink ^= hot_a(20000) ^ hot_b(20000);
for (const end = now() + Number(process.argv[2] || 3); now() < end;)
	for (const name in work) {
		const begin = now();
		sink ^= work[name][0](work[name][1]);
		seconds[name] += now() - begin;
	}
for (const name in seconds) console.log(name, seconds[name]);
if (sink === 0.5) console.log('never');
