/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a job to an ELF file: the job becomes a model (model.c; DST by dst.c), the model has an
 * identity (ident.c), a layout of .text sections (layout.c), DWARF (dwarf.c) and becomes sections
 * of a file (write.c, elf.c). Everything here works on bytes nobody vouches for.
 */
#ifndef DCPI_PSEUDOIMG_INTERNAL_H
#define DCPI_PSEUDOIMG_INTERNAL_H

#include "base.h"
#include "pseudoimg.h"
#include "wire.h"

/* ---- spans (span.c) -------------------------------------------------------------------------- */

/* First member of whatever occupies addresses, so that one routine orders and checks all kinds. */
struct pseudoimg_span {
	uint64_t start, len; /* start + len does not wrap */
	uint64_t order;	     /* place in the job: of two that overlap, the later one is refused */
	uint64_t img_off;    /* of start */
};

static inline uint64_t pseudoimg_span_end(const struct pseudoimg_span *s)
{
	return s->start + s->len;
}

/* Ascending by start, then longer first, then order. */
int pseudoimg_span_compare(const void *a, const void *b);
/* Sort @array (elements start with a span) and drop overlapping ones. Returns how many are left. */
size_t pseudoimg_span_disjoint(void *array, size_t nr, size_t elem_len);
/* The last of ascending  that starts at  or before, or NULL; it may end before . */
const struct pseudoimg_span *pseudoimg_span_find(const struct pseudoimg_span *v, size_t nr,
						 uint64_t addr);

/* ---- growable arrays ------------------------------------------------------------------------- */

#define PSEUDOIMG_ARRAY(type)                                                                      \
	struct {                                                                                   \
		type *v;                                                                           \
		size_t nr, cap;                                                                    \
	}
/* A further element, or NULL without memory. */
#define PSEUDOIMG_PUSH(a)                                                                          \
	(base_grow(&(a)->v, &(a)->cap, (a)->nr + 1, sizeof(*(a)->v)) < 0 ? NULL                    \
									 : &(a)->v[(a)->nr++])

struct pseudoimg_str {
	const char *p;
	size_t len;
};

/* ---- DST (dst.c, dst_line.c, dst_source.c) --------------------------------------------------- */

#define PSEUDOIMG_DST_RECORD_MAX 65536u
#define PSEUDOIMG_DST_DEPTH_MAX	 256u
#define PSEUDOIMG_NO_FILE	 UINT32_MAX

struct pseudoimg_dst_routine {
	uint64_t addr;
	uint32_t len;
	struct pseudoimg_str name;
};

/* From addr on, up to the next row, the code is of this line; an end row closes a sequence. */
struct pseudoimg_dst_row {
	uint64_t addr;
	uint32_t line; /* 0: none */
	uint32_t file; /* index into files, or PSEUDOIMG_NO_FILE */
	bool end;
};

/* What one DST range says. Strings point into its bytes. */
struct pseudoimg_dst {
	PSEUDOIMG_ARRAY(struct pseudoimg_dst_routine) routines; /* inner ones before outer ones */
	PSEUDOIMG_ARRAY(struct pseudoimg_dst_row) rows;		/* ascending within a sequence */
	PSEUDOIMG_ARRAY(struct pseudoimg_str) files;
	PSEUDOIMG_ARRAY(size_t) bases; /* where 64-bit bases stand: masked in the identity */
	size_t used;		       /* bytes of whole, good records from the start */
	uint32_t nr_bad;
};

/*
 * Decode @len bytes of DST, the range's zero rest included as far as it may belong to a record.
 * Addresses count from @base. Never fails on contents: what is malformed ends the DST (or the
 * module's lines) there and is counted. 0 or -ENOMEM.
 */
int pseudoimg_dst_decode(const uint8_t *data, size_t len, uint64_t base, struct pseudoimg_dst *out);
void pseudoimg_dst_release(struct pseudoimg_dst *dst);

/* Bounded little-endian reading: false, and nothing read, where too few bytes are left. */
struct pseudoimg_cursor {
	const uint8_t *p;
	size_t left;
};
bool pseudoimg_cursor_skip(struct pseudoimg_cursor *c, size_t len);
bool pseudoimg_cursor_uint(struct pseudoimg_cursor *c, size_t len, uint64_t *out); /* 1..8 bytes */
bool pseudoimg_cursor_counted(struct pseudoimg_cursor *c, struct pseudoimg_str *out);

/* A module's SOURCE commands: listing lines first … first + nr - 1 are records of a file. */
struct pseudoimg_source_lines {
	uint32_t first, nr, record, file;
};
struct pseudoimg_source_file {
	uint16_t id;
	uint32_t record; /* where the file was left */
	uint32_t file;	 /* index into pseudoimg_dst.files */
};
struct pseudoimg_source {
	PSEUDOIMG_ARRAY(struct pseudoimg_source_lines) lines; /* ascending, disjoint */
	PSEUDOIMG_ARRAY(struct pseudoimg_source_file) files;
	uint32_t *by_id; /* id -> index into files, valid if that entry has the id */
	uint32_t line, record;
	size_t current; /* index into files; files.nr: undefined */
};

