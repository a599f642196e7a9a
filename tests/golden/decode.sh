#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpilist shows code with AVX-512 by its mnemonics, none of it as bytes; and in libc, whose fastest routines are of such
# code and have no symbols, no instruction that objdump decodes is shown as bytes, or given another length.
set -eu
. "$DCPI_SRC/tests/support/decode.sh"

cat >evex.s <<'END'
	.globl _start, copy_evex, copy_evex_end
	.text
_start:	syscall
	.p2align 4
	.type copy_evex, @function
copy_evex:
	endbr64
	mov	%rdi, %rax
	vpbroadcastb %esi, %ymm16
	vmovdqu64 (%rsi), %ymm17
	vmovdqu64 -0x20(%rsi,%rdx), %zmm18
	vpminub	%ymm17, %ymm16, %ymm19{%k1}{z}
	vpcmpub	$1, 0x40(%rdi), %ymm16, %k0
	vpcmpeqb 0x20(%rdi), %ymm17, %k1{%k2}
	vptestnmb %zmm18, %zmm18, %k2
	vpternlogd $0xde, %ymm24, %ymm18, %ymm23
	kortestd %k0, %k1
	kmovq	%k2, %rcx
	tzcnt	%ecx, %ecx
	jz	1f
	vmovdqu8 %ymm17, (%rdi){%k1}
	vaddps	(%rcx){1to16}, %zmm0, %zmm1
	vcvtps2dq {rz-sae}, %zmm1, %zmm2
	vaddph	%zmm1, %zmm2, %zmm3
	vscatterdps %zmm1, (%rax,%zmm2,4){%k1}
	vzeroupper
1:	ret
	.size copy_evex, . - copy_evex
END
as -o evex.o evex.s
ld --build-id=0x0123456789abcdef0123456789abcdef01234568 -o evex evex.o
"$DCPI_BIN/../tests/mkdb" db <<-END
	platform box
	epoch 1700000000
	profile file $work/evex evex
	event cpu-clock 1000000
	at copy_evex+4 10
END
"$DCPI_BIN/dcpilist" -db db -asm -no_header copy_evex evex >out
compare decode

agree "$(ldd "$(command -v sh)" | awk '$1 ~ /^libc\.so/ { print $3 }')" all
