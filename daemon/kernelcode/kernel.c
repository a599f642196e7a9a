/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel addresses are looked up; load events change what stands there. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernelcode_internal.h"

struct image *kernel_lookup(struct kernel *k, const struct driver_count *c, uint64_t *off,
			    bool *idle)
{
	const struct kernel_area *a = (const void *)interval_find(&k->areas, c->addr);
	const struct kernel_symbol *s;

	*idle = false;
	if (k->config.live && (!a || a->module) && c->time_ns > k->checked_ns) {
		kernel_live_check(k);
		a = (const void *)interval_find(&k->areas, c->addr);
	}
	if (!a || c->time_ns > kernel_area_over_ns(a))
		return NULL;
	if (a->contested_ns && c->first_ns <= a->contested_ns)
		return NULL;
	/* A search of all its symbols, for each count: of the idle task alone. */
	s = c->pid ? NULL : kernel_symbols_find(&k->symbols, c->addr);
	*idle = s && s->idle && s->addr >= a->node.start;
	*off = a->off + (c->addr - a->node.start);
	return a->image;
}

void kernel_look(struct kernel *k)
{
	if (k->config.live && k->helper[0])
		kernel_bpf_read(&k->bpf);
}

struct image *kernel_vdso(struct kernel *k)
{
	return k->vdso;
}

/* ---- load events -------------------------------------------------------------------------------
 */

static void load_kernel(struct kernel *k, const struct driver_load *l, uint64_t end)
{
	const char *name = l->path && *l->path ? l->path : "vmlinux";
	struct kernel_area a = { .node = { .start = l->addr, .end = end } };

	if (k->config.live)
		return;
	a.image = images_get(k->config.images, PROFDB_KERNEL, &l->id, name, name);
	kernel_area_add(k, &a, l->time_ns);
}

void kernel_load(struct kernel *k, const struct driver_load *l)
{
	const char *name = l->path && *l->path ? l->path : "unnamed";
	uint64_t end;

	if (base_add_overflow(l->addr, l->len, &end))
		return;
	if (l->kind == DRIVER_LOAD_KERNEL)
		load_kernel(k, l, end);
	else if (l->kind == DRIVER_LOAD_POKE)
		kernel_text_poke(k, l);
	else if (l->kind == DRIVER_LOAD_KSYMBOL && (l->flags & DRIVER_LOAD_GONE))
		kernel_area_end(k, l->addr, end, l->time_ns);
	else if (l->kind == DRIVER_LOAD_KSYMBOL)
		kernel_code_add(k, name, l->addr, l->len, true, l->time_ns);
}

void kernel_tell(const struct kernel *k, void (*tell)(void *ctx, const struct driver_load *load),
		 void *ctx)
{
	const struct kernel_area *a;
	char name[256];

	for (uint64_t pos = 0; (a = kernel_area_next(k, &pos));) {
		struct driver_load l = { .kind = DRIVER_LOAD_KERNEL,
					 .addr = a->node.start,
					 .len = a->node.end - a->node.start,
					 .id = a->image->id,
					 .path = kernel_code_name(a->image, name, sizeof(name)) };

		if (!kernel_code_is(k, a->image)) {
			tell(ctx, &l);
			continue;
		}
		l.kind = DRIVER_LOAD_KSYMBOL;
		l.id.len = 0;
		tell(ctx, &l);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

int kernel_open(const struct kernel_config *config, struct kernel **out, struct base_err *err)
{
	struct kernel *k = calloc(1, sizeof(*k));
	int r = 0;

	*out = NULL;
	if (!k)
		return base_fail_errno(err, -ENOMEM, "cannot follow the kernel's code");
	k->config = *config;
	if (config->helper_dir)
		snprintf(k->helper, sizeof(k->helper), "%s/dcpid-pseudoimg", config->helper_dir);
	kernel_bpf_init(&k->bpf, config->bpf, config->ctx);
	if (config->live)
		r = kernel_live_open(k, err);
	if (r < 0) {
		kernel_close(k);
		return r;
	}
	*out = k;
	return 0;
}

void kernel_close(struct kernel *k)
{
	if (!k)
		return;
	/* The images are the table's; it outlives us or not: nothing of it is touched here. */
	interval_release(&k->areas);
	kernel_code_close(k);
	kernel_text_close(k);
	kernel_bpf_release(&k->bpf);
	kernel_symbols_release(&k->symbols);
	free(k->modules);
	free(k);
}

static int write_vdso(struct kernel *k, struct base_err *err)
{
	struct base_id id;
	int r = -ENOENT;

	if (k->vdso && (k->vdso->dirty || k->vdso->values))
		r = kernel_file_write_vdso(k, &id, err);
	return r == -ENOENT ? 0 : r;
}

/*
 * The lock keeps others from removing what is found here until it is newer. Who removes looks at
 * the time just before, so without it little is left to chance, and nothing but names.
 */
int kernel_write_images(struct kernel *k, struct base_err *err)
{
	int lock, r, s, t;

	kernel_area_forget(k);
	if (!k->config.db)
		return 0;
	lock = profdb_dyn_lock(k->config.db, false, IMAGE_FILE_LOCK_MS, NULL);
	if (kernel_text_wants_check(k)) {
		k->checked_ns = 0;
		kernel_live_check(k);
	}
	r = kernel_text_write(k, err);
	s = kernel_code_write(k, err);
	t = write_vdso(k, err);
	if (lock >= 0)
		close(lock);
	return r < 0 ? r : s < 0 ? s : t;
}

void kernel_images_lost(struct kernel *k)
{
	kernel_text_lost(k);
	kernel_code_lost(k);
}
