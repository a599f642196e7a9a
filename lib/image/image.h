/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An image as the tools see it: which file holds it, what stands at an offset, its symbols, bytes,
 * lines and source. Ordinary files, the kernel, the vdso and pseudo-images alike. ELF and DWARF
 * readers stay behind this header.
 *
 * Two address kinds: img_off is what profiles count in, vaddr is the address in the image's ELF (of
 * a pseudo-image: the address the process saw). image_vaddr leads from the first to the second.
 *
 * Images are not believed: any bytes give an error or a smaller answer, never a crash; FIFOs and
 * devices are not opened. Objects may be used by one thread at a time.
 */
#ifndef DCPI_IMAGE_H
#define DCPI_IMAGE_H

#include "base.h"

enum image_kind {
	IMAGE_FILE,    /* offsets are ELF file offsets; found by path */
	IMAGE_KERNEL,  /* offsets are addresses of the ELF in <db>/kernel */
	IMAGE_DYNAMIC, /* pseudo-image in <db>/dyn: offsets through its runs */
	IMAGE_VDSO,    /* offsets are ELF file offsets; ELF in <db>/kernel */
};

/* ---- finding --------------------------------------------------------------------------------- */

/* The images that a database brings along. Found by build-id, indexed at the first question. */
struct image_store;

/* Descriptors of <db>/dyn and <db>/kernel; they stay the caller's and must outlive the store. -1:
 * there is none; below: -errno of opening it, which is then told of each image that would be there.
 * 0 or -ENOMEM. */
int image_store_open(int dyn_fd, int kernel_fd, struct image_store **out);
void image_store_close(struct image_store *store);
/* Copies of ordinary files stand in @dir as in a folder of $DCPI_DEBUG_PATH; it is searched before
 * those. 0 or -ENOMEM. */
int image_store_images(struct image_store *store, const char *dir);
/*
 * Keep the symbols of large images as files for the next time (docs/format/index.md): in the folder
 * @dir_fd (which stays the caller's; negative: none), else, where that cannot be written, in
 * $XDG_CACHE_HOME/dcpi or ~/.cache/dcpi. Images that are opened from then on use them, and must be
 * closed before the store is. Without it, and wherever it fails, symbols are read from the images.
 */
void image_store_index(struct image_store *store, int dir_fd);

/*
 * The identity of a file: the id of its contents; if it could not be read, its path alone, or its
 * path while that leads to the file that base_id_of_place names.
 */
enum image_known { IMAGE_BY_ID, IMAGE_BY_PATH, IMAGE_BY_PLACE };
/* As a profile's word "identity" has it (NULL: none). */
enum image_known image_known_by(const char *word);

enum { IMAGE_TEXT_LEN = 40 }; /* of a text that is a hash of the code; others tell nothing of it */

struct image_query {
	enum image_kind kind;
	struct base_id id;	/* len 0: unknown, not compared; no copy is taken for it */
	enum image_known known; /* identity of a FILE */
	const char *text;	/* for a FILE: the word "text" of its profile, or NULL */
	bool text_of_other; /* @text is another profile's, to compare with: this one's has none */
	const char *const
		*paths; /* NULL-terminated; DYNAMIC, KERNEL, VDSO: the base name is a hint */
};

struct image;

/*
 * Open the image that was profiled, not merely one of its name: the build-id must agree, and the
 * code where @query has its hash (base_id_of_text), or (of a
 * pseudo-image that has grown) stand among those it replaces. A file without build-id, or with one
 * that no program header tells of, is known by base_id_of_head, or, where nobody could read it, its
 * place. Copies that dcpid made of removed files, in the store's <db>/dyn, are searched next;
 * $DCPI_DEBUG_PATH, a colon-separated list, is searched too: DIR/<path> and
 * DIR/.build-id/xx/yyy; then the servers of $DEBUGINFOD_URLS are asked.
 *
 * Symbols and lines that the image does not have are from its separate debug file: NAME is what its
 * .gnu_debuglink says, or its own name with ".debug"; in each DIR of $DCPI_DEBUG_PATH
 * .build-id/xx/yyy.debug, FOLDER/NAME and NAME; beside it and in .debug/ there;
 * /usr/lib/debug/FOLDER/NAME and /usr/lib/debug/.build-id/xx/yyy.debug; the servers. Its build-id
 * must agree; where the image has none, the CRC that .gnu_debuglink has. Inlined routines that the
 * compiler left in .dwo files are read from these, beside the file or where it was compiled.
 *
 * Errors, all with @err naming the file, and a hint where a copy would do: -DCPI_ENOIMAGE (nowhere
 * found), -ESTALE (found, but another build-id), -EACCES and other -errno (not readable),
 * -ETIMEDOUT (a file system or server that did not answer within 5 s), -DCPI_EFORMAT,
 * -DCPI_ETRUNCATED (no ELF, or damaged).
 */
