/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's own code from within: which image stands at which address and since when (kernel.c),
 * what /proc and /sys tell of it (kernel_live.c, kernel_symbols.c), code that comes and goes
 * (kernel_code.c, kernel_bpf.c), the bytes of routines that got samples (kernel_text.c), and files
 * (kernel_file.c). No file holds a true address (kernel_view.c).
 */
#ifndef DCPI_KERNEL_INTERNAL_H
#define DCPI_KERNEL_INTERNAL_H

#include "daemon_internal.h"
#include "dyn_tree.h"
#include "kernel_bpf.h"

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
	uint64_t inode; /* of its folder in /sys, another one at each load; 0: not told */
};

/* A line of /proc/modules: 0 or -DCPI_EFORMAT. */
int kernel_module_parse(const char *line, struct kernel_module *m);

/* ---- areas (kernel.c) ------------------------------------------------------------------------ */

/* A stretch of kernel addresses that is one image, or a part of one. */
struct kernel_area {
	struct dyn_node node;
	struct image *image; /* counted reference */
	uint64_t off;	     /* image offset of node.start */
	bool module;	     /* nothing tells when it goes: /proc is looked at */
	bool guess;	     /* where it ends is not known */
	uint64_t gone_ns;    /* UINT64_MAX: it is there */
	/* Up to then another image stood somewhere in it; 0: none is known. */
	uint64_t contested_ns;
};

/* From @now_ns on; what stood there is gone. 0 or negative. @image NULL: -ENOMEM. */
int kernel_area_add(struct kernel *k, const struct kernel_area *area, uint64_t now_ns);
/* Whatever lies within [start, end) is gone. */
void kernel_area_end(struct kernel *k, uint64_t start, uint64_t end, uint64_t now_ns);
/* The code of a module is gone that begins in [start, end), wherever it ends. */
void kernel_area_end_module(struct kernel *k, uint64_t start, uint64_t end, uint64_t now_ns);

struct kernel {
	struct kernel_config config;
	char helper[512];
	struct kernel_symbols symbols;
	struct dyn_tree areas;
	struct image *vdso;

	/* kernel_live.c */
	uint64_t checked_ns; /* when /proc/modules was read last */
	struct kernel_module *modules;
	size_t nr_modules, cap_modules;

	/* kernel_code.c */
	struct kernel_bpf bpf;
	struct base_map codes; /* by key -> struct kernel_code */
	uint64_t job_bytes;    /* of all codes */

	/* kernel_text.c */
	struct kernel_text *texts; /* list */
	struct driver_kernel *memory;
	bool memory_sought;
};

/* ---- this machine (kernel_live.c) ------------------------------------------------------------ */

/* Areas and images of all that is there, and the images' files. 0 or negative with @err. */
int kernel_live_open(struct kernel *k, struct base_err *err);
/* Modules that came or went since the last look. */
void kernel_live_check(struct kernel *k);

/* ---- code that comes and goes (kernel_code.c) ------------------------------------------------ */

/* @name stands at [addr, addr + len) from @now_ns on. @known false: @len is a guess. */
void kernel_code_add(struct kernel *k, const char *name, uint64_t addr, uint64_t len, bool known,
		     uint64_t now_ns);
/* Write what got samples; forget what is gone without any. */
int kernel_code_write(struct kernel *k, struct base_err *err);
void kernel_code_close(struct kernel *k);
bool kernel_code_is(const struct kernel *k, const struct image *img);
/* Code is told of by its name, which its file's name begins with; in @to, or the image's path. */
const char *kernel_code_name(const struct image *img, char *to, size_t len);

/* ---- the bytes of the kernel's routines (kernel_text.c) -------------------------------------- */

/* The kernel proper, or a module (@module not NULL), at [start, start + len), with its .code file.
 */
int kernel_text_add(struct kernel *k, struct image *image, const char *file, const char *module,
		    uint64_t start, uint64_t len);
/* The kernel changed itself. */
void kernel_text_poke(struct kernel *k, const struct driver_load *load);
/* Read and write the routines that got samples. Failures are logged: samples do not wait for it. */
void kernel_text_write(struct kernel *k);
void kernel_text_close(struct kernel *k);

/* ---- files (kernel_file.c) ------------------------------------------------------------------- */

/* NAME-<first half of the id>.SUFFIX, fit for a file name. */
void kernel_file_name(char *to, size_t len, const char *name, const struct base_id *id,
		      const char *suffix);
uint32_t kernel_machine(void); /* EM_* */
/*
 * Write the symbols within [start, start + len) as <db>/kernel/NAME-<id>.elf, unless it is there.
 * @module NULL: the kernel's own.
 */
int kernel_file_write(struct kernel *k, const char *name, const struct base_id *id,
		      const char *module, uint64_t start, uint64_t len, struct base_err *err);
/* A single routine of which only the name is known. */
int kernel_file_write_name(struct kernel *k, const char *name, const struct base_id *id,
			   uint64_t len, struct base_err *err);
/* A pseudo-image from @job into the folder @dir_fd; readable by the daemon's user and group dcpi.
 */
int kernel_file_write_job(struct kernel *k, int dir_fd, const char *file,
			  const struct base_buf *job, struct base_id *id, struct base_err *err);
/* Parts of such a job. */
int kernel_job_head(struct kernel *k, struct base_buf *job, const char *facility, uint64_t vaddr,
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
/* The vdso this process has: its bytes into <db>/kernel/, its identity to @id. -ENOENT: none, or
 * (logged) one that cannot be identified. */
int kernel_file_write_vdso(struct kernel *k, struct base_id *id, struct base_err *err);

#endif
