/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that the kernel makes and drops while it runs. Each piece is an image of its own, known by
 * its contents: a BPF program that is loaded a thousand times is one. Programs whose instructions
 * could be read become pseudo-images; of everything else name and length are kept.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "kernelcode_internal.h"

/*
 * JOBS_MAX: of bytes that wait for a first sample, or for their file to be lost. Offset 0 stands at
 * BASE in the file: address 0 means "removed by the linker" to readers of DWARF. Whatever is called
 * outside has a slot behind the code, with its name.
 */
enum { JOBS_MAX = 8 << 20, BASE = 0x1000, SLOT = 16, SLOTS_MAX = 4096 };
enum { TAIL_LEN = sizeof("-0123456789abcdef.dyn") - 1 };
#define CODE_LEN_MAX (UINT64_C(1) << 24)

struct kernel_code {
	struct image *image; /* counted reference */
	uint64_t len;
	/* DYNAMIC: of its pseudo-image, until that is given up, or on disk while room is short. */
	struct base_buf job;
	bool on_disk;
	uint32_t nr_refused;
};

/* ---- what it is ------------------------------------------------------------------------------ */

/* Names of what lies outside, each with a slot. */
struct slots {
	struct kernel *k;
	const struct kernel_bpf_func *f; /* the function that refers to them */
	uint64_t first;			 /* where the first slot stands */
	char **names;
	size_t nr, cap;
};

/*
 * The name of an address in the image. It must not depend on other loaded code, or on later
 * knowledge: the program's own functions are named by their number, all other code that comes and
 * goes by one word.
 */
static const char *name_of(const struct slots *slots, uint64_t addr, char *to, size_t len)
{
	const struct kernel_bpf_layout *own = slots->f->layout;
	const struct kernel *k = slots->k;
	const struct kernel_area *a = (const void *)interval_find(&k->areas, addr);
	const struct kernel_symbol *s = kernel_symbols_find(&k->symbols, addr);

	for (uint32_t i = 0; own && i < own->nr; i++) {
		if (own->addrs[i] != addr)
			continue;
		snprintf(to, len, "function_%u", i);
		return to;
	}
	if (!a || a->gone_ns != UINT64_MAX || kernel_code_is(k, a->image))
		return "elsewhere";
	if (!s || s->addr < a->node.start)
		return "elsewhere";
	if (s->addr == addr)
		return s->name;
	snprintf(to, len, "%s+0x%llx", s->name, (unsigned long long)(addr - s->addr));
	return to;
}

static uint64_t place(void *ctx, uint64_t target)
{
	struct slots *s = ctx;
	char text[256];
	const char *name = name_of(s, target, text, sizeof(text));
	size_t i = 0;

	while (i < s->nr && strcmp(s->names[i], name) != 0)
		i++;
	if (i == s->nr && s->nr < SLOTS_MAX &&
	    base_grow(&s->names, &s->cap, s->nr + 1, sizeof(*s->names)) == 0) {
		s->names[s->nr] = strdup(name);
		s->nr += s->names[s->nr] != NULL;
	}
	return s->first + i * SLOT;
}

static void slots_release(struct slots *s)
{
	for (size_t i = 0; i < s->nr; i++)
		free(s->names[i]);
	free(s->names);
}

/* Without true addresses; negative where nothing of it can be shown. */
static int hide(struct kernel *k, struct kernel_bpf_func *f, struct slots *slots)
{
	const struct kernel_view view = {
		.machine = kernel_machine(),
		.addr = f->addr,
		.at = BASE,
		.own_start = f->addr,
		.own_end = f->addr + f->len,
		.place = place,
		.ctx = slots,
	};

	*slots = (struct slots){ .k = k, .f = f, .first = BASE + base_align_up(f->len, SLOT) };
	return kernel_view_hide(&view, f->code, f->len) ? 0 : -DCPI_EUNSUPPORTED;
}

static int put_routines(struct base_buf *to, const char *name, const struct kernel_bpf_func *f,
			const struct slots *slots)
{
	const struct kernel_job_routine main = { .name = name,
						 .addr = BASE,
						 .code = f->code,
						 .len = f->len,
						 .lines = f->lines,
						 .nr_lines = f->nr_lines,
						 .nr_files = f->nr_files,
						 .files = &f->files };
	int r = kernel_job_routine(to, &main);

	for (size_t i = 0; r == 0 && i < slots->nr; i++) {
		const struct kernel_job_routine slot = { .name = slots->names[i],
							 .addr = slots->first + i * SLOT,
							 .len = SLOT };

		r = kernel_job_routine(to, &slot);
	}
	return r;
}

