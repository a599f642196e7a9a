/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the reports are made from: the samples of the chosen epochs and platforms by image, their
 * sums by procedure, one procedure's instructions with samples and lines. Every number is a 64-bit
 * count; every table keeps the total that it was made from, so that sums can be checked.
 */
#ifndef DCPI_ANALYSIS_H
#define DCPI_ANALYSIS_H

#include "base.h"
#include "image.h"
#include "profdb.h"

/* ---- disassembly (disasm.c) ---------------------------------------------------------------- */

struct analysis_insn {
	uint64_t vaddr;
	uint32_t len;	 /* bytes, above 0 */
	bool has_target; /* a direct branch or call */
	uint64_t target;
	/* Where in text the target's address stands, so that a name can take its place. */
	uint16_t target_at, target_len;
	char text[224];
};

struct analysis_disasm;

/* @machine: EM_X86_64, EM_386, EM_AARCH64, EM_RISCV (as data only where capstone does not know it).
 * Else -DCPI_EUNSUPPORTED. */
int analysis_disasm_open(uint32_t machine, struct analysis_disasm **out, struct base_err *err);
void analysis_disasm_close(struct analysis_disasm *d);
/* The instruction at the start of @code, which stands at @vaddr and has at least one byte. */
void analysis_disasm_one(struct analysis_disasm *d, const uint8_t *code, size_t len, uint64_t vaddr,
			 struct analysis_insn *out);

/* ---- the chosen samples (gather.c) --------------------------------------------------------- */

#define ANALYSIS_NR_EVENTS PROFDB_NR_EVENTS /* in all profiles together */

struct analysis_selection {
	const char *db;
	const char *epoch;    /* as profdb_epoch_select; NULL: the newest */
	const char *platform; /* NULL: all */
	const char *event;    /* NULL: all */
};

struct analysis_event {
	char name[PROFDB_EVENT_NAME];
	uint64_t period;
	bool mixed; /* profiles disagree on the period */
	uint64_t sum;
};

struct analysis_epoch {
	char *name;
	bool open; /* still being written: what is shown is its last flush */
};

/* Why an image's samples have no procedures. */
enum analysis_state {
	ANALYSIS_UNOPENED,
	ANALYSIS_OPEN,	     /* it was there */
	ANALYSIS_MISSING,    /* nowhere found */
	ANALYSIS_CHANGED,    /* another build-id */
	ANALYSIS_UNREADABLE, /* no rights */
	ANALYSIS_DAMAGED,    /* no ELF, or cut */
};

/* An image and all its chosen samples. */
struct analysis_image {
	enum profdb_kind kind;
	struct profdb_profile *profile; /* all epochs and platforms together */
	char *name;	 /* to show; of a pseudo-image "facility[pid]" once it was opened */
	uint64_t *count; /* by event */
	size_t event_of[PROFDB_NR_EVENTS]; /* of the profile's events: index in analysis, SIZE_MAX
					    */
	enum analysis_state state;
	struct base_err why; /* where state is none of the first two */
};

/* A profile file that could not be read; its samples are missing from every sum. */
struct analysis_bad {
	char *file;
	struct base_err err;
};

struct analysis {
	struct profdb *db;
	struct image_store *store;
	struct analysis_epoch *epochs;
	size_t nr_epochs, cap_epochs;
	char **platforms;
	size_t nr_platforms, cap_platforms;
	struct analysis_event *events;
	size_t nr_events, cap_events;
	struct analysis_image **images;
	size_t nr_images, cap_images;
	struct base_map by_identity;
	struct analysis_bad *bad;
	size_t nr_bad, cap_bad;
};

/*
 * Read every profile that is meant. Errors: those of profdb (no database, unknown epoch), -ENOENT
 * for a platform or event that is not there, the existing ones named in the hint. A profile file
 * that cannot be read is noted in @bad and the rest is gathered.
 */
int analysis_open(const struct analysis_selection *sel, struct analysis **out,
		  struct base_err *err);
void analysis_close(struct analysis *a);
/* Index of an event by name, or -ENOENT with the existing ones in the hint. */
int analysis_event_find(const struct analysis *a, const char *name, struct base_err *err);
/* The event to sort by when none is named: cycles, else a clock, else the first. */
size_t analysis_event_default(const struct analysis *a);

