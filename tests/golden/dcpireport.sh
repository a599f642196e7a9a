#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpireport: the data of a page with call paths, sources, a kernel without bytes, images that are gone; two databases
# compared; data that do not fit; values; samples of some workloads or minutes, of which no paths are kept; a routine with
# two codes; a source that not everybody may read; the page has that data, a policy for its style and script, and no name
# as markup.
set -eu
. "$DCPI_SRC/tests/support/paths-db.sh"
export TZ=UTC

"$mkdb" later <<-END
	platform box
	epoch 1700003600
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at hot+17 40
	at warm 300
	finish
END
"$mkdb" empty </dev/null
# "twice" was compiled in two ways, for a user who names a file of others as its source.
"$mkdb" parts </dev/null
mkdir -m 700 private
echo "a secret" >private/key
for i in 2 3; do
	"$DCPI_BIN/../tests/mkjob" parts/dyn/cxx.box.$i.dyn >/dev/null <<-END
		image 62 cxx 471$i box /opt/cxx 4711
		run 0x7f0000001000 0 0x1000
		file private/key
		line 0 1 0
		routine 0x7f0000001040 twice $([ $i = 2 ] && echo 89f801c0c3 || echo 8d043fc3)
	END
done
"$mkdb" parts <<-END
	platform box
	epoch 1700000000
	profile dynamic cxx.box.2.dyn
	event cpu-clock 1000000
	at twice 40
	profile dynamic cxx.box.3.dyn
	event cpu-clock 1000000
	at twice 60
	callpath cpu-clock complete 5 twice@cxx.box.2.dyn
	workload one comm=one uid=4711
	workload two comm=two uid=4711
	w one cpu-clock 0 40 twice@cxx.box.2.dyn
	w two cpu-clock 2 60 twice@cxx.box.3.dyn
	finish
END
mkdir -p 'a<script>alert(1)<'
"$mkdb" 'a<script>alert(1)</script>' <<-END
	platform box
	epoch 1700000000
	profile file /opt/$(printf '\342\200\256')<!--<img/src=x>\"'&$(printf '\377\033')[31m $app/app
	id eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee
	event cpu-clock 1000000
	at 0x10 7
	finish
END
{
	run dcpireport -json
	run dcpireport -json -db later -diff paths -keep 50
	run dcpireport -json -db later -diff empty
	run dcpireport -json -db empty
	run dcpireport -json -size 0.1 -keep 0
	run dcpireport -json -db 'a<script>alert(1)</script>'
	run dcpireport -json -db parts
	run dcpireport -json -db parts -comm one
	run dcpireport -json -db parts -until '2023-11-14 22:15'
	run dcpireport
	run dcpireport -o page.html
	run dcpireport -o no/such/folder/page.html
	run dcpireport -o hostile.html -db 'a<script>alert(1)</script>'
	. "$DCPI_SRC/tests/support/values-db.sh"
	run dcpireport -json
	DCPIDB=paths
} >out
compare dcpireport

# A browser unpacks what -json prints; the policy has the hashes of the style and the script, and nothing else.
"$DCPI_BIN/dcpireport" -json 2>/dev/null >model
node - <<-'END'
	const fs = require("fs"), page = fs.readFileSync("page.html", "utf8");
	const check = (what, is) => { if (!is) throw new Error(what); };
	const part = (pattern) => pattern.exec(page)[1];
	const hash = (text) => "'sha256-" + require("crypto").createHash("sha256").update(text).digest("base64") + "'";
	const packed = Buffer.from(part(/ id="model">([^<]*)<\/script>/), "base64");
	const model = require("zlib").inflateSync(packed).toString();
	check("model", model === fs.readFileSync("model", "utf8"));
	JSON.parse(model);
	check("policy", part(/content="(default[^"]*)"/) === "default-src 'none'; style-src " + hash(part(/<style>([^]*)<\/style>/)) +
		"; script-src " + hash(part(/<script type="module">([^]*)<\/script>/)) + "; base-uri 'none'; form-action 'none'");
	const hostile = fs.readFileSync("hostile.html", "utf8");
	check("scripts", hostile.match(/<script/g).length === 2);
	check("text", !/alert\(1|src=x/.test(hostile));
END
