/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of a perf.data file or pipe, cut into records, and unpacked where they are packed. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <zstd.h>

#include "perfdata_internal.h"

enum { HEADER_LEN = sizeof(struct perf_event_header) };

/* ---- reading --------------------------------------------------------------------------------- */

int perfdata_fail(const struct perfdata_stream *s, struct base_err *err, int code, const char *fmt,
		  ...)
{
	char why[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	return base_fail(err, code, "cannot replay '%s': offset %" PRIu64 ": %s", s->name, s->at,
			 why);
}

static int fail_cut(const struct perfdata_stream *s, struct base_err *err)
{
	int code = errno == ECANCELED ? -ECANCELED : -EIO;

	return ferror(s->in)
		       ? perfdata_fail(s, err, code, "%s", base_strerror(code))
		       : perfdata_fail(s, err, -DCPI_ETRUNCATED, "the file ends in the midst");
}

/* Bytes that could be read. */
static size_t read_some(struct perfdata_stream *s, void *to, size_t len)
{
	size_t n = fread(to, 1, len, s->in);

	s->pos += n;
	return n;
}

int perfdata_read(struct perfdata_stream *s, void *to, size_t len, struct base_err *err)
{
	return read_some(s, to, len) == len ? 0 : fail_cut(s, err);
}

static int skip_bytes(struct perfdata_stream *s, uint64_t len, struct base_err *err)
{
	uint8_t waste[4096];
	int r = 0;

	if (len > s->end - s->pos)
		return perfdata_fail(s, err, -DCPI_EFORMAT,
				     "%" PRIu64 " bytes that follow it do not fit", len);
	/* A pipe cannot seek, and in a file none may lie beyond its end unnoticed. */
	for (; r >= 0 && len; len -= len < sizeof(waste) ? len : sizeof(waste))
		r = perfdata_read(s, waste, len < sizeof(waste) ? (size_t)len : sizeof(waste), err);
	return r;
}

static int check_size(const struct perfdata_stream *s, const struct perf_event_header *h,
		      struct base_err *err)
{
	if (h->size < HEADER_LEN)
		return perfdata_fail(s, err, -DCPI_EFORMAT, "a record of %u bytes", h->size);
	return 0;
}

/* A record as it stands in the file. */
static int read_plain(struct perfdata_stream *s, struct perf_event_header *h, struct base_err *err)
{
	size_t n;
	int r;

	s->at = s->pos;
	if (s->pos >= s->end)
		return 0;
	n = read_some(s, s->plain, HEADER_LEN);
	if (!n && s->end == UINT64_MAX && !ferror(s->in))
		return 0;
	if (n < HEADER_LEN)
		return fail_cut(s, err);
	memcpy(h, s->plain, HEADER_LEN);
	r = check_size(s, h, err);
	if (r >= 0 && h->size > s->end - s->at)
		r = perfdata_fail(s, err, -DCPI_EFORMAT, "a record of %u bytes does not fit",
				  h->size);
	if (r >= 0)
		r = perfdata_read(s, s->plain + HEADER_LEN, h->size - HEADER_LEN, err);
	return r < 0 ? r : 1;
}

/* ---- packed records -------------------------------------------------------------------------- */

static int unpack_begin(struct perfdata_stream *s, const struct perf_event_header *h,
			struct base_err *err)
{
	struct perf_bytes b = { s->plain + HEADER_LEN, h->size - HEADER_LEN };
	uint64_t len;

	if (h->type == PERFDATA_COMPRESSED2) {
		if (!perf_take(&b, &len, sizeof(len)) || len > b.len)
			return perfdata_fail(s, err, -DCPI_EFORMAT, "packed bytes do not fit");
		b.len = (size_t)len;
	}
	if (!s->unpack)
		s->unpack = ZSTD_createDStream();
	if (!s->unpack)
		return perfdata_fail(s, err, -ENOMEM, "%s", base_strerror(-ENOMEM));
	s->packed = b;
	s->unpacking = true;
	s->unpacked_len = 0;
	return 0;
}

/* Fill the part up to @want bytes: 1; 0: the pack holds no more. */
static int unpack_to(struct perfdata_stream *s, size_t want, struct base_err *err)
{
	ZSTD_outBuffer out = { s->part, want, s->part_len };
	ZSTD_inBuffer in = { s->packed.at, s->packed.len, 0 };
	size_t r = 0, before;

	do {
		if (out.pos == want)
			break;
		before = in.pos + out.pos;
		r = ZSTD_decompressStream(s->unpack, &out, &in);
		if (ZSTD_isError(r))
			return perfdata_fail(s, err, -DCPI_EFORMAT, "cannot be unpacked: %s",
					     ZSTD_getErrorName(r));
	} while (in.pos + out.pos != before);
	perf_skip(&s->packed, in.pos);
	s->unpacked_len += out.pos - s->part_len;
	s->part_len = out.pos;
	if (s->unpacked_len > PERFDATA_UNPACKED_MAX)
		return perfdata_fail(s, err, -DCPI_ELIMIT, "unpacks to more than %llu MiB",
				     PERFDATA_UNPACKED_MAX >> 20);
	return s->part_len == want;
}

/* The next record of the pack: 1; 0: it holds no more whole ones. */
static int unpack_next(struct perfdata_stream *s, size_t *len, struct base_err *err)
{
	struct perf_event_header h;
	int r = 1;

	if (s->part_used)
		s->part_len = 0;
	s->part_used = false;
	if (s->part_len < HEADER_LEN)
		r = unpack_to(s, HEADER_LEN, err);
	if (r <= 0)
		return r;
	memcpy(&h, s->part, HEADER_LEN);
	r = check_size(s, &h, err);
	if (r >= 0 && (h.type == PERFDATA_COMPRESSED || h.type == PERFDATA_COMPRESSED2 ||
		       h.type == PERFDATA_TRACING_DATA || h.type == PERFDATA_AUXTRACE))
		r = perfdata_fail(s, err, -DCPI_EFORMAT, "a record of kind %u within packed ones",
				  h.type);
	if (r >= 0)
		r = unpack_to(s, h.size, err);
	s->part_used = r > 0;
	*len = h.size;
	return r;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Bytes behind @rec that are not of its size. */
static int skip_trail(struct perfdata_stream *s, const struct perf_event_header *h,
		      struct base_err *err)
{
	struct perf_bytes b = { s->plain + HEADER_LEN, h->size - HEADER_LEN };
	uint64_t len = 0;
	bool good = true;

	if (h->type == PERFDATA_TRACING_DATA) {
		good = perf_take(&b, &len, 4);
		len = base_align_up(len, 8);
	} else if (h->type == PERFDATA_AUXTRACE) {
		good = perf_take(&b, &len, 8);
	}
	if (!good)
		return perfdata_fail(s, err, -DCPI_EFORMAT, "a record too short for its kind");
	if (good && h->type == PERFDATA_AUXTRACE && len <= s->end - s->pos) {
		s->trail = len;
		return 0;
	}
	return skip_bytes(s, len, err);
}

ssize_t perfdata_trail(struct perfdata_stream *s, void *to, size_t len, struct base_err *err)
{
	int r;

	len = len < s->trail ? len : (size_t)s->trail;
	r = perfdata_read(s, to, len, err);
	s->trail -= r < 0 ? 0 : len;
	return r < 0 ? r : (ssize_t)len;
}

static int skip_unread(struct perfdata_stream *s, struct base_err *err)
{
	uint64_t len = s->trail;

	s->trail = 0;
	return skip_bytes(s, len, err);
}

int perfdata_next(struct perfdata_stream *s, const uint8_t **rec, size_t *len, struct base_err *err)
{
	struct perf_event_header h;
	int r = skip_unread(s, err);

	if (r < 0)
		return r;
	for (;;) {
		if (s->unpacking) {
			r = unpack_next(s, len, err);
			*rec = s->part;
			s->unpacking = r > 0;
			if (r)
				break;
		}
		r = read_plain(s, &h, err);
		if (r > 0 && (h.type == PERFDATA_COMPRESSED || h.type == PERFDATA_COMPRESSED2)) {
			r = unpack_begin(s, &h, err);
			if (r < 0)
				return r;
			continue;
		}
		if (r > 0) {
			int skipped = skip_trail(s, &h, err);

			r = skipped < 0 ? skipped : r;
		}
		*rec = s->plain;
		*len = h.size;
		break;
	}
	if (!r && s->part_len && !s->part_used)
		return perfdata_fail(s, err, -DCPI_ETRUNCATED, "packed records end in the midst");
	return r;
}

void perfdata_stream_close(struct perfdata_stream *s)
{
	if (s->in)
		fclose(s->in);
	ZSTD_freeDStream(s->unpack);
}
