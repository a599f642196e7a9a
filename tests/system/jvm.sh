#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The JVM with its agent, each process gone before anything is read: methods by name, in true shares, with
# their bytes, lines and inlined parts; a code cache so small that methods make room for others; the agent
# attached to a JVM that runs; ten JVMs one after the other; wrong options and a class without lines; and
# the perf map of a JVM without it.
set -u
. "$DCPI_SRC/tests/support/daemon.sh"
. "$DCPI_SRC/tests/support/dyn.sh"
. "$DCPI_SRC/tests/support/runtime.sh"
need_root
agent=$DCPI_LIB/libdcpi-jvmti.so
source=$DCPI_SRC/tests/support/jvm
[ -f "$agent" ] || {
	echo "skip: built without the JVM's agent, as there were no JDK's headers"
	exit 77
}
# 17, whose logs Truth.java knows, or whatever there is.
jdk=$(ls -d /usr/lib/jvm/java-17-openjdk-* 2>/dev/null | sort | sed -n 1p)
[ -n "$jdk" ] || jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
preload=
case $(readelf -dW "$agent") in *libasan*) preload=$(gcc -print-file-name=libasan.so) ;; esac

# java ARGUMENT…: with a sanitizer's build the JVM needs its library first, and keeps its own signal handlers.
# $run: "exec" where its pid must be that of the shell.
java()
{
	$run env LD_PRELOAD="$preload" \
		ASAN_OPTIONS=detect_leaks=0:handle_segv=0:handle_sigfpe=0:handle_sigill=0:handle_sigbus=0 \
		"$jdk/bin/java" -cp "$work/classes" "$@"
}
run=

# pid_of FACILITY: of the one process with it.
pid_of() { "$DCPI_BIN/dcpiprof" -no_header "$1" | sed -nE "s/.* $1\[([0-9]+)\]\$/\1/p" | sort -u; }

# flush_of FACILITY: all is stored; of the samples in its code 98 % at least have a routine.
flush_of()
{
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	mostly_named "$1" "java: dynamic, unnamed" 98
}

# shares_true FACILITY FILE NAME…: the three methods of Work.shares, which have just these names.
shares_true()
{
	local image=$1 file=$2 name
	shift 2
	awk '/^(sixty|thirty|ten) / { sum[$1] += $2 } END { for (i in sum) print i, sum[i] }' "$file" >"$work/truth"
	shares_hold "$image" "$work/truth"
	for name in "$@"; do
		awk '{ sub(/^[0-9]+ /, ""); print }' "$work/rows" | grep -qxF "$name" || fail "$image: no '$name'"
	done
}

# printed FILE: "START HEX" of each piece of machine code that the JVM printed there.
printed()
{
	awk '
		$1 == "main" && $2 == "code" { start = substr($3, 2, 18); hex = "" }
		/^\[MachCode\]/ { inside = 1 }
		/^\[\/MachCode\]/ { print start, hex; inside = 0 }
		inside && /^  0x[0-9a-f]+: [0-9a-f]/ {
			sub(/^  0x[0-9a-f]+: /, "")
			gsub(/[^0-9a-f]/, "")
			hex = hex $0
		}' "$1"
}

# kept FILE START LENGTH: hex digits of the code there, in an image.
kept()
{
	objdump -s --start-address="$2" --stop-address=$(($2 + $3)) "$1" | awk '
		/^ [0-9a-f]+ / { text = substr($0, index(substr($0, 2), " ") + 2, 35); gsub(/ /, "", text); printf "%s", text }'
}

