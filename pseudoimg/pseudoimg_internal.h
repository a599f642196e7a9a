/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a job to an ELF file: the job becomes a model (model.c; DST by dst.c), the model has an
 * identity (ident.c), DWARF (dwarf.c), and becomes sections of a file (write.c, elf.c), those of
 * code filled by fill.c. Everything here works on bytes that may be hostile.
 */
#ifndef DCPI_PSEUDOIMG_INTERNAL_H
#define DCPI_PSEUDOIMG_INTERNAL_H

#include <errno.h>

#include "base.h"
#include "pseudoimg.h"
#include "wire.h"

/* ---- spans (span.c) -------------------------------------------------------------------------- */

/* First member of whatever occupies addresses, so that one routine orders and checks all kinds. */
struct pseudoimg_span {
	uint64_t start, len; /* start + len does not wrap */
	uint64_t order;	     /* place in the job: of two that overlap, the later one is refused */
	uint64_t img_off;    /* image offset of start */
};

static inline uint64_t pseudoimg_span_end(const struct pseudoimg_span *s)
{
	return s->start + s->len;
}

/* Ascending by start, then longer first, then order. */
int pseudoimg_span_compare(const void *a, const void *b);

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

/* ---- jobs (job.c) ---------------------------------------------------------------------------- */

/* In memory, or in a file that is read in traces. */
struct pseudoimg_job {
	const uint8_t *data; /* 8-byte aligned; NULL: by fd */
	int fd;
	uint64_t start; /* start of the job in the file */
	uint64_t len;
	uint8_t *trace;
	uint64_t trace_off;
	size_t trace_len, trace_cap, step;
};

static inline void pseudoimg_job_of_memory(struct pseudoimg_job *j, const void *data, size_t len)
{
	*j = (struct pseudoimg_job){ .data = data, .fd = -1, .len = len };
}
/* 0, or -ESPIPE where it cannot be read from any place. */
int pseudoimg_job_of_file(struct pseudoimg_job *j, int fd);
/* [@start, @start + @len) of a file. */
static inline void pseudoimg_job_of_part(struct pseudoimg_job *j, int fd, uint64_t start,
					 uint64_t len)
{
	*j = (struct pseudoimg_job){ .fd = fd, .start = start, .len = len };
}
/*
 * The record at @off (of WIRE_BYTES its struct alone, of unknown types the head), until the next
 * call for this job. Contents are not checked. 0, -DCPI_EFORMAT, -ENOMEM, -errno.
 */
int pseudoimg_job_at(struct pseudoimg_job *j, uint64_t off, const struct wire_head **rec);
/* Likewise, and *pos goes behind it: 1, or 0 at the end. */
int pseudoimg_job_next(struct pseudoimg_job *j, uint64_t *pos, const struct wire_head **rec);
/* Copy bytes. 0, -DCPI_ETRUNCATED, -errno. */
int pseudoimg_job_read(struct pseudoimg_job *j, uint64_t off, void *out, size_t len);
void pseudoimg_job_release(struct pseudoimg_job *j);

/* ---- names of files and inlined routines (names.c) ------------------------------------------- */

#define PSEUDOIMG_NO_FILE UINT32_MAX
#define PSEUDOIMG_UNNAMED "(unnamed)"

struct pseudoimg_name {
	uint32_t at;	       /* in text */
	uint32_t file;	       /* number in the line table, from 1; 0: none */
	uint32_t die;	       /* offset of its abstract routine in .debug_info, 0: none */
	uint32_t stamp, local; /* stamp and number of the routine being hashed */
};

struct pseudoimg_names {
	struct base_buf text; /* escaped, each with its NUL */
	PSEUDOIMG_ARRAY(struct pseudoimg_name) v;
	PSEUDOIMG_ARRAY(uint32_t) files; /* names by number - 1 */
	uint32_t *table;
	size_t cap;
	uint64_t seed;
};

/* Index of @name, or a negative. */
int64_t pseudoimg_names_put(struct pseudoimg_names *n, const char *name, size_t len);
static inline const char *pseudoimg_names_text(const struct pseudoimg_names *n, uint32_t name)
{
	return (const char *)n->text.data + n->v.v[name].at;
}
void pseudoimg_names_release(struct pseudoimg_names *n);

/* ---- DST (dst.c) ----------------------------------------------------------------------------- */

#define PSEUDOIMG_DST_RECORD_MAX 65536u
#define PSEUDOIMG_DST_DEPTH_MAX	 256u

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

