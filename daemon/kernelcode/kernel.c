/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernel addresses are looked up: which image stands there, since when, and until when. /proc and
 * /sys tell what there is, load events change it. Missing facts are done without: samples then
 * belong to an unknown kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "kernelcode_internal.h"
#include "registry.h"

/* ---- areas ----------------------------------------------------------------------------------- */

/* Code that was unregistered may still run until nobody uses it any more. */
#define GRACE_NS UINT64_C(1000000000)
/* How long what is gone is remembered, for samples that are handed on late. */
#define REMEMBER_NS (60 * GRACE_NS)

static uint64_t later(uint64_t time_ns, uint64_t by)
{
	return time_ns > UINT64_MAX - by ? UINT64_MAX : time_ns + by;
}

/* From then on no sample can be of it. */
static uint64_t kernel_area_over_ns(const struct kernel_area *a)
{
	return later(a->gone_ns, GRACE_NS);
}

static void drop_area(struct kernel *k, struct kernel_area *a)
{
	interval_remove(&k->areas, &a->node);
	a->image->refs--;
	free(a);
}

static bool same_code(const struct kernel_area *a, const struct kernel_area *b)
{
	return a->image == b->image && a->off - a->node.start == b->off - b->node.start;
}

/* Remove the areas that @to replaces, as of @now_ns: samples until then may belong to them. */
static void replace(struct kernel *k, struct kernel_area *to, uint64_t now_ns)
{
	struct kernel_area *old;

	while ((old = (void *)interval_overlap(&k->areas, to->node.start, to->node.end))) {
		uint64_t end_ns = kernel_area_over_ns(old), contested_ns = old->contested_ns;

		end_ns = end_ns < now_ns ? end_ns : now_ns;
		if (!same_code(old, to) && end_ns > contested_ns)
			contested_ns = end_ns;
		if (contested_ns > to->contested_ns)
			to->contested_ns = contested_ns;
		if (old->guess && old->node.start < to->node.start)
			old->node.end = to->node.start;
		else
			drop_area(k, old);
	}
}

