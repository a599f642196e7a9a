/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of the kernel's routines that got samples. They are kept beside the symbols, in a file
 * that only grows: symbols are the same for every boot of a kernel, its code is not, for it patches
 * itself. What stands in the file is the code as it was at the last flush.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bound.h"
#include "pseudoimg.h"
#include "kernelcode_internal.h"
#include "kernel_kept.h"

enum { ROUTINE_MAX = 256 << 10 };
/* The loop waits so long for a file, which is there by then most often. */
enum { GRACE_MS = 100 };
#define TEXT_MAX (UINT64_C(16) << 20)

/* A routine that is kept. */
struct piece {
	uint64_t off, len; /* in the image */
	uint8_t *code;	   /* as it is shown */
	char *name;
	uint64_t read_ns; /* 0: by a daemon before us */
	bool stale;	  /* the kernel has changed it since */
};

struct kernel_text {
	struct kernel_text *next;
	struct image *image; /* counted reference */
	char *file, *module;
	uint64_t start, len;
	struct piece *pieces; /* ascending by off */
	size_t nr, cap;
	uint64_t bytes;
	bool loaded, changed;
	struct writing *writing; /* of its file, in a thread; or NULL */
	int announced;		 /* why it was not written the last time, 0: it was */
};

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Index of the first piece at or behind @off. */
static size_t piece_index(const struct kernel_text *t, uint64_t off)
{
	return BASE_LOWER_BOUND(t->pieces, t->nr, off, off);
}

static const struct piece *piece_at(const struct kernel_text *t, uint64_t off)
{
	size_t i = piece_index(t, off);

	return i < t->nr && t->pieces[i].off == off ? &t->pieces[i] : NULL;
}

static void piece_release(struct piece *p)
{
	free(p->code);
	free(p->name);
}

/* Takes over what @p owns. */
static int put_piece(struct kernel_text *t, struct piece *p)
{
	size_t i = piece_index(t, p->off);
	int r;

	if (i < t->nr && t->pieces[i].off == p->off) {
		t->bytes -= t->pieces[i].len;
		piece_release(&t->pieces[i]);
	} else {
		r = base_grow(&t->pieces, &t->cap, t->nr + 1, sizeof(*t->pieces));
		if (r < 0) {
			piece_release(p);
			return r;
		}
		memmove(t->pieces + i + 1, t->pieces + i, (t->nr++ - i) * sizeof(*t->pieces));
	}
	t->pieces[i] = *p;
	t->bytes += p->len;
	return 0;
}

/* ---- what a daemon before us kept ------------------------------------------------------------ */

static int load_piece(void *ctx, const char *name, uint64_t off, const uint8_t *code, size_t len)
{
	struct kernel_text *t = ctx;
	struct piece p = { .off = off, .len = len };

	/* After the file was lost: what we have is newer. */
	if (piece_at(t, off))
		return 0;
	if (!len || off >= t->len || len > t->len - off || t->bytes + len > TEXT_MAX)
		return 0;
	p.code = malloc(len);
	p.name = strdup(name);
	if (!p.code || !p.name) {
		piece_release(&p);
		return -ENOMEM;
	}
	memcpy(p.code, code, len);
	return put_piece(t, &p);
}