# bytes_equal FILE: code in the image is what the JVM itself printed. It prints bytes where no disassembler of
# its own interface is installed (libhsdis0-fcml has an older one, which JDK 17 does not load). The
# method calls nothing, so that nothing in it was patched in between.
bytes_equal()
{
	local start hex got compared=0
	nm "$1" | awk '$3 == "work.Work.sixty" { print "0x" $1 }' >"$work/starts"
	while read -r start hex; do
		grep -qx "$start" "$work/starts" || continue
		got=$(kept "$1" "$start" $((${#hex} / 2)))
		[ "$got" = "$hex" ] || fail "code at $start: kept $got, printed $hex"
		compared=$((compared + 1))
		echo "$((${#hex} / 2)) bytes of work.Work.sixty at $start are what the JVM printed"
	done < <(printed "$work/shares")
	[ "$compared" -gt 0 ] || fail "the JVM printed no code that was sampled"
}

# The agent twice, of which the second does nothing, and a perf map, which tells of the same code by other names
# ("int work.Work.sixty(int)"): the agent is believed, and each method is one routine.
try_shares()
{
	java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:CompileCommand=quiet -XX:CompileCommand=print,work.Work::sixty \
		-XX:CompileCommand=dontinline,work.Work::sixty -XX:CompileCommand=dontinline,work.Work::thirty \
		-XX:CompileCommand=dontinline,work.Work::ten \
		-agentpath:"$agent"=facility=shares -agentpath:"$agent"=facility=second \
		work.Work shares 4 >"$work/shares" || fail "shares: $(tail -n 5 "$work/shares")"
	flush_of shares
	shares_true shares "$work/shares" work.Work.sixty work.Work.thirty work.Work.ten Interpreter
	[ "$(find "$db/dyn" -name 'second-*')" = "" ] || fail "the agent is there twice"
	"$DCPI_BIN/dcpiprof" -no_header >"$work/table" || fail "dcpiprof"
	[ "$(grep -c 'work[.]Work[.]sixty' "$work/table")" = 1 ] || { cat "$work/table"; fail "a method is there twice"; }
	bytes_equal "$(image shares)"
}

# line_of MARK: where Work.java has it.
line_of() { awk -v mark="// $1" 'index($0, mark) { print NR }' "$source/Work.java"; }

# Nine tenths of outer's samples are at the division of inner, which is in middle, which is in outer. (Not all:
# of some instructions the compiler does not say where they come from.)
try_parts()
{
	local file=work/Work.java chain hot all addr outer
	java -XX:CompileCommand=quiet -XX:CompileCommand=inline,work.Work::middle \
		-XX:CompileCommand=inline,work.Work::inner -XX:CompileCommand=dontinline,work.Work::outer \
		-agentpath:"$agent"=facility=parts work.Work parts 2 || fail "parts"
	"$DCPI_BIN/dcpiflush" || fail "dcpiflush"
	chain="$file:$(line_of hot) (work.Work.inner inlined at $file:$(line_of 'called: inner'), work.Work.middle inlined at $file:$(line_of 'called: middle'))"
	outer=$(hottest parts '^work[.]Work[.]outer"')
	"$DCPI_BIN/dcpilist" -no_header -no_freq -asm "$outer" parts >"$work/list" || fail "dcpilist"
	read -r hot all addr <<<"$(awk -v chain="; $chain" '
		/^ *; / { sub(/^ */, ""); here = $0 == chain; next }
		$1 ~ /^[0-9]+$/ && $3 ~ /^0x/ { all += $1; if (here) hot += $1 }
		here && $1 ~ /^[0-9]+$/ && $1 > most { most = $1; addr = $3 }
		END { print hot + 0, all + 0, addr }' "$work/list")"
	echo "outer: $hot of $all samples at $chain"
	[ "$all" -gt 500 ] && [ $((hot * 10)) -gt $((all * 9)) ] || { cat "$work/list"; fail "outer: lines"; }
	addr2line -f -i -e "$(image parts)" "$addr" | tr '\n' ' ' >"$work/frames"
	[ "$(cat "$work/frames")" = "work.Work.inner $file:$(line_of hot) work.Work.middle $file:$(line_of 'called: inner') work.Work.outer $file:$(line_of 'called: middle') " ] ||
		fail "addr2line: $(cat "$work/frames")"
	# dcpilist shows the text where a source tree is.
	(mkdir "$work/work" && cp "$source/Work.java" "$work/work" && cd "$work" &&
		"$DCPI_BIN/dcpilist" -source "$outer" parts) >"$work/list" || fail "dcpilist -source"
	grep -c 'x = x / k + i' "$work/list" >/dev/null || { cat "$work/list"; fail "dcpilist shows no source"; }
}

# unsure PID: its samples in dynamic code of which the daemon says that it does not know whose they are.
unsure()
{
	awk -v of=" of pid $1 " '/ info: (dynamic|reused), / && index($0, of) {
			sub(/.* info: [a-z, ]*: /, "")
			sum += $1
		}
		END { print sum + 0 }' "$work/log"
}

# Classes one after the other, each dropped, in 3 MB of code. By the JVM's log of what it compiled and
# removed, and the recorded samples' times, it is known to the sample who ran (where two neighbours are
# possible: at most). No method has more than its own; what one lacks is under a name that says so.
try_flushed()
{
	java -XX:ReservedCodeCacheSize=3m -XX:InitialCodeCacheSize=3m -XX:+UseCodeCacheFlushing -XX:+UseSerialGC \
		-XX:+UnlockDiagnosticVMOptions -XX:+LogCompilation -XX:LogFile="$work/compiled" \
		-Xlog:safepoint:file="$work/clocks":tn,un -agentpath:"$agent"=facility=flushed \
		work.Work units 100 30 >"$work/units" || fail "units"
	flush_of flushed
	"$jdk/bin/java" -cp "$work/classes" work.Truth "$work/stream" "$work/compiled" "$work/clocks" \
		"$(pid_of flushed)" >"$work/truth" || fail "Truth"
	rows flushed >"$work/flushed"
	awk -v unsure="$(unsure "$(pid_of flushed)")" '
		NR == FNR && $1 == "swaps" { swaps = $2; next }
		NR == FNR { least[$1] = $2; most[$1] = $3; next }
		$2 ~ /^work\./ { n[$2] += $1 }
		END {
			for (i in most) {
				if (i !~ /^work\./) continue
				sum += n[i]
				sure += least[i]
				if (n[i] < least[i]) lack += least[i] - n[i]
				if (n[i] > most[i]) { printf "%s: %d samples, at most %d by the log\n", i, n[i], most[i]; bad++ }
			}
			for (i in n) if (!(i in most)) { printf "%s: %d samples, none by the log\n", i, n[i]; bad++ }
			printf "flushed: %d samples, %d of them sure by the log, %d lack, %d unsure; ", sum, sure, lack, unsure
			printf "code in the place of other code: %d times\n", swaps
			exit bad || lack > unsure || sum < 1500 || sure < 0.95 * sum || swaps < 50
		}' "$work/truth" "$work/flushed" || fail "flushed: samples are not as the log says"
}

# Attached twice (options in quotes of jcmd's own), of which the second does nothing.
try_attached()
{
	local pid i
	mkfifo "$work/fifo"
	run='exec' java -XX:CompileCommand=quiet -XX:CompileCommand=dontinline,work.Work::sixty \
		-XX:CompileCommand=dontinline,work.Work::thirty -XX:CompileCommand=dontinline,work.Work::ten \
		work.Work wait 3 <"$work/fifo" >"$work/wait" &
	pid=$!
	exec 9>"$work/fifo"
	for ((i = 0; i < 900; i++)); do
		[ "$(grep -c '^sixty\|^thirty\|^ten' "$work/wait")" != 3 ] || break
		sleep 0.1
	done
	# What ran before nobody could name.
	"$DCPI_BIN/dcpiepoch" >/dev/null || fail "dcpiepoch"
	for facility in attached again; do
		"$jdk/bin/jcmd" "$pid" JVMTI.agent_load "$agent" "\"facility=$facility\"" >"$work/jcmd" 2>&1 ||
			fail "jcmd: $(cat "$work/jcmd")"
		grep -qx 'return code: 0' "$work/jcmd" || fail "jcmd: $(cat "$work/jcmd")"
	done
	"$jdk/bin/jcmd" "$pid" JVMTI.agent_load "$agent" nonsense >"$work/jcmd" 2>&1
	grep -qx 'return code: -1' "$work/jcmd" || fail "jcmd with a wrong option: $(cat "$work/jcmd")"
	kill -0 "$pid" || fail "a wrong option ends the program"
	echo >&9
	exec 9>&-
	wait "$pid" || fail "wait"
	sed '1,/^attached$/d' "$work/wait" >"$work/after"
	flush_of attached
	shares_true attached "$work/after" work.Work.sixty work.Work.thirty work.Work.ten
	[ "$(find "$db/dyn" -name 'again-*')" = "" ] || fail "the agent is there twice"
}

# Without debug information, and with what the options offer; and an option that there is not.
try_options()
{
	mkdir "$work/bare"
	"$jdk/bin/javac" -g:none -d "$work/bare" "$source"/Work.java || fail "javac"
	java -cp "$work/bare" -XX:CompileCommand=quiet -XX:CompileCommand=dontinline,work.Work::sixty \
		-XX:CompileCommand=dontinline,work.Work::thirty -XX:CompileCommand=dontinline,work.Work::ten \
		-agentpath:"$agent"=signatures=yes,facility=bare work.Work shares 3 >"$work/shares" || fail "shares"
	flush_of bare
	shares_true bare "$work/shares" 'work.Work.sixty(int)' 'work.Work.thirty(int)' 'work.Work.ten(int)'
	"$DCPI_BIN/dcpilist" -asm "$(hottest bare '^work[.]Work[.]sixty')" bare >"$work/list" || fail "dcpilist"
	[ "$(grep -c 'Work\.java' "$work/list")" = 0 ] || fail "lines of a class that has none"
	! java -agentpath:"$agent"=facility=x,nonsense=1 -version >"$work/out" 2>&1 || fail "a wrong option is taken"
	grep -qx "libdcpi-jvmti: unknown option 'nonsense'" "$work/out" || fail "nonsense: $(cat "$work/out")"
	grep -q '^hint: ' "$work/out" || fail "no hint"
}

# Without the agent: the perf map that the JVM itself writes as it ends.
try_map()
{
	java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit -XX:CompileCommand=quiet \
		-XX:CompileCommand=dontinline,work.Work::sixty -XX:CompileCommand=dontinline,work.Work::thirty \
		-XX:CompileCommand=dontinline,work.Work::ten work.Work shares 3 >"$work/shares" || fail "shares"
	flush_of java
	awk '/^(sixty|thirty|ten) / { sum[$1] += $2 } END { for (i in sum) print i, sum[i] }' "$work/shares" >"$work/truth"
	shares_hold java "$work/truth"
	"$DCPI_BIN/dcpilist" -asm "$(hottest java 'work[.]Work[.]sixty')" java >"$work/list" || fail "dcpilist"
	# It comes when the process is about to go: then nobody can read its code any more, or just so.
	[ "$(grep -c 'no bytes of this code' "$work/list")" -gt 0 ] || [ "$(grep -c ' 0x' "$work/list")" -gt 10 ] ||
		{ cat "$work/list"; fail "neither code of a perf map's method nor that there is none"; }
	[ "$(grep -c 'addb *%al, (%rax)' "$work/list")" -lt 5 ] || { cat "$work/list"; fail "zeros are shown as code"; }
}

# One table, one image.
try_many()
{
	local i
	: >"$work/many"
	for ((i = 0; i < 10; i++)); do
		java -XX:TieredStopAtLevel=1 -XX:CompileCommand=quiet -XX:CompileCommand=dontinline,work.Work::sixty \
			-XX:CompileCommand=dontinline,work.Work::thirty -XX:CompileCommand=dontinline,work.Work::ten \
			-agentpath:"$agent"=facility=many work.Work shares 0.2 >>"$work/many" || fail "shares"
	done
	flush_of many
	shares_true many "$work/many" work.Work.sixty work.Work.thirty work.Work.ten
	[ "$(grep -c ' work[.]Work[.]sixty$' "$work/rows")" = 1 ] || { cat "$work/rows"; fail "not one table"; }
	image many >/dev/null || exit 1
	echo "ten JVMs: $(samples many) samples, one image of $(stat -c %s "$(image many)") bytes"
}

mkdir "$work/classes"
"$jdk/bin/javac" -g -d "$work/classes" "$source"/*.java || fail "javac"
start_daemon -unknown -record "$work/stream"
for try in ${DCPI_TRY:-shares parts flushed attached options map many}; do
	try_$try
	"$DCPI_BIN/dcpiepoch" >/dev/null || fail "dcpiepoch"
done
for file in "$db"/dyn/*.dyn; do
	lint_image "$file"
done
account_holds "at the end"
stop_daemon
