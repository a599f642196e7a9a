/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpid-parse: the jailed helper of dcpid that parses what applications wrote (parser.h). Not for
 * people: it is started with its socket and the answers' memfd as descriptors 0 and 1, and ends
 * when the socket is closed.
 */
#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "height.h"
#include "parser.h"
#include "reader_routine.h"
#include "unwind.h"
#include "unwind_rows.h"
#include "wire.h"

/* ---- tables of code -------------------------------------------------------------------------- */

enum {
	ROUTINE_LEN_MAX = HEIGHT_MAX_LEN,
	PART_MAX = 1 << 20,
	KEPT_SLOTS = 1 << 13,
	KEPT_BYTES = 64 << 20
};

/* The file @fd has @nr routines (struct reader_routine), and their frames (struct wire_frame). */
struct code_part {
	int fd;
	uint64_t nr, start, end;
};

/*
 * Rules of routines from earlier tables, with their code and frames: a table is made again whenever
 * one of its routines changes, and most are then what they were. Zero-initialize; it is kept for
 * the life of its process.
 */
struct code_kept {
	struct height *height;
	struct kept_routine *slots[KEPT_SLOTS];
	size_t bytes;
};

struct kept_row {
	uint32_t off;
	struct unwind_rule rule;
};

/* Its rows hold wherever such code stands, if its runtime told of the same frames. */
struct kept_routine {
	struct kept_row *rows;
	size_t nr, cap;
	size_t len, nr_frames;
	uint8_t bytes[]; /* of its code, then of its frames */
};

struct making {
	struct unwind_builder *builder;
	struct code_kept *kept;
	const struct registry_memory *memory;
	uint64_t start, end;
	int fd;
	uint64_t frames_off;	      /* frames begin there in the file */
	struct wire_frame *frames;    /* READER_ROUTINE_FRAMES_MAX, of a routine … */
	struct height_entry *entries; /* … and these made of them */
	uint8_t *part; /* the memory from start on, as far as it could be read at once */
	size_t part_len;
	uint8_t *code; /* ROUTINE_LEN_MAX: of a routine that is not all there */
	uint64_t at;   /* the last row's, or the end of the last routine */
};

static int row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	struct making *m = ctx;

	if (addr >= m->end)
		addr = m->end;
	return unwind_builder_add(m->builder, addr > m->start ? addr : m->start, rule);
}

/* The routine's bytes, or NULL. */
static const uint8_t *code_of(const struct making *m, const struct reader_routine *q)
{
	uint64_t off = q->addr - m->start;

	if (q->addr >= m->start && off <= m->part_len && q->len <= m->part_len - off)
		return m->part + off;
	return m->memory->read(m->memory->ctx, q->addr, m->code, q->len) == (ssize_t)q->len
		       ? m->code
		       : NULL;
}

/* ---- kept ------------------------------------------------------------------------------------ */

static void free_routine(struct kept_routine *k)
{
	if (k)
		free(k->rows);
	free(k);
}

static void clear(struct code_kept *kept)
{
	for (size_t i = 0; i < KEPT_SLOTS; i++) {
		free_routine(kept->slots[i]);
		kept->slots[i] = NULL;
	}
	kept->bytes = 0;
}

/* The routine is taken to begin at address 0. */
static int kept_row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	struct kept_routine *k = ctx;

	if (base_grow(&k->rows, &k->cap, k->nr + 1, sizeof(*k->rows)) < 0)
		return -ENOMEM;
	k->rows[k->nr++] = (struct kept_row){ (uint32_t)addr, *rule };
	return 0;
}

/* Find rules by the @nr frames that the runtime told of; some count only where the code proves
 * nothing. */
static int told_rows(const struct making *m, struct kept_routine *k, size_t nr)
{
	struct height *h = m->kept->height;
	struct height_report report;
	bool fallback = false;
	int r;

	for (size_t i = 0; i < nr; i++) {
		const struct wire_frame *f = &m->frames[i];

		fallback |= f->flags & WIRE_FRAME_FALLBACK;
		m->entries[i] = (struct height_entry){ .off = f->code_off,
						       .by_fp = f->flags & WIRE_FRAME_BY_FP,
						       .cfa = f->cfa_off,
						       .fp = f->fp_off,
						       .link = f->link_off };
	}
	if (!fallback)
		height_set_entries(h, m->entries, nr);
	r = height_rows(h, k->bytes, k->len, 0, kept_row, k, &report);
	if (r < 0 || !fallback || report.refused != HEIGHT_NO_PROOF ||
	    report.proof != HEIGHT_BY_NOTHING)
		return r;
	height_set_entries(h, m->entries, nr);
	return height_rows(h, k->bytes, k->len, 0, kept_row, k, NULL);
}

