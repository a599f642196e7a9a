/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpid-parse: the jailed helper of dcpid that parses what applications wrote (parser.h). Not for
 * people: it is started with its socket and the answers' memfd as descriptors 0 and 1, and ends
 * when the socket is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "parser.h"
#include "reader_code.h"
#include "unwind_rows.h"
#include "unwind.h"

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
	static struct reader_code_kept kept;
	const struct registry_memory memory = { memory_read, NULL };
	struct unwind_table *t = NULL;
	const struct reader_code_part part = { fd, q->size, q->addr, q->end };
	int r = reader_code_table(&part, &memory, &kept, &t);

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
