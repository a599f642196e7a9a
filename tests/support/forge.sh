# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests that forge a program.

# forge_code FILE: change an operand of a padding between functions, of an instruction that does nothing. What the
# program does stays; its code is another's.
forge_code()
{
	local padding behind byte at
	case $(uname -m) in
	x86_64) padding='\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00' behind=9 byte='\x01' ;;
	*) padding='\x1f\x20\x03\xd5' behind=0 byte='\x3f' ;;
	esac
	at=$(LC_ALL=C grep -obUaP "$padding" "$1" | head -n 1 | cut -d: -f1)
	[ -n "$at" ] || fail "no padding in $1"
	printf '%b' "$byte" | dd of="$1" bs=1 seek=$((at + behind)) conv=notrunc status=none
}