/* ---- images (images.c) --------------------------------------------------------------------- */

/* Open it and set its state; negative with @err where it cannot be. Named buckets: -ENOENT. */
int analysis_image_open(struct analysis *a, struct analysis_image *ai, struct image **out,
			struct base_err *err);
/* Is it what the user means: path, base name, shown name, facility, build-id prefix (4 digits)? */
bool analysis_image_match(struct analysis *a, struct analysis_image *ai, const char *what);
/* -DCPI_ENOIMAGE, with the nearest names in the hint. */
int analysis_image_unknown(struct analysis *a, const char *what, struct base_err *err);

/* ---- rows (rows.c) ------------------------------------------------------------------------- */

struct analysis_row {
	const struct analysis_image *image;
	char *procedure;     /* NULL: samples outside every procedure, or of a whole image */
	uint64_t vaddr, len; /* of the procedure */
	uint64_t *count;     /* by event */
};

struct analysis_rows {
	struct analysis_row *v;
	size_t nr, cap;
	size_t nr_events;
	uint64_t *total; /* by event; always the sum of the rows */
};

/* Add one row for the image, or one for each of its procedures that has a sample. 0 or -ENOMEM. */
int analysis_rows_add_image(struct analysis_rows *rows, struct analysis *a,
			    struct analysis_image *ai);
int analysis_rows_add_procedures(struct analysis_rows *rows, struct analysis *a,
				 struct analysis_image *ai);
/* By samples of @event, most first; ties by the other events, then by names. */
void analysis_rows_sort(struct analysis_rows *rows, size_t event);
void analysis_rows_release(struct analysis_rows *rows);
/* Why a row has no procedure: "(no symbol)", "(image missing)", …; of a bucket "(idle)". */
const char *analysis_row_label(const struct analysis_row *row);

/* ---- one procedure (listing.c) ------------------------------------------------------------- */

enum analysis_unit_kind {
	ANALYSIS_UNIT_INSN,  /* an instruction */
	ANALYSIS_UNIT_BYTES, /* samples where the image has no bytes (a kernel) */
	ANALYSIS_UNIT_STRAY, /* samples inside of the instruction before */
};

/* An address of a procedure: an instruction, or samples that fit none. */
struct analysis_unit {
	enum analysis_unit_kind kind;
	uint64_t vaddr;
	uint32_t len;
	uint32_t file;	   /* index in files */
	unsigned int line; /* 0: no line */
	uint64_t *count;   /* by event; NULL: none */
};

struct analysis_listing {
	struct analysis *a;
	struct analysis_image *ai;
	struct image *img;
	struct image_symbol symbol;
	struct analysis_disasm *disasm; /* NULL: no bytes, or no such machine */
	uint8_t *code;
	size_t code_len;
	struct analysis_unit *units; /* ascending by vaddr */
	size_t nr_units, cap_units;
	char **files;
	size_t nr_files, cap_files;
	uint64_t *total; /* by event, always the sum of the units */
};

/* Takes over @img, also on failure. 0 or negative with @err. */
int analysis_listing_open(struct analysis *a, struct analysis_image *ai, struct image *img,
			  const struct image_symbol *symbol, struct analysis_listing **out,
			  struct base_err *err);
void analysis_listing_close(struct analysis_listing *l);
/* Text of a unit, branch targets as name+offset. */
void analysis_unit_text(const struct analysis_listing *l, const struct analysis_unit *unit,
			char *buf, size_t buf_len);

/* A procedure that the user may mean. */
struct analysis_found {
	struct analysis_image *image;
	char *name;
	uint64_t vaddr, len;
	uint64_t *count; /* by event */
};

struct analysis_founds {
	struct analysis_found *v; /* most samples (of the given event) first */
	size_t nr, cap;
};

/*
 * Every procedure that @what names, by name or by address, in the images that match @image (NULL:
 * all; then those without samples there are left out when one has samples). None: -DCPI_ENOSYMBOL
 * with near matches in the hint, or -DCPI_ENOIMAGE. An image given by a path that has no samples is
 * looked into all the same.
 */
int analysis_find(struct analysis *a, const char *what, const char *image, size_t event,
		  struct analysis_founds *out, struct base_err *err);
void analysis_founds_release(struct analysis_founds *f);

#endif