/* The contents of one DST range. Strings point into its bytes. */
struct pseudoimg_dst {
	PSEUDOIMG_ARRAY(struct pseudoimg_dst_routine) routines; /* inner ones before outer ones */
	PSEUDOIMG_ARRAY(struct pseudoimg_dst_row) rows;		/* ascending within a sequence */
	PSEUDOIMG_ARRAY(struct pseudoimg_str) files;
	PSEUDOIMG_ARRAY(struct pseudoimg_str) absolute; /* addresses: masked in the identity */
	size_t used; /* bytes of whole, good records from the start */
	uint32_t nr_bad;
};

/*
 * Decode @len bytes of DST, the range's zero rest included as far as it may belong to a record.
 * Addresses count from @base; 0: they are absolute. Never fails on contents: what is malformed ends
 * the DST (or the module's lines) there and is counted. 0 or -ENOMEM.
 */
int pseudoimg_dst_decode(const uint8_t *data, size_t len, uint64_t base, struct pseudoimg_dst *out);
void pseudoimg_dst_release(struct pseudoimg_dst *dst);

/* Bounded little-endian reading: false, and nothing read, where too few bytes are left. */
struct pseudoimg_cursor {
	const uint8_t *p;
	size_t left;
};

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

/* ---- model (model.c, load.c) ----------------------------------------------------------------- */

/*
 * A routine: 16 bytes, since there may be millions. All else is read from the job when it is
 * needed.
 */
struct pseudoimg_node {
	uint64_t start;	   /* vaddr */
	uint32_t len : 25; /* at most WIRE_CODE_MAX */
	uint32_t code : 1; /* the record has its bytes; else zeros, or those of an owned range */
	uint32_t lines : 1, inlines : 1;
	uint32_t ref; /* offset / 8 of its record; from PSEUDOIMG_DST_REF on: a routine of DST */
};
static_assert(sizeof(struct pseudoimg_node) == 16, "node");
#define PSEUDOIMG_DST_REF (UINT32_C(1) << 31)

/* Bytes of an owned code range, trailing zeros left out. */
struct pseudoimg_range {
	struct pseudoimg_span at; /* vaddr; len may be 0 */
	uint64_t bytes_off;	  /* in the job */
	uint64_t range_base, range_len;
	uint32_t facility;
};

struct pseudoimg_row {
	uint32_t off;  /* from the sequence's start, ascending */
	uint32_t line; /* 0: none */
	uint32_t file; /* a name; 0 where line is 0, as are the others */
	uint16_t column, discriminator;
};

/* Rows of consecutive code. */
struct pseudoimg_seq {
	struct pseudoimg_span at;	  /* vaddr; len fits 32 bits */
	const struct pseudoimg_row *rows; /* rows of DST: set by pseudoimg_model_seq */
	size_t first_row;
	uint32_t nr_rows; /* at least 1; the first at offset 0 */
};

/* A DST range as it was sent, and a copy with the zeros that follow it in memory. */
struct pseudoimg_dst_range {
	uint32_t facility;
	uint64_t range_base, range_len;
	struct base_buf sent;
	uint8_t *copy; /* owned; without absolute addresses once it is decoded */
	size_t len; /* length of the valid copy: records, and bytes that are not zero behind them */
	struct pseudoimg_dst dst; /* strings point into the copy */
};

struct pseudoimg_model {
	struct pseudoimg_job *job;
	struct wire_image *image;		      /* a copy, with its strings */
	PSEUDOIMG_ARRAY(struct pseudoimg_span) runs;  /* ordered by vaddr, neighbours merged */
	PSEUDOIMG_ARRAY(uint32_t) runs_by_off;	      /* indices */
	PSEUDOIMG_ARRAY(struct pseudoimg_node) nodes; /* ordered by vaddr, then longer ones first */
	PSEUDOIMG_ARRAY(struct pseudoimg_range) ranges;	 /* ordered by vaddr */
	PSEUDOIMG_ARRAY(struct pseudoimg_str) dst_names; /* names of the routines of DST */
	PSEUDOIMG_ARRAY(struct pseudoimg_seq) seqs;	 /* sequences of DST, by vaddr */
	PSEUDOIMG_ARRAY(struct pseudoimg_row) rows;	 /* rows of these */
	PSEUDOIMG_ARRAY(struct pseudoimg_dst_range) dst; /* ordered by contents of the copy */
	struct base_buf notes; /* records that the note repeats, in the job's order */
	uint32_t nr_instances; /* told there; and how many more there are */
	uint64_t nr_more;
	struct pseudoimg_names names;
	struct base_buf loaded_rows, loaded_names; /* rows and names of the routine loaded last */
	struct base_buf loaded_text, loaded_code, hashed; /* room for its hash */
	uint32_t stamp;					  /* its stamp, in the names */
	uint32_t nr_bad, nr_overlaps;			  /* as in the result */
};

/* Read @job into zeroed @m, which goes on reading it. */
int pseudoimg_model_read(struct pseudoimg_model *m, struct pseudoimg_job *job,
			 struct base_err *err);
