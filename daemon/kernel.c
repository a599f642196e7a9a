/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernel_internal.h"
#include "registry.h"

enum { KALLSYMS_MAX = 256 << 20, MODULES_MAX = 1 << 20, NOTES_MAX = 64 << 10 };
/* Code of which only the start is known (BPF in kallsyms) ends at the next symbol, or here. */
enum { DYNSYM_GUESS = 4096, DYNSYM_ALIGN = 64 };

/* ---- areas ----------------------------------------------------------------------------------- */

/* What was known there before is gone: addresses of kernel code are used again. */
static void clear_area(struct kernel *k, uint64_t start, uint64_t end)
{
	struct dyn_node *n;

	while ((n = dyn_tree_overlap(&k->areas, start, end))) {
		dyn_tree_remove(&k->areas, n);
		free(n);
	}
}

static int add_area(struct kernel *k, uint64_t start, uint64_t len, struct image *image,
		    uint64_t off)
{
	struct kernel_area *a;
	uint64_t end;

	if (!image)
		return -ENOMEM;
	if (!len || base_add_overflow(start, len, &end))
		return -EINVAL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	clear_area(k, start, end);
	*a = (struct kernel_area){ .node = { .start = start, .end = end },
				   .image = image,
				   .off = off };
	dyn_tree_insert(&k->areas, &a->node);
	image->refs++;
	return 0;
}

struct image *kernel_lookup(struct kernel *k, uint64_t addr, uint64_t *off, bool *idle)
{
	const struct kernel_area *a = (const void *)dyn_tree_find(&k->areas, addr);
	const struct kernel_symbol *s;

	*idle = false;
	if (!a)
		return NULL;
	s = kernel_symbols_find(&k->symbols, addr);
	*idle = s && s->idle && s->addr >= a->node.start;
	*off = a->off + (addr - a->node.start);
	return a->image;
}

struct image *kernel_vdso(struct kernel *k)
{
	return k->vdso;
}

/* ---- code that comes and goes -------------------------------------------------------------- */

static void hash_text(struct base_sha256 *s, const char *text)
{
	base_sha256_add(s, text, strlen(text) + 1);
}

/*
 * The image grows, its offsets stay; so it keeps one identity, made for this daemon's life. A
 * recorded stream gives the same one each time.
 */
static struct image *dynsym_image(struct kernel *k)
{
	struct base_id id = { .len = 20 };
	uint8_t boot[64] = { 0 }, sum[32];
	struct base_sha256 s;
	uint64_t now = k->live ? base_now_ns() : 0;
	int fd;

	if (k->dynsym_image)
		return k->dynsym_image;
	fd = k->live ? open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		(void)!read(fd, boot, sizeof(boot));
		close(fd);
	}
	base_sha256_init(&s);
	hash_text(&s, "dcpi kernel symbols");
	base_sha256_add(&s, boot, sizeof(boot));
	base_sha256_add(&s, &now, sizeof(now));
	base_sha256_end(&s, sum);
	memcpy(id.bytes, sum, id.len);
	k->dynsym_image = images_get(k->images, PROFDB_KERNEL, &id, "bpf", "bpf");
	if (k->dynsym_image)
		k->dynsym_image->refs++;
	return k->dynsym_image;
}

/* Where code of that name and length is in the image, now or since before. */
static int dynsym_place(struct kernel *k, const char *name, uint64_t len, uint64_t *off)
{
	struct base_buf key = { 0 };
	struct kernel_dynsym *d;
	uintptr_t index;
	int r = base_buf_printf(&key, "%s/%llu", name, (unsigned long long)len);

	if (r < 0)
		goto out;
	index = (uintptr_t)base_map_get(&k->dynsym_by_key, key.data, key.len);
	if (index) {
		*off = k->dynsyms[index - 1].off;
		goto out;
	}
	r = base_grow(&k->dynsyms, &k->cap_dynsyms, k->nr_dynsyms + 1, sizeof(*k->dynsyms));
	if (r < 0)
		goto out;
	d = &k->dynsyms[k->nr_dynsyms];
	*d = (struct kernel_dynsym){ .name = strdup(name), .off = k->dynsym_next, .len = len };
	r = d->name ? base_map_set(&k->dynsym_by_key, key.data, key.len,
				   (void *)(uintptr_t)(k->nr_dynsyms + 1))
		    : -ENOMEM;
	if (r < 0) {
		free(d->name);
		goto out;
	}
	k->nr_dynsyms++;
	k->dynsym_next = base_align_up(k->dynsym_next + len, DYNSYM_ALIGN);
	k->dynsyms_changed = true;
	*off = d->off;
out:
	base_buf_release(&key);
	return r;
}

