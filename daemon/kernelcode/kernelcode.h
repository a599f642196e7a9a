/* SPDX-License-Identifier: BSD-2-Clause */
/* The running kernel's own code, its modules, BPF programs and the vdso, as images. */
#ifndef DCPI_KERNELCODE_H
#define DCPI_KERNELCODE_H

#include "images.h"

/* kallsyms, modules, BPF and other ksymbols, vdso; their images are written into <db>/kernel/. */
struct kernel;

struct kernel_config {
	struct profdb *db; /* NULL: no files are written */
	struct images *images;
	bool live; /* this machine's kernel; else DRIVER_LOAD_KERNEL and KSYMBOL are all there is …
		    */
	bool vdso;		      /* … and the vdso */
	const char *root;	      /* where proc and sys stand; NULL: "/" */
	const char *helper_dir;	      /* where dcpid-pseudoimg is; NULL: no code is kept */
	void (*meanwhile)(void *ctx); /* while it works; or NULL */
	void *meanwhile_ctx;
	const char *host;
	/* bpf(2), with its result or -errno; NULL: this machine's. */
	long (*bpf)(void *ctx, int cmd, void *attr, size_t attr_len);
	/* Reads the kernel's memory: 0 or -errno; NULL: kernel_memory_read. */
	int (*read)(void *ctx, uint64_t addr, void *to, size_t len);
	void *ctx;
};

/* Strings of @config must outlive it. */
int kernel_open(const struct kernel_config *config, struct kernel **out, struct base_err *err);
void kernel_close(struct kernel *k);
/* KSYMBOL, KERNEL, POKE */
void kernel_load(struct kernel *k, const struct driver_load *load);
/*
 * Image and offset of a kernel address; *@idle: it is in a routine in which an idle CPU waits, and
 * of the idle task. NULL: unknown, or it had several images while @c was counted.
 */
struct image *kernel_lookup(struct kernel *k, const struct driver_count *c, uint64_t *off,
			    bool *idle);
/* Read code that may be gone when the event of its coming is handed on; often, it costs a call. */
void kernel_look(struct kernel *k);
struct image *kernel_vdso(struct kernel *k); /* NULL where there is none */
/* A file in memory with the bytes of the vdso; the caller closes it. -ENOENT: there is none. */
int kernel_vdso_open(void);
/* Report the current kernel code, with which a recorded stream must begin. */
void kernel_tell(const struct kernel *k, void (*tell)(void *ctx, const struct driver_load *load),
		 void *ctx);
/*
 * Write images that changed, before the profiles of a flush. @hasty: a file of the kernel's own
 * routines, for which no profile waits, is left to a thread where it takes long; the next call ends
 * that.
 */
int kernel_write_images(struct kernel *k, bool hasty, struct base_err *err);
/* Such a file is not there yet. */
bool kernel_is_writing(const struct kernel *k);
/*
 * The written images are not on disk any more: pseudo-images that can be made again have no
 * identity until then.
 */
void kernel_images_lost(struct kernel *k);

#endif