int kernel_area_add(struct kernel *k, const struct kernel_area *area, uint64_t now_ns)
{
	struct kernel_area *a;

	if (!area->image)
		return -ENOMEM;
	if (area->node.end <= area->node.start)
		return -EINVAL;
	a = malloc(sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = *area;
	a->gone_ns = UINT64_MAX;
	a->contested_ns = 0;
	a->image->refs++;
	replace(k, a, now_ns);
	interval_insert(&k->areas, &a->node);
	return 0;
}

static bool is_within(const struct kernel_area *a, uint64_t start, uint64_t end)
{
	return a->node.start >= start && (a->guess || a->node.end <= end);
}

/* End all areas within [start, end). */
static void kernel_area_end(struct kernel *k, uint64_t start, uint64_t end, uint64_t now_ns)
{
	struct kernel_area *a;

	for (uint64_t pos = start; (a = kernel_area_next(k, &pos)) && a->node.start < end;)
		if (is_within(a, start, end) && now_ns < a->gone_ns)
			a->gone_ns = now_ns;
}

/* The code of a module is gone that begins in [start, end), wherever it ends. */
static void kernel_area_end_module(struct kernel *k, uint64_t start, uint64_t end, uint64_t now_ns)
{
	struct kernel_area *a;

	for (uint64_t pos = start; (a = kernel_area_next(k, &pos)) && a->node.start < end;)
		if (a->module && a->node.start >= start && now_ns < a->gone_ns)
			a->gone_ns = now_ns;
}

/* Forget areas that are gone for so long that no sample of them can come. */
static void kernel_area_forget(struct kernel *k)
{
	uint64_t now = base_now_ns();
	struct kernel_area *a;

	for (uint64_t pos = 0; k->config.live && (a = kernel_area_next(k, &pos));)
		if (later(a->gone_ns, REMEMBER_NS) < now)
			drop_area(k, a);
}

/* ---- this machine ---------------------------------------------------------------------------- */

enum { KALLSYMS_MAX = 256 << 20, MODULES_MAX = 1 << 20, NOTES_MAX = 64 << 10, PAGE = 4096 };
/* Code of which only the start is known (trampolines in kallsyms) ends at the next symbol, or here.
 */
enum { CODE_GUESS = 4096 };
/* /proc/modules is looked at again at most this often. */
#define CHECK_NS UINT64_C(2000000000)

static int read_text(const struct kernel *k, const char *name, size_t max, struct base_buf *out)
{
	char path[512];
	int r;

	snprintf(path, sizeof(path), "%s/%s", k->config.root ? k->config.root : "", name);
	r = base_file_read(AT_FDCWD, path, max, out, NULL);
	return r < 0 ? r : base_buf_append(out, "", 1);
}

static int read_symbols(struct kernel *k, struct base_err *err)
{
	struct kernel_symbols s = { 0 };
	struct base_buf text = { 0 };
	int r = read_text(k, "proc/kallsyms", KALLSYMS_MAX, &text);

	if (r == 0)
		r = kernel_symbols_parse(&s, (const char *)text.data, text.len - 1);
	base_buf_release(&text);
	if (r == -ENOMEM)
		return base_fail_errno(err, r, "cannot read the kernel's symbols");
	kernel_symbols_release(&k->symbols);
	k->symbols = s;
	return 0;
}

/* ---- identities ------------------------------------------------------------------------------ */

static void notes_id(const struct kernel *k, const char *name, struct base_id *id)
{
	struct base_buf b = { 0 };

	if (read_text(k, name, NOTES_MAX, &b) < 0 || base_id_of_notes(id, b.data, b.len - 1, 4) < 0)
		id->len = 0;
	base_buf_release(&b);
}

/* For a kernel or module without build-id: what its symbols are, relative to its base. */
static void symbols_id(const struct kernel *k, const char *name, uint64_t start, uint64_t len,
		       struct base_id *id)
{
	struct base_sha256 s;

	base_sha256_init(&s);
	base_sha256_add(&s, name, strlen(name) + 1);
	for (size_t i = 0; i < k->symbols.nr; i++) {
		const struct kernel_symbol *sym = &k->symbols.v[i];
		uint64_t off = sym->addr - start;

		if (sym->addr < start || off >= len)
			continue;
		base_sha256_add(&s, &off, sizeof(off));
		base_sha256_add(&s, sym->name, strlen(sym->name) + 1);
	}
	base_id_of_sha256(id, &s);
}

/* ---- the kernel and its modules -------------------------------------------------------------- */

/* [start, start + len) as image @name; its symbols into a file. */
static int add_body(struct kernel *k, const char *name, const char *module, struct base_id *id,
		    uint64_t start, uint64_t len, uint64_t now_ns, struct base_err *err)
{
	struct kernel_area a = { .node = { .start = start, .end = start + len },
				 .module = module != NULL };
	char file[256];
	int r;

	if (!id->len)
		symbols_id(k, name, start, len, id);
	a.image = images_get(k->config.images, PROFDB_KERNEL, id, name, name);
	r = kernel_area_add(k, &a, now_ns);
	if (r == 0)
		r = kernel_file_write(k, name, id, module, start, len, err);
	if (r < 0)
		return r;
	kernel_file_name(file, sizeof(file), name, id, "code");
	return kernel_text_add(k, a.image, file, module, start, len);
}

static int add_kernel(struct kernel *k, struct base_err *err)
{
	const struct kernel_symbols *s = &k->symbols;
	uint64_t start = s->text_start, end = s->text_end;
	struct base_id id = { 0 };
	struct utsname uts = { .release = "unknown" };
	char name[128];

	if (!start && s->nr)
		start = s->v[0].addr;
	for (size_t i = 0; end <= start && i < s->nr; i++)
		if (!s->v[i].module && (i + 1 == s->nr || s->v[i + 1].module))
			end = s->v[i].addr + 1;
	if (end <= start)
		return 0;
	uname(&uts);
	snprintf(name, sizeof(name), "vmlinux-%s", uts.release);
	notes_id(k, "sys/kernel/notes", &id);
	return add_body(k, name, NULL, &id, start, end - start, 0, err);
}

/* Where its code begins: what its own file calls .text. */
static uint64_t section_text(const struct kernel *k, const struct kernel_module *m)
{
	struct base_buf b = { 0 };
	uint64_t addr = 0;
	char path[128];

	snprintf(path, sizeof(path), "sys/module/%s/sections/.text", m->name);
	if (read_text(k, path, PAGE, &b) == 0)
		addr = strtoull((const char *)b.data, NULL, 16);
	base_buf_release(&b);
	return addr >= m->addr && addr - m->addr < m->len ? addr : m->addr;
}

/*
 * The size that /proc/modules tells counts data too, which lies elsewhere since Linux 6.4. Code
 * ends with the page of the last routine, or where the next module's begins.
 */
static uint64_t code_end(const struct kernel *k, size_t index, uint64_t start)
{
	const struct kernel_module *m = &k->modules[index];
	uint64_t end = start, most = m->addr + m->len;

	if (index + 1 < k->nr_modules && k->modules[index + 1].addr < most)
		most = k->modules[index + 1].addr;
	for (size_t i = 0; i < k->symbols.nr; i++) {
		const struct kernel_symbol *s = &k->symbols.v[i];

		if (kernel_symbol_belongs(s, m->name) && s->addr >= start && s->addr < most)
			end = s->addr + 1;
	}
	end = end == start ? most : base_align_up(end, PAGE);
	return end < most ? end : most;
}

static int add_module(struct kernel *k, size_t index, uint64_t now_ns, struct base_err *err)
{
	const struct kernel_module *m = &k->modules[index];
	uint64_t start = section_text(k, m), end = code_end(k, index, start);
	struct base_id id = { 0 };
	char name[80], path[128];

	if (end <= start)
		return 0;
	snprintf(path, sizeof(path), "sys/module/%s/notes/.note.gnu.build-id", m->name);
	notes_id(k, path, &id);
	snprintf(name, sizeof(name), "%s.ko", m->name);
	return add_body(k, name, m->name, &id, start, end - start, now_ns, err);
}

/* ---- /proc/modules --------------------------------------------------------------------------- */

static int by_addr(const void *a, const void *b)
{
	const struct kernel_module *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static bool lists(const struct kernel_module *v, size_t nr, const struct kernel_module *m)
{
	const struct kernel_module *found = nr ? bsearch(m, v, nr, sizeof(*v), by_addr) : NULL;

	return found && found->len == m->len && found->inode == m->inode &&
	       !strcmp(found->name, m->name);
}

static uint64_t inode_of(const struct kernel *k, const char *module)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/sys/module/%s", k->config.root ? k->config.root : "",
		 module);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static int parse_modules(const struct kernel *k, const char *text, struct kernel_module **v,
			 size_t *nr)
{
	struct kernel_module m;
	size_t cap = 0;
	int r = 0;

	while (r == 0 && text && *text) {
		if (kernel_module_parse(text, &m) == 0) {
			m.inode = inode_of(k, m.name);
			r = base_grow(v, &cap, *nr + 1, sizeof(**v));
			if (r == 0)
				(*v)[(*nr)++] = m;
		}
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	if (*nr)
		qsort(*v, *nr, sizeof(**v), by_addr);
	return r;
}

/* The list as it is now becomes ours; the one before to @old. 1: they differ. */
static int renew_modules(struct kernel *k, struct kernel_module **old, size_t *nr_old)
{
	struct kernel_module *v = NULL;
	struct base_buf text = { 0 };
	size_t nr = 0, same = 0;
	int r = read_text(k, "proc/modules", MODULES_MAX, &text);

	if (r == 0)
		r = parse_modules(k, (const char *)text.data, &v, &nr);
	base_buf_release(&text);
	if (r < 0) {
		free(v);
		return r == -ENOMEM ? r : 0;
	}
	for (size_t i = 0; i < nr; i++)
		same += lists(k->modules, k->nr_modules, &v[i]);
	*old = k->modules;
	*nr_old = k->nr_modules;
	k->modules = v;
	k->nr_modules = nr;
	return same != nr || nr != *nr_old;
}

/* A failure is tried again: the next look finds the module in no list. */
static int try_module(struct kernel *k, size_t index, uint64_t now_ns, struct base_err *err)
{
	struct base_err own = { 0 };
	int r = add_module(k, index, now_ns, &own);

	if (r < 0) {
		k->modules[index].inode = ~k->modules[index].inode;
		*err = err->code ? *err : own;
	}
	return r;
}

/* Other areas within its size are not its own: its data is elsewhere. */
static void end_module(struct kernel *k, const struct kernel_module *v, size_t nr, size_t index,
		       uint64_t now_ns)
{
	const struct kernel_module *m = &v[index];
	uint64_t end = m->addr + m->len;

	if (index + 1 < nr && v[index + 1].addr < end)
		end = v[index + 1].addr;
	kernel_area_end_module(k, m->addr, end, now_ns);
}

/* Call the function for modules that are not in the other list: ended or new. */
static int exchange_modules(struct kernel *k, const struct kernel_module *old, size_t nr_old,
			    uint64_t now_ns, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < nr_old; i++)
		if (!lists(k->modules, k->nr_modules, &old[i]))
			end_module(k, old, nr_old, i, now_ns);
	for (size_t i = 0; i < k->nr_modules; i++)
		if (!lists(old, nr_old, &k->modules[i])) {
			int s = try_module(k, i, now_ns, err);

			r = r < 0 ? r : s;
		}
	return r;
}

/* Kallsyms lists BPF programs and trampolines as of pseudo-modules that /proc/modules lacks. */
static void add_codes(struct kernel *k)
{
	const struct kernel_symbols *s = &k->symbols;

	for (size_t i = 0; i < s->nr; i++) {
		const struct kernel_symbol *sym = &s->v[i];
		uint64_t len = CODE_GUESS;

		if (!sym->module ||
		    (strcmp(sym->module, "bpf") != 0 && strncmp(sym->module, "__builtin__", 11)))
			continue;
		if (interval_find(&k->areas, sym->addr))
			continue;
		if (i + 1 < s->nr && s->v[i + 1].addr - sym->addr < len)
			len = s->v[i + 1].addr - sym->addr;
		kernel_code_add(k, sym->name, sym->addr, len, false, 0);
	}
}

static void swap_modules(struct kernel *k, struct kernel_module **v, size_t *nr)
{
	struct kernel_module *was = k->modules;
	size_t nr_was = k->nr_modules;

	k->modules = *v;
	k->nr_modules = *nr;
	*v = was;
	*nr = nr_was;
}

void kernel_live_check(struct kernel *k)
{
	struct kernel_module *old = NULL;
	struct base_err err = { 0 };
	uint64_t now = base_now_ns();
	size_t nr_old = 0;
	int r;

	if (k->checked_ns && now - k->checked_ns < CHECK_NS)
		return;
	k->checked_ns = now;
	r = renew_modules(k, &old, &nr_old);
	if (r > 0) {
		r = read_symbols(k, &err);
		if (r == 0)
			r = exchange_modules(k, old, nr_old, now, &err);
		else
			swap_modules(k, &old, &nr_old);
	}
	free(old);
	if (r < 0)
		base_log(BASE_LOG_WARN, "modules were loaded that cannot be followed: %s",
			 err.code ? err.text : base_strerror(r));
}

/* ---- the vdso -------------------------------------------------------------------------------- */

/* Length of our mapping that begins at @start, 0 where there is none. */
static size_t mapping_len(uintptr_t start)
{
	char *line = NULL, *p;
	size_t cap = 0, len = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && !len && getline(&line, &cap, f) > 0) {
		if (strtoull(line, &p, 16) == start && *p == '-')
			len = (size_t)(strtoull(p + 1, NULL, 16) - start);
	}
	free(line);
	if (f)
		fclose(f);
	return len;
}

