/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * profdb from within: a profile in memory (profile.c, its moves in edges.c, its instruction samples
 * in insns.c), its files (header.c the ASCII part, format.c the binary parts), value profiles
 * (values.c), call paths (callpaths.c), workloads (workloads.c, workloads_file.c with
 * workload_counts.c and workload_minutes.c), the database (layout.c, list.c, lock.c, epoch.c,
 * db.c), its housekeeping (keep.c, expire.c, join.c), flushes (flush.c, flush_values.c, whole.c,
 * commit.c the redo log, name.c the files' names), and readers (walk.c).
 */
#ifndef DCPI_PROFDB_INTERNAL_H
#define DCPI_PROFDB_INTERNAL_H

#include <stdlib.h>

#include "profdb.h"

#define PROFDB_HEADER_MAX (1u << 20) /* longest ASCII header */
/* Limits of the tables that adding profiles up uses; beyond them each lookup is slow: */
#define PROFDB_NR_LINES	     16384 /* header lines of other words */
#define PROFDB_NR_SECTIONS   64	   /* sections kept as they are */
#define PROFDB_NAME_MAX	     200   /* longest name of a profile file; leaves room for a prefix */
#define PROFDB_VERSION1_LINE "version dcpi-dynamic 1"

/* ---- little-endian numbers ------------------------------------------------------------------- */

static inline uint32_t profdb_get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t profdb_get64(const uint8_t *p)
{
	return profdb_get32(p) | (uint64_t)profdb_get32(p + 4) << 32;
}

static inline void profdb_put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static inline void profdb_put64(uint8_t *p, uint64_t v)
{
	profdb_put32(p, (uint32_t)v);
	profdb_put32(p + 4, (uint32_t)(v >> 32));
}

/* ---- counts (profile.c) ---------------------------------------------------------------------- */

/*
 * Rows of (offset, one count per event), each a struct profdb_entry; found by a hash that is only
 * made when a row does not simply come after the last one, sorted when somebody looks.
 */
struct profdb_counts {
	uint64_t *words; /* nr * stride */
	size_t nr, cap_words, stride;
	uint32_t *slots; /* row + 1, 0 where free; NULL: no hash now */
	size_t nr_slots; /* a power of two */
	bool sorted;
};

static inline struct profdb_entry *profdb_counts_at(const struct profdb_counts *c, size_t i)
{
	return (struct profdb_entry *)(c->words + i * c->stride);
}

/* ---- sections of version 1 (section.c) ------------------------------------------------------- */

enum { PROFDB_VARINT_MAX = 10 }; /* bytes */

struct profdb_payload {
	char tag[4];
	const uint8_t *data;
	size_t len;
};

/* The section at *@pos of a file; *@pos moves behind it. 0, -DCPI_EFORMAT, -DCPI_ETRUNCATED. */
int profdb_section_next(const uint8_t *file, size_t len, size_t *pos, struct profdb_payload *s,
			struct base_err *err);
static inline bool profdb_section_is(const struct profdb_payload *s, const char *tag)
{
	return s->tag[0] == tag[0] && s->tag[1] == tag[1] && s->tag[2] == tag[2] &&
	       s->tag[3] == tag[3];
}
/* The bytes appended between begin and end are the payload. Pass @at of the first to the second. */
int profdb_section_begin(struct base_buf *out, const char tag[4], size_t *at);
int profdb_section_end(struct base_buf *out, size_t at);
int profdb_section_put(struct base_buf *out, const char tag[4], const void *data, size_t len);
/* The number at *@pos, which moves behind it. 0 or -DCPI_EFORMAT: each number has one spelling
 * only, no zero at the end of several bytes. */
static inline int profdb_varint_get(const struct profdb_payload *s, size_t *pos, uint64_t *out)
{
	uint64_t v = 0;

	for (int i = 0; i < PROFDB_VARINT_MAX && *pos < s->len; i++) {
		uint8_t byte = s->data[(*pos)++];

		if ((i == PROFDB_VARINT_MAX - 1 && byte > 1) || (i && !byte))
			return -DCPI_EFORMAT;
		v |= (uint64_t)(byte & 0x7f) << 7 * i;
		if (!(byte & 0x80)) {
			*out = v;
			return 0;
		}
	}
	return -DCPI_EFORMAT;
}

/* Into @to, PROFDB_VARINT_MAX bytes at most; how many. */
size_t profdb_varint_put(uint8_t *to, uint64_t v);
/* A length and so many bytes. Get: as a text of @max bytes at most; free(). 0, -DCPI_EFORMAT,
 * -ENOMEM. */
int profdb_bytes_append(struct base_buf *out, const void *data, size_t len);
int profdb_text_get(const struct profdb_payload *s, size_t *pos, size_t max, char **out);

/* ---- adaptive range coder (range_coder.c) ---------------------------------------------------- */

enum {
	PROFDB_RANGE_LENGTHS = 65, /* 0 to 64 bits */
	PROFDB_RANGE_LENGTH_BITS = 7,
	PROFDB_RANGE_LEARNT = 7, /* number of low bits with learnt probabilities */
	PROFDB_RANGE_TAIL = 5	 /* bytes by which the decoder is ahead: no stream is shorter */
};

/* Probabilities that the next bit of a number is 0, by the bits of the number before it. */
struct profdb_range_model {
	uint16_t length[1 << PROFDB_RANGE_LENGTH_BITS];
	uint16_t bit[PROFDB_RANGE_LENGTHS][1 << PROFDB_RANGE_LEARNT];
};

struct profdb_range_encoder {
	struct base_buf *out;
	uint64_t low;  /* 33 bits: the highest is a carry */
	uint64_t held; /* bytes that a carry may still change: one, then 0xff ones */
	uint32_t range;
	uint8_t first; /* first of the bytes held */
	int error;     /* 0 or negative: nothing more is written */
};

struct profdb_range_decoder {
	const uint8_t *data;
	size_t len, pos; /* pos goes beyond len where it was cut */
	uint32_t range, code;
};

/* Bytes that a payload of so many rows has at least: so a reader knows what memory it may take. */
uint64_t profdb_range_least(uint64_t nr_rows);
/* That have learnt nothing yet; free(). NULL: no memory. */
struct profdb_range_model *profdb_range_models(size_t nr);
void profdb_range_begin(struct profdb_range_encoder *e, struct base_buf *out);
void profdb_range_put(struct profdb_range_encoder *e, struct profdb_range_model *m, uint64_t v);
int profdb_range_end(struct profdb_range_encoder *e); /* 0 or negative */
/* 0 or -DCPI_EFORMAT. */
int profdb_range_open(struct profdb_range_decoder *d, const uint8_t *data, size_t len);
/* 0 or -DCPI_EFORMAT: no number, or it is cut. */
int profdb_range_get(struct profdb_range_decoder *d, struct profdb_range_model *m, uint64_t *out);

/* ---- edge counts (edges.c) ------------------------------------------------------------------- */

/* As counts: a hash only while moves do not come in order, sorted when somebody looks. */
struct profdb_edges {
	struct profdb_edge *v;
	size_t nr, cap;
	size_t nr_started; /* number of these whose start is known */
	uint32_t *slots;   /* index + 1, 0 where free; NULL: no hash now */
	size_t nr_slots;   /* a power of two */
	uint64_t sum[2];
	bool unsorted;
};

/* ---- instruction samples (insns.c) ----------------------------------------------------------- */

/* As moves. */
struct profdb_insns {
	struct profdb_insn *v;
	size_t nr, cap;
	size_t nr_placed; /* number of these that are of an offset */
	uint32_t *slots;  /* index + 1, 0 where free; NULL: no hash now */
	size_t nr_slots;  /* a power of two */
	bool unsorted;
};

/* ---- profiles (profile.c) -------------------------------------------------------------------- */

struct profdb_line {
	char *word, *value;
	char blank; /* between both in the file: a space or a tab */
};

/* A binary section of a version 1 file that this program does not know, kept for rewriting. */
struct profdb_section {
	char tag[4];
	uint8_t *data;
	size_t len;
};

struct profdb_profile {
	enum profdb_kind kind;
	struct base_id image;
	char **paths;
	size_t nr_paths, cap_paths;
	struct profdb_line *lines; /* words without a member here, in order, repeated ones too */
	size_t nr_lines, cap_lines;
	struct profdb_section *sections;
	size_t nr_sections, cap_sections;
	struct profdb_event events[PROFDB_NR_EVENTS];
	size_t nr_events;
	struct profdb_counts counts;
	struct profdb_edges edge_counts;
	struct profdb_insns insns;
};

/* A detail that a profile may have beside its counts, with a section of its own in files: moves, or
 * instruction samples. */
struct profdb_detail {
	const char *tag;  /* of the section */
	const char *what; /* in messages */
	size_t (*nr)(const struct profdb_profile *p);
	void (*release)(struct profdb_profile *p);
	void (*clear)(struct profdb_profile *p);
	/* Room in @to for those of @from, so that merging them cannot fail. 0 or -ENOMEM. */
	int (*reserve)(struct profdb_profile *to, const struct profdb_profile *from);
	/* All of @from, whose events are those of numbers @event in @to. */
	void (*merge)(struct profdb_profile *to, const struct profdb_profile *from,
		      const size_t *event);
	/* The payload of the section into @p, which has its counts and none of these. 0, -ENOMEM,
	 * -DCPI_EFORMAT, -DCPI_EVERSION. */
	int (*parse)(struct profdb_profile *p, const struct profdb_payload *s);
	int (*print)(const struct profdb_profile *p, struct base_buf *out);
};

extern const struct profdb_detail profdb_detail_moves, profdb_detail_insns;
enum { PROFDB_NR_DETAILS = 2 };
/* In the order of a file. */
extern const struct profdb_detail *const profdb_details[PROFDB_NR_DETAILS];

/* Append a line, whether or not the word is there already. 0, -EINVAL, -DCPI_ELIMIT or -ENOMEM. */
int profdb_profile_add_line(struct profdb_profile *p, const char *word, const char *value);
int profdb_profile_add_section(struct profdb_profile *p, const char tag[4], const void *data,
			       size_t len);

/* Finds what profdb_profile_merge would refuse, with nothing changed: sums above 64 bits, too many
 * events, sections that cannot be added up. */
int profdb_profile_merge_check(const struct profdb_profile *to, const struct profdb_profile *from);

/* @event of @p alone, with the whole header. NULL: no memory. */
struct profdb_profile *profdb_profile_extract(const struct profdb_profile *p, size_t event);

/* ---- value profiles (values.c) --------------------------------------------------------------- */

struct profdb_coins {
	uint64_t state;
};

struct profdb_context_image {
	struct base_id id;
	char *path;
};

struct profdb_values {
	struct profdb_profile *header; /* no events, and no words of those that are below */
	char profiler[PROFDB_PROFILER];
	uint32_t uid;
	uint64_t total, lost; /* values: all, and those of them that are in no list */
	struct profdb_coins coins;
	struct profdb_context_image *images;
	size_t nr_images, cap_images, images_text;
	struct profdb_hotlist *v;
	size_t nr, cap;
	uint32_t *slots; /* index + 1, 0 where free; NULL: no hash now */
	size_t nr_slots; /* a power of two */
	bool unsorted;
};

/* As profdb_values_move (@moved NULL: as profdb_values_merge), whoever may read them. */
int profdb_values_take_all(struct profdb_values *to, const struct profdb_values *from,
			   uint64_t (*moved)(void *ctx, uint64_t off), void *ctx);

/* ---- images of files about all images (image_table.c) ---------------------------------------- */

#define PROFDB_NR_IMAGE_REFS (1u << 20)

struct profdb_image_table {
	struct profdb_image_ref *v;
	size_t nr, cap;
	struct base_map by_key; /* key is what makes images equal -> number + 1 */
};

void profdb_image_table_release(struct profdb_image_table *t);
/* As profdb_callpaths_image_add. */
int profdb_image_table_add(struct profdb_image_table *t, const struct profdb_image_ref *i);
/* All of @from; their numbers in @to into @numbers, free(), also on failure. Same errors. */
int profdb_image_table_merge(struct profdb_image_table *to, const struct profdb_image_table *from,
			     uint32_t **numbers);
/* One of a file. Get: the next number. 0, -DCPI_EFORMAT, -DCPI_ELIMIT, -ENOMEM. */
int profdb_image_table_get(struct profdb_image_table *t, const struct profdb_payload *s,
			   size_t *pos);
int profdb_image_put(const struct profdb_image_ref *i, struct base_buf *out);

/* ---- call paths (callpaths.c) ---------------------------------------------------------------- */

/* Their file's name, and what its header has in place of a path. */
#define PROFDB_CALLPATHS "callpaths"

/* As much of @k into @w as there is room for. The number, or -ENOMEM. */
int profdb_workloads_take(struct profdb_workloads *w, const struct profdb_workload *k);
/* The section of workloads: *@at is where reading failed. 0, -DCPI_EFORMAT, -DCPI_ELIMIT,
 * -ENOMEM. */
#define PROFDB_WORKLOADS_TAG "WLDS"
int profdb_workloads_get(struct profdb_workloads *w, const struct profdb_payload *s, size_t *at);
int profdb_workloads_put(const struct profdb_workloads *w, struct base_buf *out);

/* ---- workloads (workloads.c, workloads_file.c) ----------------------------------------------- */

#define PROFDB_WORKLOADS	"workloads" /* as PROFDB_CALLPATHS */
#define PROFDB_NR_WORKLOAD_ROWS (UINT32_C(1) << 27)

/* No padding: it is hashed. */
struct profdb_workload_key {
	int64_t minute; /* 0 in counts */
	uint64_t off;	/* in minutes: block */
	uint32_t image, workload;
};

/* Rows of a key and one count for each event. A hash is there only while they are looked for. */
struct profdb_workload_rows {
	uint64_t *words; /* nr * stride */
	size_t nr, cap_words, stride;
	uint32_t *slots; /* row + 1, 0 where free */
	size_t nr_slots; /* a power of two, or 0 */
	uint64_t seed;
	bool unsorted;
};

static inline struct profdb_workload_key *
profdb_workload_rows_key(const struct profdb_workload_rows *t, size_t row)
{
	return (struct profdb_workload_key *)(t->words + row * t->stride);
}

static inline uint64_t *profdb_workload_rows_counts(const struct profdb_workload_rows *t,
						    size_t row)
{
	return t->words + row * t->stride + sizeof(struct profdb_workload_key) / sizeof(uint64_t);
}

static inline void profdb_workload_rows_release(struct profdb_workload_rows *t)
{
	free(t->words);
	free(t->slots);
}

/* Counts of so many events. 0 or -ENOMEM. */
int profdb_workload_rows_widen(struct profdb_workload_rows *t, size_t nr_events);
/* A key that is not there, as a file's reader adds it: counts of 0, until the next call. 0,
 * -ENOMEM, -DCPI_ELIMIT. */
int profdb_workload_rows_append(struct profdb_workload_rows *t,
				const struct profdb_workload_key *key, uint64_t **count);
/* Add all of @from, whose counts are of as many events or fewer. 0, -ENOMEM, -DCPI_ELIMIT. */
int profdb_workload_rows_add(struct profdb_workload_rows *t,
			     const struct profdb_workload_rows *from);
/* Ascending by minute, image, offset, workload. */
void profdb_workload_rows_sort(struct profdb_workload_rows *t);

/* Zero-initialize. */
struct profdb_notes {
	struct profdb_note *v;
	size_t nr, cap;
	bool sorted;
};

struct profdb_workloads {
	struct profdb_profile *header; /* of kind "named"; its events, and their sums */
	struct profdb_image_table images;
	struct profdb_workload *v; /* their texts are those of: */
	size_t nr, cap;
	struct base_map texts;	/* text -> itself, allocated */
	struct base_map by_key; /* key is what makes workloads equal -> number + 1 */
	struct profdb_workload_rows counts, minutes;
	struct profdb_notes notes;
	bool no_minutes;	/* they were not read, or are not there for all that was merged */
	struct base_buf stored; /* parts of its file that stay as they are: their sections */
	uint64_t nr_stored;	/* counts in these */
	size_t nr_parts;	/* parts that its file had */
	uint64_t nr_rows;	/* counts in all of these, equal ones more than once */
	uint8_t level;		/* of the part that counts and minutes become */
};

/* Writes or reads the rows of a section. */
struct profdb_workload_coder {
	bool writes; /* numbers go out, else they come in */
	struct profdb_range_encoder to;
	struct profdb_range_decoder from;
	struct profdb_range_model *models;
	uint64_t nr_rows;
	size_t start; /* begin of the section, in bytes of the file */
	int error;    /* negative: all further numbers are 0 */
};

/* 0, -ENOMEM; of read also -DCPI_EFORMAT. To be released also on failure. */
int profdb_workload_coder_write(struct profdb_workload_coder *c, size_t nr_models, uint64_t nr_rows,
				struct base_buf *out);
int profdb_workload_coder_read(struct profdb_workload_coder *c, size_t nr_models,
			       const struct profdb_payload *s);
void profdb_workload_coder_release(struct profdb_workload_coder *c);
/* One number: *@v, or into it. */
void profdb_workload_code(struct profdb_workload_coder *c, size_t model, uint64_t *v);
/* All is written: 0 or negative. All was read. */
int profdb_workload_coder_end(struct profdb_workload_coder *c);
bool profdb_workload_coder_done(const struct profdb_workload_coder *c);

/* A part of a file: what one flush or several brought. */
struct profdb_workload_part {
	struct profdb_workload_rows counts, minutes;
	size_t nr_events; /* the first ones of the file */
	uint64_t sums[PROFDB_NR_EVENTS];
};

/* The code of a kind of rows in their section: counts in WCNT (workload_counts.c), minutes in WMIN
 * (workload_minutes.c). */
struct profdb_coded_rows {
	/* Into @part, which has its counts where minutes are read. @w has images and workloads. 0,
	 * -ENOMEM, -DCPI_EFORMAT. */
	int (*parse)(struct profdb_workload_part *part, const struct profdb_workloads *w,
		     const struct profdb_payload *s);
	int (*print)(const struct profdb_workloads *w, struct base_buf *out);
};

extern const struct profdb_coded_rows profdb_coded_counts, profdb_coded_minutes;

/*
 * Counts that are read and written again at once, in a flush or when an epoch ends, which holds up
 * drains: 5 s of CPU time, and some 100 MB.
 */
enum { PROFDB_MERGED_ROWS = 1 << 20 };

/* ---- headers (header.c) ---------------------------------------------------------------------- */

/* Check the value of @word: 0, or -EINVAL. Words with functions of their own are refused. */
int profdb_word_check(const char *word, const char *value);
bool profdb_event_name_ok(const char *name);
/* All of @text in @base (10 or 16), digits only. */
int profdb_number_parse(const char *text, unsigned int base, uint64_t *out);
/* "YYYYMMDDHHMM", or with seconds, with every part in its range. */
bool profdb_epoch_name_ok(const char *name);
/* The same, or with seconds behind. */
bool profdb_epoch_time_ok(const char *time);
/* Name an epoch by UTC seconds. 0 or -EINVAL: beyond the calendar. */
int profdb_epoch_time(int64_t now, char time[PROFDB_TIME_LEN + 1]);

/* Fraction of time, in the millionths that files keep. */
uint32_t profdb_enabled_millionths(double enabled);

/*
 * The ASCII part: a new profile without counts into @out, where the binary part begins into
 * @binary, the version into @format.
 */
int profdb_header_parse(const uint8_t *data, size_t len, struct profdb_profile **out,
			size_t *binary, enum profdb_format *format, struct base_err *err);
/* With the padded "samples" line. @event: for the old formats. */
int profdb_header_print(const struct profdb_profile *p, enum profdb_format format, size_t event,
			struct base_buf *out, struct base_err *err);

/* ---- binary parts (format.c) ----------------------------------------------------------------- */

/* The footer of a file, checked but for its totals; @nr_events: as its header has it. */
int profdb_format1_footer(const uint8_t *file, size_t len, size_t binary, size_t nr_events,
			  struct profdb_payload *foot, struct base_err *err);
/* A section that is not understood: kept for writing, or (upper case) refused. */
int profdb_section_keep(struct profdb_profile *p, const struct profdb_payload *s,
			struct base_err *err);
/* Append the last sections and the footer. @start: where the file begins in @out. */
int profdb_format1_end(const struct profdb_profile *p, size_t nr_offsets, struct base_buf *out,
		       size_t start);
/* Any of the errors that say "the bytes are not a good profile". */
bool profdb_error_is_content(int r);

/* ---- lists of names (names.c) ---------------------------------------------------------------- */

struct profdb_names {
	char **items;
	size_t nr, cap;
};

int profdb_names_add(struct profdb_names *n, const char *name);
void profdb_names_sort(struct profdb_names *n); /* ascending, each once */
void profdb_names_release(struct profdb_names *n);
/* NULL-terminated, one allocation, of items [from, to); NULL: no memory. */
char **profdb_names_pack(const struct profdb_names *n, size_t from, size_t to);
/* All entries of the folder @name in @dir_fd but "." and "..", unsorted. 0 or -errno. */
int profdb_names_list(struct profdb_names *n, int dir_fd, const char *name);

/* ---- the redo log (commit.c) ----------------------------------------------------------------- */

/*
 * ".commit" in <db>/<epoch>/<platform> names the last flush that counts and the files it wrote. A
 * file NAME of flush SEQ is ".new-SEQ-NAME" from put until, after the commit, it is renamed; so the
 * state as of the commit is ".new-SEQ-NAME" where that exists, else NAME, without those that it
 * says are gone. ".commit" stays: it tells readers whether a flush came between.
 */
#define PROFDB_COMMIT_NAME   ".commit"
#define PROFDB_OPEN_NAME     ".open"
#define PROFDB_LOST_NAME     ".lost"
#define PROFDB_TURNED_NAME   ".turned"	/* in an epoch's folder: all machines are to follow */
#define PROFDB_GONE_PREFIX   ".gone-"	/* prefix of epochs that are being removed */
#define PROFDB_IMPORT_PREFIX ".import-" /* prefix of profiles that maintenance is importing */
#define PROFDB_BAD_PREFIX    ".bad-" /* prefix of damaged files: no program reads or removes them */

struct profdb_commit {
	uint64_t seq; /* 0: no flush yet */
	struct profdb_names files;
	struct profdb_names gone; /* files that are no more */
};

void profdb_commit_release(struct profdb_commit *c);
/* No file: seq 0. 0, -DCPI_EFORMAT and the like, -errno. */
int profdb_commit_read(int dir_fd, struct profdb_commit *c, struct base_err *err);
/* The file's @text: "dcpi-commit 1", "seq N", "file NAME" …, "gone NAME" …, "crc
 * X" over all before it. Into @c, which is empty; to be released also on failure. 0,
 * -DCPI_ECHECKSUM, -DCPI_EVERSION, -DCPI_EFORMAT or -ENOMEM. */
int profdb_commit_parse(const struct base_buf *text, struct profdb_commit *c);
int profdb_commit_write(int dir_fd, const struct profdb_commit *c, struct base_err *err);
/* After a crash: complete the last commit, remove what was never committed. Last number in @seq. */
int profdb_commit_recover(int dir_fd, uint64_t *seq, struct base_err *err);
/* ".new-SEQ-NAME" */
char *profdb_new_name(uint64_t seq, const char *name, char out[256]);

/* File @name of an epoch's folder as of the last flush, @seq. 0 or negative: -ENOENT. */
int profdb_read_committed(int fd, uint64_t seq, const char *name, struct base_buf *out,
			  struct base_err *err);

struct profdb;
/* Complete the flush of the current epoch that was committed but not renamed. It can be repeated. 0
 * or -errno. */
int profdb_commit_redo(struct profdb *db, struct base_err *err);

/* ---- files of an epoch (name.c) -------------------------------------------------------------- */

/*
 * The longest key, which distinguishes the profiles of (epoch, platform): "file.<id>",
 * "NAME.dynamic", …
 */
#define PROFDB_KEY_MAX 256
/* @event: whose alone the file is, as the old forms are; NULL: version 1. */
void profdb_key(const struct profdb_profile *p, const char *stem, const char *event,
		char key[PROFDB_KEY_MAX]);
/* Name of the @version'th file (from 0) of that key. */
/* How many samples file @name of an epoch and platform says are lost; 0 where it is not there. */
uint64_t profdb_lost_read(int epoch_fd, const char *name);
/* Note that a finished epoch that began at @began (YYYYMMDDHHMMSS) lost @nr. 0 or negative. */
int profdb_lost_write(int epoch_fd, const char *began, uint64_t nr, struct base_err *err);
void profdb_file_name(const struct profdb_profile *p, const char *stem, const char *event,
		      unsigned int version, char name[256]);
/* The key of pseudo-image @stem's file with that @ending: "", or one of those. */
void profdb_dynamic_key(const char *stem, const char *ending, char key[PROFDB_KEY_MAX]);
/* The next "+EVENT" that the key of a pseudo-image's file may end with, from the @from'th '+' in it
 * on; where a '+' stands in a facility's name too it is one that no event has. False: none. */
bool profdb_key_ending(const char *key, size_t *from, char ending[PROFDB_KEY_MAX]);
/* A name that we may have given: no way out of the folder, nothing that breaks a line. */
bool profdb_file_name_ok(const char *name);
/* The same of value profiles. */
void profdb_values_key(const struct profdb_values *v, const char *stem, char key[PROFDB_KEY_MAX]);
void profdb_values_file_name(const struct profdb_values *v, const char *stem, unsigned int version,
			     char name[256]);
/* A file or key of values, of @profiler (NULL: of any). */
bool profdb_values_name(const char *name, const char *profiler);
/* @key is of values in pseudo-image @stem. */
bool profdb_values_of_dynamic(const char *key, const char *stem);
/* Key and version back from a file's name. */
void profdb_key_of_name(const char *name, char key[PROFDB_KEY_MAX], unsigned int *version);

/* ---- the database (db.c) --------------------------------------------------------------------- */

/* One for each file of an epoch, which may go on for months. */
struct profdb_file {
	uint64_t put_seq; /* flush in which it was put last */
	char *name;
	unsigned int version;
	bool announced; /* that it takes what the old form cannot hold */
};

enum { PROFDB_LOCK_TEXT = 512 };

/* The lock of a platform, or of maintenance (lock.c, keep.c). */
struct profdb_lock {
	int fd;			      /* -1: not locked */
	char text[PROFDB_LOCK_TEXT];  /* ours, while we hold it */
	uint64_t heartbeat_ns;	      /* time of the last heartbeat */
	profdb_watching_fn *watching; /* called before another machine's lock is watched; or NULL */
	void *watching_ctx;
	bool keeps; /* the lock is that of maintenance, not of a platform */
};

/* Descriptors of folders of the database, -1 until they are asked for (layout.c). */
struct profdb_folders {
	int dyn, kernel, costs, index;
};

/* The epoch that is written (epoch.c). */
struct profdb_epoch {
	char name[PROFDB_EPOCH_LEN + 1]; /* empty: none */
	char began[PROFDB_TIME_LEN + 1]; /* when it did */
	int fd;				 /* folder <db>/<epoch>/<platform>, or -1 */
	struct base_map files;		 /* key -> struct profdb_file */
	struct profdb_names endings;	 /* "+EVENT" of pseudo-images' files among these */
	/* Called before it is closed, or NULL: what flushes put off. It can only save room. */
	void (*closing)(struct profdb *db);
};

/* The flush under way, or the last one (flush.c, commit.c). */
struct profdb_flush {
	uint64_t seq;
	enum profdb_format format; /* format of new files */
	uint64_t cpu_mhz, nr_cpus; /* written into each profile; 0: not */
	void (*alive)(void *ctx);  /* called within flushes, or NULL */
	void *alive_ctx;
	bool under_way;
	bool broken;		     /* a put failed so that nothing may follow */
	bool redo;		     /* committed, but not yet all renamed */
	struct profdb_commit commit; /* the current flush, or the one to redo */
};

struct profdb {
	char *path;
	int fd;
	char platform[PROFDB_PLATFORM_MAX + 1]; /* locked; else empty */
	struct profdb_folders folders;
	struct profdb_lock lock;
	struct profdb_epoch epoch;
	struct profdb_flush flush;
	struct profdb_commit join; /* the database's, as of the last list of epochs (list.c) */
};

/* The lock is ours still, as far as other machines see: asked before each commit. 0, -DCPI_EBUSY,
 * or -errno where that cannot be told. */
int profdb_lock_check(struct profdb *db, struct base_err *err);
void profdb_unlock(struct profdb *db);
/* As profdb_lock; @name: of a platform, or one that none can have. */
int profdb_lock_name(struct profdb *db, const char *name, struct base_err *err);
bool profdb_platform_name_ok(const char *name);
/* The owner of a database may have planted a link, and this process may be root: none is followed.
 */
#define PROFDB_FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* A folder is there, and is no link to one: an epoch would count twice, or be anybody's folder. */
bool profdb_is_dir(int dir_fd, const char *name);
/*
 * Give @fd to the owner of the folder @dir_fd, so that files which root makes in another user's
 * database belong to that user, who can then remove or continue them after root was killed. Nothing
 * happens if the owner is root or we are not root. Not for files of values, which hold data of all
 * users.
 */
void profdb_give(int dir_fd, int fd);
/* So given. 0 or -errno: -EEXIST, too. */
int profdb_make_folder(int dir_fd, const char *path);
/* The folder @path below @dir_fd, made where it is missing, and reached through no link: the
 * database's owner may have planted one, and we may be root. A descriptor, or -errno: -ENOTDIR. */
int profdb_folder_open(int dir_fd, const char *path);
/* For its owner alone, and @uid, before anything is in it. 0 or -errno; a file system that has no
 * lists of readers lets nobody else read it. */
int profdb_make_private(int fd, uint32_t uid);
/* As base_file_write with mode 0644, and given. */
int profdb_file_write(int dir_fd, const char *name, const void *data, size_t len,
		      struct base_err *err);
/* Begun before @before and not written since, by nobody who may still do so. */
bool profdb_epoch_is_old(struct profdb *db, const char *epoch, int64_t before);
/* Read the record of joined epochs into db->join (none where it cannot be read: -DCPI_E…, -errno).
 */
int profdb_join_load(struct profdb *db);
/* The epoch that @c made has not got its name yet: it is ".new-SEQ-EPOCH". */
bool profdb_join_pending(struct profdb *db, const struct profdb_commit *c);
/* Descriptor of <db>/<epoch>/<platform>, or -errno. */
int profdb_platform_open(const struct profdb *db, const char *epoch, const char *platform);
void profdb_epoch_leave(struct profdb *db);
/* The file of @key in the current epoch; @name: of a new one. NULL: no memory. */
struct profdb_file *profdb_epoch_file(struct profdb *db, const char *key, const char *name);
/* 0 or -ENOMEM. */
int profdb_file_rename(struct profdb_file *file, const char *name);

/* ---- flushes (flush.c, flush_values.c) ------------------------------------------------------- */

/* Bytes that no retry will make better; what cannot be read now may be readable next time. */
bool profdb_flush_is_bad(int r);
/* Fill the header of @m: the words and image of @p, and those of this epoch and machine. */
int profdb_flush_words(struct profdb *db, struct profdb_profile *m, const struct profdb_profile *p);
/* A file of this flush. @reader: for its owner alone, and for that uid (UINT32_MAX: nobody). */
int profdb_flush_write(struct profdb *db, struct profdb_file *file, const struct base_buf *buf,
		       const uint32_t *reader, struct base_err *err);

/* ---- files about all images (whole.c) -------------------------------------------------------- */

/* A kind of such files, of which an epoch and platform has one; its contents are @of. */
struct profdb_whole {
	const char *name;	   /* of the file */
	const char *what;	   /* in messages */
	void *(*make)(void);	   /* NULL: no memory */
	void (*release)(void *of); /* NULL: nothing */
	int (*parse)(const struct base_buf *data, const char *shown, void **out,
		     struct base_err *err);
	/* The same, of what will only be merged into and written. */
	int (*parse_stored)(const struct base_buf *data, const char *shown, void **out,
			    struct base_err *err);
	int (*merge)(void *to, const void *from);
	int (*format)(const void *of, struct base_buf *out, struct base_err *err);
	struct profdb_profile *(*header)(const void *of);
};

extern const struct profdb_whole profdb_whole_callpaths, profdb_whole_workloads;
/* Workloads without minutes, and without counts, too: to be read alone. */
extern const struct profdb_whole profdb_whole_counts, profdb_whole_workload_images;
enum { PROFDB_NR_WHOLES = 2 };
extern const struct profdb_whole *const profdb_wholes[PROFDB_NR_WHOLES];

/* Reads the header in place of *@header, and refuses that of another kind of file; *@binary: where
 * the sections begin. 0 or negative with @err. */
int profdb_whole_header(const struct profdb_whole *kind, const void *data, size_t len,
			struct profdb_profile **header, size_t *binary, struct base_err *err);
/* As profdb_callpaths_load. */
int profdb_whole_load(struct profdb *db, const struct profdb_whole *kind, const char *epoch,
		      const char *platform, void **out, struct base_err *err);

/* ---- housekeeping (keep.c, join.c) ----------------------------------------------------------- */

enum { PROFDB_DEPTH = 3 /* epoch, platform, profile */ };

/* Links are removed, never followed. 0 (it is not there) or -errno, -EISDIR: deeper than @depth. */
int profdb_remove_tree(int dir_fd, const char *name, int depth);
/*
 * Read the list of parts of a joined @epoch, "EPOCH/PLATFORM"; empty if it was not joined. 0 or
 * negative.
 */
int profdb_joined_read(struct profdb *db, const char *epoch, struct profdb_names *out);
/* Take the valid lines of the file's @text, which is changed. 0 or -ENOMEM. */
int profdb_joined_parse(struct base_buf *text, struct profdb_names *out);
/* Complete what was committed, remove what was not. */
int profdb_join_recover(struct profdb *db, struct base_err *err);

#endif
