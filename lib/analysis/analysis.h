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

/*
 * Only lengths, texts and direct targets, three times as fast. Strings are the disassembler's, up
 * to the next question. A disassembler serves either this or the one above: analysis_disasm_plain
 * makes it one of the first kind.
 */
struct analysis_text {
	uint32_t len;	 /* bytes, above 0 */
	bool has_target; /* of a direct branch or call: in the operands from @target_at on, which it
			  * ends */
	uint64_t target;
	size_t target_at;
	const char *mnemonic, *operands;
};

void analysis_disasm_plain(struct analysis_disasm *d);
void analysis_disasm_text(struct analysis_disasm *d, const uint8_t *code, size_t len,
			  uint64_t vaddr, struct analysis_text *out);

/* ---- the chosen samples (gather.c) --------------------------------------------------------- */

#define ANALYSIS_NR_EVENTS PROFDB_NR_EVENTS /* in all profiles together */

struct analysis_selection {
	const char *db;
	const char *epoch;	   /* as profdb_epoch_select; NULL: the newest */
	const char *platform;	   /* NULL: all */
	const char *event;	   /* NULL: all */
	const char *const *labels; /* samples that have one of these; none: all */
	size_t nr_labels;
	bool apart;		  /* profiles that dcpid -bypid kept apart by process stay so */
	bool sums;		  /* sums of images suffice: profiles may lack their counts */
	const char *const *files; /* where images may be that are not at their own place */
	size_t nr_files;
	const char *const *maps; /* dcpiscan's, likewise */
	size_t nr_maps;
};

struct analysis_event {
	char name[PROFDB_EVENT_NAME];
	uint64_t period;
	bool mixed; /* profiles disagree on the period */
	uint64_t sum;
	double whole; /* what sum would be, had each profile's been counted all the time */
};

/* The part of the time in which it was counted, 0 to 1: below 1 where events took turns. */
double analysis_event_enabled(const struct analysis_event *ev);

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
	ANALYSIS_UNREADABLE, /* no rights, or its file system does not answer */
	ANALYSIS_DAMAGED,    /* no ELF, or cut */
};

/* An image and all its chosen samples. */
struct paths;

struct analysis_image {
	enum profdb_kind kind;
	struct profdb_profile *profile; /* all epochs and platforms together */
	char *name;	     /* to show; of a pseudo-image "facility[pid]" once it was opened, or
				"dynamic code of uid 1000, not readable" */
	char *facility;	     /* of a pseudo-image that was opened (or that class), or NULL */
	size_t nr_processes; /* whose code it holds; 0: not known */
	uint64_t *count;     /* by event */
	size_t event_of[PROFDB_NR_EVENTS]; /* of the profile's events: index in analysis, SIZE_MAX
					    */
	enum analysis_state state;
	struct base_err why; /* where state is none of the first two */
	bool guessed;	     /* it was opened, and image_guessed */
	struct paths *paths; /* what its windows tell, once it was asked for */
	bool paths_made;
};

/* A profile file that could not be read; its samples are missing from every sum. */
struct analysis_bad {
	char *file;
	struct base_err err;
};

