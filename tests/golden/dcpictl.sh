#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpictl and its short forms: what is asked, and what is printed of the answers of a daemon that samples all there is.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"
. "$DCPI_SRC/tests/support/fake-daemon.sh"
cat >answers <<'END'
{
"status": [
 {"ok": true, "version": "1.2.3", "pid": 4711, "database": "/var/lib/dcpi", "epoch": "202311142213", "platform": "box",
  "source": "bpf: cpu-clock at 1000 Hz on 2 CPUs",
  "events": [{"name": "cpu-clock", "period": 1000000, "enabled": 1, "received": 90, "missed": 3},
	{"name": "imiss", "period": 4096, "enabled": 0.5, "received": 10, "missed": 0}, {"name": "waits", "period": 1}],
  "received": 100, "stored": 80, "pending": 13, "lost": 7,
  "losses": {"ring-full": 7, "unread": 0}, "buckets": {"kernel": 0, "unknown process": 5},
  "missed": 3, "lost_load_events": 2, "processes": 5, "images": 6,
  "dynamic": {"clients": 1, "facilities": 2, "routines": 3, "images_written": 4, "registries_refused": 5,
	"records_bad": 6, "records_dropped": 7, "entries_left_out": 8},
  "windows": {"every": 32, "windows_received": 20, "windows_stored": 11, "windows_pending": 5, "windows_lost": 4,
	"blocks": 9, "window_losses": {"unplaced": 4, "busy": 0}, "window_ends": {"far": 12}},
  "callpaths": {"every": 8, "callpaths_received": 30, "callpaths_stored": 21, "callpaths_pending": 7,
	"callpaths_lost": 2, "tables": 3, "table_bytes": 5120, "callpath_losses": {"busy": 2},
	"callpath_ends": {"complete": 27, "cut": 1}},
  "waits": {"ns_received": 9000000, "ns_stored": 5000000, "ns_pending": 3000000, "ns_lost": 1000000,
	"ns_losses": {"full": 1000000}, "ns_by_kind": {"disk": 8000000}},
  "workloads": {"apart": 2, "together": 3, "undivided": 4},
  "values": {"windows_answered": 6, "windows_waiting": 2, "windows_not_sent": 3, "windows_unanswered": 1,
	"values_stored": 40, "values_unplaced": 5,
	"profilers": [{"name": "good", "values": 9}, {"name": "wild", "values": 8, "values_wild": 7},
	{"name": "poor", "values": 1, "crashes": 2, "hangs": 3, "given_up": 1}]},
  "stepped": {"of_pid": 77, "stepped_received": 8, "stepped_stored": 4, "stepped_pending": 3, "stepped_lost": 1,
	"stopped_seconds": "0.25", "stepped_losses": {"busy": 1}, "stepped_ends": {"length": 7}},
  "last_flush": "2023-11-14T22:13:20Z", "flush_error": "cannot write 'db': No space left on device",
  "flush_hint": "make room", "cpu_seconds": "1.50", "rss_kb": 2048},
 {"ok": true, "version": "1.2.3", "pid": 1, "database": "db", "epoch": "e", "platform": "p", "source": "perf",
  "received": 100, "stored": 80, "pending": 13, "lost": 6, "workloads": {"apart": 1, "together": 0},
  "callpaths": {"every": 0, "none_because": "the kernel has no ring"}, "last_flush": "", "cpu_seconds": "0.10",
  "rss_kb": 1},
 "no JSON", {"ok": false, "error": "not now", "hint": "later"}],
"log": [{"ok": true, "lines": ["one", "two"]}],
"epoch": [{"ok": true, "epoch": "202311142214", "stored": 80}],
"flush": [{"ok": true, "stored": 8, "left": 30}, {"ok": true, "stored": 9, "left": 20}, {"ok": true, "stored": 10},
 {"ok": true, "stored": 1, "left": 9}, {"ok": true, "stored": 2, "left": 8}, {"ok": true, "stored": 3, "left": 7},
 {"ok": true, "stored": 1, "left": 5}, {"ok": true, "stored": 1, "left": 5}],
"quit": [{"ok": true}],
"label": [{"ok": true}, {"ok": false, "error": "too many labels"}, {"ok": true}],
"register": [{"ok": true}]
}
END
answer_from answers
cp "$app/app" prog
size=$(stat -c %s prog)

{
	run dcpictl status
	run dcpictl status
	run dcpictl status
	run dcpictl status
	run dcpictl -json log
	run dcpictl log
	run dcpictl -n 7 log
	run dcpictl epoch
	run dcpiepoch
	echo "# flushes: three have the rest, a user's code is left, no less is left"
	run dcpictl flush
	run dcpiflush
	run dcpictl flush
	run dcpiquit
	run dcpictl -run run quit
	echo "# programs with labels"
	run dcpictl label night sh -c 'echo "$0 $*"; exit 3' -n 1
	run dcpilabel -run run night true
	run dcpictl label night ./none
	run dcpictl label night ./answers
	echo "# images in processes"
	run dcpictl register 12 prog one
	run dcpictl register 12 0x7f0000001000 8192 0a1b prog one
	run dcpictl register 12 0x7f0000001000 1.5 0a1b prog one
	run dcpictl register 12 77x 1 0a1b prog one
	run dcpictl register 4294967296 prog one
	run dcpictl register 12 answers one
	run dcpictl register 12 none one
	run dcpictl register 12 prog
	echo "# asked"
	sed -E "s|\"image\":\"[^\"]*/|\"image\":\".../|; s/file of $size bytes/file as long as it is/" asked
} >out
compare dcpictl