int image_open(struct image_store *store, const struct image_query *query, struct image **out,
	       struct base_err *err);
/* Open this very file, whatever its identity. */
int image_open_path(const char *path, enum image_kind kind, struct image **out,
		    struct base_err *err);
void image_close(struct image *img);

/* ---- maps (map.c) ---------------------------------------------------------------------------- */

/*
 * Where files with code are, by identity: what dcpiscan writes, and the tools' -m reads
 * (docs/format/map.md). Zero-initialize.
 */
struct image_map_entry {
	struct base_id id;
	char *path;
	bool second; /* the caller's: the path has another entry (image_identify_second) */
};

struct image_map {
	struct image_map_entry *v; /* ascending by identity, then path, once it is sorted */
	size_t nr, cap;
	bool sorted;
};

/* A copy of @path. 0, -ENOMEM, or -EINVAL: a path that a map cannot hold (control characters). */
int image_map_add(struct image_map *m, const struct base_id *id, const char *path);
/* Add what the file has. Errors: -errno, -DCPI_EFORMAT and -DCPI_EVERSION with the line. */
int image_map_read(struct image_map *m, const char *file, struct base_err *err);
int image_map_parse(struct image_map *m, const char *text, size_t len, struct base_err *err);
/* The file's text. 0 or -ENOMEM. */
int image_map_format(struct image_map *m, struct base_buf *to);
/* The first of those with that identity, or NULL; the others follow it. */
const struct image_map_entry *image_map_find(struct image_map *m, const struct base_id *id);
void image_map_release(struct image_map *m);

/*
 * The identity that profiles have of the program or library at @path: its build-id, or what stands
 * in for one (base_id_of_head). Errors: as image_open; -ENOEXEC: a file without code of its own,
 * such as one of debugging symbols alone.
 */
int image_identify(int dir_fd, const char *path, struct base_id *id, struct base_err *err);
/*
 * Another identity of the same file, which profiles may have instead: what stands in for a build-id
 * that no program header tells of, as of some programs in Go. 0, or negative: there is none.
 */
int image_identify_second(const char *path, struct base_id *id);

/* ---- what it is ------------------------------------------------------------------------------ */

/* Where it was found: a path, or a file name in the database. Owned by the image, as all below. */
const char *image_path(const struct image *img);
const struct base_id *image_id(const struct image *img);
/* The identities that profiles may have it under: @index 0 its own, then those of the images that
 * it replaces (a pseudo-image). False past the end. */
bool image_known_as(const struct image *img, size_t index, struct base_id *id);
uint32_t image_machine(const struct image *img); /* EM_* */

/* A process of a pseudo-image, from the image's note. */
struct image_process {
	const char *facility, *host, *exe;
	uint32_t pid, uid;
	uint64_t start_time_ns; /* since boot */
	uint64_t created_s;	/* UTC */
	size_t nr_processes;	/* number of processes whose code it holds, this one included */
};
const struct image_process *image_process(const struct image *img); /* NULL: none */

/* ---- addresses ------------------------------------------------------------------------------- */

/*
 * 0, or -ENOENT where no part of the image stands at @off. @off is one of the image that was asked
 * for: where that was replaced by another, which holds some of its routines elsewhere, it is
 * translated.
 */
