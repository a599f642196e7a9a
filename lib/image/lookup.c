/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which symbol is meant: by address, by name, one after the other; of a large image by an index
 * that is kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bound.h"
#include "image_internal.h"

/* ---- MiniDebugInfo --------------------------------------------------------------------------- */

/* Fedora's MiniDebugInfo: .gnu_debugdata holds an ELF file, packed by xz, with the symbols that
 * .dynsym lacks. */

enum { UNPACKED_MAX = 128 << 20, MEMORY_MAX = 256 << 20, CHUNK = 64 << 10 };

static int unpack(const void *data, size_t len, int fd)
{
	lzma_stream s = LZMA_STREAM_INIT;
	uint8_t *chunk = malloc(CHUNK);
	size_t total = 0;
	lzma_ret got = LZMA_MEM_ERROR;
	int r = 0;

	if (chunk)
		got = lzma_stream_decoder(&s, MEMORY_MAX, 0);
	s.next_in = data;
	s.avail_in = len;
	while (got == LZMA_OK && r >= 0) {
		s.next_out = chunk;
		s.avail_out = CHUNK;
		got = lzma_code(&s, LZMA_FINISH);
		total += CHUNK - s.avail_out;
		r = total > UNPACKED_MAX ? -DCPI_ELIMIT
					 : base_write_all(fd, chunk, CHUNK - s.avail_out);
	}
	lzma_end(&s);
	free(chunk);
	return r < 0 ? r : got == LZMA_STREAM_END ? 0 : -DCPI_EFORMAT;
}

/* The ELF file in .gnu_debugdata. -ENOENT where @f has none, or other errors. */
static int image_mini_open(struct image_elf *out, const struct image_elf *f)
{
	GElf_Shdr sh;
	Elf_Scn *scn = image_elf_section(f, ".gnu_debugdata", &sh);
	Elf_Data *data = scn ? elf_rawdata(scn, NULL) : NULL;
	FILE *file = data && data->d_buf ? tmpfile() : NULL;
	int r = file ? dup(fileno(file)) : -ENOENT, fd = r;
	off_t len;

	if (file && r < 0)
		r = -errno;
	if (r >= 0)
		r = unpack(data->d_buf, data->d_size, fd);
	len = r >= 0 ? lseek(fd, 0, SEEK_END) : 0;
	if (file)
		fclose(file);
	if (r < 0) {
		if (fd >= 0)
			close(fd);
		return r;
	}
	return image_elf_take(out, fd, (uint64_t)len, f->path, NULL);
}

/* ---- the index ------------------------------------------------------------------------------- */

/*
 * An image's symbols as they are looked up, kept in a file (docs/format/index.md): a large image
 * then needs a few blocks of it, instead of all its symbols read and sorted. What is in it can
 * always be had from the image: whatever is wrong with the file, it is made anew.
 */

enum { BLOCK = 4096, VERSION = 3 };

static const char magic[8] = "DCPIsym";

/* Little-endian on disk; offsets are from the start of the file. */
struct head {
	char magic[8];
	uint32_t version;
	uint32_t kind;
	uint64_t fingerprint;
	uint8_t id_len, id[32], guessed, zero[6];
	uint64_t nr_symbols, symbols_off;
	uint64_t nr_names, names_off;
	uint64_t strings_len, strings_off;
	uint64_t sums_off, file_len; /* a CRC-32C for each block before sums_off */
	uint32_t sums_crc, crc;	     /* checksums of the sums, and of the head up to here */
};
_Static_assert(sizeof(struct head) == 136, "as documented");

struct symbol {
	uint64_t vaddr, len;
	uint32_t name, outer; /* in the strings; index + 1 */
};
_Static_assert(sizeof(struct symbol) == 24, "as documented");

struct name {
	uint32_t name, symbol;
};

struct image_index {
	struct head head;
	int fd;
	uint8_t *data;	/* bytes of the whole file; filled on demand */
	bool *filled;	/* by block: whether it is filled */
	uint32_t *sums; /* by block: its checksum */
	bool damaged;
};