void pseudoimg_model_release(struct pseudoimg_model *m);

/* One routine's record and what it says, until the next one is loaded. */
struct pseudoimg_loaded {
	struct pseudoimg_str name;     /* as the application gave it */
	struct wire_routine_view view; /* rec NULL: from DST, has nothing else */
	const uint32_t *names;	       /* names by the record's index; PSEUDOIMG_NO_FILE: empty */
	const uint8_t *locations;      /* WIRE_ROUTINE_LOCATIONS; or NULL */
	size_t locations_len;
	struct pseudoimg_seq seq; /* its lines; nr_rows 0: none */
};
/* Record and name alone. 0, or a negative where the job cannot be read or has changed. */
int pseudoimg_model_load(struct pseudoimg_model *m, const struct pseudoimg_node *node,
			 struct pseudoimg_loaded *out);
/* And its lines and names. */
int pseudoimg_model_load_lines(struct pseudoimg_model *m, const struct pseudoimg_node *node,
			       struct pseudoimg_loaded *out);
/*
 * Append struct pseudoimg_row for a function of @code_len bytes, by CPython's table of locations,
 * which may be cut off: it begins with line @first; @file: of its lines. 0 or -ENOMEM.
 */
int pseudoimg_locations_read(const uint8_t *table, size_t len, uint32_t first, uint64_t code_len,
			     uint32_t file, struct base_buf *rows);
/* A sequence of DST. */
struct pseudoimg_seq pseudoimg_model_seq(const struct pseudoimg_model *m, size_t index);
static inline struct pseudoimg_span pseudoimg_node_span(const struct pseudoimg_node *n)
{
	return (struct pseudoimg_span){ .start = n->start, .len = n->len, .order = n->ref };
}
/* Index of the first node that starts at or behind @vaddr. */
size_t pseudoimg_model_from(const struct pseudoimg_model *m, uint64_t vaddr);
/* Order by image offset: longer ones first, then in the job's order. */
int pseudoimg_span_by_off(const void *a, const void *b);

/* The run that holds @vaddr, or NULL. */
const struct pseudoimg_span *pseudoimg_runs_find(const struct pseudoimg_model *m, uint64_t vaddr);
/* All of @at stands in runs (an empty one: its start): sets its img_off. */
bool pseudoimg_runs_place(const struct pseudoimg_model *m, struct pseudoimg_span *at);

/* ---- identity (ident.c, hash.c) -------------------------------------------------------------- */

/*
 * Invariant 7: what the image holds, nothing of where and when. On the way files get their numbers,
 * by first use in the order of image offsets, and each routine its hashes, which are written to @fd
 * from @hashes_off on in the order of addresses (@fd negative: not).
 */
int pseudoimg_ident(struct pseudoimg_model *m, int fd, uint64_t hashes_off, uint8_t id[20]);
/*
 * Hash the routine that was loaded with lines; its bytes come from @m if the record does not have
 * them.
 */
int pseudoimg_hash(struct pseudoimg_model *m, const struct pseudoimg_node *node,
		   const struct pseudoimg_loaded *loaded, struct pseudoimg_hashes *out);
/*
 * Set operands to zero that tell where the code or something else stands: distances that leave
 * [@code, @code + @len), addresses. What cannot be taken apart stays as it is. Whether any byte
 * changed.
 */
bool pseudoimg_mask(uint32_t machine, uint8_t *code, size_t len);

/* ---- layout (write.c), and the bytes there (fill.c) ------------------------------------------ */

/* A .text section. */
struct pseudoimg_text {
	uint64_t addr, len;
};

struct pseudoimg_layout {
	PSEUDOIMG_ARRAY(struct pseudoimg_text) text; /* ascending, disjoint */
	uint64_t text_bytes;
};

/* Fills traces of .text in ascending order of addresses. */
struct pseudoimg_filler {
	struct pseudoimg_model *m;
	size_t range, routine; /* all before these end before the trace */
};
/* One whose first trace may be filled from @addr on. */
struct pseudoimg_filler pseudoimg_fill_from(struct pseudoimg_model *m, uint64_t addr);
/* 1; 0 where nothing stands in the trace, which is undefined then; or a negative. */
int pseudoimg_fill(struct pseudoimg_filler *f, uint64_t addr, uint8_t *trace, size_t len);

/* ---- names (names.c) ------------------------------------------------------------------------- */

/*
 * Append @name with a NUL: control characters and bytes that are no UTF-8 escaped (\n, \t, \r,
 * \xNN), so that line-oriented tools stay sane. 0 or -ENOMEM.
 */
int pseudoimg_name_put(struct base_buf *b, const char *name, size_t len);
/* Likewise of a routine: one without a name has a stand-in. */
int pseudoimg_symbol_name_put(struct base_buf *b, const struct pseudoimg_str *name);

