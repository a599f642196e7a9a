/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads what struct machine (vtrace_record.c) has, runs its code, which jumps to run_back, and stores
 * all again. rsp stays. */
	.text
	.globl	run_machine, run_back
	.hidden	run_machine, run_back

	.set	MASKS, 2048
	.set	GENERAL, 2112
	.set	RFLAGS, 2240
	.set	CODE, 2248
	.set	RSP, 2256

	.macro	each what
	\what	0, rax
	\what	1, rdx
	\what	2, rcx
	\what	3, rbx
	\what	4, rsi
	\what	5, rdi
	\what	6, rbp
	.irp	n, 8, 9, 10, 11, 12, 13, 14, 15
	\what	\n, r\n
	.endr
	.endm

	.macro	load n, reg
	mov	machine+GENERAL+8*\n(%rip), %\reg
	.endm

	.macro	store n, reg
	mov	%\reg, machine+GENERAL+8*\n(%rip)
	.endm

run_machine:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	mov	%rsp, machine+RSP(%rip)
	.irp	n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	vmovdqu64 machine+64*\n(%rip), %zmm\n
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	machine+MASKS+8*\n(%rip), %k\n
	.endr
	pushq	machine+RFLAGS(%rip)
	popfq
	each	load
	jmp	*machine+CODE(%rip)

run_back:
	each	store
	mov	machine+RSP(%rip), %rsp
	pushfq
	popq	machine+RFLAGS(%rip)
	cld
	.irp	n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
	vmovdqu64 %zmm\n, machine+64*\n(%rip)
	.endr
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7
	kmovq	%k\n, machine+MASKS+8*\n(%rip)
	.endr
	vzeroupper
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret

	.section .note.GNU-stack, "", @progbits