static int make_routine(const struct making *m, const uint8_t *code, size_t len, size_t nr,
			struct kept_routine **out)
{
	struct kept_routine *k = calloc(1, sizeof(*k) + len + nr * sizeof(*m->frames));
	int r;

	*out = NULL;
	if (!k)
		return -ENOMEM;
	k->len = len;
	k->nr_frames = nr;
	memcpy(k->bytes, code, len);
	memcpy(k->bytes + len, m->frames, nr * sizeof(*m->frames));
	r = nr ? told_rows(m, k, nr)
	       : height_rows(m->kept->height, k->bytes, len, 0, kept_row, k, NULL);
	if (r < 0)
		free_routine(k);
	else
		*out = k;
	return r;
}

static size_t bytes_of(const struct kept_routine *k)
{
	return k ? sizeof(*k) + k->len + k->nr_frames * sizeof(struct wire_frame) +
			       k->cap * sizeof(*k->rows)
		 : 0;
}

static bool is_same(const struct kept_routine *k, const struct making *m, const uint8_t *code,
		    size_t len, size_t nr)
{
	return k && k->len == len && k->nr_frames == nr && memcmp(k->bytes, code, len) == 0 &&
	       memcmp(k->bytes + len, m->frames, nr * sizeof(*m->frames)) == 0;
}

/* The routine with that code and the first @nr of the frames, whose rules are found now if they
 * were not before. */
static int routine_of(const struct making *m, const uint8_t *code, size_t len, size_t nr,
		      const struct kept_routine **out)
{
	struct code_kept *kept = m->kept;
	uint64_t hash = base_hash64(m->frames, nr * sizeof(*m->frames));
	struct kept_routine **slot = &kept->slots[base_hash64_seeded(hash, code, len) % KEPT_SLOTS];
	int r = 0;

	if (!is_same(*slot, m, code, len, nr)) {
		if (kept->bytes > KEPT_BYTES)
			clear(kept);
		kept->bytes -= bytes_of(*slot);
		free_routine(*slot);
		r = make_routine(m, code, len, nr, slot);
		kept->bytes += bytes_of(*slot);
	}
	*out = *slot;
	return r;
}

/* ---- a table --------------------------------------------------------------------------------- */

static int add_rows(struct making *m, const uint8_t *code, const struct reader_routine *q)
{
	const struct kept_routine *k;
	int r = routine_of(m, code, q->len, q->nr_frames, &k);

	for (size_t i = 0; r >= 0 && i < k->nr; i++)
		r = row(m, q->addr + k->rows[i].off, &k->rows[i].rule);
	return r;
}

/* Take the routine's frames, as its runtime told of them. -EINVAL: there are not so many. */
static int read_frames(const struct making *m, const struct reader_routine *q)
{
	uint64_t at = m->frames_off + (uint64_t)q->first_frame * sizeof(*m->frames);
	size_t len = q->nr_frames * sizeof(*m->frames);

	if (q->nr_frames > READER_ROUTINE_FRAMES_MAX ||
	    base_read_part(m->fd, at, m->frames, len) < len)
		return -EINVAL;
	for (uint32_t i = 0; i < q->nr_frames; i++)
		if (wire_frame_fault(&m->frames[i]))
			return -EINVAL;
	return 0;
}

static int add_routine(struct making *m, const struct reader_routine *q)
{
	const struct unwind_rule none = { .how = UNWIND_NONE };
	const uint8_t *code;
	int r = 0;

	if (q->addr < m->at || base_add_overflow(q->addr, q->len, &m->at))
		return -EINVAL;
	if (!q->len || q->len > ROUTINE_LEN_MAX || q->addr >= m->end)
		return 0;
	code = code_of(m, q);
	if (code)
		r = read_frames(m, q);
	if (code && r >= 0)
		r = add_rows(m, code, q);
	return r < 0 ? r : row(m, q->addr + q->len, &none);
}

static void read_part(struct making *m)
{
	ssize_t n = m->memory->read(m->memory->ctx, m->start, m->part, m->end - m->start);

	m->part_len = n > 0 ? (size_t)n : 0;
}

static int add_routines(struct making *m, uint64_t nr)
{
	struct reader_routine q;
	int r = 0;

	read_part(m);
	for (uint64_t i = 0; r >= 0 && i < nr; i++) {
		if (base_read_part(m->fd, i * sizeof(q), &q, sizeof(q)) < sizeof(q))
			return -EINVAL;
		r = add_routine(m, &q);
	}
	return r;
}

/*
 * The table of a part of a process, whose code is in @memory. What cannot be read, or is not
 * understood, has no rule. -EINVAL: the routines are not as reader.h says.
 */
