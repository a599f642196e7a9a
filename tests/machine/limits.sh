# SPDX-License-Identifier: BSD-2-Clause
# Sourced: what this kernel's verifier made of the programs that the daemon has loaded.

# programs_within_limits: it went through a million instructions of each at most, or had refused it; half of that is left for
# kernels that prune less. (Of the stack golden/bpf-stack says how much is used.)
programs_within_limits()
{
	cat /proc/"$daemon"/fdinfo/* 2>/dev/null | awk '
		$1 == "prog_type:" { n++ }
		$1 == "prog_jited:" { jited += $2 }
		$1 == "verified_insns:" { v++; if ($2 > most) most = $2 }
		END {
			printf "%d programs, all compiled: %d; at most %d instructions verified of 1000000\n", n, jited == n, most
			exit !(n >= 4 && v == n && jited == n && most > 1000 && most <= 500000)
		}' || fail "the verifier's limits"
}

# check_is_page LIST: what "-check" in $work/check says that this kernel lacks is what dcpid(8) has on its line "on LIST: ". Sets
# $lacks, as "traces, waits" or "nothing".
check_is_page()
{
	local listed
	lacks=$(sed -nE 's/^ +(bpf|perf|traces|call paths|waits|tick) +no: .*/\1/p' "$work/check" | paste -sd, | sed 's/,/, /g')
	listed=$(sed -n "s/^on $1: //p" /src/man/dcpid.8.in)
	echo "lacks: ${lacks:=nothing}; dcpid(8): $listed"
	[ "$(grep -cE '^ +(bpf|perf|traces|call paths|waits|tick) +(yes|ok|no)' "$work/check")" = 6 ] || fail "not six parts"
	[ "$lacks" = "$listed" ] || fail "-check and the page differ"
}

# refused OPTION…: with the reason and the remedy.
refused()
{
	if "$DCPI_BIN/dcpid" "$@" "$db" 2>"$work/err"; then
		fail "$* is not refused"
	fi
	cat "$work/err"
	grep -q '^hint: ' "$work/err" || fail "$* is refused without a remedy"
}
