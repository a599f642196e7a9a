/* SPDX-License-Identifier: BSD-2-Clause */
/* The code, names and lines of BPF programs are read from the kernel. */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel_bpf.h"

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
	return (int)b->call(b->ctx, cmd, attr, sizeof(*attr));
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

/* ---- lines ----------------------------------------------------------------------------------- */

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

/* ---- a program ------------------------------------------------------------------------------- */

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

/* ---- all programs ---------------------------------------------------------------------------- */

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

/* Numbers only grow (up to two thousand million), so each program is asked for once. */
void kernel_bpf_read(struct kernel_bpf *b)
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

void kernel_bpf_init(struct kernel_bpf *b, kernel_bpf_call *call, void *ctx)
{
	*b = (struct kernel_bpf){ .call = call ? call : real_call, .ctx = ctx };
}

void kernel_bpf_release(struct kernel_bpf *b)
{
	for (size_t i = 0; i < b->nr_fresh; i++)
		kernel_bpf_func_release(&b->fresh[i]);
	free(b->fresh);
	*b = (struct kernel_bpf){ 0 };
}
