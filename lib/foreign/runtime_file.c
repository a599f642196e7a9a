/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that runtimes write are read through a buffer here, as they may change meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime_file.h"

#define VADDR_MAX (1ull << 56)

enum {
	TRACE_LEN = 256 << 10,
	BLANK_LOOKED = 4 << 20,
	BLANK_STEP = 64 << 10,
	SUMMED = 64,   /* bytes before a place, by which it is known again */
	NR_PAGES = 16, /* a power of two; routines of more are read past them */
};

/* Page @addr lies in slot (addr / WIRE_PAGE) % NR_PAGES. */
struct runtime_pages {
	struct {
		uint64_t addr;
		bool known, readable;
	} slot[NR_PAGES];
	uint8_t bytes[NR_PAGES][WIRE_PAGE];
};

void runtime_file_release(struct runtime_file *f)
{
	base_buf_release(&f->trace);
	base_buf_release(&f->code);
	free(f->pages);
}

static bool in_trace(const struct runtime_file *f, uint64_t off, size_t len)
{
	return off >= f->trace_off && off - f->trace_off <= f->trace.len &&
	       len <= f->trace.len - (off - f->trace_off);
}

int runtime_file_peek(struct runtime_file *f, uint64_t off, size_t len, const uint8_t **at)
{
	int r = 0;

	if (!in_trace(f, off, len)) {
		size_t n = len > TRACE_LEN ? len : TRACE_LEN;

		n = n < f->size - off ? n : (size_t)(f->size - off);
		f->trace_off = off;
		base_buf_clear(&f->trace);
		r = base_buf_extend(&f->trace, n, NULL);
		if (r == 0)
			r = base_read_at(f->from->fd, off, f->trace.data, n);
	}
	if (r < 0)
		runtime_file_forget(f);
	else
		*at = f->trace.data + (off - f->trace_off);
	return r;
}

void runtime_file_forget(struct runtime_file *f)
{
	base_buf_clear(&f->trace);
	f->trace_off = 0;
}

/* A file that is written anew may be as long again before anybody looks. */
static int sum_before(struct runtime_file *f, uint64_t off, uint32_t *sum)
{
	size_t len = off < SUMMED ? (size_t)off : SUMMED;
	uint8_t bytes[SUMMED];
	int r = base_read_at(f->from->fd, off - len, bytes, len);

	*sum = r == 0 ? base_crc32c(0, bytes, len) : 0;
	return r;
}