static void add_dynsym(struct kernel *k, const char *name, uint64_t addr, uint64_t len)
{
	uint64_t off = 0;

	if (len && len < 1ull << 32 && dynsym_image(k) && dynsym_place(k, name, len, &off) == 0)
		add_area(k, addr, len, k->dynsym_image, off);
}

static void load_kernel(struct kernel *k, const struct driver_load *l)
{
	const char *name = l->path && *l->path ? l->path : "vmlinux";

	if (!k->live)
		add_area(k, l->addr, l->len,
			 images_get(k->images, PROFDB_KERNEL, &l->id, name, name), 0);
}

void kernel_load(struct kernel *k, const struct driver_load *load)
{
	uint64_t end;

	if (load->kind == DRIVER_LOAD_KERNEL)
		load_kernel(k, load);
	if (load->kind != DRIVER_LOAD_KSYMBOL || base_add_overflow(load->addr, load->len, &end))
		return;
	if (load->flags & DRIVER_LOAD_GONE)
		clear_area(k, load->addr, end);
	else
		add_dynsym(k, load->path && *load->path ? load->path : "unnamed", load->addr,
			   load->len);
}

/* ---- this machine ---------------------------------------------------------------------------- */

/* For a kernel or module without build-id: what its symbols are, relative to its base. */
static void symbols_id(const struct kernel *k, const char *name, uint64_t start, uint64_t len,
		       struct base_id *id)
{
	struct base_sha256 s;
	uint8_t sum[32];

	base_sha256_init(&s);
	hash_text(&s, name);
	for (size_t i = 0; i < k->symbols.nr; i++) {
		const struct kernel_symbol *sym = &k->symbols.v[i];
		uint64_t off = sym->addr - start;

		if (sym->addr < start || off >= len)
			continue;
		base_sha256_add(&s, &off, sizeof(off));
		hash_text(&s, sym->name);
	}
	base_sha256_end(&s, sum);
	*id = (struct base_id){ .len = 20 };
	memcpy(id->bytes, sum, 20);
}

static int fill_one(struct kernel *k, const char *name, const char *module,
		    const struct base_id *known, uint64_t start, uint64_t len, struct base_err *err)
{
	struct base_id id = *known;
	struct image *img;
	int r;

	if (!id.len)
		symbols_id(k, name, start, len, &id);
	img = images_get(k->images, PROFDB_KERNEL, &id, name, name);
	r = add_area(k, start, len, img, 0);
	return r < 0 ? r : kernel_file_write(k, name, &id, module, start, len, err);
}

static int fill_kernel(struct kernel *k, const struct kernel_texts *t, struct base_err *err)
{
	const struct kernel_symbols *s = &k->symbols;
	uint64_t start = s->text_start, end = s->text_end;
	char name[128];

	if (!start && s->nr)
		start = s->v[0].addr;
	for (size_t i = 0; end <= start && i < s->nr; i++)
		if (!s->v[i].module && (i + 1 == s->nr || s->v[i + 1].module))
			end = s->v[i].addr + 1;
	if (end <= start)
		return 0;
	snprintf(name, sizeof(name), "vmlinux-%s", t->release ? t->release : "unknown");
	return fill_one(k, name, NULL, &t->id, start, end - start, err);
}

static int fill_module(struct kernel *k, const struct kernel_texts *t, const char *line,
		       struct base_err *err)
{
	struct kernel_module m;
	struct base_id id = { 0 };
	const struct dyn_node *n;
	char name[80];

	if (kernel_module_parse(line, &m) < 0)
		return 0;
	/* The size counts data too, which lies elsewhere since Linux 6.4: not over another's code.
	 */
	n = dyn_tree_overlap(&k->areas, m.addr, m.addr + m.len);
	if (n && n->start <= m.addr)
		return 0;
	if (n)
		m.len = n->start - m.addr;
	if (t->module_id)
		t->module_id(m.name, &id);
	snprintf(name, sizeof(name), "%s.ko", m.name);
	return fill_one(k, name, m.name, &id, m.addr, m.len, err);
}