/* Start a module. 0 or -ENOMEM. */
int pseudoimg_source_begin(struct pseudoimg_source *s);
/* Commands of one record. 0, -ENOMEM, -DCPI_EFORMAT. */
int pseudoimg_source_run(struct pseudoimg_source *s, struct pseudoimg_cursor commands,
			 struct pseudoimg_dst *out);
/* Listing line -> (file, line); false where nothing binds it. */
bool pseudoimg_source_find(const struct pseudoimg_source *s, uint32_t listing, uint32_t *file,
			   uint32_t *line);
void pseudoimg_source_release(struct pseudoimg_source *s);

/* State of a module's LINE_NUM commands. */
struct pseudoimg_lines {
	uint64_t start, pc;
	uint32_t line, stmt, incr;
	bool stmt_mode, open;
	uint32_t module_file; /* stands in where no SOURCE command names a file */
};

void pseudoimg_lines_begin(struct pseudoimg_lines *l, uint64_t start, uint32_t module_file);
/* Commands of one record, whose absolute addresses count from @base. Errors as above. */
int pseudoimg_lines_run(struct pseudoimg_lines *l, struct pseudoimg_cursor commands, uint64_t base,
			const struct pseudoimg_source *source, struct pseudoimg_dst *out);

/* ---- model (model.c, model_dst.c, runs.c) -------------------------------------------------- */

struct pseudoimg_routine {
	struct pseudoimg_span at;	/* vaddr; len fits 32 bits */
	struct pseudoimg_str name;	/* as the application gave it */
	const uint8_t *code;		/* NULL: not sent, or in an owned range */
	const struct wire_routine *rec; /* NULL: from DST */
};

/* Bytes of an owned code range, trailing zeros left out. */
struct pseudoimg_range {
	struct pseudoimg_span at; /* vaddr; len may be 0 */
	const uint8_t *bytes;
	uint64_t range_base, range_len;
	uint32_t facility;
};

struct pseudoimg_row {
	uint32_t off;  /* from the sequence's start, ascending */
	uint32_t line; /* 0: none */
	uint32_t file; /* index into files; 0 where line is 0 */
};

/* Rows of consecutive code. */
struct pseudoimg_seq {
	struct pseudoimg_span at; /* vaddr; len fits 32 bits */
	size_t first_row;
	uint32_t nr_rows; /* at least 1; the first at offset 0 */
};

/* A DST range as it was sent, and a copy with the zeros that follow it in memory. */
struct pseudoimg_dst_range {
	uint32_t facility;
	uint64_t range_base, range_len;
	struct base_buf sent;
	uint8_t *copy; /* owned; without absolute addresses once it is decoded */
	size_t len;    /* of the copy that counts: records, and what is not zero behind */
	struct pseudoimg_dst dst; /* strings point into the copy */
};

struct pseudoimg_model {
	const struct wire_image *image;
	PSEUDOIMG_ARRAY(struct pseudoimg_span) runs; /* by vaddr, neighbours merged */
	PSEUDOIMG_ARRAY(struct pseudoimg_routine) routines;
	PSEUDOIMG_ARRAY(struct pseudoimg_range) ranges;
	PSEUDOIMG_ARRAY(struct pseudoimg_seq) seqs;
	PSEUDOIMG_ARRAY(struct pseudoimg_row) rows;
	PSEUDOIMG_ARRAY(struct pseudoimg_str) files;
	PSEUDOIMG_ARRAY(struct pseudoimg_dst_range) dst; /* by contents of the copy */
	PSEUDOIMG_ARRAY(const struct wire_replaces *) replaces;
	struct base_map file_index; /* name -> index + 1 */
	uint32_t nr_bad;
};

/*
 * Read @job into zeroed @m, which points into it. Routines, ranges and sequences are left in order
 * of their image offsets (for ident.c); files are numbered by first use in that order.
 */
int pseudoimg_model_read(struct pseudoimg_model *m, const void *job, size_t job_len,
			 struct base_err *err);
/* From now on by address (for layout.c and everything that is written). */
void pseudoimg_model_sort(struct pseudoimg_model *m);
void pseudoimg_model_release(struct pseudoimg_model *m);

/* Bad runs dropped, the rest sorted, neighbours merged. Returns how many were refused. */
uint32_t pseudoimg_runs_settle(struct pseudoimg_model *m);
/* The run that holds @vaddr, or NULL. */
const struct pseudoimg_span *pseudoimg_runs_find(const struct pseudoimg_model *m, uint64_t vaddr);
/* All of @at stands in runs (an empty one: its start): sets its img_off. */
bool pseudoimg_runs_place(const struct pseudoimg_model *m, struct pseudoimg_span *at);

/* Number of @name among the model's files, or a negative. */
int64_t pseudoimg_model_file(struct pseudoimg_model *m, const char *name, size_t len);
/* The DST ranges that were sent become routines and sequences (model_dst.c). */
int pseudoimg_model_dst(struct pseudoimg_model *m);

