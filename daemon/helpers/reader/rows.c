/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables are asked for, and taken when the helpers have made them; dcpid goes on meanwhile.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reader.h"
#include "reader_internal.h"
#include "unwind.h"
#include "wire.h"

/* A table that takes more work is given up, and one for which they wait so long for others (a file
 * system); nor is longer waited for one, however busy the machine is. */
#define WORK_MAX_NS 2000000000ull
#define IDLE_MAX_NS 1000000000ull
#define WAIT_MAX_NS 30000000000ull
/* Between two looks no more counts as idle: all of us may have stood still. */
#define LOOK_MAX_NS 250000000ull

/* While the kernel holds so many that were killed, none is asked. */
enum { HELD_MAX = 4 };

/* ---- asking ---------------------------------------------------------------------------------- */

static int ask(struct reader *r, const struct reader_request *q, int fd)
{
	struct helper_effort before;
	int code;

	if (r->making.asked || helper_reap(&r->helper) + helper_reap(&r->parser) >= HELD_MAX)
		return -EBUSY;
	code = reader_ask(r, q, fd, &before);
	if (code < 0) {
		reader_dismiss(r);
		return -DCPI_EHELPER;
	}
	r->making = (struct reader_making){ .asked = true,
					    .since_ns = base_now_ns(),
					    .before = before };
	r->making.looked_ns = r->making.since_ns;
	return 0;
}

int reader_rows_ask(struct reader *r, const struct reader_mapped *f, int fd)
{
	struct reader_request q = { .op = READER_ROWS,
				    .pid = f->pid,
				    .addr = f->start,
				    .end = f->end,
				    .inode = f->inode,
				    .size = f->size,
				    .dev_major = (uint32_t)(f->dev >> 20),
				    .dev_minor = f->dev & 0xfffff,
				    .id = f->id };

	if (f->path && strlen(f->path) < sizeof(q.path))
		snprintf(q.path, sizeof(q.path), "%s", f->path);
	return ask(r, &q, fd);
}

/* A file in memory that holds @c's routines and frames, or negative. */
static int routines_file(const struct reader_code *c)
{
	int fd = memfd_create("dcpid-routines", MFD_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = base_write_all(fd, c->routines, c->nr * sizeof(*c->routines));
	if (r >= 0 && c->nr_frames)
		r = base_write_all(fd, c->frames, c->nr_frames * sizeof(*c->frames));
	if (r >= 0)
		return fd;
	close(fd);
	return r;
}

int reader_code_rows_ask(struct reader *r, const struct reader_code *c)
{
	const struct reader_request q = { .op = READER_CODE_ROWS,
					  .pid = c->pid,
					  .addr = c->start,
					  .end = c->end,
					  .size = c->nr };
	int fd = routines_file(c), code;

	if (fd < 0)
		return fd;
	code = ask(r, &q, fd);
	close(fd);
	return code;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* See how far they are. */
static void look(struct reader *r)
{
	struct reader_making *m = &r->making;
	struct helper_effort now = reader_effort(r), used = reader_effort_since(&m->before, &now);
	struct helper_effort step = reader_effort_since(&m->looked, &used);
	uint64_t now_ns = base_now_ns(), took_ns = now_ns - m->looked_ns;
	uint64_t busy_ns = step.ran_ns + step.ready_ns;

	took_ns = took_ns < LOOK_MAX_NS ? took_ns : LOOK_MAX_NS;
	if (busy_ns < took_ns && !helper_is_ready(&r->helper) && !helper_is_ready(&r->parser))
		m->idle_ns += took_ns - busy_ns;
	m->looked = used;
	m->looked_ns = now_ns;
}

/* 0, or why it is given up. Work is the same each time. */
static int late(const struct reader_making *m)
{
	if (m->looked.ran_ns >= WORK_MAX_NS)
		return -DCPI_ELIMIT;
	return m->idle_ns >= IDLE_MAX_NS || m->looked_ns - m->since_ns >= WAIT_MAX_NS ? -ETIMEDOUT
										      : 0;
}

static int give_up(struct reader *r, int code)
{
	reader_dismiss(r);
	/* Its file system holds even the killed one. */
	return r->helper.held ? -EREMOTE : code;
}

/* A table is checked as it is decoded: once, as it may be large. */
static int check_nothing(const struct base_buf *b, size_t from)
{
	(void)b;
	(void)from;
	return 0;
}

static int take_table(struct reader *r, const struct reader_answer *a, struct unwind_table **out)
{
	struct base_buf bytes = { 0 };
	int code = reader_fetch(r, a, check_nothing, &bytes);

	if (code >= 0)
		code = unwind_decode(bytes.data, bytes.len, out);
	base_buf_release(&bytes);
	if (code == -DCPI_EFORMAT || code == -DCPI_ETRUNCATED) {
		reader_dismiss(r);
		code = -DCPI_EHELPER;
	}
	reader_trim(r);
	return code < 0 ? code : 0;
}

int reader_rows_take(struct reader *r, unsigned int wait_ms, struct unwind_table **out,
		     struct reader_cost *cost)
{
	struct reader_answer a;
	int code, none = -1;

	*out = NULL;
	*cost = (struct reader_cost){ 0 };
	if (!r->making.asked)
		return -EINVAL;
	code = base_wait_readable(r->helper.sock, &wait_ms);
	look(r);
	*cost = (struct reader_cost){ r->making.looked.ran_ns, r->making.idle_ns };
	if (code == -ETIMEDOUT) {
		code = late(&r->making);
		return code < 0 ? give_up(r, code) : 1;
	}
	r->making.asked = false;
	if (code == 0)
		code = reader_receive(r->helper.sock, &a, sizeof(a), &none);
	if (none >= 0)
		close(none);
	if (code == 0)
		return a.status < 0 ? a.status : take_table(r, &a, out);
	reader_dismiss(r);
	return -DCPI_EHELPER;
}
