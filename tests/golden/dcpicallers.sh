#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpicallers: callers and callees of the hottest procedures and of named ones, recursion counted once.
set -eu
. "$DCPI_SRC/tests/support/paths-db.sh"

{
	run dcpicallers -unchecked -n 3
	run dcpicallers -unchecked -total -n 2 -no_inline -no_header
	run dcpicallers -unchecked -no_header fib 'square(int)' 0x40013b
	run dcpicallers -unchecked -no_header -mangled _Z6squarei
	run dcpicallers -unchecked -no_header -cut 30 _start
	run dcpicallers -unchecked -no_header -image run warm
	run dcpicallers -unchecked -no_header '(cut)'
	run dcpicallers -unchecked -json fib sys_read
	echo "# what cannot be"
	run dcpicallers -unchecked wrm
	run dcpicallers -unchecked -image ap
	run dcpicallers -unchecked -event switches
	run dcpicallers -unchecked -s switches
	run dcpicallers -unchecked -label none
	run dcpicallers -unchecked -db db
} >out
compare dcpicallers