/* ---- output (sink.c, elf.c) ------------------------------------------------------------------ */

/* Where a section's bytes go: gathered, and written as they become many. */
struct pseudoimg_sink {
	int fd;
	uint64_t off; /* in the file, of the first byte in b */
	struct base_buf b;
};
static inline uint64_t pseudoimg_sink_at(const struct pseudoimg_sink *s)
{
	return s->off + s->b.len;
}
/* Write if there is much. 0 or -errno. */
int pseudoimg_sink_drain(struct pseudoimg_sink *s);
/* All of it at @off. 0 or -errno. */
int pseudoimg_put_at(int fd, const void *data, size_t len, uint64_t off);

struct pseudoimg_section {
	const char *name; /* static, or kept by the caller */
	uint32_t type;
	uint64_t flags, addr, len, align, entsize;
	uint32_t link, info;
	const void *data; /* NULL: by @put, or @filler, or the bytes stand there already */
	bool there;
	bool compress; /* where that makes it shorter; of no address, and with @data or @put */
	/* Appends the bytes to the sink, and drains it; sets nothing else. 0 or negative. */
	int (*put)(void *ctx, struct pseudoimg_sink *s);
	void *ctx;
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
/* Where in the file a section with that alignment goes that is added next. All before it have
 * known lengths. */
uint64_t pseudoimg_elf_next_off(const struct pseudoimg_elf *e, uint64_t align);
/* Contents of a GNU build-id note. 0 or -ENOMEM. */
int pseudoimg_build_id_note(struct base_buf *b, const uint8_t *id, size_t id_len);
/*
 * Add .shstrtab and write the file to @fd, section after section: one may use what the ones before
 * it have found out. @filler gives the contents of .text, NULL where there are none. 0, or negative
 * with @err.
 */
int pseudoimg_elf_write(struct pseudoimg_elf *e, int fd, struct pseudoimg_filler *filler,
			struct base_err *err);
void pseudoimg_elf_release(struct pseudoimg_elf *e);

/* ---- DWARF (dwarf.c) ------------------------------------------------------------------------- */

/* Abbreviations: a kind, and what it has beside. */
enum {
	PSEUDOIMG_UNIT = 0x10,
	PSEUDOIMG_ROUTINE = 0x20,
	PSEUDOIMG_INLINED = 0x30,
	PSEUDOIMG_ABSTRACT = 0x40,
	PSEUDOIMG_PARENT = 1,
	PSEUDOIMG_DECLARED = 2, /* has lines, or a line */
	PSEUDOIMG_CALLED = 2,	/* the call's line is known */
};
#define PSEUDOIMG_PRODUCER "dcpid " DCPI_VERSION
extern const uint8_t pseudoimg_abbrevs[];
extern const size_t pseudoimg_abbrevs_len;

/* Parameters of the line program. */
enum {
	PSEUDOIMG_OPCODE_BASE = 13,
	PSEUDOIMG_LINE_BASE = -5,
	PSEUDOIMG_LINE_RANGE = 14,
};
/* Its header's fixed fields and operand counts, from minimum_instruction_length on. */
extern const uint8_t pseudoimg_line_header[];
extern const size_t pseudoimg_line_header_len;

/* Where they come from. */
struct pseudoimg_dwarf {
	struct pseudoimg_model *model;
	const struct pseudoimg_layout *layout;
};
/* Add the sections; @d is read when they are written. 0 or more, or -ENOMEM. */
int pseudoimg_dwarf_add(struct pseudoimg_dwarf *d, struct pseudoimg_elf *e);

int pseudoimg_put_sleb(struct base_buf *b, int64_t v);

/* ---- reading images back (read.c), merging (merge.c) ----------------------------------------- */

/* As pseudoimg_write_file. */
int pseudoimg_write_job(struct pseudoimg_job *job, int fd, struct pseudoimg_result *result,
			struct base_err *err);
/* Append the image in @fd to @out as a job. */
int pseudoimg_read(int fd, struct pseudoimg_sink *out, struct base_err *err);
/* Write all that is gathered. 0 or -errno. */
int pseudoimg_sink_flush(struct pseudoimg_sink *s);

/* ---- the helper (run_helper.c, dcpid-pseudoimg.c) -------------------------------------------- */

#define PSEUDOIMG_MAPS_MOST    (UINT64_C(256) << 20)
#define PSEUDOIMG_ANSWER_MAGIC 0x474d4950u /* "PIMG" */

/*
 * The answer that the helper writes to descriptor 2, once, at its end. After a successful merge the
 * 64-bit length of the maps and the maps follow.
 */
struct pseudoimg_answer {
	uint32_t magic;
	int32_t status;
	struct pseudoimg_result result;
	char text[480];
	char hint[240];
};

#endif