static void hash_text(struct base_sha256 *s, const char *text)
{
	base_sha256_add(s, text, strlen(text) + 1);
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct kernel_code *find(const struct kernel *k, const char *key)
{
	return base_map_get(&k->codes, key, strlen(key));
}

/* Images of code are few among all: by what they are kept under. */
static const char *key_of(const struct image *img, char *to, size_t len)
{
	char text[BASE_ID_TEXT_LEN];

	if (img->kind == PROFDB_DYNAMIC)
		return img->stem;
	snprintf(to, len, "%s", base_id_text(&img->id, text));
	return to;
}

bool kernel_code_is(const struct kernel *k, const struct image *img)
{
	char key[BASE_ID_TEXT_LEN];
	const struct kernel_code *c = find(k, key_of(img, key, sizeof(key)));

	return c && c->image == img;
}

static void drop_job(struct kernel *k, struct kernel_code *c)
{
	k->job_bytes -= c->job.len;
	base_buf_release(&c->job);
}

static void code_free(struct kernel *k, struct kernel_code *c)
{
	drop_job(k, c);
	free(c);
}

/* Takes over @job. NULL: no memory. */
static struct kernel_code *code_new(struct kernel *k, struct image *img, uint64_t len,
				    struct base_buf *job)
{
	struct kernel_code *c = img ? calloc(1, sizeof(*c)) : NULL;
	char text[BASE_ID_TEXT_LEN];
	const char *key;

	if (!c) {
		base_buf_release(job);
		return NULL;
	}
	*c = (struct kernel_code){ .image = img, .len = len, .job = *job };
	k->job_bytes += job->len;
	key = key_of(img, text, sizeof(text));
	if (base_map_set(&k->codes, key, strlen(key), c) < 0) {
		code_free(k, c);
		return NULL;
	}
	img->refs++;
	return c;
}

/* Jobs whose image is on disk are dropped first. */
static bool has_space(struct kernel *k, size_t len)
{
	void *value;

	for (size_t pos = 0;
	     k->job_bytes + len > JOBS_MAX && base_map_next(&k->codes, &pos, &value);) {
		struct kernel_code *c = value;

		if (c->on_disk)
			drop_job(k, c);
	}
	return k->job_bytes + len <= JOBS_MAX;
}

/* Fit for a file name everywhere; what BPF allows is. */
static void clean(const char *name, char *to, size_t max)
{
	size_t n = 0;

	for (; name[n] && n + 1 < max; n++)
		to[n] = isalnum((unsigned char)name[n]) || strchr("_-", name[n]) ? name[n] : '_';
	to[n] = '\0';
}

/* Code with bytes: its file's name tells the contents, whoever writes it. */
static struct kernel_code *with_bytes(struct kernel *k, const char *name,
				      const struct kernel_bpf_func *f, const struct slots *slots)
{
	static const struct base_id none;
	struct base_buf job = { 0 };
	char stem[256], text[BASE_ID_TEXT_LEN], plain[128];
	struct kernel_code *c;
	struct base_sha256 s;
	struct base_id id;
	size_t head;

	if (kernel_job_head(&job, k->config.host, name, BASE, f->len + (slots->nr + 1) * SLOT) < 0)
		goto fail;
	head = job.len;
	if (put_routines(&job, name, f, slots) < 0 || !has_space(k, job.len))
		goto fail;
	base_sha256_init(&s);
	base_sha256_add(&s, job.data + head, job.len - head);
	base_id_of_sha256(&id, &s);
	clean(name, plain, sizeof(plain));
	snprintf(stem, sizeof(stem), "%s-%.16s.dyn", plain, base_id_text(&id, text));
	c = find(k, stem);
	if (!c)
		return code_new(k, images_get(k->config.images, PROFDB_DYNAMIC, &none, stem, stem),
				f->len, &job);
	base_buf_release(&job);
	return c;
fail:
	base_buf_release(&job);
	return NULL;
}

/* "NAME-0123456789abcdef.dyn" */
static bool is_stem_of(const char *stem, const char *name)
{
	char plain[128];
	size_t len;

	clean(name, plain, sizeof(plain));
	len = strlen(plain);
	return !strncmp(stem, plain, len) && stem[len] == '-' && strlen(stem + len) == TAIL_LEN;
}

const char *kernel_code_name(const struct image *img, char *to, size_t len)
{
	size_t all = strlen(img->stem);

	if (img->kind != PROFDB_DYNAMIC || all <= TAIL_LEN)
		return img->path;
	snprintf(to, len, "%.*s", (int)(all - TAIL_LEN), img->stem);
	return to;
}

/*
 * A program that was gone before it could be read: its name holds the hash of its instructions, so
 * one of that name and length that could be read is the same.
 */
static struct kernel_code *twin(const struct kernel *k, const char *name, uint64_t len)
{
	void *value;

	for (size_t pos = 0; base_map_next(&k->codes, &pos, &value);) {
		struct kernel_code *c = value;

		if (c->image->kind == PROFDB_DYNAMIC && c->len == len &&
		    is_stem_of(c->image->stem, name))
			return c;
	}
	return NULL;
}

static struct kernel_code *without_bytes(struct kernel *k, const char *name, uint64_t len)
{
	char key[BASE_ID_TEXT_LEN];
	struct base_buf job = { 0 };
	struct kernel_code *c;
	struct base_sha256 s;
	struct base_id id;

	base_sha256_init(&s);
	hash_text(&s, "dcpi kernel symbol");
	hash_text(&s, name);
	base_sha256_add(&s, &len, sizeof(len));
	base_id_of_sha256(&id, &s);
	c = find(k, base_id_text(&id, key));
	if (c)
		return c;
	return code_new(k, images_get(k->config.images, PROFDB_KERNEL, &id, name, name), len, &job);
}

void kernel_code_add(struct kernel *k, const char *name, uint64_t addr, uint64_t len, bool known,
		     uint64_t now_ns)
{
	struct kernel_bpf_func f = { 0 };
	struct kernel_code *c = NULL;
	struct slots slots = { 0 };

	/* Only who can have pseudo-images made needs the bytes. */
	if (k->config.live && k->helper[0] &&
	    kernel_bpf_take(&k->bpf, name, addr, known ? len : 0, &f)) {
		len = f.len;
		known = true;
		if (hide(k, &f, &slots) == 0)
			c = with_bytes(k, name, &f, &slots);
		slots_release(&slots);
		kernel_bpf_func_release(&f);
	}
	if (!c && len)
		c = twin(k, name, len);
	if (!c && len && len < CODE_LEN_MAX)
		c = without_bytes(k, name, len);
	if (c) {
		const struct kernel_area a = { .node = { .start = addr, .end = addr + len },
					       .image = c->image,
					       .guess = !known };

		kernel_area_add(k, &a, now_ns);
	}
}

/* ---- files ----------------------------------------------------------------------------------- */

static int write_bytes(struct kernel *k, struct kernel_code *c, struct base_err *err)
{
	struct base_err own = { 0 };
	struct base_id id;
	int r;

	if (c->image->refused)
		return 0;
	r = kernel_file_write_job(k, profdb_dyn_fd(k->config.db), c->image->stem, &c->job, &id,
				  &own);
	if (r < 0 && image_file_refusal(r)) {
		base_log(BASE_LOG_WARN, "%s", own.text);
		if (image_file_give_up(c->image, &c->nr_refused))
			drop_job(k, c);
		return 0;
	}
	if (r < 0) {
		*err = err->code ? *err : own;
		return r;
	}
	image_set_id(c->image, &id);
	c->on_disk = true;
	return 0;
}

static int write_one(struct kernel *k, struct kernel_code *c, struct base_err *err)
{
	/* Its bytes may not be kept here: nobody is to take it for one that is not needed. */
	if (c->on_disk)
		utimensat(profdb_dyn_fd(k->config.db), c->image->stem, NULL, 0);
	if (c->on_disk || !c->image->dirty)
		return 0;
	if (c->image->kind == PROFDB_DYNAMIC)
		return write_bytes(k, c, err);
	return kernel_file_write_name(k, c->image->path, &c->image->id, c->len, err);
}

static bool is_over(const struct kernel_code *c)
{
	return c->image->refs == 1 && !c->image->dirty;
}

static void forget_code(struct kernel *k, struct kernel_code *c)
{
	char text[BASE_ID_TEXT_LEN];
	const char *key = key_of(c->image, text, sizeof(text));

	base_map_del(&k->codes, key, strlen(key));
	c->image->refs--;
	code_free(k, c);
}

int kernel_code_write(struct kernel *k, struct base_err *err)
{
	void *value;
	int r = 0;

	for (size_t pos = 0; base_map_next(&k->codes, &pos, &value);) {
		int s = write_one(k, value, err);

		r = r < 0 ? r : s;
	}
	for (size_t pos = 0; base_map_next(&k->codes, &pos, &value);) {
		if (is_over(value)) {
			forget_code(k, value);
			pos--;
		}
	}
	return r;
}

void kernel_code_lost(struct kernel *k)
{
	static const struct base_id none;
	void *value;

	for (size_t pos = 0; base_map_next(&k->codes, &pos, &value);) {
		struct kernel_code *c = value;

		if (!c->on_disk || !c->job.len)
			continue;
		image_set_id(c->image, &none);
		c->on_disk = false;
	}
}

void kernel_code_close(struct kernel *k)
{
	void *c;

	for (size_t pos = 0; base_map_next(&k->codes, &pos, &c);)
		code_free(k, c);
	base_map_release(&k->codes);
}