static void load_file(struct kernel *k, struct kernel_text *t)
{
	char path[4096];

	t->loaded = true;
	snprintf(path, sizeof(path), "%s/kernel/%s", profdb_path(k->config.db), t->file);
	kernel_kept_read(path, load_piece, t);
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_memory(struct kernel *k, uint64_t addr, void *to, size_t len)
{
	struct base_err err = { 0 };

	if (k->config.read)
		return k->config.read(k->config.ctx, addr, to, len);
	if (!k->memory_sought && kernel_memory_open(&k->memory, &err) < 0)
		base_log(BASE_LOG_INFO, "the kernel's routines are without instructions: %s",
			 err.text);
	k->memory_sought = true;
	return k->memory ? kernel_memory_read(k->memory, addr, to, len) : -EPERM;
}

/* All targets outside of the image are told as one place, behind its end. */
static uint64_t place(void *ctx, uint64_t target)
{
	const struct kernel_text *t = ctx;

	(void)target;
	return t->len;
}

static void hide(const struct kernel *k, const struct kernel_text *t, struct piece *p)
{
	const struct kernel_view view = {
		.machine = kernel_machine(),
		.addr = t->start + p->off,
		.at = p->off,
		.own_start = t->start,
		.own_end = t->module ? t->start + t->len : k->symbols.image_end,
		.place = place,
		.ctx = (void *)(uintptr_t)t,
	};

	kernel_view_hide(&view, p->code, p->len);
}

/* Takes over what @p owns; the file is written anew only where it would differ. */
static int keep_piece(struct kernel_text *t, struct piece *p)
{
	const struct piece *old = piece_at(t, p->off);

	if (!old || old->len != p->len || memcmp(old->code, p->code, p->len) != 0)
		t->changed = true;
	return put_piece(t, p);
}

static int read_piece(struct kernel *k, struct kernel_text *t, const char *name, uint64_t off,
		      uint64_t len)
{
	struct piece p = { .off = off, .len = len, .read_ns = base_now_ns() };
	int r;

	p.code = malloc(len);
	p.name = strdup(name);
	r = p.code && p.name ? read_memory(k, t->start + off, p.code, len) : -ENOMEM;
	if (r < 0) {
		piece_release(&p);
		return r;
	}
	hide(k, t, &p);
	return keep_piece(t, &p);
}

/* The routine that image offset *@off is in, which becomes its end: -ENOENT where no symbol tells.
 */
static int read_routine(struct kernel *k, struct kernel_text *t, uint64_t *off)
{
	const struct kernel_symbols *all = &k->symbols;
	const struct kernel_symbol *s = kernel_symbols_find(all, t->start + *off);
	const struct piece *old;
	uint64_t end = t->start + t->len, len;

	if (!s || s->addr < t->start || !kernel_symbol_belongs(s, t->module))
		return -ENOENT;
	if (s + 1 < all->v + all->nr && s[1].addr < end)
		end = s[1].addr;
	len = end - s->addr;
	*off = end - t->start;
	old = piece_at(t, s->addr - t->start);
	if (len > ROUTINE_MAX || t->bytes - (old ? old->len : 0) + len > TEXT_MAX)
		return -DCPI_ELIMIT;
	return read_piece(k, t, s->name, s->addr - t->start, len);
}

/*
 * Again at each flush: the kernel patches itself, and does not always tell (some kernels open an
 * event for that and are silent). A thousand routines take three milliseconds.
 */
static void read_sampled(struct kernel *k, struct kernel_text *t)
{
	const struct profdb_profile *p = t->image->counts;
	uint64_t done = 0, off;

	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++) {
		off = profdb_profile_entry(p, i)->off;
		if (off < done)
			continue;
		if (read_routine(k, t, &off) == -EPERM)
			return;
		done = off;
	}
	for (size_t i = 0; i < t->nr; i++) {
		off = t->pieces[i].off;
		if (t->pieces[i].stale)
			read_routine(k, t, &off);
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

static int put_job(struct kernel *k, const struct kernel_text *t, struct base_buf *job)
{
	char id[BASE_ID_TEXT_LEN];
	int r = kernel_job_head(job, k->config.host, base_id_text(&t->image->id, id), 0, t->len);

	for (size_t i = 0; r == 0 && i < t->nr; i++) {
		const struct kernel_job_routine routine = { .name = t->pieces[i].name,
							    .addr = t->pieces[i].off,
							    .code = t->pieces[i].code,
							    .len = t->pieces[i].len };

		r = kernel_job_routine(job, &routine);
	}
	return r;
}

struct writing {
	struct image_task *task;
	struct pseudoimg_helper helper,
		waits; /* the thread's, and ours, which looks at the rings */
	const char *file;
	int dir_fd, job;
	struct pseudoimg_result result;
	struct base_err err;
};

static int put(void *arg)
{
	struct writing *w = arg;

	return image_file_put(w->dir_fd, w->file, &w->helper, NULL, w->job, &w->result, &w->err);
}

static void writing_free(struct writing *w)
{
	if (w->dir_fd >= 0)
		close(w->dir_fd);
	if (w->job >= 0)
		close(w->job);
	free(w);
}

static void written(struct kernel_text *t, int r, const struct base_err *err)
{
	t->changed |= r < 0 && !image_file_refusal(r);
	if (r < 0 && r != t->announced)
		base_log(BASE_LOG_WARN, "'%s' is not kept: %s", t->file,
			 err->code ? err->text : base_strerror(r));
	t->announced = r < 0 ? r : 0;
}

static bool is_writing(const struct kernel_text *t, unsigned int wait_ms)
{
	return t->writing && !image_task_is_done(t->writing->task, wait_ms);
}

static void end_writing(struct kernel_text *t)
{
	struct writing *w = t->writing;

	if (!w)
		return;
	t->writing = NULL;
	written(t, image_task_end(w->task), &w->err);
	writing_free(w);
}

/* False: that cannot be. */
static bool begin_writing(struct kernel *k, struct kernel_text *t, const struct base_buf *job)
{
	struct writing *w = malloc(sizeof(*w));

	if (!w)
		return false;
	*w = (struct writing){ .helper = { .program = k->helper },
			       .waits = { k->helper, k->config.meanwhile, k->config.meanwhile_ctx },
			       .file = t->file,
			       .dir_fd = fcntl(profdb_kernel_fd(k->config.db), F_DUPFD_CLOEXEC, 0),
			       .job = kernel_file_job(job) };
	if (w->dir_fd >= 0 && w->job >= 0)
		w->task = image_task_begin(&w->waits, -1, put, w);
	if (!w->task) {
		writing_free(w);
		return false;
	}
	t->writing = w;
	return true;
}

/* @hasty: what takes longer is left to a thread, and to the next flush to end. */
static void write_text(struct kernel *k, struct kernel_text *t, bool hasty)
{
	struct base_buf job = { 0 };
	struct base_err err = { 0 };
	struct base_id id;
	int r = put_job(k, t, &job);

	t->changed = false;
	if (r == 0 && hasty && begin_writing(k, t, &job)) {
		if (!is_writing(t, GRACE_MS))
			end_writing(t);
	} else {
		if (r == 0)
			r = kernel_file_write_job(k, profdb_kernel_fd(k->config.db), t->file, &job,
						  &id, &err);
		written(t, r, &err);
	}
	base_buf_release(&job);
}

/* Where a module was, another may be by now. */
static bool is_there(const struct kernel *k, const struct kernel_text *t)
{
	const struct kernel_area *a = (const void *)interval_find(&k->areas, t->start);

	return !t->module || (a && a->image == t->image && a->gone_ns == UINT64_MAX);
}

bool kernel_text_wants_check(const struct kernel *k)
{
	for (const struct kernel_text *t = k->texts; t; t = t->next)
		if (t->module && t->image->dirty)
			return true;
	return false;
}

/*
 * Removed symbols are written again: another process may have removed them, since no profile
 * referred to them.
 */
static int renew_symbols(struct kernel *k, struct kernel_text *t, struct base_err *err)
{
	char file[256];

	if (is_there(k, t))
		return kernel_file_write(k, t->image->path, &t->image->id, t->module, t->start,
					 t->len, err);
	kernel_file_name(file, sizeof(file), t->image->path, &t->image->id, "elf");
	kernel_file_renew(k, file);
	kernel_file_renew(k, t->file);
	return 0;
}

static void renew_code(struct kernel *k, struct kernel_text *t, bool hasty)
{
	if (!is_there(k, t))
		return;
	if (!t->loaded)
		load_file(k, t);
	if (!t->writing && !kernel_file_renew(k, t->file) && t->nr)
		t->changed = true;
	read_sampled(k, t);
	if (t->changed && !t->writing)
		write_text(k, t, hasty);
}

bool kernel_is_writing(const struct kernel *k)
{
	for (const struct kernel_text *t = k->texts; t; t = t->next)
		if (is_writing(t, 0))
			return true;
	return false;
}

/* Symbols of what got samples, and routines that did, are in files that are as of now. Failures to
 * read routines, or to write those, are logged: samples do not wait for it. */
static int text_write(struct kernel *k, bool hasty, struct base_err *err)
{
	int r = 0;

	if (!k->config.live)
		return 0;
	for (struct kernel_text *t = k->texts; t; t = t->next) {
		int s = 0;

		if (!hasty || !is_writing(t, 0))
			end_writing(t);
		if (t->image->dirty || t->image->values)
			s = renew_symbols(k, t, err);
		if (t->image->dirty && k->helper[0])
			renew_code(k, t, hasty);
		r = r < 0 ? r : s;
	}
	return r;
}

/* Files hold what others put there, or are not there: ours go into them whole. */
static void text_lost(struct kernel *k)
{
	for (struct kernel_text *t = k->texts; t; t = t->next) {
		t->loaded = false;
		t->changed = t->nr != 0;
	}
}

/* ---- pokes ----------------------------------------------------------------------------------- */

static void poke_text(struct kernel_text *t, uint64_t from, uint64_t to, uint64_t time_ns)
{
	for (size_t i = 0; i < t->nr && t->start + t->pieces[i].off < to; i++) {
		struct piece *p = &t->pieces[i];

		if (t->start + p->off + p->len > from && time_ns >= p->read_ns)
			p->stale = true;
	}
}

/* The new bytes are read with the rest of the routine: what they refer to must be hidden. */
void kernel_text_poke(struct kernel *k, const struct driver_load *l)
{
	uint64_t end;

	if (base_add_overflow(l->addr, l->data_len ? l->data_len : l->len, &end))
		return;
	for (struct kernel_text *t = k->texts; t; t = t->next)
		if (l->addr < t->start + t->len && end > t->start)
			poke_text(t, l->addr, end, l->time_ns);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void text_free(struct kernel_text *t)
{
	end_writing(t);
	for (size_t i = 0; i < t->nr; i++)
		piece_release(&t->pieces[i]);
	free(t->pieces);
	free(t->file);
	free(t->module);
	free(t);
}

/* A module that came back elsewhere has the same file. */
static struct kernel_text *find(const struct kernel *k, const struct image *image)
{
	for (struct kernel_text *t = k->texts; t; t = t->next)
		if (t->image == image)
			return t;
	return NULL;
}

int kernel_text_add(struct kernel *k, struct image *image, const char *file, const char *module,
		    uint64_t start, uint64_t len)
{
	struct kernel_text *t = find(k, image);

	if (t) {
		t->start = start;
		t->len = len;
		return 0;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	*t = (struct kernel_text){ .image = image,
				   .file = strdup(file),
				   .module = module ? strdup(module) : NULL,
				   .start = start,
				   .len = len };
	if (!t->file || (module && !t->module)) {
		text_free(t);
		return -ENOMEM;
	}
	image->refs++;
	t->next = k->texts;
	k->texts = t;
	return 0;
}

static void text_close(struct kernel *k)
{
	struct kernel_text *t;

	while ((t = k->texts)) {
		k->texts = t->next;
		text_free(t);
	}
	kernel_memory_close(k->memory);
}

const struct kernel_part kernel_text_part = { text_write, text_lost, text_close };