int image_vaddr(const struct image *img, uint64_t off, uint64_t *vaddr);
/* The way back, always to an offset of this very image. Of several lifetimes of an address in a
 * process this is the first: the others stand at addresses of their own. 0 or -ENOENT. */
int image_off(const struct image *img, uint64_t vaddr, uint64_t *off);
/* Whether that address of the process had several code lifetimes (pseudo-images). */
bool image_reused(const struct image *img, uint64_t vaddr);
/* Copy up to @len bytes from @vaddr on; returns how many (0: none there; of a kernel those of the
 * routine at @vaddr, if they were kept). */
size_t image_bytes(const struct image *img, uint64_t vaddr, void *out, size_t len);
/* The address that stands in the 8 bytes at @vaddr once the image is loaded, as an address of its
 * ELF: relocations by what it was moved are applied. 0, -ENOENT (no bytes there) or -ENOMEM. */
int image_pointer(struct image *img, uint64_t vaddr, uint64_t *value);

/* A stretch of code: an executable section, or, where no section says so, a segment (name ""). */
struct image_code {
	const char *name;
	uint64_t vaddr, len;
};
/* The @index-th, as the file has them; false past the last. They are not believed: they may be
 * larger than what image_bytes has of them, or overlap. */
bool image_code_at(const struct image *img, size_t index, struct image_code *out);

/* The properties that tools which lay out code anew need (relink.c). */
struct image_relink {
	bool symbols;	  /* the linker's table of symbols: the file is not stripped */
	bool relocations; /* those of its code, kept by the linker's --emit-relocs */
	bool packed;	  /* some of its code is written when it runs, as by a packer */
	bool position_independent;
};
void image_relink(const struct image *img, struct image_relink *out);

/* ---- symbols --------------------------------------------------------------------------------- */

/* A procedure: [vaddr, vaddr + len). Of several names for one address the plainest is shown. */
struct image_symbol {
	const char *name; /* any bytes but NUL: clean it before it reaches a terminal */
	uint64_t vaddr;
	uint64_t len;
};

/* Read the symbols (also done by the first question): 0, or negative where they are damaged. */
int image_symbols_load(struct image *img, struct base_err *err);
/*
 * Several threads may call these three once the symbols of an image of image_open_path are loaded.
 */
/* The innermost procedure over @vaddr, or NULL. */
const struct image_symbol *image_symbol_at(struct image *img, uint64_t vaddr);
size_t image_nr_symbols(struct image *img);
const struct image_symbol *image_symbol(struct image *img, size_t index); /* ascending by vaddr */
/*
 * Every procedure of that exact name, other names of an address included: start with *pos 0, ends
 * with NULL. Several may have it (static functions).
 */
const struct image_symbol *image_symbol_find(struct image *img, const char *name, size_t *pos);

/*
 * A stripped image without .eh_frame, or with little, tells of few procedures, or of none, where
 * they stand. Where a program has said how, others are guessed then: they begin at the entry, where
 * code begins, and where code or a pointer in data leads to, end where the next one begins, and are
 * named by their address. What nothing in sight leads to is taken for a part of the one before it.
 */
typedef int image_start_fn(void *ctx, uint64_t vaddr);
/* The kind of code before the instruction at an address, padding skipped. */
enum image_before {
	IMAGE_BEFORE_OTHER,    /* code that falls through into it; or no instruction begins there */
	IMAGE_BEFORE_END,      /* a return, a jump, the begin of the code */
	IMAGE_BEFORE_INDIRECT, /* a jump to where a register or memory says */
};
/* An address of code that stands in data. */
struct image_pointed {
	uint64_t vaddr;
	enum image_before before;
};
/*
 * Calls @fn with each address that @code (@len bytes, which stand at @vaddr) calls or takes, in any
 * order, some more than once; outside of code they are of no use. Of each of @pointed (ascending by
 * vaddr, no two alike) that lies in it, tells what is before. 0, -DCPI_EUNSUPPORTED (the machine),
 * -ENOMEM, or what @fn returned below 0.
 */
