/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The next instructions after a sample: machine code is translated into micro-ops (uop.h), which
 * the interpreter (interp.h) runs from the sampled registers, in the sampling interrupt or, from
 * any memory that can be read, in user space. Why so: docs/decisions/instruction-traces.md.
 *
 * Not safe for threads at once on one object.
 */
#ifndef DCPI_VTRACE_H
#define DCPI_VTRACE_H

#include <stddef.h>

#include "interp_user.h"
#include "place.h"

enum vtrace_arch { VTRACE_X86_64, VTRACE_AARCH64 };

/* The class of an instruction: the "opcode" of value profilers. Below 64. */
enum vtrace_class {
	VTRACE_CLASS_OTHER,
	VTRACE_CLASS_LOAD,
	VTRACE_CLASS_LOAD_SIGNED,
	VTRACE_CLASS_LOAD_FP, /* into a vector register */
	VTRACE_CLASS_STORE,
	VTRACE_CLASS_STORE_FP,
	VTRACE_CLASS_MODIFY, /* reads memory, changes it, writes it */
	VTRACE_CLASS_ATOMIC,
	VTRACE_CLASS_PUSH,
	VTRACE_CLASS_POP,
	VTRACE_CLASS_MOVE,
	VTRACE_CLASS_LEA, /* an address or a constant */
	VTRACE_CLASS_ADD, /* and subtract */
	VTRACE_CLASS_LOGIC,
	VTRACE_CLASS_SHIFT,
	VTRACE_CLASS_MULTIPLY,
	VTRACE_CLASS_DIVIDE,
	VTRACE_CLASS_COMPARE,
	VTRACE_CLASS_SELECT,
	VTRACE_CLASS_BRANCH, /* conditional */
	VTRACE_CLASS_JUMP,
	VTRACE_CLASS_JUMP_INDIRECT,
	VTRACE_CLASS_CALL,
	VTRACE_CLASS_CALL_INDIRECT,
	VTRACE_CLASS_RETURN,
	VTRACE_CLASS_FP,
	VTRACE_CLASS_VECTOR,
	VTRACE_CLASS_STRING,
	VTRACE_CLASS_SYSTEM,
	VTRACE_NR_CLASSES,
};

const char *vtrace_class_name(enum vtrace_class class);
const char *vtrace_end_name(enum vtrace_end end);

/* One instruction of a translated block. */
struct vtrace_insn {
	uint8_t offset, len; /* in the block */
	uint8_t class;
	uint8_t first; /* its first micro-op */
};

/* A block, as it is put where the interpreter finds it: of its code, wherever that stands. */
struct vtrace_code {
	struct vtrace_block block; /* .id and .first are the caller's */
	struct vtrace_insn insns[VTRACE_BLOCK_INSNS];
	struct vtrace_place place;
	uint64_t successors[2]; /* where it may go on, as far as the code tells */
	uint8_t nr_successors;
	struct vtrace_uop uops[VTRACE_BLOCK_UOPS]; /* last: a copy may hold those in use alone */
};

struct vtrace_translator;

/* 0 or -ENOMEM. */
int vtrace_translator_open(enum vtrace_arch arch, struct vtrace_translator **out);
void vtrace_translator_close(struct vtrace_translator *t);

/*
 * Translate the block at @pc, of which @len bytes are in @code: up to the first instruction that
 * may go elsewhere, or to what a block holds. What cannot be decoded becomes a block that ends the
 * trace there. Of the same bytes it is the same at every @pc of one vtrace_where(), but for
 * block.pc and the successors. 0, or -DCPI_EFORMAT where not even one byte is there.
 */
int vtrace_translate(struct vtrace_translator *t, const uint8_t *code, size_t len, uint64_t pc,
		     struct vtrace_code *out);

/* Is @u one that the interpreter may be given? The daemon checks what a helper translated. */
bool vtrace_uop_is_sound(const struct vtrace_uop *u);

/* ---- traces ---------------------------------------------------------------------------------- */

/* One block that a trace entered. */
struct vtrace_visit {
	uint64_t pc; /* where it was entered: on any of its instructions */
	uint32_t id;
	uint32_t generation; /* generation of the code there; 0: it has none */
	uint32_t nr_insns;   /* number of its instructions that ran */
	uint32_t reads;	     /* words: where those of its reads begin */
	uint32_t end;	     /* and end: where the next block's head stands */
};

/* The visit whose head stands at @words[@at], of @nr. 1; 0: there is none; -DCPI_EFORMAT: it is cut
 * off. Then @out stays as it is. */
int vtrace_visit_read(const uint64_t *words, size_t nr, size_t at, struct vtrace_visit *out);

/*
 * Which instruction of @c it is that stands at @pc, if the block stands so that one does: what a
 * visit begins with. -1: none.
 */
int vtrace_code_at(const struct vtrace_code *c, uint64_t pc);

/* ---- traces in user space -------------------------------------------------------------------- */

/* Where code and memory come from; each returns 0 or negative. */
struct vtrace_memory {
	int (*read)(void *ctx, void *to, size_t len, uint64_t addr);
	void *ctx;
};

#endif
