/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that the kernel makes and drops while it runs. Each piece is an image of its own, known by
 * its contents: a BPF program that is loaded a thousand times is one. Programs whose instructions,
 * names and lines could be read from the kernel become pseudo-images; of everything else name and
 * length are kept.
 */
#include <ctype.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernelcode_internal.h"

/* ---- BPF programs ---------------------------------------------------------------------------- */

enum { FRESH_MAX = 4 << 20, CODE_MAX = 8 << 20, LINES_MAX = 1 << 20, BTF_MAX = 16 << 20 };
enum { FILES_MAX = 1000 };

static long real_call(void *ctx, int cmd, void *attr, size_t attr_len)
{
	long r = syscall(SYS_bpf, cmd, attr, attr_len);

	(void)ctx;
	return r < 0 ? -errno : r;
}

static int ask(struct kernel_bpf *b, int cmd, union bpf_attr *attr)
{
	kernel_bpf_call *call = b->call ? b->call : real_call;

	return (int)call(b->ctx, cmd, attr, sizeof(*attr));
}

/* Commands whose answer is a descriptor. */
static int open_by_id(struct kernel_bpf *b, int cmd, uint32_t id)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.prog_id = id;
	return ask(b, cmd, &attr);
}

static int get_info(struct kernel_bpf *b, int fd, void *info, uint32_t len)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = len;
	attr.info.info = (uintptr_t)info;
	return ask(b, BPF_OBJ_GET_INFO_BY_FD, &attr);
}

/* ---- BPF programs: lines --------------------------------------------------------------------- */

/* The types' string table, where lines have their file names. */
struct strings {
	char *btf;
	const char *at;
	size_t len;
};

static int find_strings(struct strings *s, size_t btf_len)
{
	struct btf_header h;
	uint64_t end;

	if (btf_len < sizeof(h))
		return -DCPI_EFORMAT;
	memcpy(&h, s->btf, sizeof(h));
	end = (uint64_t)h.hdr_len + h.str_off + h.str_len;
	if (h.magic != BTF_MAGIC || end > btf_len)
		return -DCPI_EFORMAT;
	s->at = s->btf + h.hdr_len + h.str_off;
	s->len = h.str_len;
	return 0;
}

static int read_strings(struct kernel_bpf *b, uint32_t btf_id, struct strings *s)
{
	struct bpf_btf_info info = { 0 };
	uint32_t size;
	int r, fd = open_by_id(b, BPF_BTF_GET_FD_BY_ID, btf_id);

	if (fd < 0)
		return fd;
	r = get_info(b, fd, &info, sizeof(info));
	size = info.btf_size;
	if (r == 0 && (!size || size > BTF_MAX))
		r = -DCPI_ELIMIT;
	s->btf = r == 0 ? calloc(1, size) : NULL;
	if (r == 0 && !s->btf)
		r = -ENOMEM;
	if (r == 0) {
		info = (struct bpf_btf_info){ .btf = (uintptr_t)s->btf, .btf_size = size };
		r = get_info(b, fd, &info, sizeof(info));
	}
	close(fd);
	return r < 0 ? r : find_strings(s, size < info.btf_size ? size : info.btf_size);
}

static const char *string_at(const struct strings *s, uint32_t off)
{
	size_t most = off < s->len ? s->len - off : 0;

	most = most < UINT16_MAX ? most : UINT16_MAX;
	return most && memchr(s->at + off, 0, most) ? s->at + off : NULL;
}

/* Number of the file among the function's, or -ENOMEM. */
static int64_t file_index(struct kernel_bpf_func *f, const char *name)
{
	uint16_t len = (uint16_t)strnlen(name, UINT16_MAX), other;
	size_t pos = 0;
	int r;

	for (uint32_t i = 0; i < f->nr_files; i++) {
		memcpy(&other, f->files.data + pos, sizeof(other));
		pos += sizeof(other);
		if (other == len && !memcmp(f->files.data + pos, name, len))
			return i;
		pos += other;
	}
	r = base_buf_append(&f->files, &len, sizeof(len));
	if (r == 0)
		r = base_buf_append(&f->files, name, len);
	return r < 0 ? r : (int64_t)f->nr_files++;
}