static int copy_of_vdso(const void *data, size_t len)
{
	int r, fd = memfd_create("vdso", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	r = base_write_all(fd, data, len);
	if (r < 0)
		close(fd);
	return r < 0 ? r : fd;
}

int kernel_vdso_open(void)
{
	uintptr_t start = (uintptr_t)getauxval(AT_SYSINFO_EHDR);
	size_t len = start ? mapping_len(start) : 0;

	return len ? copy_of_vdso((const void *)start, len) : -ENOENT;
}

/*
 * The mapping comes from the kernel and is trusted; it is small, so a file in memory serves to find
 * its id.
 */
static int vdso_id(const void *data, size_t len, struct base_id *id)
{
	int fd = copy_of_vdso(data, len), r;

	if (fd < 0)
		return fd;
	r = registry_file_id(fd, id, NULL);
	close(fd);
	return r;
}

/* The vdso this process has: its bytes into <db>/kernel/, its identity to @id. -ENOENT: none, or
 * (logged) one that cannot be identified. */
static int keep_vdso(struct kernel *k, struct base_id *id, struct base_err *err)
{
	uintptr_t start = (uintptr_t)getauxval(AT_SYSINFO_EHDR);
	size_t len = start ? mapping_len(start) : 0;
	char file[256];
	int r;

	if (!len)
		return -ENOENT;
	r = vdso_id((const void *)start, len, id);
	if (r < 0) {
		base_log(BASE_LOG_WARN, "going on without the vdso: %s", base_strerror(r));
		return -ENOENT;
	}
	kernel_file_name(file, sizeof(file), "vdso", id, "so");
	if (!k->config.db || kernel_file_renew(k, file))
		return 0;
	return base_file_write(profdb_kernel_fd(k->config.db), file, 0644, (const void *)start, len,
			       err);
}

/* ---- at the start ---------------------------------------------------------------------------- */

static int fill_vdso(struct kernel *k, struct base_err *err)
{
	struct base_id id;
	int r = keep_vdso(k, &id, err);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	k->vdso = images_get(k->config.images, PROFDB_VDSO, &id, "[vdso]", "vdso");
	if (k->vdso)
		k->vdso->refs++;
	return k->vdso ? 0 : -ENOMEM;
}

/* Areas and images of all that is there, and the images' files. 0 or negative with @err. */
static int kernel_live_open(struct kernel *k, struct base_err *err)
{
	struct kernel_module *none = NULL;
	size_t nr_none = 0;
	int r;

	k->checked_ns = base_now_ns();
	r = renew_modules(k, &none, &nr_none);
	if (r >= 0)
		r = read_symbols(k, err);
	if (r < 0)
		return base_fail_errno(err, r, "cannot read the kernel's modules");
	if (k->symbols.hidden)
		base_log(BASE_LOG_WARN,
			 "the kernel hides its addresses (kernel.kptr_restrict): its "
			 "samples go to 'unknown kernel'");
	r = add_kernel(k, err);
	for (size_t i = 0; r == 0 && i < k->nr_modules; i++)
		r = add_module(k, i, 0, err);
	kernel_bpf_read_all(&k->bpf);
	if (r == 0)
		add_codes(k);
	return r == 0 ? fill_vdso(k, err) : r;
}

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

struct image *kernel_vdso(struct kernel *k)
{
	return k->vdso;
}

/* ---- load events ----------------------------------------------------------------------------- */

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

/* ---- life ------------------------------------------------------------------------------------ */

/* The parts whose images are written, in that order. */
static const struct kernel_part *const parts[] = { &kernel_text_part, &kernel_code_part };
enum { NR_PARTS = sizeof(parts) / sizeof(*parts) };

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
	else if (config->vdso)
		r = fill_vdso(k, err);
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
	for (size_t i = 0; i < NR_PARTS; i++)
		parts[i]->close(k);
	kernel_symbols_release(&k->symbols);
	free(k->modules);
	free(k);
}

