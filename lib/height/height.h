/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind rules (lib/unwind/rule.h) of one routine, computed from its machine code alone: how far
 * the stack pointer is below the caller's at each instruction, and where the caller's rbp and rbx
 * are. This is for code of JIT compilers, which describe it nowhere. x86-64.
 *
 * A rule is given only where the code itself proves it (docs/decisions/jit-call-paths.md). What is
 * taken for granted: the first byte is where a routine is entered, as its JIT registered it; a call
 * keeps rbp; and code does not overwrite the registers that it saved. Pages of code that nobody
 * registered begin anywhere, and must not be given to this. A runtime may say itself how the frame
 * is where its routine is entered (height_set_entries); then nothing has to be proven, and what is
 * given are the rules that follow from that.
 *
 * The bytes are not believed: time and memory are bounded by the length of the code. No file is
 * opened, no process started.
 */
#ifndef DCPI_HEIGHT_H
#define DCPI_HEIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rule.h"

enum {
	HEIGHT_MAX_LEN = 1 << 19, /* bytes of a routine */
};

/* Why an instruction has a rule or none. Names: height_reason_text. */
enum height_reason {
	HEIGHT_PROVEN,
	/* A whole routine has none: */
	HEIGHT_NO_PROOF,      /* it neither returns nor begins with "push rbp; mov rbp, rsp" */
	HEIGHT_OTHER_RETURN,  /* a return where the stack pointer is not at the return address */
	HEIGHT_FP_CHANGED,    /* a return where rbp is not the caller's */
	HEIGHT_TAKES_CALLERS, /* it takes off more stack than it put there */
	HEIGHT_OVERLAP,	      /* instructions that overlap, with different rules */
	HEIGHT_TOO_LARGE,     /* more bytes, or more different states, than the bounds */
	/* An instruction has none: */
	HEIGHT_UNREACHED,  /* no path from the entry leads here */
	HEIGHT_UNKNOWN,	   /* neither stack pointer nor frame pointer is known */
	HEIGHT_AFTER_CALL, /* a call may have changed the stack, and no return follows */
	HEIGHT_SIDE_ENTRY, /* code that no path reaches leads here too */
	HEIGHT_NO_CODE,	   /* a path leads here, and here is no instruction */
	HEIGHT_NR_REASONS
};

/* The proof of a routine's entry. */
enum height_proof {
	HEIGHT_BY_NOTHING,
	HEIGHT_BY_RETURN,   /* it returns from where it was entered */
	HEIGHT_BY_PROLOGUE, /* it only begins as routines do that are called */
	HEIGHT_BY_CALLER,   /* height_set_called */
	HEIGHT_BY_USE,	    /* nothing of the entry; it uses rbp as its frame pointer throughout */
	HEIGHT_BY_RUNTIME,  /* height_set_entries */
	HEIGHT_BY_PARTS,    /* nothing of the entry; many parts run in a frame that ends prove */
	HEIGHT_NR_PROOFS
};

struct height_report {
	uint32_t bytes[HEIGHT_NR_REASONS]; /* the code's; their sum is its length */
	uint8_t proof;			   /* enum height_proof */
	uint8_t refused;		   /* reason of the whole routine; HEIGHT_PROVEN: none */
};

struct height;

/* @machine: EM_X86_64, else -DCPI_EUNSUPPORTED. -ENOMEM. The scratch memory grows with the largest
 * routine, up to 80 bytes for each of its bytes. */
int height_open(uint32_t machine, struct height **out);
void height_close(struct height *h);
/* From now on routines are known to be called and to have no other part elsewhere: those that a
 * linker's symbols name and no compiler describes. One that only jumps to others, as interpreters'
 * handlers do, has rules too. */
void height_set_called(struct height *h, bool called);

/* In place of an offset: the register still has the caller's value, or that is nowhere. */
#define HEIGHT_IN_REGISTER 0
#define HEIGHT_LOST	   INT32_MIN

/* The frame before the instruction at @off, as a runtime says. */
struct height_entry {
	uint32_t off;
	bool by_fp;   /* the CFA is rbp + @cfa, and rsp is not known; else it is rsp + @cfa */
	int32_t cfa;  /* bytes */
	int32_t fp;   /* the caller's rbp is in memory at the CFA + @fp */
	int32_t link; /* likewise rbx */
};

/*
 * The next routine, and only that, is entered at these places, and nowhere else; the calls that it
 * makes leave rsp, and what is saved, as C's do. Where paths from two of them meet, there is a rule
 * only if both lead to it. Of an entry that makes no sense (a place at no multiple of 8, above the
 * return address or below rsp; @cfa below 8 or too far) no rule follows. They are the caller's,
 * until height_rows has returned.
 */
void height_set_entries(struct height *h, const struct height_entry *entries, size_t nr);

/*
 * Find the rules of the routine at @vaddr, whose @len bytes are @code and which is entered at its
 * first byte. @row is called in ascending order with each address from which on another rule holds;
 * before the first one is UNWIND_NONE, and the last row, if there are any, is UNWIND_NONE at
 * @vaddr + @len or before it. They are the same, beside their addresses, wherever the bytes stand.
 * A negative answer of @row ends the work and is returned. A routine
 * without proof is no error: it has no rows. @report may be NULL. 0, -ENOMEM, -EINVAL (an address
 * range that wraps around).
 */
int height_rows(struct height *h, const uint8_t *code, size_t len, uint64_t vaddr,
		int (*row)(void *ctx, uint64_t addr, const struct unwind_rule *rule), void *ctx,
		struct height_report *report);

/*
 * A table says that @rule, CFA = rsp + a number, holds for all of this code, which was written as
 * assembly and has many entries. @row is called in ascending order with each address from which on
 * it holds, or UNWIND_NONE does: where the code has something else on the stack. The last one holds
 * up to the end. A negative answer of @row ends the work and is returned. 0, -ENOMEM.
 */
int height_steady(struct height *h, const uint8_t *code, size_t len, uint64_t vaddr,
		  const struct unwind_rule *rule,
		  int (*row)(void *ctx, uint64_t addr, const struct unwind_rule *rule), void *ctx);

/* The reason at a byte of the routine that height_rows was last called for. */
enum height_reason height_reason_at(const struct height *h, size_t off);
/* Short, for tables; never NULL. */
const char *height_reason_text(enum height_reason reason);

#endif
