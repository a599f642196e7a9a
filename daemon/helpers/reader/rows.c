/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables are asked for, and taken when the helpers have made them; dcpid goes on meanwhile. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reader.h"
#include "reader_internal.h"
#include "unwind.h"

/* A table that takes more work is given up, and one for which they wait so long for others (a file
 * system); nor is longer waited for one, however busy the machine is. */
#define WORK_MAX_NS 3000000000ull
#define IDLE_MAX_NS 1000000000ull
#define WAIT_MAX_NS 30000000000ull

/* ---- asking ---------------------------------------------------------------------------------- */

static int ask(struct reader *r, const struct reader_request *q, int fd)
{
	int code = r->making.asked ? -EBUSY : reader_ask(r, q, fd);

	if (code == -EBUSY)
		return code;
	if (code < 0) {
		reader_replace(r);
		return -DCPI_EHELPER;
	}
	r->making = (struct reader_making){ .asked = true,
					    .since_ns = base_now_ns(),
					    .before = reader_effort(r) };
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

/* A file in memory that holds @c's routines, or negative. */
static int routines_file(const struct reader_code *c)
{
	int fd = memfd_create("dcpid-routines", MFD_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = base_write_all(fd, c->routines, c->nr * sizeof(*c->routines));
	if (r >= 0)
		return fd;
	close(fd);
	return r;
}

int reader_code_rows_ask(struct reader *r, const struct reader_code *c)
{
	const struct reader_request q = {
		.op = READER_CODE_ROWS, .pid = c->pid, .addr = c->start, .end = c->end
	};
	int fd = routines_file(c), code;

	if (fd < 0)
		return fd;
	code = ask(r, &q, fd);
	close(fd);
	return code;
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* See how far they are: the work since they were asked. */
static uint64_t look(struct reader *r)
{
	struct reader_making *m = &r->making;
	struct helper_effort now = reader_effort(r), used = reader_effort_since(&m->before, &now);
	struct helper_effort step = reader_effort_since(&m->looked, &used);
	uint64_t now_ns = base_now_ns(), took_ns = now_ns - m->looked_ns;
	uint64_t busy_ns = step.ran_ns + step.ready_ns;

	if (busy_ns < took_ns && !helper_is_ready(&r->helper) && !helper_is_ready(&r->parser))
		m->idle_ns += took_ns - busy_ns;
	m->looked = used;
	m->looked_ns = now_ns;
	return used.ran_ns;
}

static bool is_late(const struct reader_making *m)
{
	return m->looked.ran_ns >= WORK_MAX_NS || m->idle_ns >= IDLE_MAX_NS ||
	       m->looked_ns - m->since_ns >= WAIT_MAX_NS;
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
		reader_replace(r);
		code = -DCPI_EHELPER;
	}
	reader_trim(r);
	return code < 0 ? code : 0;
}

int reader_rows_take(struct reader *r, unsigned int wait_ms, struct unwind_table **out,
		     uint64_t *ran_ns)
{
	struct reader_answer a;
	int code, none = -1;

	*out = NULL;
	*ran_ns = 0;
	if (!r->making.asked)
		return -EINVAL;
	code = base_wait_readable(r->helper.sock, &wait_ms);
	*ran_ns = look(r);
	if (code == -ETIMEDOUT && !is_late(&r->making))
		return 1;
	r->making.asked = false;
	if (code == 0)
		code = reader_receive(r->helper.sock, &a, sizeof(a), &none);
	if (none >= 0)
		close(none);
	if (code == 0)
		return a.status < 0 ? a.status : take_table(r, &a, out);
	reader_replace(r);
	return code == -ETIMEDOUT ? code : -DCPI_EHELPER;
}