static bool big_endian(void)
{
	return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
}

/* ---- which file ------------------------------------------------------------------------------ */

static void add_stat(struct base_sha256 *sum, const struct image_elf *f)
{
	uint64_t v[6] = { 0 };
	struct stat st;

	if (f && fstat(f->fd, &st) == 0) {
		v[0] = (uint64_t)st.st_size;
		v[1] = (uint64_t)st.st_ino;
		v[2] = (uint64_t)st.st_mtim.tv_sec;
		v[3] = (uint64_t)st.st_mtim.tv_nsec;
		v[4] = (uint64_t)st.st_ctim.tv_sec;
		v[5] = (uint64_t)st.st_ctim.tv_nsec;
	}
	base_sha256_add(sum, v, sizeof(v));
}

/* The files that the symbols are from: stripped and full ones have one build-id. */
static uint64_t fingerprint(const struct image_elf *main, const struct image_elf *debug)
{
	struct base_sha256 sum;
	struct base_id id;
	uint64_t out;

	base_sha256_init(&sum);
	add_stat(&sum, main);
	add_stat(&sum, debug);
	base_id_of_sha256(&id, &sum);
	memcpy(&out, id.bytes, sizeof(out));
	return out;
}

enum { NAME_LEN = 256 };

/* A pseudo-image that grows has a new build-id each time, and one name. False: none. */
static bool file_name(const struct image_elf *main, uint32_t kind, char out[NAME_LEN])
{
	char text[BASE_ID_TEXT_LEN];
	const char *stem =
		kind == IMAGE_DYNAMIC ? base_path_name(main->path) : base_id_text(&main->id, text);

	return main->id.len > 1 && !big_endian() &&
	       snprintf(out, NAME_LEN, "%s.sym", stem) < NAME_LEN;
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_at(int fd, uint64_t off, void *out, size_t len)
{
	return pread(fd, out, len, (off_t)off) == (ssize_t)len;
}

/* Is [off, off + nr * size) in the part that the sums are of? */
static bool fits(const struct head *h, uint64_t off, uint64_t nr, uint64_t size)
{
	uint64_t len, end;

	return off % 8 == 0 && !base_mul_overflow(nr, size, &len) &&
	       !base_add_overflow(off, len, &end) && end <= h->sums_off;
}

static bool head_good(const struct head *h, uint64_t file_len)
{
	return memcmp(h->magic, magic, sizeof(magic)) == 0 && h->version == VERSION &&
	       h->crc == base_crc32c(0, h, offsetof(struct head, crc)) && h->file_len == file_len &&
	       h->sums_off % BLOCK == 0 && h->sums_off < file_len &&
	       file_len - h->sums_off == h->sums_off / BLOCK * sizeof(uint32_t) &&
	       h->nr_symbols < UINT32_MAX && h->nr_names < UINT32_MAX &&
	       h->strings_len < UINT32_MAX &&
	       fits(h, h->symbols_off, h->nr_symbols, sizeof(struct symbol)) &&
	       fits(h, h->names_off, h->nr_names, sizeof(struct name)) &&
	       fits(h, h->strings_off, h->strings_len, 1);
}

static bool read_sums(struct image_index *x)
{
	size_t len = x->head.file_len - x->head.sums_off;

	x->sums = malloc(len);
	x->filled = calloc(x->head.sums_off / BLOCK, sizeof(*x->filled));
	x->data = malloc(x->head.sums_off);
	return x->sums && x->filled && x->data && read_at(x->fd, x->head.sums_off, x->sums, len) &&
	       base_crc32c(0, x->sums, len) == x->head.sums_crc;
}

/* Only what we wrote ourselves: it is as private and as true as we are. */
static bool is_ours(int fd, uint64_t *len)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return false;
	*len = (uint64_t)st.st_size;
	return *len >= sizeof(struct head);
}