/* Law 7: what the image holds, nothing of where and when. */
void pseudoimg_ident(const struct pseudoimg_model *m, uint8_t id[20]);

/* ---- layout (layout.c) ----------------------------------------------------------------------- */

/* A .text section. */
struct pseudoimg_text {
	uint64_t addr, len;
};

struct pseudoimg_layout {
	PSEUDOIMG_ARRAY(struct pseudoimg_text) text; /* ascending, disjoint */
	uint64_t text_bytes;
};

/* 0, -ENOMEM, or -DCPI_ELIMIT where the code is scattered too widely for one file. */
int pseudoimg_layout_make(struct pseudoimg_layout *l, const struct pseudoimg_model *m,
			  struct base_err *err);
void pseudoimg_layout_release(struct pseudoimg_layout *l);

/* Fills windows of .text in ascending order of addresses. */
struct pseudoimg_filler {
	const struct pseudoimg_model *m;
	size_t range, routine; /* all before these end before the window */
};
/* Whether anything stands in the window; @window is undefined where nothing does. */
bool pseudoimg_fill(struct pseudoimg_filler *f, uint64_t addr, uint8_t *window, size_t len);

/* ---- names (name.c) -------------------------------------------------------------------------- */

/*
 * Append @name with a NUL: control characters and bytes that are no UTF-8 escaped (\n, \t, \r,
 * \xNN), so that line-oriented tools stay sane. 0 or -ENOMEM.
 */
int pseudoimg_name_put(struct base_buf *b, const char *name, size_t len);

/* ---- DWARF (dwarf.c, dwarf_line.c) ----------------------------------------------------------- */

struct pseudoimg_dwarf {
	struct base_buf abbrev, info, aranges, ranges, line;
};

/* @names: offsets of the routines' names in @strings. 0, -ENOMEM, -DCPI_ELIMIT. */
int pseudoimg_dwarf_make(struct pseudoimg_dwarf *d, const struct pseudoimg_model *m,
			 const struct pseudoimg_layout *l, const struct base_buf *strings,
			 const uint32_t *names);
int pseudoimg_dwarf_line_make(struct base_buf *line, const struct pseudoimg_model *m,
			      const struct pseudoimg_layout *l);
void pseudoimg_dwarf_release(struct pseudoimg_dwarf *d);

int pseudoimg_put_uint(struct base_buf *b, uint64_t v, size_t len); /* little-endian */
int pseudoimg_put_uleb(struct base_buf *b, uint64_t v);
int pseudoimg_put_sleb(struct base_buf *b, int64_t v);
/* Overwrite the 32-bit length field at @at with the bytes behind it. 0 or -DCPI_ELIMIT. */
int pseudoimg_put_length(struct base_buf *b, size_t at);

/* ---- ELF files (elf.c) ----------------------------------------------------------------------- */

struct pseudoimg_section {
	const char *name; /* static, or kept by the caller */
	uint32_t type;
	uint64_t flags, addr, len, align, entsize;
	uint32_t link, info;
	const void *data; /* NULL with PROGBITS: by @filler */
	uint64_t file_off;
	uint32_t name_off;
};

/* A file of ELF64, little-endian. Section 0 is there from the beginning. */
struct pseudoimg_elf {
	uint16_t machine;
	PSEUDOIMG_ARRAY(struct pseudoimg_section) sections;
	struct base_buf names;
};

/* Whether code of this EM_* can be written. */
bool pseudoimg_machine_known(uint32_t machine);
/* Index of the new section, or -ENOMEM. */
int pseudoimg_elf_add(struct pseudoimg_elf *e, const struct pseudoimg_section *section);
/* Contents of a GNU build-id note. 0 or -ENOMEM. */
int pseudoimg_build_id_note(struct base_buf *b, const uint8_t *id, size_t id_len);
/*
 * Add .shstrtab and write the file to @fd; @filler gives the contents of .text, NULL where there
 * are none. 0, or negative with @err.
 */
int pseudoimg_elf_write(struct pseudoimg_elf *e, int fd, struct pseudoimg_filler *filler,
			struct base_err *err);
void pseudoimg_elf_release(struct pseudoimg_elf *e);

/* ---- the helper (jail_linux.c, run_helper.c, dcpid-pseudoimg.c) ---------------------------- */

/*
 * Give up every right and allow only what reading and writing open descriptors 0 to 2 and memory
 * need; anything else kills the process. No way back. 0, or negative with @err: then work must not
 * begin.
 */
int pseudoimg_jail_enter(struct base_err *err);

#define PSEUDOIMG_ANSWER_MAGIC 0x474d4950u /* "PIMG" */

/* What the helper writes to descriptor 2, once, at its end. */
struct pseudoimg_answer {
	uint32_t magic;
	int32_t status;
	struct pseudoimg_result result;
	char text[480];
	char hint[240];
};

#endif
