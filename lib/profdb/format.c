/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile file is read in whatever version it has, and written in the version that is asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "profdb_internal.h"

int profdb_profile_parse(const void *data, size_t len, struct profdb_profile **out,
			 struct base_err *err)
{
	struct profdb_profile *p = NULL;
	enum profdb_format format;
	size_t binary;
	int r = profdb_header_parse(data, len, &p, &binary, &format, err);

	*out = NULL;
	if (r < 0)
		return r;
	if (format == PROFDB_FORMAT_1)
		r = profdb_format1_parse(data, len, binary, p, err);
	else
		r = profdb_format0_parse((const uint8_t *)data + binary, len - binary, p, err);
	if (r < 0) {
		profdb_profile_free(p);
		return r;
	}
	*out = p;
	return 0;
}

int profdb_format_find(const char *name, enum profdb_format *out, struct base_err *err)
{
	static const char *const names[] = { [PROFDB_FORMAT_1] = "1",
					     [PROFDB_FORMAT_0_07] = "0.07",
					     [PROFDB_FORMAT_0_06] = "0.06" };

	*out = PROFDB_FORMAT_1;
	for (int i = 0; name && i < 3; i++) {
		if (!strcmp(names[i], name)) {
			*out = (enum profdb_format)i;
			return 0;
		}
	}
	if (!name)
		return 0;
	base_fail(err, -DCPI_EUSAGE, "unknown format version '%s'", name);
	base_hint(err, "1, 0.07 and 0.06 can be written");
	return -DCPI_EUSAGE;
}

bool profdb_error_is_content(int r)
{
	return r == -DCPI_EFORMAT || r == -DCPI_EVERSION || r == -DCPI_ECHECKSUM ||
	       r == -DCPI_ETRUNCATED || r == -DCPI_ELIMIT;
}

int profdb_profile_read_at(int dir_fd, const char *name, const char *shown,
			   struct profdb_profile **out, struct base_err *err)
{
	struct base_err why = { 0 };
	struct base_buf buf = { 0 };
	int r = base_file_read(dir_fd, name, PROFDB_FILE_MAX, &buf, err);

	*out = NULL;
	if (r >= 0) {
		r = profdb_profile_parse(buf.data, buf.len, out, &why);
		if (r < 0) {
			base_fail(err, r, "cannot read profile '%s': %s", shown, why.text);
			if (why.hint[0])
				base_hint(err, "%s", why.hint);
		}
	}
	base_buf_release(&buf);
	return r;
}

int profdb_profile_read(const char *path, struct profdb_profile **out, struct base_err *err)
{
	return profdb_profile_read_at(AT_FDCWD, path, path, out, err);
}

int profdb_profile_format(const struct profdb_profile *p, enum profdb_format format, size_t event,
			  struct base_buf *out, struct base_err *err)
{
	int r;

	if (format == PROFDB_FORMAT_1)
		return profdb_format1_print(p, out, err);
	if (event >= p->nr_events)
		return base_fail(err, -EINVAL, "profile has no event number %zu", event);
	r = profdb_header_print(p, format, event, out, err);
	return r < 0 ? r : profdb_format0_print(p, event, out, err);
}
