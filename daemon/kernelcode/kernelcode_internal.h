/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's own code from within: which image stands at which address and since when, and what
 * /proc and /sys tell of it (kernel.c), code that comes and goes (code.c), the bytes of routines
 * that got samples (text.c), and files (file.c).
 * No file holds a true address (lib/kernel).
 */
#ifndef DCPI_KERNEL_INTERNAL_H
#define DCPI_KERNEL_INTERNAL_H

#include "kernelcode.h"
#include "interval.h"
#include "kernel.h"
#include "kernel_bpf.h"

/* ---- areas (kernel.c) ------------------------------------------------------------------------ */

/* A stretch of kernel addresses that is one image, or a part of one. */
struct kernel_area {
	struct interval_node node;
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

/* A part that holds images of its own: the kernel's routines (text.c), or code that comes and goes
 * (code.c). */
struct kernel_part {
	/* Before the profiles of a flush, as kernel_write_images. 0 or negative with @err. */
	int (*write)(struct kernel *k, bool hasty, struct base_err *err);
	/* The files are not on disk any more. */
	void (*lost)(struct kernel *k);
	void (*close)(struct kernel *k);
};

struct kernel {
	struct kernel_config config;
	char helper[512];
	struct kernel_symbols symbols;
	struct interval_tree areas;
	struct image *vdso;

	/* kernel.c */
	uint64_t checked_ns; /* when /proc/modules was read last */
	struct kernel_module *modules;
	size_t nr_modules;

	/* code.c */
	struct kernel_bpf bpf;
	struct base_map codes; /* by key -> struct kernel_code */
	uint64_t job_bytes;    /* sum over all codes */

	/* text.c */
	struct kernel_text *texts; /* list */
	struct kernel_memory *memory;
	bool memory_sought;
};

/* The first area behind *@pos, which moves behind it; or NULL. */
static inline struct kernel_area *kernel_area_next(const struct kernel *k, uint64_t *pos)
{
	struct kernel_area *a = (void *)interval_overlap(&k->areas, *pos, UINT64_MAX);

	if (a)
		*pos = a->node.end;
	return a;
}

/* ---- this machine (kernel.c) ----------------------------------------------------------------- */

/* Modules that came or went since the last look. */
void kernel_live_check(struct kernel *k);

/* ---- code that comes and goes (code.c) ------------------------------------------------------- */

/* @name stands at [addr, addr + len) from @now_ns on. @known false: @len is a guess. */
void kernel_code_add(struct kernel *k, const char *name, uint64_t addr, uint64_t len, bool known,
		     uint64_t now_ns);

extern const struct kernel_part kernel_code_part;

/* ---- the bytes of the kernel's routines (text.c) --------------------------------------------- */

/* The kernel proper, or a module (@module not NULL), at [start, start + len), with its .code file.
 */
int kernel_text_add(struct kernel *k, struct image *image, const char *file, const char *module,
		    uint64_t start, uint64_t len);
/* The kernel changed itself. */
void kernel_text_poke(struct kernel *k, const struct driver_load *load);
/* A module has samples that are not on disk: kernel_live_check should say first whether it is
 * there. */
bool kernel_text_wants_check(const struct kernel *k);

extern const struct kernel_part kernel_text_part;

/* ---- files (file.c) -------------------------------------------------------------------------- */

/* <db>/kernel/@file is as of now, so that nobody takes it for one that is not needed (gc.c); false:
 * it is not there. */
bool kernel_file_renew(const struct kernel *k, const char *file);
/*
 * Write the symbols within [start, start + len) as <db>/kernel/NAME-<id>.elf; one that is there is
 * renewed.
 * @module NULL: the kernel's own.
 */
int kernel_file_write(struct kernel *k, const char *name, const struct base_id *id,
		      const char *module, uint64_t start, uint64_t len, struct base_err *err);
/* A single routine of which only the name is known. */
int kernel_file_write_name(struct kernel *k, const char *name, const struct base_id *id,
			   uint64_t len, struct base_err *err);
/* A file without a name that holds @job, or -errno. */
int kernel_file_job(const struct base_buf *job);
/* A pseudo-image from @job into the folder @dir_fd; readable by the daemon's user and group dcpi.
 */
int kernel_file_write_job(struct kernel *k, int dir_fd, const char *file,
			  const struct base_buf *job, struct base_id *id, struct base_err *err);
#endif
