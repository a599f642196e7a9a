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

/* An .eh_frame, its header, and unwinding_size of them in all. It is of the next LOAD. */
struct jitdump_unwinding {
	struct jitdump_head head;
	uint64_t unwinding_size, eh_frame_hdr_size, mapped_size;
};
static_assert(sizeof(struct jitdump_unwinding) == 40, "jitdump unwinding");

/* ---- jitdump_pending.c: lines whose routine is yet to come ----------------------------------- */

/* More than one are of several threads, each of which writes its lines, then its routine. */
enum { JITDUMP_NR_PENDING = 64 };
/* … soon: those with as much of the file behind them have none. */
#define JITDUMP_PENDING_LEN (1u << 20)
/* In place of the address in the last unwinding record, which has none: no code is there. */
#define JITDUMP_PENDING_FRAMES UINT64_MAX

struct jitdump_lines_at {
	uint64_t addr; /* address of the code */
	uint64_t off;
	uint32_t len; /* length of the record; 0: none */
};

struct jitdump_pending {
	struct jitdump_lines_at v[JITDUMP_NR_PENDING]; /* ascending off */
	size_t nr;
};

void jitdump_pending_add(struct jitdump_pending *p, const struct jitdump_lines_at *lines);
/* The last ones for @addr; @off: of the routine's record. */
struct jitdump_lines_at jitdump_pending_find(struct jitdump_pending *p, uint64_t addr,
					     uint64_t off);
void jitdump_pending_remove(struct jitdump_pending *p, uint64_t addr);
/* Where to begin to know them again when the reading goes on at @off; 0: there are none. */
uint64_t jitdump_pending_first(struct jitdump_pending *p, uint64_t off);

/* ---- jitdump_entries.c: what a debug record says --------------------------------------------- */

struct jitdump_code {
	uint64_t addr, len;
	const char *name;
	size_t name_len;
};

struct jitdump_line {
	uint64_t addr;
	const char *file; /* in the record, or the code's name */
	uint32_t file_len;
	uint32_t line;	/* 0: not known */
	uint32_t order; /* in the record */
};

struct jitdump_entries {
	struct jitdump_line *v; /* release with free */
	size_t nr, cap;
};

/*
 * The entries of the debug record at @rec, of @len bytes, for @code. Some versions of V8 (that of
 * Node.js 20) write the names of files out of memory that was freed, with zeros in them. Such
 * records are known by what remains behind the last entry, and read by the length that all names
 * have; the name is the one that the code's own ends with ("… FILE:LINE:COLUMN"), if it has that
 * length and the bytes that are left of it agree, else it is not known. 0; 1: malformed, and there
 * are none; -ENOMEM.
 */
int jitdump_entries_read(struct jitdump_entries *e, const uint8_t *rec, size_t len,
			 const struct jitdump_code *code);

/* ---- jitdump_lines.c ------------------------------------------------------------------------- */

/*
 * perf puts a routine's code behind the 64 bytes of an ELF header, and some runtimes (V8, LLVM)
 * make up for it in what they write: their lines lie that much too high. Others' do not. What tells
 * for certain is a line at less than 64 bytes from the code's start (then they are exact), or one
 * behind the code's end but less than 64 bytes (then they are high); where the first stands at 64
 * exactly, that is likely the routine's start (high). Where nothing is certain it is as with the
 * lines before in the same file, if these agree; where nothing is known at all, they are left out.
 */
enum { JITDUMP_EXACT = 1, JITDUMP_HIGH = 2, JITDUMP_LIKELY_HIGH = 4 };
#define JITDUMP_SHIFT 64u

/* Longer records are left out. */
#define JITDUMP_DEBUG_MAX (8u << 20)

struct jitdump_lines {
	struct base_buf lines, files; /* as in a record */
	uint32_t nr_files;
};

/*
 * Read the lines of @code from the debug record at @at. @seen: what the file has shown so far,
 * JITDUMP_EXACT and so on, brought up to date. 0; 1: it is malformed, and there are none; -ENOMEM,
 * as peek.
 */
int jitdump_lines_read(struct runtime_file *f, const struct jitdump_lines_at *at,
		       const struct jitdump_code *code, uint32_t *seen,
		       struct jitdump_lines *lines);
void jitdump_lines_release(struct jitdump_lines *lines);

/* ---- jitdump_record.c: what becomes of one record -------------------------------------------- */

/*
 * The result for a record. An incomplete one is waited for: until the file is longer, or until the
 * space that the file already has is filled.
 */
enum { JITDUMP_TAKEN, JITDUMP_WAIT, JITDUMP_FULL };

struct jitdump {
	struct runtime_file f;
	struct foreign_place place;
	struct jitdump_header header;
	struct jitdump_pending pending;
	struct base_buf frames;	    /* struct wire_frame of one routine, */
	struct jitdump_lines lines; /* its lines, */
	char name[WIRE_NAME_MAX];   /* as its name */
	struct base_buf *out;
	bool has_time;
	uint64_t time_ns; /* time of the last WIRE_TIME */
	int nr_bad;
};

/* A record as it is being taken. */
struct jitdump_record {
	uint64_t off;
	struct jitdump_head head;
};

/* Frames of @code go into @d->frames, from the record at @at, or none. 0, -ENOMEM, as peek. */
int jitdump_frames_read(struct jitdump *d, const struct jitdump_lines_at *at,
			const struct jitdump_code *code);

int jitdump_copy(struct jitdump *d, uint64_t off, void *to, size_t len);
/* JITDUMP_TAKEN; JITDUMP_FULL or negative, then @d->place and @d->out may be changed. */
int jitdump_record_take(struct jitdump *d, const struct jitdump_record *rec);
/* One that was taken before: only what pends is found again. 0 or negative. */
int jitdump_record_again(struct jitdump *d, const struct jitdump_record *rec);

#endif
