/* SPDX-License-Identifier: BSD-2-Clause */
/* A jitdump file is read here, record by record, as far as it has been written. */
#include <elf.h>
#include <errno.h>
#include <unistd.h>

#include "jitdump_internal.h"

/* A header that says it is longer is a lie. */
enum { HEADER_MAX = 64 << 10 };

int foreign_jitdump_is(int fd)
{
	uint32_t magic = 0;
	ssize_t n;

	do
		n = pread(fd, &magic, sizeof(magic), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return n == sizeof(magic) && (magic == JITDUMP_MAGIC || magic == JITDUMP_MAGIC_SWAPPED);
}

/* ---- header ---------------------------------------------------------------------------------- */

static int header_check(const struct jitdump_header *h, uint32_t machine)
{
	if (h->magic != JITDUMP_MAGIC || h->total_size < sizeof(*h) || h->total_size > HEADER_MAX)
		return -DCPI_EFORMAT;
	if (h->version != JITDUMP_VERSION || (h->flags & ~JITDUMP_ARCH_TIME))
		return -DCPI_EVERSION;
	/* CPython 3.13 does not say which machine it is. */
	return h->elf_mach == machine || h->elf_mach == EM_NONE ? 0 : -DCPI_EFORMAT;
}

/* JITDUMP_WAIT, JITDUMP_FULL: it is not there yet. */
static int header_read(struct jitdump *d)
{
	const uint8_t *at;
	int r;

	if (d->f.size < sizeof(d->header))
		return JITDUMP_WAIT;
	r = runtime_file_peek(&d->f, 0, sizeof(d->header), &at);
	if (r < 0)
		return r;
	memcpy(&d->header, at, sizeof(d->header));
	if (!d->place.off && !d->header.magic && runtime_file_is_blank(&d->f, 0))
		return JITDUMP_FULL;
	r = header_check(&d->header, d->f.from->machine);
	if (r < 0)
		return r;
	if (d->f.size < d->header.total_size)
		return JITDUMP_WAIT;
	if (d->place.off < d->header.total_size)
		d->place.off = d->header.total_size;
	return JITDUMP_TAKEN;
}

/* ---- one after the other --------------------------------------------------------------------- */

/* Its head, where all of it is there. JITDUMP_WAIT, JITDUMP_FULL: it is not. */
static int record_read(struct jitdump *d, uint64_t off, struct jitdump_record *rec)
{
	uint64_t left = d->f.size - off;
	int r;

	rec->off = off;
	if (left < sizeof(rec->head))
		return JITDUMP_WAIT;
	r = jitdump_copy(d, off, &rec->head, sizeof(rec->head));
	if (r < 0)
		return r;
	if (!rec->head.total_size && runtime_file_is_blank(&d->f, off + sizeof(rec->head.id)))
		return JITDUMP_FULL;
	if (!rec->head.total_size) {
		/* It may have been written since. */
		runtime_file_forget(&d->f);
		r = jitdump_copy(d, off, &rec->head, sizeof(rec->head));
	}
	if (r == 0 && rec->head.total_size < sizeof(rec->head))
		r = -DCPI_EFORMAT;
	if (r < 0)
		return r;
	return rec->head.total_size <= left ? JITDUMP_TAKEN : JITDUMP_WAIT;
}

/* Records before a bad one count: the next read begins with the bad one, and fails. */
static int take_all(struct jitdump *d)
{
	uint64_t first = d->place.off;
	struct jitdump_record rec;
	int r;

	do {
		struct foreign_place before = d->place;
		size_t mark = d->out->len;

		r = record_read(d, d->place.off, &rec);
		if (r == JITDUMP_TAKEN)
			r = jitdump_record_take(d, &rec);
		if (r == JITDUMP_TAKEN) {
			d->place.off += rec.head.total_size;
		} else {
			d->place = before;
			d->out->len = mark;
		}
	} while (r == JITDUMP_TAKEN && !runtime_file_is_enough(&d->f, d->out));
	return r < 0 && d->place.off != first ? JITDUMP_TAKEN : r;
}

/*
 * Lines that were pending at the end of the last reading. A file that is another one since is no
 * failure here: what comes of it will be seen.
 */
static int find_pending(struct jitdump *d)
{
	uint64_t off = d->place.debug_off, end = d->place.off;
	struct jitdump_record rec;
	int r = JITDUMP_TAKEN;

	while (off && off < end && r == JITDUMP_TAKEN) {
		r = record_read(d, off, &rec);
		if (r != JITDUMP_TAKEN || rec.head.total_size > end - off)
			break;
		r = jitdump_record_again(d, &rec);
		off += rec.head.total_size;
	}
	return r == -DCPI_EFORMAT || r >= 0 ? JITDUMP_TAKEN : r;
}

int foreign_jitdump_read(const struct foreign_file *file, struct foreign_place *place,
			 struct base_buf *out)
{
	struct jitdump d = { .place = *place, .out = out };
	size_t mark = out->len;
	int r = runtime_file_open(&d.f, file, place);

	if (r == 0)
		r = header_read(&d);
	if (r == JITDUMP_TAKEN)
		r = find_pending(&d);
	if (r == JITDUMP_TAKEN)
		r = take_all(&d);
	if (r >= 0) {
		d.place.at_end = r != JITDUMP_TAKEN;
		d.place.ahead = r == JITDUMP_FULL;
		d.place.debug_off = jitdump_pending_first(&d.pending, d.place.off);
		r = runtime_file_end(&d.f, &d.place);
	}
	if (r == 0) {
		*place = d.place;
	} else {
		out->len = mark;
	}
	jitdump_lines_release(&d.lines);
	base_buf_release(&d.frames);
	runtime_file_release(&d.f);
	return r < 0 ? r : d.nr_bad;
}
