/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads one member of a zip archive (PKWARE's APPNOTE.TXT, 6.3.10), as which the JDK's sources are
 * installed. The directory at its end is searched without being taken apart first: a report asks
 * for a hundred of its 15,000 members. Bytes are from outside; what does not fit is an error.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "zip.h"

enum {
	END = 22,	      /* bytes of the end record, which a comment may follow */
	COMMENT_MAX = 0xffff, /* bytes */
	ENTRY = 46,	      /* bytes of an entry of the directory, before its name */
	LOCAL = 30,	      /* bytes before a member's data, without its name */
	STORED = 0,
	DEFLATED = 8,
};
#define DIRECTORY_MAX (32u << 20)

static unsigned int get16(const uint8_t *p)
{
	return p[0] | (unsigned int)p[1] << 8;
}

static uint32_t get32(const uint8_t *p)
{
	return get16(p) | (uint32_t)get16(p + 2) << 16;
}

static bool is_mark(const uint8_t *p, const char *letters)
{
	return p[0] == 'P' && p[1] == 'K' && p[2] == letters[0] && p[3] == letters[1];
}

/* Exactly so many bytes from @off on. */
static int read_at(int fd, uint64_t off, size_t len, struct base_buf *out)
{
	void *space;
	size_t done = 0;
	int r;

	base_buf_clear(out);
	r = base_buf_extend(out, len, &space);
	while (r >= 0 && done < len) {
		ssize_t n = pread(fd, (char *)space + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -DCPI_EFORMAT;
		done += (size_t)n;
	}
	return r;
}

/* ---- the directory --------------------------------------------------------------------------- */

static int read_directory(int fd, uint64_t size, struct base_buf *out)
{
	size_t tail = size < END + COMMENT_MAX ? (size_t)size : END + COMMENT_MAX, at;
	int r = size < END ? -DCPI_EFORMAT : read_at(fd, size - tail, tail, out);
	uint64_t off, len;

	if (r < 0)
		return r;
	/* The comment is the rest of the file, so that a mark in it is no end record. */
	for (at = tail - END;
	     !is_mark(out->data + at, "\5\6") || get16(out->data + at + 20) != tail - END - at;
	     at--)
		if (!at)
			return -DCPI_EFORMAT;
	len = get32(out->data + at + 12);
	off = get32(out->data + at + 16);
	if (len > DIRECTORY_MAX || off + len > size - tail + at)
		return -DCPI_EFORMAT;
	return read_at(fd, off, (size_t)len, out);
}

struct entry {
	unsigned int method;
	uint32_t crc, packed, len, off;
};

/* Is it that name, or that in one folder, as the JDK has a folder for each module? */
static bool is_named(const char *entry, size_t len, const char *name, size_t name_len)
{
	const char *folder = len > name_len ? memchr(entry, '/', len) : NULL;

	if (folder && (size_t)(folder + 1 - entry) == len - name_len)
		entry = folder + 1;
	else if (len != name_len)
		return false;
	return memcmp(entry, name, name_len) == 0;
}

static int find(const struct base_buf *directory, const char *name, struct entry *out)
{
	size_t name_len = strlen(name);

	for (size_t at = 0, len; at < directory->len; at += len) {
		const uint8_t *p = directory->data + at;
		size_t left = directory->len - at;

		if (left < ENTRY || !is_mark(p, "\1\2"))
			return -DCPI_EFORMAT;
		len = ENTRY + (size_t)get16(p + 28) + get16(p + 30) + get16(p + 32);
		if (len > left)
			return -DCPI_EFORMAT;
		if (!is_named((const char *)p + ENTRY, get16(p + 28), name, name_len))
			continue;
		*out = (struct entry){ get16(p + 10), get32(p + 16), get32(p + 20), get32(p + 24),
				       get32(p + 42) };
		return 0;
	}
	return -ENOENT;
}

/* ---- the member ------------------------------------------------------------------------------ */

static int unpack(const struct base_buf *packed, size_t len, struct base_buf *out)
{
	z_stream z = { .next_in = packed->data, .avail_in = (uInt)packed->len };
	void *space;
	int r = base_buf_extend(out, len, &space);

	if (r < 0)
		return r;
	if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
		return -ENOMEM;
	z.next_out = space;
	z.avail_out = (uInt)len;
	r = inflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out == len ? 0 : -DCPI_EFORMAT;
	inflateEnd(&z);
	return r;
}

static int read_member(int fd, const struct entry *e, struct base_buf *out)
{
	struct base_buf packed = { 0 };
	int r = read_at(fd, e->off, LOCAL, &packed);

	if (r >= 0 && !is_mark(packed.data, "\3\4"))
		r = -DCPI_EFORMAT;
	if (r >= 0)
		r = read_at(fd,
			    (uint64_t)e->off + LOCAL + get16(packed.data + 26) +
				    get16(packed.data + 28),
			    e->packed, &packed);
	base_buf_clear(out);
	if (r >= 0 && e->method == DEFLATED)
		r = unpack(&packed, e->len, out);
	else if (r >= 0)
		r = e->method == STORED && e->packed == e->len
			    ? base_buf_append(out, packed.data, packed.len)
			    : -DCPI_EFORMAT;
	base_buf_release(&packed);
	if (r >= 0 && crc32(0, out->data, (uInt)out->len) != e->crc)
		r = -DCPI_ECHECKSUM;
	return r;
}

int zip_read(int fd, uint64_t size, const char *name, size_t max, struct base_buf *out,
	     uint64_t *where)
{
	struct base_buf directory = { 0 };
	struct entry e = { 0 };
	int r = read_directory(fd, size, &directory);

	if (r >= 0)
		r = find(&directory, name, &e);
	base_buf_release(&directory);
	if (r >= 0 && (e.len > max || e.packed > max))
		r = -DCPI_ELIMIT;
	if (r >= 0)
		r = read_member(fd, &e, out);
	*where = e.off;
	return r;
}
