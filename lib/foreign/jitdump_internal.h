/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/foreign: the reader of jitdump files. */
#ifndef DCPI_FOREIGN_JITDUMP_INTERNAL_H
#define DCPI_FOREIGN_JITDUMP_INTERNAL_H

#include "runtime_file.h"

/* Version 1, in the byte order of who wrote it. Source: the kernel's jitdump-specification.txt. */
#define JITDUMP_MAGIC	      0x4a695444u
#define JITDUMP_MAGIC_SWAPPED 0x4454694au
#define JITDUMP_VERSION	      1u
#define JITDUMP_ARCH_TIME     1ull /* flags: time stamps are of a clock of the CPU's */

struct jitdump_header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};
static_assert(sizeof(struct jitdump_header) == 40, "jitdump header");

enum jitdump_id { JITDUMP_LOAD, JITDUMP_MOVE, JITDUMP_DEBUG, JITDUMP_CLOSE, JITDUMP_UNWINDING };

struct jitdump_head {
	uint32_t id, total_size;
	uint64_t timestamp;
};
static_assert(sizeof(struct jitdump_head) == 16, "jitdump record");

/* The name with its NUL follows, then the code. */
struct jitdump_load {
	struct jitdump_head head;
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};
static_assert(sizeof(struct jitdump_load) == 56, "jitdump load");

struct jitdump_move {
	struct jitdump_head head;
	uint32_t pid, tid;
	uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};
static_assert(sizeof(struct jitdump_move) == 64, "jitdump move");

/* nr_entry times a struct jitdump_entry and a name with its NUL follow. */
struct jitdump_debug {
	struct jitdump_head head;
	uint64_t code_addr, nr_entry;
};
static_assert(sizeof(struct jitdump_debug) == 32, "jitdump debug");

struct jitdump_entry {
	uint64_t addr;
	uint32_t line, discrim;
};
static_assert(sizeof(struct jitdump_entry) == 16, "jitdump entry");

/* Lines wait for their routine; more than one are of several threads, each of which writes its
 * lines, then its routine. */
enum { JITDUMP_NR_PENDING = 64 };
/* Lines with as much of the file behind them have no routine. */
#define JITDUMP_PENDING_LEN (1u << 20)

struct jitdump_lines_at {
	uint64_t addr; /* address of the code */
	uint64_t off;
	uint32_t len; /* length of the record; 0: none */
};

/* ---- lines of a routine (jitdump_lines.c) ---------------------------------------------------- */

struct jitdump_code {
	uint64_t addr, len;
	const char *name;
	size_t name_len;
};

struct jitdump_lines {
	struct base_buf lines, files; /* as in a record */
	uint32_t nr_files;
};

/*
 * Read the lines of @code from the debug record at @at. @seen: what the file has shown so far
 * (JITDUMP_EXACT and so on), brought up to date; 0 first. 0; 1: it is malformed, and there are
 * none; -ENOMEM, as peek.
 */
int jitdump_lines_read(struct runtime_file *f, const struct jitdump_lines_at *at,
		       const struct jitdump_code *code, uint32_t *seen,
		       struct jitdump_lines *lines);

#endif