struct analysis {
	bool apart, sums; /* these and the next as the selection has them; */
	const char *const *labels;
	size_t nr_labels;
	bool *label_seen;	      /* of each: a profile has it */
	struct base_buf other_labels; /* of profiles that were not chosen: " NAME NAME …" */
	const char *const *files;     /* the caller's */
	size_t nr_files;
	struct image_map map; /* all maps together */
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
	struct base_map by_header; /* of indexes: struct known_header */
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
/* Add to @seen, for the hint of the next, a platform that is there; once. 0 or -ENOMEM. */
int analysis_platform_seen(struct base_buf *seen, const char *name);
/* -ENOENT: of the chosen epochs none is of platform @name. */
int analysis_no_platform(const char *name, const struct base_buf *seen, struct base_err *err);
/* Index of an event by name, or -ENOENT with the existing ones in the hint. */
int analysis_event_find(const struct analysis *a, const char *name, struct base_err *err);
/*
 * Is @event the one of that @name, whatever stands around it: modifiers ("cycles:p"), and of those
 * that perf named its PMU, terms, and a number where several are the same ("cpu_core/cycles/P",
 * "cycles/period=1000/u", "cycles#2")?
 */
bool analysis_event_is(const char *event, const char *name);
/* The event to sort by when none is named: cycles, else a clock, else the first. */
size_t analysis_event_default(const struct analysis *a);

/* ---- images (images.c) --------------------------------------------------------------------- */

/* Of its profiles together, or NULL: it has none of @event. */
const struct profdb_event *analysis_image_event(const struct analysis_image *ai, size_t event);
/*
 * Units of @event (cycles, nanoseconds, …) that a sample in @ai stands for, those of the time in
 * which others were counted in turn (dcpid -slot) included: the mean of its profiles, whose periods
 * may differ; where it has none of @event, what another image's are. 1 where that is unknown.
 */
double analysis_sample_units(const struct analysis *a, const struct analysis_image *ai,
			     size_t event);
/* Open it and set its state; negative with @err where it cannot be. Named buckets: -ENOENT. */
int analysis_image_open(struct analysis *a, struct analysis_image *ai, struct image **out,
			struct base_err *err);
/*
 * What windows tell of it, made when first asked for; NULL where the profile has none, or none that
 * its code explains. @img is the opened image. 0 or -ENOMEM.
 */
int analysis_image_paths(struct analysis_image *ai, struct image *img, const struct paths **out,
			 struct base_err *err);
/* Is it what the user means: path (also relative, or by links), base name, shown name, facility,
 * build-id prefix (4 digits)? */
bool analysis_image_match(struct analysis *a, struct analysis_image *ai, const char *what);
/*
 * The image of a file that the user names: the one with samples of that identity, else one without
 * any, which is @a's from then on. Errors: those of image_identify, -ENOMEM.
 */
int analysis_image_add(struct analysis *a, const char *path, struct analysis_image **out,
		       struct base_err *err);
/* -DCPI_ENOIMAGE, with the nearest names in the hint. */
int analysis_image_unknown(struct analysis *a, const char *what, struct base_err *err);

/* ---- rows (rows.c) ------------------------------------------------------------------------- */

/* The pseudo-images of one facility that have rows, of however many processes. */
struct analysis_facility {
	char *name;
	size_t nr_images;
};

/* Where a procedure's code stands: one for each code that it has. */
struct analysis_place {
	struct analysis_image *image;
	uint64_t vaddr;
	uint64_t hash, masked; /* of its bytes; of these without what moving changes */
};

struct analysis_row {
	const struct analysis_image *image; /* of several, the first */
	struct analysis_facility *facility; /* NULL: the row is of one image alone */
	size_t nr_images;		    /* whose samples are in it */
	size_t nr_processes;		    /* of those; 0: not known */
	char *procedure;     /* NULL: samples outside every procedure, or of a whole image */
	uint64_t vaddr, len; /* of the procedure; where it stands several times, of the first */
	bool several;	     /* it does */
	/* With @code only: what code it has, as far as the bytes are there. */
	struct analysis_place *places;
	size_t nr_places, cap_places;
	bool unread;			   /* some of it is not */
	const struct analysis_image *last; /* that was added */
	uint64_t *count;		   /* by event */
};

/*
 * Zero-initialize. Pseudo-images of one facility are one: their routines of equal name make one
 * row, whatever processes ran them, unless @apart is set before the first image is added.
 */
struct analysis_rows {
	struct analysis_row *v;
	size_t nr, cap;
	size_t nr_events;
	uint64_t *total; /* by event; always the sum of the rows */
	bool apart;
	bool code;		    /* set likewise: hash the procedures' code */
	struct base_map facilities; /* by name: struct analysis_facility */
	struct base_map by_name;    /* facility and procedure: index of the row + 1 */
	struct base_map counted;    /* row and file, of images that hold several processes */
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
/* The image to show: where a facility has several, its name, else "hello[4711]", a path, "(idle)".
 */
const char *analysis_row_image(const struct analysis_row *row);

/* ---- code (code.c) -------------------------------------------------------------------------- */

/*
 * Zero in place what changes when code, or what it calls or reads, is moved: distances of branches
 * out of [vaddr, vaddr + len), operands relative to the instruction, absolute addresses, 64-bit
 * constants. x86, aarch64, riscv; code of other machines stays. 0, -ENOMEM, -DCPI_EUNSUPPORTED.
 */
int analysis_code_mask(uint32_t machine, uint8_t *code, size_t len, uint64_t vaddr);
/* image_bytes, but none of a procedure that is all zeros: its code was not kept. */
size_t analysis_code_bytes(struct image *img, uint64_t vaddr, void *out, size_t len);
/* Of a procedure's bytes, or of what masking leaves of them. -ENOENT: they are not in the image. */
int analysis_code_hash(struct image *img, const struct image_symbol *symbol, bool masked,
		       uint64_t *out);

/* ---- two sets compared (diff.c) ------------------------------------------------------------- */

enum analysis_code {
	ANALYSIS_CODE_NONE, /* no procedure */
	ANALYSIS_CODE_EQUAL,
	ANALYSIS_CODE_OPERANDS, /* equal but for what moving changes */
	ANALYSIS_CODE_DIFFERS,
	ANALYSIS_CODE_ONLY_A, /* no samples in the other set */
	ANALYSIS_CODE_ONLY_B,
	ANALYSIS_CODE_UNKNOWN, /* bytes are missing */
};

/* What two sets have of one (image or facility, procedure). */
struct analysis_diff_row {
	struct analysis_row *row[2]; /* the first of that name; NULL: none in that set */
	uint64_t count[2];
	double share[2];   /* of the set's samples, 0 to 1 */
	double difference; /* share[1] - share[0] */
	double error;	   /* its standard error */
	double change;	   /* difference, or 0 where chance may have made it (see @bound) */
	enum analysis_code code;
	bool moved; /* its image has another path in each set, and one base name */
};

struct analysis_diff {
	struct analysis_diff_row *v;
	size_t nr, cap;
	uint64_t total[2];
	/* Standard errors that a difference must exceed to be a change: beyond that lies, by chance
	 * alone, some row of one comparison in a hundred. */
	double bound;
};

/*
 * Compare the samples of @event[i] in @rows[i], which were gathered with @code and are kept by the
 * caller until analysis_diff_release. Sorted by size of change, then of difference, then of share.
 * Pseudo-images match by facility, others by name, a file that is in one set alone by its base name
 * where one file of the other set is so, too. 0 or -ENOMEM.
 */
int analysis_diff_rows(struct analysis *const a[2], struct analysis_rows *const rows[2],
		       const size_t event[2], struct analysis_diff *out);
void analysis_diff_release(struct analysis_diff *d);
/* The facility or image, without process, or the base name of one that moved; and what stands for
 * the procedure. */
const char *analysis_diff_image(const struct analysis_diff_row *d);
const char *analysis_diff_label(const struct analysis_diff_row *d);
/* "equal", "bytes differ only in operands", ... */
const char *analysis_code_text(enum analysis_code code);

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
	size_t stack;	   /* index in stacks + 1; 0: nothing is inlined here */
	uint64_t *count;   /* by event; NULL: none */
};

/* Routines inlined one into the other, and last the procedure: innermost first. */
struct analysis_stack {
	struct image_frame *v; /* names are the image's */
	size_t nr;
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
	struct analysis_stack *stacks;
	size_t nr_stacks, cap_stacks;
	char **files;
	size_t nr_files, cap_files;
	uint64_t *total; /* by event, always the sum of the units */
	/* Where the code stands whose samples these are, this place first; hashes are not told. */
	struct analysis_place *places;
	size_t nr_places, cap_places;
};

struct analysis_founds;
/*
 * Takes over @img, also on failure. @also (may be NULL): further places of the same code, whose
 * samples are added; the one of @ai itself is passed over. 0 or negative with @err.
 */
int analysis_listing_open(struct analysis *a, struct analysis_image *ai, struct image *img,
			  const struct image_symbol *symbol, const struct analysis_founds *also,
			  struct analysis_listing **out, struct base_err *err);
void analysis_listing_close(struct analysis_listing *l);
/* The image back, as the caller's again; to be called just before closing, which then keeps it
 * open. */
struct image *analysis_listing_take_image(struct analysis_listing *l);
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
/* Is it one routine of one facility in several images, its code the same but for what moving
 * changes? */
bool analysis_founds_alike(struct analysis *a, const struct analysis_founds *f);
void analysis_founds_release(struct analysis_founds *f);

#endif