struct image_index *image_index_read(int fd, const struct image_elf *main,
				     const struct image_elf *debug, uint32_t kind)
{
	struct image_index *x = calloc(1, sizeof(*x));
	uint64_t len;

	if (!x) {
		close(fd);
		return NULL;
	}
	x->fd = fd;
	if (is_ours(fd, &len) && read_at(fd, 0, &x->head, sizeof(x->head)) &&
	    head_good(&x->head, len) && x->head.kind == kind &&
	    x->head.fingerprint == fingerprint(main, debug) && x->head.id_len == main->id.len &&
	    memcmp(x->head.id, main->id.bytes, main->id.len) == 0 && read_sums(x))
		return x;
	image_index_close(x);
	return NULL;
}

/*
 * The index of the symbols of @main and @debug (NULL: none), made by whom we are, in the first
 * folder that has it; negative descriptors are none. NULL: there is none, it is of other files, or
 * its head is damaged.
 */
static struct image_index *image_index_open(const int dir_fds[2], const struct image_elf *main,
					    const struct image_elf *debug, uint32_t kind)
{
	struct image_index *x = NULL;
	char name[NAME_LEN];

	if (!file_name(main, kind, name))
		return NULL;
	for (int i = 0; i < 2 && !x; i++) {
		int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW | O_CLOEXEC;
		int fd = dir_fds[i] < 0 ? -1 : openat(dir_fds[i], name, flags);

		if (fd >= 0)
			x = image_index_read(fd, main, debug, kind);
	}
	return x;
}

void image_index_close(struct image_index *x)
{
	if (!x)
		return;
	close(x->fd);
	free(x->data);
	free(x->filled);
	free(x->sums);
	free(x);
}

/* Some answer was false because a part of the file is damaged; none of it is to be used then. */
static bool image_index_damaged(const struct image_index *x)
{
	return x->damaged;
}

static bool fill(struct image_index *x, size_t block)
{
	uint8_t *at = x->data + block * BLOCK;

	if (x->filled[block])
		return true;
	x->filled[block] = !x->damaged && read_at(x->fd, block * BLOCK, at, BLOCK) &&
			   base_crc32c(0, at, BLOCK) == x->sums[block];
	x->damaged |= !x->filled[block];
	return x->filled[block];
}

/* NULL where a block is damaged. Callers have checked that it is inside. */
static const void *part(struct image_index *x, uint64_t off, size_t len)
{
	for (size_t block = off / BLOCK; block <= (off + len - 1) / BLOCK; block++)
		if (!fill(x, block))
			return NULL;
	return x->data + off;
}

/* NULL also for one that does not end. */
static const char *string_at(struct image_index *x, uint32_t at)
{
	uint64_t off = x->head.strings_off + at, end = x->head.strings_off + x->head.strings_len;

	if (at >= x->head.strings_len) {
		x->damaged = true;
		return NULL;
	}
	for (uint64_t from = off; from < end;) {
		uint64_t to = (from / BLOCK + 1) * BLOCK < end ? (from / BLOCK + 1) * BLOCK : end;

		if (!part(x, from, to - from))
			return NULL;
		if (memchr(x->data + from, 0, to - from))
			return (const char *)x->data + off;
		from = to;
	}
	x->damaged = true;
	return NULL;
}

size_t image_index_nr_symbols(const struct image_index *x)
{
	return x->head.nr_symbols;
}

size_t image_index_nr_names(const struct image_index *x)
{
	return x->head.nr_names;
}

static bool image_index_guessed(const struct image_index *x)
{
	return x->head.guessed;
}

static const struct symbol *index_entry(struct image_index *x, size_t i)
{
	return part(x, x->head.symbols_off + i * sizeof(struct symbol), sizeof(struct symbol));
}

bool image_index_vaddr(struct image_index *x, size_t i, uint64_t *vaddr)
{
	const struct symbol *s = index_entry(x, i);

	if (s)
		*vaddr = s->vaddr;
	return s != NULL;
}