static int write_vdso(struct kernel *k, struct base_err *err)
{
	struct base_id id;
	int r = -ENOENT;

	if (k->vdso && (k->vdso->dirty || k->vdso->values))
		r = keep_vdso(k, &id, err);
	return r == -ENOENT ? 0 : r;
}

/*
 * The lock keeps others from removing what is found here until it is newer. Who removes looks at
 * the time just before, so without it little is left to chance, and nothing but names.
 */
int kernel_write_images(struct kernel *k, bool hasty, struct base_err *err)
{
	int lock, r = 0, s;

	kernel_area_forget(k);
	if (!k->config.db)
		return 0;
	lock = profdb_dyn_lock(k->config.db, false, IMAGE_FILE_LOCK_MS, NULL);
	if (kernel_text_wants_check(k)) {
		k->checked_ns = 0;
		kernel_live_check(k);
	}
	for (size_t i = 0; i < NR_PARTS; i++) {
		s = parts[i]->write(k, hasty, err);
		r = r < 0 ? r : s;
	}
	s = write_vdso(k, err);
	if (lock >= 0)
		close(lock);
	return r < 0 ? r : s;
}

void kernel_images_lost(struct kernel *k)
{
	for (size_t i = 0; i < NR_PARTS; i++)
		parts[i]->lost(k);
}