static int make_code_table(const struct code_part *part, const struct registry_memory *memory,
			   struct code_kept *kept, struct unwind_table **out)
{
	struct making m = { .kept = kept,
			    .memory = memory,
			    .start = part->start,
			    .end = part->end,
			    .fd = part->fd,
			    .frames_off = part->nr * sizeof(struct reader_routine) };
	int r = 0;

	*out = NULL;
	if (m.end <= m.start || m.end - m.start > PART_MAX || part->nr > READER_ROUTINES_MAX)
		return -EINVAL;
	if (!kept->height)
		r = height_open(REGISTRY_MACHINE, &kept->height);
	m.part = malloc(m.end - m.start);
	m.builder = unwind_builder_new();
	m.code = malloc(ROUTINE_LEN_MAX);
	m.frames = calloc(READER_ROUTINE_FRAMES_MAX, sizeof(*m.frames));
	m.entries = calloc(READER_ROUTINE_FRAMES_MAX, sizeof(*m.entries));
	if (r >= 0 && (!m.builder || !m.code || !m.part || !m.frames || !m.entries))
		r = -ENOMEM;
	if (r >= 0)
		r = add_routines(&m, part->nr);
	if (r >= 0)
		r = unwind_builder_done(m.builder, out);
	unwind_builder_free(m.builder);
	free(m.entries);
	free(m.frames);
	free(m.code);
	free(m.part);
	return r;
}

/* ---- the jail -------------------------------------------------------------------------------- */

enum { MEMORY_BYTES = 1 << 30 };