int runtime_file_open(struct runtime_file *f, const struct foreign_file *from,
		      const struct foreign_place *place)
{
	struct stat st;
	uint32_t sum;
	int r;

	*f = (struct runtime_file){ .from = from };
	if (fstat(from->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	f->size = (uint64_t)st.st_size;
	if (f->size < place->off)
		return -DCPI_ETRUNCATED;
	r = sum_before(f, place->off, &sum);
	return r == 0 && sum != place->sum ? -DCPI_ETRUNCATED : r;
}

int runtime_file_end(struct runtime_file *f, struct foreign_place *place)
{
	return sum_before(f, place->off, &place->sum);
}

static bool is_zero(const uint8_t *p, size_t len)
{
	return !len || (!p[0] && !memcmp(p, p + 1, len - 1));
}

bool runtime_file_is_blank(const struct runtime_file *f, uint64_t off)
{
	uint64_t looked = 0;
	uint8_t buf[BLANK_STEP];

	while (off < f->size && looked < BLANK_LOOKED) {
		off_t data = lseek(f->from->fd, (off_t)off, SEEK_DATA);
		ssize_t n;

		if (data < 0 && errno == ENXIO)
			return true;
		if (data > 0 && (uint64_t)data > off)
			off = (uint64_t)data;
		if (off >= f->size)
			return true;
		n = pread(f->from->fd, buf, f->size - off < BLANK_STEP ? f->size - off : BLANK_STEP,
			  (off_t)off);
		if (n <= 0)
			return true;
		if (!is_zero(buf, (size_t)n))
			return false;
		off += (uint64_t)n;
		looked += (uint64_t)n;
	}
	return true;
}

bool runtime_file_is_enough(const struct runtime_file *f, const struct base_buf *out)
{
	return out->len > f->from->answer_max || base_now_ns() > f->from->deadline_ns;
}

/* ---- code ------------------------------------------------------------------------------------ */

bool runtime_code_is_good(uint64_t addr, uint64_t len)
{
	return len && len <= WIRE_CODE_MAX && addr && addr < VADDR_MAX && len <= VADDR_MAX - addr;
}

static bool read_memory(const struct runtime_file *f, uint64_t addr, uint8_t *to, size_t len)
{
	return f->from->read(f->from->ctx, addr, to, len) == (ssize_t)len;
}

/* NULL where it cannot be read. */
static const uint8_t *page_at(struct runtime_file *f, uint64_t addr)
{
	size_t i = (addr / WIRE_PAGE) % NR_PAGES;
	struct runtime_pages *p = f->pages;

	if (!p->slot[i].known || p->slot[i].addr != addr) {
		p->slot[i].known = true;
		p->slot[i].addr = addr;
		p->slot[i].readable = read_memory(f, addr, p->bytes[i], WIRE_PAGE);
	}
	return p->slot[i].readable ? p->bytes[i] : NULL;
}

/* Whole pages: who lives in one is mostly told together. */
static bool read_pages(struct runtime_file *f, uint64_t addr, uint8_t *to, size_t len)
{
	for (size_t n; len; addr += n, to += n, len -= n) {
		size_t off = addr % WIRE_PAGE;
		const uint8_t *page = page_at(f, addr - off);

		n = len < WIRE_PAGE - off ? len : WIRE_PAGE - off;
		if (!page)
			return false;
		memcpy(to, page + off, n);
	}
	return true;
}

static int code_space(struct runtime_file *f, size_t len)
{
	base_buf_clear(&f->code);
	return base_buf_extend(&f->code, len, NULL);
}

int runtime_code_fetch(struct runtime_file *f, uint64_t addr, size_t len, const uint8_t **code)
{
	bool paged = len <= (NR_PAGES - 1) * WIRE_PAGE;
	int r;

	*code = NULL;
	if (!f->from->read)
		return 0;
	if (!f->pages)
		f->pages = calloc(1, sizeof(*f->pages));
	r = f->pages ? code_space(f, len) : -ENOMEM;
	if (r < 0)
		return r;
	if (paged ? read_pages(f, addr, f->code.data, len)
		  : read_memory(f, addr, f->code.data, len))
		*code = f->code.data;
	return 0;
}

int runtime_code_copy(struct runtime_file *f, uint64_t off, size_t len, const uint8_t **code)
{
	int r = code_space(f, len);

	if (r == 0 && in_trace(f, off, len))
		memcpy(f->code.data, f->trace.data + (off - f->trace_off), len);
	else if (r == 0)
		r = base_read_at(f->from->fd, off, f->code.data, len);
	*code = f->code.data;
	return r;
}

/* ---- records --------------------------------------------------------------------------------- */

uint64_t runtime_seq_next(uint64_t *seq)
{
	++*seq;
	if (!(uint32_t)*seq)
		++*seq;
	return *seq;
}

static size_t buf_len(const struct base_buf *b)
{
	return b ? b->len : 0;
}

static uint8_t *put_bytes(uint8_t *to, const void *from, size_t len)
{
	if (len)
		memcpy(to, from, len);
	return to + len;
}

int runtime_routine_put(const struct runtime_routine *rt, uint64_t *seq, struct base_buf *out)
{
	size_t name_len = rt->name_len < WIRE_NAME_MAX ? rt->name_len : WIRE_NAME_MAX;
	size_t lines_len = buf_len(rt->lines), files_len = buf_len(rt->files);
	size_t nr_lines = lines_len / sizeof(struct wire_line);
	size_t frames_len = buf_len(rt->frames), nr_frames = frames_len / sizeof(struct wire_frame);
	size_t len = wire_routine_len(name_len, rt->code_len, rt->code, nr_lines, 0, files_len);
	uint32_t nr_files = rt->nr_files;
	struct wire_routine *rec;
	uint8_t *to;
	int r;

	len = wire_routine_frames_len(len, nr_frames);
	/* Too much is said of it: its name and code all the same. */
	if (!len) {
		lines_len = files_len = nr_lines = nr_files = 0;
		frames_len = 0;
		len = wire_routine_len(name_len, rt->code_len, rt->code, 0, 0, 0);
	}
	r = base_buf_extend(out, len, (void **)&rec);
	if (r < 0)
		return r;
	*rec = (struct wire_routine){
		.head = { .len = (uint32_t)len, .type = WIRE_ROUTINE, .flags = rt->flags },
		.seq = runtime_seq_next(seq),
		.addr = rt->addr,
		.code_len = rt->code_len,
		.name_len = (uint32_t)name_len,
		.nr_lines = (uint32_t)nr_lines,
		.nr_files = nr_files
	};
	to = put_bytes((uint8_t *)(rec + 1), rt->name, name_len);
	if (rt->code) {
		rec->head.flags |= WIRE_ROUTINE_CODE;
		to = put_bytes(to, rt->code, rt->code_len);
	}
	to = (uint8_t *)rec + base_align_up((size_t)(to - (uint8_t *)rec), 8);
	to = put_bytes(to, lines_len ? rt->lines->data : NULL, lines_len);
	to = put_bytes(to, files_len ? rt->files->data : NULL, files_len);
	if (frames_len) {
		rec->head.flags |= WIRE_ROUTINE_FRAMES;
		to = (uint8_t *)rec + base_align_up((size_t)(to - (uint8_t *)rec), 8);
		put_bytes(to, rt->frames->data, frames_len);
	}
	return 0;
}