bool image_index_symbol(struct image_index *x, size_t i, struct image_symbol_entry *out)
{
	const struct symbol *s = index_entry(x, i);

	if (!s || s->outer > i) {
		x->damaged = true;
		return false;
	}
	out->sym.name = string_at(x, s->name);
	out->sym.vaddr = s->vaddr;
	out->sym.len = s->len;
	out->outer = s->outer;
	return out->sym.name != NULL;
}

bool image_index_name(struct image_index *x, size_t i, struct image_name *out)
{
	const struct name *n = part(x, x->head.names_off + i * sizeof(*n), sizeof(*n));

	if (!n || n->symbol >= x->head.nr_symbols) {
		x->damaged = true;
		return false;
	}
	out->name = string_at(x, n->name);
	out->symbol = n->symbol;
	return out->name != NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Everything before the sums, as it will stand. */
struct image_contents {
	struct base_buf buf;
	struct head head;
};

static int align(struct base_buf *b, size_t to)
{
	void *zeroes;

	return base_buf_extend(b, base_align_up(b->len, to) - b->len, &zeroes);
}

/* The strings first: then the rest knows where they are. @at: of each name, in the names' order. */
static int put_strings(struct image_contents *c, const struct image_symbols *s, uint32_t *at)
{
	int r = 0;

	c->head.strings_off = c->buf.len;
	for (size_t i = 0; i < s->nr_names && r >= 0; i++) {
		const char *name = s->names[i].name;

		if (i && strcmp(name, s->names[i - 1].name) == 0) {
			at[i] = at[i - 1];
			continue;
		}
		if (c->buf.len - c->head.strings_off >= UINT32_MAX)
			return -DCPI_ELIMIT;
		at[i] = (uint32_t)(c->buf.len - c->head.strings_off);
		r = base_buf_append(&c->buf, name, strlen(name) + 1);
	}
	c->head.strings_len = c->buf.len - c->head.strings_off;
	return r < 0 ? r : align(&c->buf, 8);
}

static int put_symbols(struct image_contents *c, const struct image_symbols *s, const uint32_t *at)
{
	struct symbol *out = NULL;
	void *space;
	int r = base_buf_extend(&c->buf, s->nr * sizeof(*out), &space);

	if (r < 0)
		return r;
	out = space;
	c->head.nr_symbols = s->nr;
	c->head.symbols_off = c->buf.len - s->nr * sizeof(*out);
	for (size_t i = 0; i < s->nr; i++)
		out[i] = (struct symbol){ .vaddr = s->v[i].sym.vaddr,
					  .len = s->v[i].sym.len,
					  .outer = s->v[i].outer };
	/* Among the names of a symbol is the one that is shown. */
	for (size_t i = 0; i < s->nr_names; i++)
		if (s->names[i].name == s->v[s->names[i].symbol].sym.name ||
		    strcmp(s->names[i].name, s->v[s->names[i].symbol].sym.name) == 0)
			out[s->names[i].symbol].name = at[i];
	return 0;
}

static int put_names(struct image_contents *c, const struct image_symbols *s, const uint32_t *at)
{
	struct name *out;
	void *space;
	int r = base_buf_extend(&c->buf, s->nr_names * sizeof(*out), &space);

	if (r < 0)
		return r;
	out = space;
	c->head.nr_names = s->nr_names;
	c->head.names_off = c->buf.len - s->nr_names * sizeof(*out);
	for (size_t i = 0; i < s->nr_names; i++)
		out[i] = (struct name){ at[i], s->names[i].symbol };
	return 0;
}

static int put_sums(struct image_contents *c)
{
	size_t nr, from;
	uint32_t *sums;
	void *space;
	int r = align(&c->buf, BLOCK);

	nr = c->buf.len / BLOCK;
	c->head.sums_off = c->buf.len;
	c->head.file_len = c->buf.len + nr * sizeof(*sums);
	from = c->buf.len;
	if (r >= 0)
		r = base_buf_extend(&c->buf, nr * sizeof(*sums), &space);
	if (r < 0)
		return r;
	sums = space;
	/* The first block has the head, which has a sum of its own. */
	for (size_t i = 0; i < nr; i++)
		sums[i] = base_crc32c(0, c->buf.data + i * BLOCK, BLOCK);
	c->head.sums_crc = base_crc32c(0, c->buf.data + from, nr * sizeof(*sums));
	return 0;
}

static int contents(struct image_contents *c, const struct image_symbols *s,
		    const struct image_elf *main, const struct image_elf *debug, uint32_t kind)
{
	uint32_t *at = calloc(s->nr_names, sizeof(*at));
	void *head;
	int r = at ? base_buf_extend(&c->buf, BLOCK, &head) : -ENOMEM;

	memcpy(c->head.magic, magic, sizeof(magic));
	c->head.version = VERSION;
	c->head.kind = kind;
	c->head.fingerprint = fingerprint(main, debug);
	c->head.id_len = main->id.len;
	c->head.guessed = s->guessed;
	memcpy(c->head.id, main->id.bytes, main->id.len);
	if (r >= 0)
		r = put_strings(c, s, at);
	if (r >= 0)
		r = put_symbols(c, s, at);
	if (r >= 0)
		r = put_names(c, s, at);
	if (r >= 0)
		r = put_sums(c);
	free(at);
	if (r < 0)
		return r;
	c->head.crc = base_crc32c(0, &c->head, offsetof(struct head, crc));
	memcpy(c->buf.data, &c->head, sizeof(c->head));
	return 0;
}

void image_index_write(const int dir_fds[2], const struct image_symbols *s,
		       const struct image_elf *main, const struct image_elf *debug, uint32_t kind)
{
	struct image_contents c = { 0 };
	char name[NAME_LEN];
	bool done = false;

	if (!s->nr || !s->nr_names || !file_name(main, kind, name))
		return;
	if (contents(&c, s, main, debug, kind) >= 0)
		for (int i = 0; i < 2 && !done; i++)
			done = dir_fds[i] >= 0 && base_file_write(dir_fds[i], name, 0600,
								  c.buf.data, c.buf.len, NULL) >= 0;
	base_buf_release(&c.buf);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Reading and sorting fewer takes no longer than the index would. */
enum { INDEX_MIN = 2000 };

static bool load_index(struct image *img, const struct image_elf *debug)
{
	struct image_symbols *s = &img->lookup.symbols;

	/* One of ours that was damaged is not tried again. */
	if (img->lookup.given_up.index)
		return false;
	s->index = image_index_open(img->lookup.index_fds, &img->main, debug, img->kind);
	if (!s->index)
		return false;
	s->nr = image_index_nr_symbols(s->index);
	s->nr_names = image_index_nr_names(s->index);
	s->guessed = image_index_guessed(s->index);
	s->v = calloc(s->nr + 1, sizeof(*s->v));
	if (s->v)
		return true;
	image_symbols_release(s);
	return false;
}

int image_symbols_load(struct image *img, struct base_err *err)
{
	GElf_Shdr sh;
	const struct image_elf *debug;
	bool own, versioned = img->kind == IMAGE_FILE || img->kind == IMAGE_VDSO;
	int r;

	if (img->lookup.state)
		return img->lookup.state < 0 ? img->lookup.state : 0;
	own = image_elf_section(&img->main, ".symtab", &sh) != NULL;
	debug = own ? NULL : image_debug(img);
	if (load_index(img, debug)) {
		img->lookup.state = 1;
		return 0;
	}
	if (!own && !debug && !img->mini.elf)
		image_mini_open(&img->mini, &img->main);
	r = image_symbols_read(&img->lookup.symbols, &img->main, debug,
			       img->mini.elf ? &img->mini : NULL, versioned, err);
	img->lookup.state = r < 0 ? r : 1;
	if (r >= 0 && (img->lookup.symbols.nr >= INDEX_MIN || img->lookup.symbols.guessed))
		image_index_write(img->lookup.index_fds, &img->lookup.symbols, &img->main, debug,
				  img->kind);
	return r;
}

/* True: the question is to be asked again, of the image itself. */
static bool gave_up_index(struct image *img)
{
	if (!img->lookup.symbols.index || !image_index_damaged(img->lookup.symbols.index))
		return false;
	img->lookup.given_up = img->lookup.symbols;
	memset(&img->lookup.symbols, 0, sizeof(img->lookup.symbols));
	img->lookup.state = 0;
	image_symbols_load(img, NULL);
	return true;
}

/* NULL: the index is damaged. */
static const struct image_symbol_entry *entry_at(struct image_symbols *s, size_t i)
{
	if (s->index && !s->v[i].sym.name && !image_index_symbol(s->index, i, &s->v[i]))
		return NULL;
	return &s->v[i];
}

static uint64_t vaddr_at(struct image_symbols *s, size_t i)
{
	uint64_t vaddr = 0;

	if (!s->index || s->v[i].sym.name)
		return s->v[i].sym.vaddr;
	image_index_vaddr(s->index, i, &vaddr);
	return vaddr;
}

static const struct image_symbol *symbol_at(struct image_symbols *s, uint64_t vaddr)
{
	size_t lo = BASE_BOUND(i, s->nr, vaddr_at(s, i) <= vaddr);

	while (lo) {
		const struct image_symbol_entry *e = entry_at(s, lo - 1);

		if (!e)
			return NULL;
		if (vaddr - e->sym.vaddr < e->sym.len)
			return &e->sym;
		lo = e->outer;
	}
	return NULL;
}

const struct image_symbol *image_symbol_at(struct image *img, uint64_t vaddr)
{
	const struct image_symbol *found;

	image_symbols_load(img, NULL);
	do
		found = symbol_at(&img->lookup.symbols, vaddr);
	while (gave_up_index(img));
	return found;
}

bool image_guessed(struct image *img)
{
	image_symbols_load(img, NULL);
	return img->lookup.symbols.guessed;
}

bool image_stripped(struct image *img)
{
	GElf_Shdr sh;

	return !image_elf_section(&img->main, ".symtab", &sh) &&
	       !image_elf_section(&img->main, ".gnu_debugdata", &sh) && !image_debug(img);
}

size_t image_nr_symbols(struct image *img)
{
	image_symbols_load(img, NULL);
	return img->lookup.symbols.nr;
}

const struct image_symbol *image_symbol(struct image *img, size_t index)
{
	const struct image_symbol_entry *e;

	image_symbols_load(img, NULL);
	do
		e = index < img->lookup.symbols.nr ? entry_at(&img->lookup.symbols, index) : NULL;
	while (gave_up_index(img));
	return e ? &e->sym : NULL;
}

static bool name_at(struct image_symbols *s, size_t i, struct image_name *out)
{
	if (s->index)
		return image_index_name(s->index, i, out);
	*out = s->names[i];
	return true;
}

static const struct image_symbol *find_name(struct image_symbols *s, const char *name, size_t pos)
{
	const struct image_symbol_entry *e;
	struct image_name at;
	size_t lo = BASE_BOUND(i, s->nr_names, name_at(s, i, &at) && strcmp(at.name, name) < 0);

	if (pos >= s->nr_names - lo || !name_at(s, lo + pos, &at) || strcmp(at.name, name) != 0)
		return NULL;
	e = entry_at(s, at.symbol);
	return e ? &e->sym : NULL;
}

const struct image_symbol *image_symbol_find(struct image *img, const char *name, size_t *pos)
{
	const struct image_symbol *found;

	image_symbols_load(img, NULL);
	do
		found = find_name(&img->lookup.symbols, name, *pos);
	while (gave_up_index(img));
	if (found)
		++*pos;
	return found;
}
