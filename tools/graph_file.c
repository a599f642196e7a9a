/* SPDX-License-Identifier: BSD-2-Clause */
/* A flow graph is read from its text, and printed as text. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "graph_file.h"

enum { GRAPH_MAX = 1 << 30, CHUNK = 1 << 16 };

static int read_stream(FILE *from, struct base_buf *out, struct base_err *err)
{
	char chunk[CHUNK];
	size_t n;
	int r = 0;

	while (r >= 0 && (n = fread(chunk, 1, sizeof(chunk), from)) > 0)
		r = out->len + n > GRAPH_MAX ? -DCPI_ELIMIT : base_buf_append(out, chunk, n);
	if (r >= 0 && ferror(from))
		r = -errno;
	return r < 0 ? base_fail_errno(err, r, "cannot read the graph from standard input") : 0;
}

int graph_file_read(const char *path, struct graph **out, struct base_err *err)
{
	bool standard = !path || strcmp(path, "-") == 0;
	struct base_err why = { 0 };
	struct base_buf text = { 0 };
	int r = standard ? read_stream(stdin, &text, err)
			 : base_file_read(AT_FDCWD, path, GRAPH_MAX, &text, err);

	if (r >= 0) {
		r = graph_read((const char *)text.data, text.len, out, &why);
		if (r < 0) {
			base_fail(err, r, "%s: %s", standard ? "standard input" : path, why.text);
			base_hint(err, "%s", why.hint);
		}
	}
	base_buf_release(&text);
	return r;
}

int graph_file_print(const struct graph *g, struct base_err *err)
{
	struct base_buf text = { 0 };
	int r = graph_write(g, &text);

	if (r >= 0 && fwrite(text.data, 1, text.len, stdout) != text.len)
		r = -EIO;
	base_buf_release(&text);
	return r < 0 ? base_fail_errno(err, r, "cannot write the graph") : 0;
}
