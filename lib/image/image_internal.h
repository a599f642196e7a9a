/* SPDX-License-Identifier: BSD-2-Clause */
/* lib/image from within: the only place where libelf's and libdw's types stand. */
#ifndef DCPI_IMAGE_INTERNAL_H
#define DCPI_IMAGE_INTERNAL_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <string.h>

#include "image.h"
#include "bound.h"
#include "wire.h"

/* ---- one ELF file (elf.c) -------------------------------------------------------------------- */

struct image_elf {
	int fd; /* -1: not open */
	Elf *elf;
	uint64_t len; /* length of the file */
	char *path;
	struct base_id id; /* build-id, len 0 where it has none */
	GElf_Ehdr header;
};

/* A regular file that is ELF, with every section inside of it. Errors as image_open. */
int image_elf_open(struct image_elf *f, int dir_fd, const char *path, struct base_err *err);
/* The same, but -ETIMEDOUT where the file system does not answer. */
int image_elf_open_timeout(struct image_elf *f, const char *path, struct base_err *err);
/* Open an ELF file by its descriptor, which is consumed also on failure. */
int image_elf_take(struct image_elf *f, int fd, uint64_t len, const char *path,
		   struct base_err *err);
void image_elf_close(struct image_elf *f);
/* The same within 5 s, else -ETIMEDOUT (elf.c). */
int image_open_timeout(const char *path, uint64_t *len);
/*
 * Find a section by name; NULL: absent or empty. Sections of groups, which an unlinked file may
 * have, are skipped, as libdw does.
 */
Elf_Scn *image_elf_section(const struct image_elf *f, const char *name, GElf_Shdr *header);
const char *image_elf_section_name(const struct image_elf *f, const GElf_Shdr *header);
/* Read up to @len bytes at @file_off; returns how many. */
size_t image_elf_read(const struct image_elf *f, uint64_t file_off, void *out, size_t len);

/* ---- a pseudo-image's note (image.c) --------------------------------------------------------- */

/* Section of pseudo-images (pseudoimg/pseudoimg.h): an ELF note over a stream of wire records. */
#define IMAGE_NOTE_SECTION ".dcpi.note"

struct image_run {
	uint64_t img_off, vaddr, len;
};

struct image_note {
	struct image_process process;
	char *strings;		/* strings that process points into */
	struct image_run *runs; /* ascending by img_off */
	size_t nr_runs, cap_runs;
	struct image_run
		*places; /* places of later lifetimes, in the process; img_off is not used */
	size_t nr_places, cap_places;
	struct wire_replaces **replaces; /* copies of their own */
	size_t nr_replaces, cap_replaces;
};

/* The id of a record. */
static inline void image_replaces_id(const struct wire_replaces *rec, struct base_id *id)
{
	*id = (struct base_id){ .len = sizeof(rec->id) };
	memcpy(id->bytes, rec->id, sizeof(rec->id));
}

/* ---- a pseudo-image's hashes (hashes.c) ------------------------------------------------------ */

#define IMAGE_HASH_SECTION ".dcpi.hashes" /* as of pseudoimg/pseudoimg.h */

/* ---- procedures without symbols (symbols.c) -------------------------------------------------- */

struct image_range {
	uint64_t vaddr, len;
};

struct image_ranges {
	struct image_range *v;
	size_t nr, cap;
};

/*
 * Read the ranges of code from .eh_frame, in any order, and add them to @out (released by
 * free(out->v)). Damaged entries are left out. 0 or -ENOMEM.
 */
int image_ranges_read(struct image_ranges *out, const struct image_elf *f);

/* Addresses in data that the loader adds the image's place to (pointers.c). */
struct image_pointer {
	uint64_t vaddr, value;
};
struct image_pointers {
	struct image_pointer *v; /* ascending by vaddr */
	size_t nr, cap;
};

/* 0 or -ENOMEM. */
int image_pointers_read(struct image_pointers **out, const struct image_elf *f);
void image_pointers_free(struct image_pointers *p);

/* Where procedures are guessed to begin, and how far they can reach, ascending, into @out, which is
 * empty (guess.c). 0 or -ENOMEM. */
int image_starts_read(struct image_ranges *out, const struct image_elf *f);

/* ---- symbols (symbols.c) --------------------------------------------------------------------- */

struct image_symbol_entry {
	struct image_symbol sym;
	uint32_t outer; /* index + 1 of the symbol around this one, 0: none */
};

struct image_name {
	const char *name;
	uint32_t symbol;
};

struct image_symbols {
	struct image_symbol_entry *v; /* ascending by vaddr, one per address */
	size_t nr;
	struct image_name *names; /* ascending by name, all of them */
	size_t nr_names;
	char **owned; /* names that are not libelf's */
	size_t nr_owned, cap_owned;
	struct image_index *index; /* then v is filled by questions, and names are only counted */
	bool guessed;		   /* some of them are */
};

/*
 * From .symtab of @f, of @debug (may be NULL), or .dynsym of @f and .symtab of @mini (may be NULL);
 * @versioned: cut "@VERSION". Where none of these stands, from the linker's stubs and from
 * .eh_frame of @f; what only the latter has is named by its address, "0x4308". So is what is
 * guessed, where there is neither a .symtab nor an .eh_frame.
 */
int image_symbols_read(struct image_symbols *s, const struct image_elf *f,
		       const struct image_elf *debug, const struct image_elf *mini, bool versioned,
		       struct base_err *err);
void image_symbols_release(struct image_symbols *s);

/* ---- the index of large images (lookup.c) ---------------------------------------------------- */

struct image_index;

/* The same from a file, which is taken over, also on failure. */
struct image_index *image_index_read(int fd, const struct image_elf *main,
				     const struct image_elf *debug, uint32_t kind);
