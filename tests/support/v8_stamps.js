// SPDX-License-Identifier: BSD-2-Clause
// v8_stamps.js DUMP RECORD PID: by the stamps of V8's own dump, which routine each sample of a recorded stream
// (docs/format/replay.md) met: "SAMPLES NAME" lines, with "unsure" for those of an interval in which the
// address changed hands. It shares no code with the daemon.
'use strict';
const fs = require('fs');
const [dumpFile, recordFile, pid] = process.argv.slice(2);

// Routines in the order in which they came.
const dump = fs.readFileSync(dumpFile);
const loads = [];
for (let at = 40; at + 16 <= dump.length;) {
	const size = dump.readUInt32LE(at + 4);
	if (dump.readUInt32LE(at) === 0)
		loads.push({
			time: dump.readBigUInt64LE(at + 8),
			addr: dump.readBigUInt64LE(at + 32),
			len: dump.readBigUInt64LE(at + 40),
			name: dump.toString('utf8', at + 56, dump.indexOf(0, at + 56)),
		});
	if (size < 16) throw new Error(`no record at ${at}`);
	at += size;
}

// Who lives: by pages, so that a lookup looks at few.
const PAGE = 4096n;
const pages = new Map();
const each = (r, f) => {
	for (let p = r.addr / PAGE; p <= (r.addr + r.len - 1n) / PAGE; p++) f(p);
};
const at = (addr) => (pages.get(addr / PAGE) || []).find((r) => addr >= r.addr && addr < r.addr + r.len);
const overlaps = (a, b) => a.addr < b.addr + b.len && b.addr < a.addr + a.len;
function enter(r) {
	const gone = new Set();
	each(r, (p) => (pages.get(p) || []).forEach((old) => overlaps(old, r) && gone.add(old)));
	for (const old of gone) each(old, (p) => pages.set(p, pages.get(p).filter((o) => o !== old)));
	each(r, (p) => pages.set(p, (pages.get(p) || []).concat(r)));
}

// Each sample, or interval of samples, as two moments.
const moments = [];
for (const line of fs.readFileSync(recordFile, 'latin1').split('\n')) {
	if (!line.startsWith('count ')) continue;
	const word = Object.fromEntries(line.slice(6).split(' ').filter(Boolean).map((w) => w.split('=')));
	if (word.pid !== pid || (word.mode || 'user') !== 'user') continue;
	const sample = { addr: BigInt(word.addr), n: Number(word.n || 1), t: BigInt(word.t) };
	const first = BigInt(word.first || word.t);
	if (first !== sample.t) moments.push({ time: first, sample, first: true });
	moments.push({ time: sample.t, sample });
}
moments.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));

const counts = new Map();
const count = (name, n) => counts.set(name, (counts.get(name) || 0) + n);
let next = 0;
for (const m of moments) {
	// A dump may step back by some microseconds where threads write: what stands later came later.
	while (next < loads.length && loads[next].time < m.time) enter(loads[next++]);
	const r = at(m.sample.addr);
	if (m.first) m.sample.begin = r || null;
	else if (m.sample.begin !== undefined && m.sample.begin !== (r || null)) count('unsure', m.sample.n);
	else if (r) count(r.name, m.sample.n);
}
for (const [name, n] of counts) console.log(n, name);
