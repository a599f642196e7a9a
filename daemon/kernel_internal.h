/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's own code from within: the texts of /proc are parsed apart from where they come from.
 */
#ifndef DCPI_KERNEL_INTERNAL_H
#define DCPI_KERNEL_INTERNAL_H

#include "daemon_internal.h"
#include "dyn_tree.h"

/* ---- kallsyms and modules (kernel_symbols.c) ----------------------------------------------- */

struct kernel_symbol {
	uint64_t addr;
	const char *name, *module; /* module NULL: the kernel itself */
	char type;
	bool idle;
};

/* Code symbols, ascending, one for each address. */
struct kernel_symbols {
	char *text; /* names point into it */
	struct kernel_symbol *v;
	size_t nr, cap;
	uint64_t text_start, text_end; /* of the kernel itself; 0: not told */
	bool hidden; /* all addresses are zero: the reader of kallsyms lacks a right */
};

/* @text is copied. Lines that are none are skipped. 0 or -ENOMEM. */
int kernel_symbols_parse(struct kernel_symbols *s, const char *text, size_t len);
void kernel_symbols_release(struct kernel_symbols *s);
/* The symbol at or before @addr, or NULL. */
const struct kernel_symbol *kernel_symbols_find(const struct kernel_symbols *s, uint64_t addr);
/* Is it a routine in which a CPU with nothing to do waits? */
bool kernel_is_idle(const char *name);

struct kernel_module {
	char name[64];
	uint64_t addr, len;
};

/* A line of /proc/modules: 0 or -DCPI_EFORMAT. */
int kernel_module_parse(const char *line, struct kernel_module *m);

/* ---- areas --------------------------------------------------------------------------------- */

/* A stretch of kernel addresses that is one image, or a part of one. */
struct kernel_area {
	struct dyn_node node;
	struct image *image;
	uint64_t off; /* image offset of node.start */
};

/* Code that comes and goes: BPF programs, trampolines. Offsets are given out once per name, length.
 */
struct kernel_dynsym {
	char *name;
	uint64_t off, len;
};

struct kernel {
	struct profdb *db;
	struct images *images;
	bool live;
	struct kernel_symbols symbols;
	struct dyn_tree areas;

	struct image *vdso, *dynsym_image;
	struct kernel_dynsym *dynsyms;
	size_t nr_dynsyms, cap_dynsyms;
	struct base_map dynsym_by_key; /* name and length -> index + 1 */
	uint64_t dynsym_next;
	bool dynsyms_changed;
};

/* Where this machine tells of itself; tests bring their own. Texts may be NULL. */
struct kernel_texts {
	const char *kallsyms, *modules, *release;
	struct base_id id; /* the kernel's build-id; len 0: none */
	/* Build-id of a module: 0 or negative; may be NULL. */
	int (*module_id)(const char *name, struct base_id *id);
};

/* Make areas and images of them, and write the images' files. 0 or negative with @err. */
int kernel_fill(struct kernel *k, const struct kernel_texts *texts, struct base_err *err);

/* ---- files (kernel_file.c) ------------------------------------------------------------------- */

/*
 * Write the symbols within [start, start + len) as <db>/kernel/NAME-<id>.elf, unless it is there.
 * @module NULL: the kernel's own.
 */
int kernel_file_write(struct kernel *k, const char *name, const struct base_id *id,
		      const char *module, uint64_t start, uint64_t len, struct base_err *err);
int kernel_file_write_dynsyms(struct kernel *k, struct base_err *err);
/* The vdso this process has: its bytes into <db>/kernel/, its identity to @id. -ENOENT: none, or
 * (logged) one that cannot be identified. */
int kernel_file_write_vdso(struct kernel *k, struct base_id *id, struct base_err *err);

#endif