void image_index_close(struct image_index *x);
size_t image_index_nr_symbols(const struct image_index *x);
size_t image_index_nr_names(const struct image_index *x);
/* Strings are the index's. @i is below the number. */
bool image_index_vaddr(struct image_index *x, size_t i, uint64_t *vaddr);
bool image_index_symbol(struct image_index *x, size_t i, struct image_symbol_entry *out);
bool image_index_name(struct image_index *x, size_t i, struct image_name *out);
/* Into the first folder that takes it. Nothing is lost where none does. */
void image_index_write(const int dir_fds[2], const struct image_symbols *s,
		       const struct image_elf *main, const struct image_elf *debug, uint32_t kind);

/* ---- the image ------------------------------------------------------------------------------- */

struct image_segments {
	struct image_segment {
		uint64_t file_off, vaddr, len;
		bool exec;
	} * v;
	size_t nr, cap;
};

/* The symbols of an image, or their index (lookup.c). */
struct image_lookup {
	struct image_symbols symbols;
	int state; /* 0: not read; 1: read; negative: the error */
	struct image_symbols
		given_up; /* symbols of a damaged index; symbols given to callers stay valid */
	int index_fds[2]; /* the store's; where indexes are, and where else */
};

/* The DWARF of an image or of its debug file, opened at the first question (dwarf.c). */
struct image_dwarf {
	Dwarf *own; /* NULL: there is none */
	bool sought;
	struct image_elf alt_file; /* the file that its debug file shares with others */
	Dwarf *alt;		   /* DWARF of that file; NULL: none */
};

/* Sections that were unpacked here, of all files of an image (dwarf.c). */
struct image_unpacked {
	void **v;
	size_t nr, cap;
};

/* The lines of an image (lines.c). */
struct image_line_tables {
	struct image_program *program; /* line program of a pseudo-image; NULL: use libdw */
	bool program_sought;
	struct base_map live;  /* programs of units, by where they begin in .debug_line */
	struct base_map paths; /* paths by folder and name: the two as one path (whole_path) */
};

/* The compilation units of an image (lines.c). */
struct image_unit_tables {
	struct image_units *by_addr; /* made by the first question */
	uint64_t discarded_reach;    /* how far units say that discarded sections go */
	struct image_names {
		const char *bytes; /* bytes of .debug_info, once they are known */
		size_t size, len;  /* len: up to the last zero */
		bool known;
	} names, alt_names;
};

/* Units whose routines are in a file of their own (dwarf.c). */
struct image_splits {
	struct base_map by_off;	 /* by a unit's offset: its other facts */
	struct base_map by_rest; /* the same by the rest's Dwarf_CU */
};

/* The routines at an address (lines.c). */
struct image_subprograms {
	struct image_spans *spans; /* subprograms of a pseudo-image, made at the first question */
	Dwarf_Die last;		   /* the one found last */
	bool has_last;
};

struct image {
	enum image_kind kind;
	struct image_elf main;
	struct image_elf debug; /* separate debug file, sought once (debug.c) */
	bool debug_sought;
	struct image_elf mini; /* contents of .gnu_debugdata, if symbols are from there */
	struct image_note note;
	const struct wire_replaces *asked; /* opened as this earlier image of it; else NULL */
	struct image_segments segments;
	struct image_lookup lookup;
	struct image_dwarf dwarf;
	struct image_unpacked unpacked;
	struct image_line_tables lines;
	struct image_unit_tables units;
	struct image_splits splits;
	struct image_subprograms frames;
	struct image_ranges code_ranges; /* image_is_code */
	bool code_ranges_known;
	struct image_pointers *pointers; /* made by the first question */
	struct image *code; /* KERNEL: the bytes of some of its routines; may be NULL */
};

/* Lines and inlined parts (lines.c): opened at the first question; NULL: none. */
Dwarf *image_dwarf(struct image *img);
void image_lines_release(struct image *img);
/* Does code stand there, as far as its headers tell (code.c)? Of what the linker threw away DWARF
 * says that it begins where none does: at 0, mostly. */
bool image_is_code(struct image *img, uint64_t vaddr);
/* Replaces a unit of which only addresses and lines are here by that with its routines, where that
 * is found (dwarf.c). */
void image_unit_whole(struct image *img, Dwarf_Die *unit);
/* The way back, to the unit whose table of lines names its files: libdw (0.188) would take one that
 * clang leaves beside the routines for types alone. */
void image_unit_files(struct image *img, Dwarf_Die *unit);

/*
 * Seeks the separate debug file at the first question (debug.c); NULL: none. One with the image's
 * build-id; of an image without, the one whose CRC its .gnu_debuglink has.
 */
const struct image_elf *image_debug(struct image *img);
/* Calls @fn for each folder of $DCPI_DEBUG_PATH until it returns something else than -ENOENT. */
int image_debug_dirs(int (*fn)(const char *dir, void *ctx), void *ctx);

/* Why a server of $DEBUGINFOD_URLS could not be asked; NULL: they all answered so far. */
const char *image_fetch_failure(void);
/* Writes which package has the symbols of the file of that path and identity, by dpkg's lists in
 * the folder @info, or another remedy (remedy.c). 0 or -ENOMEM. */
int image_package_remedy(const char *info, const char *path, const struct base_id *id,
			 struct base_buf *to);

/* "DIR/.build-id/xx/yyyy@suffix" */
void image_id_path(char *out, size_t out_len, const char *dir, const struct base_id *id,
		   const char *suffix);
/* The file of that build-id (@debug: its debug file) from $DEBUGINFOD_URLS: a path to be freed, or
 * NULL, also where no server has said anything for 10 s (fetch.c). */
char *image_fetch(const struct base_id *id, bool debug);

#endif
