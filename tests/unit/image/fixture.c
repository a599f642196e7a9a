/* SPDX-License-Identifier: BSD-2-Clause */
/* Not run: read as an image by image.c, which knows these names and lines. */
int alpha(int x);
int __alpha(int x) __attribute__((alias("alpha")));
int alpha_twin(int x) __attribute__((weak, alias("alpha")));
int omega(int x);

__attribute__((noinline)) static int beta(int x)
{
	return x * 3; /* line 10 */
}

int alpha(int x)
{
	return beta(x) + 1; /* line 15 */
}

/* An assembler's procedure: no type, no size, a label inside; then one with a size around another.
 */
__asm__(".text\n"
	".balign 16\n"
	".globl bare_label\n"
	"bare_label:\n"
	".skip 16\n"
	".globl outer_proc\n" /* 0x90: decoded on each machine */
	".type outer_proc, %function\n"
	"outer_proc:\n"
	".skip 8, 0x90\n"
	"inner_label:\n"
	".type inner_proc, %function\n"
	".globl inner_proc\n"
	"inner_proc:\n"
	".skip 8, 0x90\n"
	".size inner_proc, . - inner_proc\n"
	".skip 4, 0x90\n"
	"late_label:\n"
	".skip 12, 0x90\n"
	".size outer_proc, . - outer_proc\n"
	/* Decoding on through what lies inside would swallow what follows it. */
	".globl uneven_proc\n"
	".type uneven_proc, %function\n"
	"uneven_proc:\n"
	".byte 0x90, 0x90, 0x90, 0x90\n"
	".globl uneven_inner\n"
	".type uneven_inner, %function\n"
	"uneven_inner:\n"
	".byte 0xb8, 0x90\n"
	".size uneven_inner, . - uneven_inner\n"
	".byte 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90\n"
	".size uneven_proc, . - uneven_proc\n"
	".previous\n");

int versioned(int x);
int versioned(int x)
{
	return x + 4;
}

int omega(int x)
{
	return x + 2;
}

int nest(int x);
__attribute__((always_inline)) static inline int inner(int x)
{
	return x * 5; /* line 67 */
}

__attribute__((always_inline)) static inline int middle(int x)
{
	return inner(x) + 1; /* line 72 */
}

int nest(int x)
{
	return middle(x) + 1; /* line 77 */
}

/* Another library's: called by way of a stub. */
int elsewhere(int x);
int outward(int x);
int outward(int x)
{
	return elsewhere(x) + 1;
}