static int add_line(struct kernel_bpf_func *f, uint64_t addr, const struct bpf_line_info *line,
		    const struct strings *s)
{
	const char *name;
	uint32_t off = (uint32_t)(addr - f->addr);
	struct wire_line *last = f->nr_lines ? &f->lines[f->nr_lines - 1] : NULL;
	int64_t file;

	if (last && off <= last->code_off)
		return 0;
	name = string_at(s, line->file_name_off);
	if (!name || f->nr_files >= FILES_MAX)
		return 0;
	file = file_index(f, name);
	if (file < 0)
		return (int)file;
	f->lines[f->nr_lines++] =
		(struct wire_line){ .code_off = off,
				    .line = BPF_LINE_INFO_LINE_NUM(line->line_col),
				    .file = (uint32_t)file };
	return 0;
}

/* ---- BPF programs: one of them --------------------------------------------------------------- */

/* The buffers for the second query of a program. */
struct dump {
	struct bpf_prog_info info;
	uint8_t *code;
	uint64_t *addrs, *line_addrs;
	uint32_t *lens;
	struct bpf_line_info *lines;
	struct strings strings;
};

static void dump_release(struct dump *d)
{
	free(d->code);
	free(d->addrs);
	free(d->line_addrs);
	free(d->lens);
	free(d->lines);
	free(d->strings.btf);
}

static bool wants_lines(const struct bpf_prog_info *info)
{
	return info->btf_id && info->nr_line_info &&
	       info->nr_line_info == info->nr_jited_line_info && info->nr_line_info <= LINES_MAX &&
	       info->line_info_rec_size == sizeof(struct bpf_line_info) &&
	       info->jited_line_info_rec_size == sizeof(uint64_t);
}

static int make_space(struct dump *d, const struct bpf_prog_info *size)
{
	struct bpf_prog_info *to = &d->info;

	if (!size->jited_prog_len || size->jited_prog_len > CODE_MAX || !size->nr_jited_ksyms ||
	    size->nr_jited_ksyms != size->nr_jited_func_lens || size->nr_jited_ksyms > CODE_MAX)
		return -DCPI_ELIMIT;
	d->code = calloc(1, size->jited_prog_len);
	d->addrs = calloc(size->nr_jited_ksyms, sizeof(*d->addrs));
	d->lens = calloc(size->nr_jited_ksyms, sizeof(*d->lens));
	if (!d->code || !d->addrs || !d->lens)
		return -ENOMEM;
	*to = (struct bpf_prog_info){ .jited_prog_len = size->jited_prog_len,
				      .jited_prog_insns = (uintptr_t)d->code,
				      .nr_jited_ksyms = size->nr_jited_ksyms,
				      .jited_ksyms = (uintptr_t)d->addrs,
				      .nr_jited_func_lens = size->nr_jited_ksyms,
				      .jited_func_lens = (uintptr_t)d->lens };
	if (!wants_lines(size))
		return 0;
	d->lines = calloc(size->nr_line_info, sizeof(*d->lines));
	d->line_addrs = calloc(size->nr_line_info, sizeof(*d->line_addrs));
	if (!d->lines || !d->line_addrs)
		return -ENOMEM;
	to->nr_line_info = to->nr_jited_line_info = size->nr_line_info;
	to->line_info_rec_size = sizeof(*d->lines);
	to->jited_line_info_rec_size = sizeof(*d->line_addrs);
	to->line_info = (uintptr_t)d->lines;
	to->jited_line_info = (uintptr_t)d->line_addrs;
	return 0;
}

static int read_dump(struct kernel_bpf *b, uint32_t id, struct dump *d)
{
	struct bpf_prog_info size = { 0 };
	int r, fd = open_by_id(b, BPF_PROG_GET_FD_BY_ID, id);

	if (fd < 0)
		return fd;
	r = get_info(b, fd, &size, sizeof(size));
	if (r == 0)
		r = make_space(d, &size);
	if (r == 0)
		r = get_info(b, fd, &d->info, sizeof(d->info));
	close(fd);
	if (r < 0)
		return r;
	/* The kernel says how much there is, also where that is more than there was room for. */
	if (d->info.jited_prog_len != size.jited_prog_len ||
	    d->info.nr_jited_ksyms != size.nr_jited_ksyms ||
	    d->info.nr_jited_func_lens != size.nr_jited_func_lens)
		return -DCPI_EFORMAT;
	/* Without lines, or with bad ones, the code is still good. */
	if (d->lines && (d->info.nr_line_info != size.nr_line_info ||
			 read_strings(b, d->info.btf_id, &d->strings) < 0))
		d->info.nr_line_info = 0;
	return 0;
}