typedef int image_guess_fn(uint32_t machine, const uint8_t *code, size_t len, uint64_t vaddr,
			   struct image_pointed *pointed, size_t nr_pointed, image_start_fn *fn,
			   void *ctx);
/* To be called before images are opened: analysis_starts (lib/analysis/flow) is one. */
void image_guess_by(image_guess_fn *fn);
/* Some of its procedures are so. */
bool image_guessed(struct image *img);
/* It has no symbols but those that it exports, and none were found elsewhere. */
bool image_stripped(struct image *img);
/* Writes where the symbols of the file of that path and identity can be had. 0 or -ENOMEM. */
int image_symbols_remedy(const char *path, const struct base_id *id, struct base_buf *to);

/*
 * Hashes of a routine in a pseudo-image, independent of its address. @exact: name, bytes, lines and
 * inlined parts. @masked: the same without operands that change when the code or its call targets
 * move. If @exact differs and @masked does not, the bytes differ only in operands.
 */
struct image_hashes {
	uint8_t exact[20], masked[20];
};
/* 0, or -ENOENT where the image has none for it. */
int image_symbol_hashes(struct image *img, const struct image_symbol *sym,
			struct image_hashes *out);

/* ---- lines and source ------------------------------------------------------------------------ */

struct image_line {
	const char *file; /* as the compiler had it, with its folder if that is known */
	unsigned int line;
	unsigned int discriminator; /* which block of that line, as LLVM encodes it; else 0 */
};

/* The source line of the instruction at @vaddr: 0, or -ENOENT. */
int image_line_at(struct image *img, uint64_t vaddr, struct image_line *out);

/* Routines that stand at one address, inlined one into the other. */
struct image_frame {
	const char *name; /* any bytes; NULL: the procedure itself (image_symbol_at) */
	struct image_line
		at;	     /* where its code stands, or calls the frame before; line 0: unknown */
	const char *linkage; /* inlined: its name to the linker; NULL: none other than @name */
	unsigned int begins; /* the line of its definition; 0: unknown */
};
#define IMAGE_FRAMES_MAX 65

/*
 * The frames at @vaddr, innermost first, the procedure itself last; at most @max, of more the
 * innermost. Returns how many: 1 where nothing is inlined, 0 where there are no lines either.
 */
size_t image_frames_at(struct image *img, uint64_t vaddr, struct image_frame *out, size_t max);

/* A text file split into lines. */
struct image_source;

/*
 * How much of a source's name is its path: code that is of several lines alike, and of none of them
 * alone, may be of "FILE lines 4-6,9", the first of them being its line.
 */
size_t image_source_path_len(const char *name);
/* The user's folders for sources that were moved, with colons between them (-source-path); NULL. */
extern const char *image_source_path;
/*
 * Regular files only, up to 64 MiB. Of "FILE lines 4-6,9" FILE. The folders of
 * image_source_path are searched first, all of them for the name, then for it without its first
 * folder, and so on, as long as it has a folder and no ".."; then the name itself; then DIR/<path>
 * of $DCPI_DEBUG_PATH, and where packages put the sources of Rust's and Java's libraries, of the
 * latter first src.zip of the JDK whose @program ran the code (its path; NULL: not known); last the
 * folders for its last part alone. @public: only one that everybody may read, else -EACCES. 0, or
 * negative with @err.
 */
int image_source_open(const char *path, const char *program, bool public, struct image_source **out,
		      struct base_err *err);
/* The program that ran the code of a pseudo-image, as image_source_open asks; NULL: another image.
 */
const char *image_program(const struct image *img);
void image_source_close(struct image_source *src);
/*
 * A program names any file as its source, and its user shall not get those from us that root alone
 * may read. Only the images of root, and of the user who asks, are trusted with that; of others
 * only sources that everybody may read are shown where the user has not named the image.
 */
bool image_source_trusted(const struct image *img);
/* Were both read of one file, whatever its paths? */
bool image_source_same(const struct image_source *a, const struct image_source *b);
/* Line @line (from 1) without its newline, or NULL past the end. Not NUL-terminated: @len. */
const char *image_source_line(const struct image_source *src, unsigned int line, size_t *len);

#endif
