/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose blocks run a known number of times, by constants in its code, in itself and in a
 * child (x86-64). Every block begins with a label x_…; the table below says how often it runs. For
 * tests/system/exact.sh: prints "block LABEL COUNT" and "edge LABEL LABEL COUNT", from the label of
 * a block's last instruction to that of a block.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

void work(void);
void child(void);

/* An outer loop of 5 rounds, of 7 rounds each inside, of which the odd ones (1, 3, 5) take another
 * way; a switch with four cases by a table, over 0 to 9, of which 4 and more are the default; a
 * fill that repeats itself, twice; a branch to itself. */
__asm__(".text\n"
	".globl work\n"
	".type work, @function\n"
	"work:\n"
	"x_entry:	movl $5, %ecx\n"
	"x_outer:	xorl %edx, %edx\n"
	"x_inner:	testl $1, %edx\n"
	"l_inner:	jz x_even\n"
	"x_odd:		addl $3, %eax\n"
	"l_odd:		jmp x_next\n"
	"x_even:	subl $1, %eax\n"
	"x_next:	incl %edx\n"
	"		cmpl $7, %edx\n"
	"l_next:	jb x_inner\n"
	"x_again:	decl %ecx\n"
	"l_again:	jnz x_outer\n"
	"x_switch:	xorl %ecx, %ecx\n"
	"x_choose:	cmpl $3, %ecx\n"
	"l_choose:	ja x_default\n"
	"x_table:	leaq x_targets(%rip), %rdx\n"
	"		movslq (%rdx,%rcx,4), %rsi\n"
	"		addq %rdx, %rsi\n"
	"l_table:	jmp *%rsi\n"
	"x_case0:	nop\n"
	"l_case0:	jmp x_chosen\n"
	"x_case1:	nop\n"
	"		nop\n"
	"l_case1:	jmp x_chosen\n"
	"x_case23:	nop\n"
	"x_chosen:	incl %ecx\n"
	"		cmpl $10, %ecx\n"
	"l_chosen:	jb x_choose\n"
	"x_fill:	leaq x_room(%rip), %rdi\n"
	"		movl $100, %ecx\n"
	"x_rep:		rep stosb\n"
	"		movl $33, %ecx\n"
	"x_rep2:	rep stosb\n"
	"x_loop:	movl $12, %ecx\n"
	"x_self:	loop x_self\n"
	"x_end:		ret\n"
	"x_default:	nop\n"
	"l_default:	jmp x_chosen\n"
	".size work, . - work\n"
	".globl child\n"
	".type child, @function\n"
	"child:\n"
	"x_child:	movl $11, %ecx\n"
	"x_child_loop:	decl %ecx\n"
	"l_child_loop:	jnz x_child_loop\n"
	"x_child_end:	ret\n"
	".size child, . - child\n"
	".section .rodata\n"
	".balign 4\n"
	"x_targets:	.long x_case0 - x_targets, x_case1 - x_targets\n"
	"		.long x_case23 - x_targets, x_case23 - x_targets\n"
	".bss\n"
	"x_room:	.skip 256\n"
	".text\n");

static const char truth[] =
	"block x_entry 1\nblock x_outer 5\nblock x_inner 35\nblock x_odd 15\nblock x_even 20\n"
	"block x_next 35\nblock x_again 5\nblock x_switch 1\nblock x_choose 10\nblock x_table 4\n"
	"block x_case0 1\nblock x_case1 1\nblock x_case23 2\nblock x_chosen 10\nblock x_fill 1\n"
	"block x_rep 1\nblock x_rep2 1\nblock x_loop 1\nblock x_self 12\nblock x_end 1\n"
	"block x_default 6\nblock x_child 3\nblock x_child_loop 33\nblock x_child_end 3\n"
	"edge l_inner x_even 20\nedge l_odd x_next 15\nedge l_next x_inner 30\n"
	"edge l_again x_outer 4\nedge l_choose x_default 6\nedge l_table x_case0 1\n"
	"edge l_table x_case1 1\nedge l_table x_case23 2\nedge l_case0 x_chosen 1\n"
	"edge l_case1 x_chosen 1\nedge l_chosen x_choose 9\nedge x_rep x_rep 0\n"
	"edge x_rep2 x_rep2 0\nedge x_self x_self 11\nedge l_default x_chosen 6\n"
	"edge l_child_loop x_child_loop 30\n";

/* The child runs "child" twice and ends, the parent once. */
int main(void)
{
	int status = 0;

	work();
	if (fork() == 0) {
		child();
		child();
		_exit(0);
	}
	wait(&status);
	child();
	fputs(truth, stdout);
	return status ? 1 : 5;
}
