/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sections as SHF_COMPRESSED ones, by zlib, which every reader of ELF knows. The bytes are in the
 * file already, as they were made: what they become is written behind them, and moved.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "pseudoimg_internal.h"

enum { CHUNK = 64 << 10, LEVEL = 1 };
/* Less saves no block of a disk. */
enum { LEAST = 4096 };

static int get_at(int fd, void *out, size_t len, uint64_t off)
{
	struct pseudoimg_job j;

	pseudoimg_job_of_part(&j, fd, off, len);
	return pseudoimg_job_read(&j, 0, out, len);
}

/* ---- writing --------------------------------------------------------------------------------- */

struct press {
	int fd;
	uint64_t from, end; /* range of the source that is not read yet */
	uint64_t to, most;  /* where the next bytes go; they must not reach it */
	z_stream z;
	uint8_t in[CHUNK], out[CHUNK];
};

/* 1: there was no more; 0. */
static int feed(struct press *p)
{
	size_t n = p->end - p->from < CHUNK ? (size_t)(p->end - p->from) : CHUNK;
	int r = get_at(p->fd, p->in, n, p->from);

	p->z.next_in = p->in;
	p->z.avail_in = (uInt)n;
	p->from += n;
	return r < 0 ? r : p->from == p->end;
}

/* 1: all of it is written; 0: it does not get shorter. */
static int squeeze(struct press *p)
{
	int r, last, z = Z_OK;

	do {
		last = feed(p);
		if (last < 0)
			return last;
		do {
			p->z.next_out = p->out;
			p->z.avail_out = CHUNK;
			z = deflate(&p->z, last ? Z_FINISH : Z_NO_FLUSH);
			if (p->most - p->to <= CHUNK - p->z.avail_out)
				return 0;
			r = pseudoimg_put_at(p->fd, p->out, CHUNK - p->z.avail_out, p->to);
			if (r < 0)
				return r;
			p->to += CHUNK - p->z.avail_out;
		} while (!p->z.avail_out);
	} while (!last);
	return z == Z_STREAM_END ? 1 : -EIO;
}

static int move_back(struct press *p, uint64_t from, uint64_t to)
{
	int r = 0;

	while (r >= 0 && from < p->to) {
		size_t n = p->to - from < CHUNK ? (size_t)(p->to - from) : CHUNK;

		r = get_at(p->fd, p->in, n, from);
		if (r >= 0)
			r = pseudoimg_put_at(p->fd, p->in, n, to);
		from += n;
		to += n;
	}
	return r;
}

int pseudoimg_compress(int fd, struct pseudoimg_section *s)
{
	const Elf64_Chdr head = { .ch_type = ELFCOMPRESS_ZLIB,
				  .ch_size = s->len,
				  .ch_addralign = s->align };
	uint64_t off = base_align_up(s->file_off, _Alignof(Elf64_Chdr)),
		 behind = s->file_off + s->len;
	struct press *p;
	int r;

	if (s->len < LEAST)
		return 0;
	p = calloc(1, sizeof(*p));
	if (!p || deflateInit(&p->z, LEVEL) != Z_OK) {
		free(p);
		return -ENOMEM;
	}
	p->fd = fd;
	p->from = s->file_off;
	p->end = p->to = behind;
	p->most = behind + (behind - off) - sizeof(head);
	r = squeeze(p);
	/* The descriptor is for writing alone. */
	if (r == -EBADF)
		r = 0;
	if (r > 0) {
		s->file_off = off;
		s->len = sizeof(head) + (p->to - behind);
		s->flags |= SHF_COMPRESSED;
		s->align = _Alignof(Elf64_Chdr);
		r = pseudoimg_put_at(fd, &head, sizeof(head), off);
		if (r >= 0)
			r = move_back(p, behind, off + sizeof(head));
	}
	deflateEnd(&p->z);
	free(p);
	/* Bytes written behind the end would show in gaps between sections. */
	if (r >= 0 && ftruncate(fd, (off_t)(s->file_off + s->len)) < 0)
		r = -errno;
	return r;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct pseudoimg_inflater {
	uint64_t at, end; /* in the file: what is not read yet */
	z_stream z;
	uint8_t in[CHUNK];
};

int pseudoimg_part_open(struct pseudoimg_part *part, int fd)
{
	Elf64_Chdr head;
	int r;

	if (part->len < sizeof(head))
		return -DCPI_EFORMAT;
	r = get_at(fd, &head, sizeof(head), part->off);
	if (r < 0)
		return r;
	part->packed = part->len - sizeof(head);
	part->off += sizeof(head);
	part->len = head.ch_size;
	/* No byte of deflate's becomes more than 1,032. */
	if (head.ch_type != ELFCOMPRESS_ZLIB || !part->packed || part->len / 1032 > part->packed)
		return -DCPI_EFORMAT;
	return 0;
}

struct pseudoimg_inflater *pseudoimg_inflater_new(const struct pseudoimg_part *part)
{
	struct pseudoimg_inflater *i = calloc(1, sizeof(*i));

	if (!i || inflateInit(&i->z) != Z_OK) {
		free(i);
		return NULL;
	}
	i->at = part->off;
	i->end = part->off + part->packed;
	return i;
}

void pseudoimg_inflater_free(struct pseudoimg_inflater *i)
{
	if (i)
		inflateEnd(&i->z);
	free(i);
}

int pseudoimg_inflate(struct pseudoimg_inflater *i, int fd, void *out, size_t len)
{
	int r, z;

	i->z.next_out = out;
	i->z.avail_out = (uInt)len;
	while (i->z.avail_out) {
		if (!i->z.avail_in && i->at < i->end) {
			size_t n = i->end - i->at < CHUNK ? (size_t)(i->end - i->at) : CHUNK;

			r = get_at(fd, i->in, n, i->at);
			if (r < 0)
				return r;
			i->at += n;
			i->z.next_in = i->in;
			i->z.avail_in = (uInt)n;
		}
		z = inflate(&i->z, Z_NO_FLUSH);
		if (z != Z_OK && (z != Z_STREAM_END || i->z.avail_out))
			return -DCPI_EFORMAT;
	}
	return 0;
}