static bool in_func(const struct kernel_bpf_func *f, uint64_t addr)
{
	return addr >= f->addr && addr - f->addr < f->len;
}

/* The kernel has the lines by function, in the functions' order. @next: of those not taken yet. */
static int fill_lines(const struct dump *d, struct kernel_bpf_func *f, uint32_t *next)
{
	uint32_t nr = d->lines ? d->info.nr_line_info : 0, from = *next, to;
	int r = 0;

	while (from < nr && !in_func(f, d->line_addrs[from]))
		from++;
	for (to = from; to < nr && in_func(f, d->line_addrs[to]);)
		to++;
	if (from == to)
		return 0;
	f->lines = calloc(to - from, sizeof(*f->lines));
	if (!f->lines)
		return -ENOMEM;
	for (uint32_t i = from; r == 0 && i < to; i++)
		r = add_line(f, d->line_addrs[i], &d->lines[i], &d->strings);
	*next = to;
	return r;
}

static struct kernel_bpf_layout *layout_new(const struct dump *d)
{
	size_t len = d->info.nr_jited_ksyms * sizeof(*d->addrs);
	struct kernel_bpf_layout *l = malloc(sizeof(*l) + len);

	if (!l)
		return NULL;
	l->refs = 1;
	l->nr = d->info.nr_jited_ksyms;
	memcpy(l->addrs, d->addrs, len);
	return l;
}

static void layout_put(struct kernel_bpf_layout *l)
{
	if (l && !--l->refs)
		free(l);
}

void kernel_bpf_func_release(struct kernel_bpf_func *f)
{
	free(f->code);
	free(f->lines);
	layout_put(f->layout);
	base_buf_release(&f->files);
	*f = (struct kernel_bpf_func){ 0 };
}

static size_t size_of(const struct kernel_bpf_func *f)
{
	return f->len + f->nr_lines * sizeof(*f->lines) + f->files.len;
}

static void drop_fresh(struct kernel_bpf *b, size_t index)
{
	b->fresh_bytes -= size_of(&b->fresh[index]);
	memmove(b->fresh + index, b->fresh + index + 1,
		(--b->nr_fresh - index) * sizeof(*b->fresh));
}

static int add_func(struct kernel_bpf *b, struct kernel_bpf_func *f)
{
	int r = base_grow(&b->fresh, &b->cap_fresh, b->nr_fresh + 1, sizeof(*b->fresh));

	if (r < 0)
		return r;
	b->fresh[b->nr_fresh++] = *f;
	b->fresh_bytes += size_of(f);
	while (b->fresh_bytes > FRESH_MAX && b->nr_fresh > 1) {
		struct kernel_bpf_func old = b->fresh[0];

		drop_fresh(b, 0);
		kernel_bpf_func_release(&old);
	}
	return 0;
}

static int add_funcs(struct kernel_bpf *b, uint32_t id, const struct dump *d)
{
	struct kernel_bpf_layout *layout = layout_new(d);
	uint32_t next_line = 0;
	size_t pos = 0;
	int r = layout ? 0 : -ENOMEM;

	for (uint32_t i = 0; r == 0 && i < d->info.nr_jited_ksyms; i++) {
		struct kernel_bpf_func f = {
			.prog = id, .index = i, .addr = d->addrs[i], .len = d->lens[i]
		};

		if (!f.addr || !f.len || f.len > d->info.jited_prog_len - pos) {
			r = -DCPI_EFORMAT;
			break;
		}
		f.layout = layout;
		layout->refs++;
		for (size_t t = 0; t < sizeof(d->info.tag); t++)
			snprintf(f.tag + 2 * t, 3, "%02x", d->info.tag[t]);
		f.code = malloc(f.len);
		r = f.code ? fill_lines(d, &f, &next_line) : -ENOMEM;
		if (r == 0) {
			memcpy(f.code, d->code + pos, f.len);
			r = add_func(b, &f);
		}
		if (r < 0)
			kernel_bpf_func_release(&f);
		pos += d->lens[i];
	}
	layout_put(layout);
	return r;
}

static int read_program(struct kernel_bpf *b, uint32_t id)
{
	struct dump d = { 0 };
	int r = read_dump(b, id, &d);

	if (r == 0)
		r = add_funcs(b, id, &d);
	dump_release(&d);
	return r;
}

/* ---- BPF programs: all of them --------------------------------------------------------------- */