/* Kallsyms lists BPF programs and trampolines as of pseudo-modules that /proc/modules lacks. */
static void fill_dynsyms(struct kernel *k)
{
	const struct kernel_symbols *s = &k->symbols;

	for (size_t i = 0; i < s->nr; i++) {
		uint64_t len = DYNSYM_GUESS;

		if (!s->v[i].module || (strcmp(s->v[i].module, "bpf") != 0 &&
					strncmp(s->v[i].module, "__builtin__", 11)))
			continue;
		if (dyn_tree_find(&k->areas, s->v[i].addr))
			continue;
		if (i + 1 < s->nr && s->v[i + 1].addr - s->v[i].addr < len)
			len = s->v[i + 1].addr - s->v[i].addr;
		add_dynsym(k, s->v[i].name, s->v[i].addr, len);
	}
}

int kernel_fill(struct kernel *k, const struct kernel_texts *t, struct base_err *err)
{
	const char *line = t->modules;
	int r = t->kallsyms ? kernel_symbols_parse(&k->symbols, t->kallsyms, strlen(t->kallsyms))
			    : 0;

	if (r < 0)
		return base_fail_errno(err, r, "cannot read the kernel's symbols");
	if (k->symbols.hidden)
		base_log(BASE_LOG_WARN,
			 "the kernel hides its addresses (kernel.kptr_restrict): its "
			 "samples go to 'unknown kernel'");
	r = fill_kernel(k, t, err);
	while (r == 0 && line && *line) {
		r = fill_module(k, t, line, err);
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (r == 0)
		fill_dynsyms(k);
	return r;
}

static int read_text(const char *path, size_t max, struct base_buf *out)
{
	int r = base_file_read(AT_FDCWD, path, max, out, NULL);

	return r < 0 ? r : base_buf_append(out, "", 1);
}

static int notes_id(const char *path, struct base_id *id)
{
	struct base_buf b = { 0 };
	int r = base_file_read(AT_FDCWD, path, NOTES_MAX, &b, NULL);

	if (r == 0)
		r = registry_note_id(b.data, b.len, 4, id);
	base_buf_release(&b);
	return r;
}

static int module_id(const char *name, struct base_id *id)
{
	char path[160];

	snprintf(path, sizeof(path), "/sys/module/%s/notes/.note.gnu.build-id", name);
	return notes_id(path, id);
}

int kernel_fill_vdso(struct kernel *k, struct base_err *err)
{
	struct base_id id;
	int r = kernel_file_write_vdso(k, &id, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	k->vdso = images_get(k->images, PROFDB_VDSO, &id, "[vdso]", "vdso");
	if (k->vdso)
		k->vdso->refs++;
	return k->vdso ? 0 : -ENOMEM;
}

static int fill_live(struct kernel *k, struct base_err *err)
{
	struct base_buf kallsyms = { 0 }, modules = { 0 };
	struct kernel_texts t = { .module_id = module_id };
	struct utsname name;
	int r;

	/* What is missing is done without: the samples are then of an unknown kernel. */
	if (read_text("/proc/kallsyms", KALLSYMS_MAX, &kallsyms) == 0)
		t.kallsyms = (const char *)kallsyms.data;
	if (read_text("/proc/modules", MODULES_MAX, &modules) == 0)
		t.modules = (const char *)modules.data;
	if (uname(&name) == 0)
		t.release = name.release;
	notes_id("/sys/kernel/notes", &t.id);
	r = kernel_fill(k, &t, err);
	if (r == 0)
		r = kernel_fill_vdso(k, err);
	base_buf_release(&kallsyms);
	base_buf_release(&modules);
	return r;
}

/* ---- life ------------------------------------------------------------------------------------ */

int kernel_open(struct profdb *db, struct images *images, bool live, struct kernel **out,
		struct base_err *err)
{
	struct kernel *k = calloc(1, sizeof(*k));
	int r = 0;

	*out = NULL;
	if (!k)
		return base_fail_errno(err, -ENOMEM, "cannot follow the kernel's code");
	k->db = db;
	k->images = images;
	k->live = live;
	if (live)
		r = fill_live(k, err);
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
	dyn_tree_release(&k->areas);
	kernel_symbols_release(&k->symbols);
	for (size_t i = 0; i < k->nr_dynsyms; i++)
		free(k->dynsyms[i].name);
	free(k->dynsyms);
	base_map_release(&k->dynsym_by_key);
	free(k);
}

int kernel_write_images(struct kernel *k, struct base_err *err)
{
	int r;

	if (!k->dynsyms_changed || !k->db)
		return 0;
	r = kernel_file_write_dynsyms(k, err);
	k->dynsyms_changed = r < 0;
	return r;
}