/* The C library's own names a path, which the jail's filter cannot judge. */
int fstat(int fd, struct stat *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

/* libelf asks whether a descriptor is open. The jail allows no such call, and here it is. */
int fcntl(int fd, int cmd, ...)
{
	(void)fd;
	if (cmd == F_GETFD)
		return 0;
	errno = EPERM;
	return -1;
}

int fcntl64(int fd, int cmd, ...) __attribute__((alias("fcntl")));

/* ---- memory ---------------------------------------------------------------------------------- */

static ssize_t read_some(uint64_t addr, void *to, size_t len)
{
	static struct parser_memory m;
	const struct parser_word w = { .addr = addr, .len = len };
	ssize_t got;

	if (base_write_all(PARSER_SOCKET_FD, &w, sizeof(w)) < 0)
		_exit(BASE_EXIT_FAILED);
	got = read(PARSER_SOCKET_FD, &m, sizeof(m));
	if (got < (ssize_t)offsetof(struct parser_memory, bytes))
		_exit(BASE_EXIT_FAILED);
	if (m.n > 0)
		memcpy(to, m.bytes, (size_t)m.n);
	return (ssize_t)m.n;
}

/* As much of it as stands there without a gap. */
static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	size_t done = 0;
	ssize_t n = 0;

	(void)ctx;
	while (done < len) {
		size_t want = len - done < PARSER_BYTES ? len - done : PARSER_BYTES;

		n = read_some(addr + done, (uint8_t *)to + done, want);
		done += n > 0 ? (size_t)n : 0;
		if (n < (ssize_t)want)
			break;
	}
	return done ? (ssize_t)done : n;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int file_id(const struct reader_request *q, int fd, struct reader_answer *a)
{
	struct base_id id = { 0 };
	bool elf = false;
	int r = foreign_jitdump_is(fd);

	a->dump = r > 0;
	if (r == 0)
		r = registry_file_id(fd, &id, &elf);
	a->no_elf = !elf;
	a->id_len = id.len;
	memcpy(a->id, id.bytes, sizeof(a->id));
	if (elf)
		base_elf_extent(fd, &a->extent);
	if (r < 0 || !elf || !q->wants_text)
		return r < 0 ? r : 0;
	r = base_id_of_text(&a->text, fd);
	return r == -EFBIG || r == -ENOENT ? 0 : r;
}

/* @r: that of who made @t, which is freed. */
static int put_table(int r, struct unwind_table *t, struct base_buf *out)
{
	void *to;

	if (r >= 0)
		r = base_buf_extend(out, unwind_encoded_len(t), &to);
	if (r >= 0)
		unwind_encode(t, to);
	unwind_free(t);
	return r < 0 ? r : 0;
}

/* It closes the file, as no other descriptor of it may be made here. */
static int rows_make(int fd, struct base_buf *out)
{
	struct unwind_table *t = NULL;
	struct base_err err = { 0 };
	int r = image_rows_take(fd, "a mapped file", &t, &err);

	return put_table(r, t, out);
}

static int code_rows(const struct reader_request *q, int fd, struct base_buf *out)
{
	static struct code_kept kept;
	const struct registry_memory memory = { memory_read, NULL };
	struct unwind_table *t = NULL;
	const struct code_part part = { fd, q->size, q->addr, q->end };
	int r = make_code_table(&part, &memory, &kept, &t);

	return put_table(r, t, out);
}

static int registry_read(const struct reader_request *q, int fd, struct reader_answer *a,
			 struct base_buf *out)
{
	const struct registry_memory memory = { memory_read, NULL };

	a->place = q->place;
	return registry_parse(fd, q->life ? &memory : NULL, &a->place, out);
}

static int file_read(const struct reader_request *q, int fd, struct reader_answer *a,
		     struct base_buf *out)
{
	struct foreign_file file = { .fd = fd,
				     .machine = REGISTRY_MACHINE,
				     .read = q->life ? memory_read : NULL,
				     .deadline_ns = base_now_ns() + REGISTRY_CALL_NS,
				     .answer_max = REGISTRY_ANSWER_SOFT };

	a->file = q->file;
	return q->kind == FOREIGN_JITDUMP ? foreign_jitdump_read(&file, &a->file, out)
					  : foreign_perfmap_read(&file, &a->file, out);
}

static int gdb_find(const struct reader_request *q, int fd, struct reader_answer *a)
{
	uint64_t value = q->entry.node, bias;
	int r = value ? 1 : foreign_gdb_symbol(fd, REGISTRY_MACHINE, q->since_ns, &value);

	if (r <= 0)
		return r;
	a->gdb.state = value;
	if (value && foreign_gdb_bias(fd, q->addr, q->seq, &bias) == 0)
		a->gdb.heads[a->gdb.nr_heads++] = value + bias;
	return 0;
}

static int gdb_object(const struct reader_request *q, struct reader_answer *a, struct base_buf *out)
{
	const struct foreign_memory memory = { memory_read, NULL };
	struct foreign_gdb_entry entry = q->entry;
	int r = foreign_gdb_object(&memory, REGISTRY_MACHINE, q->seq, &entry, out);

	a->print = entry.print;
	return r;
}

static int serve(const struct reader_request *q, int fd, struct reader_answer *a,
		 struct base_buf *out)
{
	const struct foreign_memory memory = { memory_read, NULL };
	struct wire_registry h;

	switch (q->op) {
	case READER_FILE_ID:
		return file_id(q, fd, a);
	case READER_ROWS:
		return rows_make(fd, out);
	case READER_CODE_ROWS:
		return code_rows(q, fd, out);
	case READER_REGISTRY_OPEN:
		return registry_header_read(fd, &h);
	case READER_REGISTRY_READ:
		return registry_read(q, fd, a, out);
	case READER_FILE_READ:
		return file_read(q, fd, a, out);
	case READER_GDB_FIND:
		return gdb_find(q, fd, a);
	case READER_GDB_LIST:
		a->gdb = q->gdb;
		return foreign_gdb_list(&memory, &a->gdb, out);
	case READER_GDB_OBJECT:
		return gdb_object(q, a, out);
	default:
		return -EINVAL;
	}
}

static int serve_one(void)
{
	struct parser_word w = { .len = 0 };
	struct base_buf out = { 0 };
	struct reader_request q;
	int fd = -1, r = reader_receive(PARSER_SOCKET_FD, &q, sizeof(q), &fd);

	if (r < 0)
		return r;
	w.answer.status = serve(&q, fd, &w.answer, &out);
	/* Also what is given away of it waits, so that is part of the request. */
	if (fd >= 0 && q.op != READER_ROWS)
		close(fd);
	reader_put_answer(PARSER_ANSWERS_FD, &out, &w.answer);
	base_buf_release(&out);
	return base_write_all(PARSER_SOCKET_FD, &w, sizeof(w));
}

int main(int argc, char **argv)
{
	const struct base_jail jail = { .nr_fds = 2,
					.receives = true,
					.ends_with_parent = true,
					.memory = MEMORY_BYTES,
					.file = READER_ANSWER_MAX };
	struct base_err err = { 0 };

	(void)argv;
	if (argc != 1 || isatty(PARSER_SOCKET_FD)) {
		fputs("dcpid-parse: not for use by hand: dcpid starts it\n", stderr);
		return BASE_EXIT_USAGE;
	}
	signal(SIGXFSZ, SIG_IGN);
#ifdef M_MMAP_THRESHOLD
	/* Buffers of some megabytes go back at once: left alone, the heap keeps them. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
	/* Terminal signals are dcpid's, which lets us go when it is done. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (base_jail_enter(&jail, &err) < 0)
		return BASE_EXIT_FAILED;
	while (serve_one() >= 0)
		;
	/* Not by exit(): nothing that may run there is allowed any more. */
	_exit(BASE_EXIT_OK);
}