static int next_id(struct kernel_bpf *b, uint32_t after, uint32_t *id)
{
	union bpf_attr attr;
	int r;

	memset(&attr, 0, sizeof(attr));
	attr.start_id = after;
	r = ask(b, BPF_PROG_GET_NEXT_ID, &attr);
	*id = attr.next_id;
	return r;
}

static void refuse(struct kernel_bpf *b)
{
	b->refused = true;
	base_log(BASE_LOG_INFO, "the code of BPF programs cannot be read (it takes CAP_SYS_ADMIN): "
				"they appear by name");
}

/* The programs that were loaded since the last time, while they are there. Numbers only grow (up to
 * two thousand million), so each program is asked for once. */
static void kernel_bpf_read(struct kernel_bpf *b)
{
	uint32_t id;
	int r = 0;

	while (!b->refused && r != -ENOMEM && (r = next_id(b, b->last_id, &id)) == 0) {
		if (id <= b->last_id)
			return;
		b->last_id = id;
		r = read_program(b, id);
		if (r == -EPERM)
			break;
	}
	if (r == -EPERM)
		refuse(b);
}

static bool is_it(const struct kernel_bpf_func *f, const char *name, uint64_t addr, uint64_t len)
{
	static const char start[] = "bpf_prog_";

	if (f->addr != addr || (len && f->len != len) || strncmp(name, start, sizeof(start) - 1))
		return false;
	return f->index ? f->sure : !strncmp(name + sizeof(start) - 1, f->tag, strlen(f->tag));
}

static bool take_fresh(struct kernel_bpf *b, const char *name, uint64_t addr, uint64_t len,
		       struct kernel_bpf_func *out)
{
	for (size_t i = b->nr_fresh; i--;) {
		if (!is_it(&b->fresh[i], name, addr, len))
			continue;
		*out = b->fresh[i];
		drop_fresh(b, i);
		for (size_t j = 0; j < b->nr_fresh; j++)
			b->fresh[j].sure |= b->fresh[j].prog == out->prog;
		return true;
	}
	return false;
}

bool kernel_bpf_take(struct kernel_bpf *b, const char *name, uint64_t addr, uint64_t len,
		     struct kernel_bpf_func *out)
{
	if (take_fresh(b, name, addr, len, out))
		return true;
	kernel_bpf_read(b);
	return take_fresh(b, name, addr, len, out);
}

void kernel_bpf_read_all(struct kernel_bpf *b)
{
	kernel_bpf_read(b);
	for (size_t i = 0; i < b->nr_fresh; i++)
		b->fresh[i].sure = true;
}

void kernel_bpf_release(struct kernel_bpf *b)
{
	for (size_t i = 0; i < b->nr_fresh; i++)
		kernel_bpf_func_release(&b->fresh[i]);
	free(b->fresh);
	*b = (struct kernel_bpf){ 0 };
}

/* ---- a piece of code ------------------------------------------------------------------------- */

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

static bool is_code(const struct kernel *k, const struct image *img);

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
	if (!a || a->gone_ns != UINT64_MAX || is_code(k, a->image))
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

static bool is_code(const struct kernel *k, const struct image *img)
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

/* Code is told of by its name, which its file's name begins with; in @to, or the image's path. */
static const char *name_of_code(const struct image *img, char *to, size_t len)
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

/* ---- for others ------------------------------------------------------------------------------ */

void kernel_look(struct kernel *k)
{
	if (k->config.live && k->helper[0])
		kernel_bpf_read(&k->bpf);
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
					 .path = name_of_code(a->image, name, sizeof(name)) };

		if (!is_code(k, a->image)) {
			tell(ctx, &l);
			continue;
		}
		l.kind = DRIVER_LOAD_KSYMBOL;
		l.id.len = 0;
		tell(ctx, &l);
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

/* Write what got samples; forget what is gone without any. */
static int code_write(struct kernel *k, bool hasty, struct base_err *err)
{
	void *value;
	int r = 0;

	(void)hasty;
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

/* Files of what has bytes here are written again when that gets samples. */
static void code_lost(struct kernel *k)
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

static void code_close(struct kernel *k)
{
	void *c;

	for (size_t pos = 0; base_map_next(&k->codes, &pos, &c);)
		code_free(k, c);
	base_map_release(&k->codes);
	kernel_bpf_release(&k->bpf);
}

const struct kernel_part kernel_code_part = { code_write, code_lost, code_close };
