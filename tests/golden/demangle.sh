#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Names of C++ and Rust, readable and the linker's: shown, asked for, compared, in JSON.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

push=_ZNSt6vectorIiSaIiEE9push_backERKi
"$mkdb" names </dev/null
"$DCPI_BIN/../tests/mkjob" names/dyn/cxx.box.1.dyn >/dev/null <<-END
	image 62 cxx 4711 box /opt/cxx
	run 0x7f0000001000 0 0x1000
	routine 0x7f0000001040 $push e83b000000c3
	routine 0x7f0000001080 _Z4evenj 89f8c3
	routine 0x7f0000001090 _Z4evenm 89f8c3
	routine 0x7f00000010a0 _ZN4core3fmt3pad17h0123456789abcdefE 89f8c3
	routine 0x7f00000010c0 twice 89f8c3
	routine 0x7f00000010d0 _Z5twicei 89f8c3
	routine 0x7f00000010b0 _RNvC6_123foo3bar 89f8c3
END
"$mkdb" names <<-END
	platform box
	epoch 1700000000
	profile dynamic cxx.box.1.dyn
	event cpu-clock 1000000
	at $push 40
	at $push+5 10
	at _Z4evenj 20
	at _Z4evenm 10
	at _ZN4core3fmt3pad17h0123456789abcdefE 15
	at _RNvC6_123foo3bar 5
	at twice 2
	at _Z5twicei 3
END
export DCPIDB=names

{
	run dcpiprof
	run dcpiprof -no_header -mangled
	run dcpiprof -no_header -json -keep 60
	run dcpitopcounts -no_header
	run dcpilist 'std::vector<int,std::allocator<int>>::push_back'
	run dcpilist -no_header $push
	run dcpilist -no_header -mangled $push
	run dcpilist -no_header 'even(unsigned long)'
	run dcpilist -no_header even
	run dcpilist -no_header core::fmt::pad
	run dcpilist -no_header evn
	run dcpilist -no_header twice
	run dcpilist -no_header pushback
	run dcpicalc 'even(unsigned int)' cxx
	"$DCPI_BIN/dcpicalc" 'even(unsigned int)' cxx >even.graph
	run dcpi2ps -json -format dot -o even.dot even.graph
	"$DCPI_BIN/dcpicalc" -json 'even(unsigned int)' cxx | grep -B1 linkage
	run dcpidiff -no_header -set -db names -set -db names
	run dcpistats -no_header -set -db names -set -db names
	run dcpidis -no_header names/dyn/cxx.box.1.dyn even
	run dcpidis -no_header -mangled names/dyn/cxx.box.1.dyn 'even(unsigned int)'
} >out
compare demangle
