/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel that runs here: what kallsyms tells of it, its memory, and its code as it may be shown
 * to others: machine code must not tell where the kernel lies, so the addresses in it are replaced
 * by places in the image.
 */
#ifndef DCPI_KERNEL_H
#define DCPI_KERNEL_H

#include "base.h"
#include "wire.h"

/* ---- kallsyms and modules (symbols.c) -------------------------------------------------------- */

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
	uint64_t text_start, text_end; /* bounds of the kernel's own text; 0: unknown */
	uint64_t image_end;	       /* its data included; 0: nothing is told */
	bool hidden; /* all addresses are zero: the reader of kallsyms lacks a right */
};

/* @text is copied. Lines that are none are skipped. 0 or -ENOMEM. */
int kernel_symbols_parse(struct kernel_symbols *s, const char *text, size_t len);
void kernel_symbols_release(struct kernel_symbols *s);
/* The symbol at or before @addr, or NULL. */
const struct kernel_symbol *kernel_symbols_find(const struct kernel_symbols *s, uint64_t addr);
/* @module NULL: of the kernel itself. */
bool kernel_symbol_belongs(const struct kernel_symbol *s, const char *module);
/* Is it a routine in which a CPU with nothing to do waits? */
bool kernel_is_idle(const char *name);

struct kernel_module {
	char name[64];
	uint64_t addr, len;
	uint64_t inode; /* inode of its folder in /sys, which changes with each load; 0: unknown */
};

/* A line of /proc/modules: 0 or -DCPI_EFORMAT. */
int kernel_module_parse(const char *line, struct kernel_module *m);

/* ---- code as it is shown (view.c) ------------------------------------------------------------ */

/* Code as it ran, and how it is to be shown. */
struct kernel_view {
	uint32_t machine; /* EM_X86_64 or EM_AARCH64 */
	uint64_t addr;	  /* where the first byte ran */
	uint64_t at;	  /* where it stands in the image */
	/*
	 * The range of the image, with this code in it: an address in the range becomes a place in
	 * the image. Any other kernel address is shown as 0, and no other number is changed.
	 */
	uint64_t own_start, own_end;
	/* Place to show for something outside that is called or read relative to the code. */
	uint64_t (*place)(void *ctx, uint64_t target);
	void *ctx;
};

/*
 * Replace every address in @code. Returns how many bytes from the start on may be shown: fewer than
 * @len where there is something that cannot be taken apart (what follows is zeroed), 0 for code of
 * another machine.
 */
size_t kernel_view_hide(const struct kernel_view *v, uint8_t *code, size_t len);

/* ---- memory (memory_linux.c) ----------------------------------------------------------------- */

struct kernel_memory;

/*
 * Reader of the kernel's memory, where its code is: by a BPF program, else /proc/kcore. -errno
 * where neither can be had: -EPERM without rights.
 */
int kernel_memory_open(struct kernel_memory **out, struct base_err *err);
void kernel_memory_close(struct kernel_memory *k);
/* All @len bytes at @addr (a true address) into @to: 0, or negative where not all are there. */
int kernel_memory_read(struct kernel_memory *k, uint64_t addr, void *to, size_t len);

/* ---- files (job.c) --------------------------------------------------------------------------- */

/* Bytes of an id that a file's name tells. */
enum { KERNEL_FILE_ID = 10 };

/* NAME-<beginning of the id>.SUFFIX, fit for a file name. */
void kernel_file_name(char *to, size_t len, const char *name, const struct base_id *id,
		      const char *suffix);
/* Parse the id out of such a name; returns the length of NAME. -EINVAL: it is no such name. */
int kernel_file_id(const char *file, struct base_id *id);
uint32_t kernel_machine(void); /* EM_* */
/* Parts of a pseudo-image's job (docs/format/pseudoimg.md); @host may be NULL. 0, -DCPI_ELIMIT or
 * -ENOMEM. */
int kernel_job_head(struct base_buf *job, const char *host, const char *facility, uint64_t vaddr,
		    uint64_t len);
struct kernel_job_routine {
	const char *name;
	uint64_t addr;	     /* in the image's ELF */
	const uint8_t *code; /* NULL: none */
	size_t len;
	const struct wire_line *lines;
	uint32_t nr_lines, nr_files;
	const struct base_buf *files;
};
int kernel_job_routine(struct base_buf *job, const struct kernel_job_routine *r);

#endif
