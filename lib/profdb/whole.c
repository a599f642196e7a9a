/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of files about all images: call paths, and workloads. */
#include <string.h>

#include "profdb_internal.h"

/* ---- call paths ------------------------------------------------------------------------------ */

static void *callpaths_make(void)
{
	return profdb_callpaths_new();
}

static void callpaths_release(void *of)
{
	profdb_callpaths_free(of);
}

static int callpaths_parse(const struct base_buf *data, const char *shown, void **out,
			   struct base_err *err)
{
	struct profdb_callpaths *c;
	int r = profdb_callpaths_parse_shown(data, shown, &c, err);

	*out = c;
	return r;
}

static int callpaths_merge(void *to, const void *from)
{
	return profdb_callpaths_merge(to, from);
}

static int callpaths_format(const void *of, struct base_buf *out, struct base_err *err)
{
	return profdb_callpaths_format(of, out, err);
}

static struct profdb_profile *callpaths_header(const void *of)
{
	return ((const struct profdb_callpaths *)of)->header;
}

const struct profdb_whole profdb_whole_callpaths = {
	.name = PROFDB_CALLPATHS,
	.what = "call paths",
	.make = callpaths_make,
	.release = callpaths_release,
	.parse = callpaths_parse,
	.parse_stored = callpaths_parse,
	.merge = callpaths_merge,
	.format = callpaths_format,
	.header = callpaths_header,
};

/* ---- workloads ------------------------------------------------------------------------------- */

static void *workloads_make(void)
{
	return profdb_workloads_new();
}

static void workloads_release(void *of)
{
	profdb_workloads_free(of);
}

static int workloads_parse_how(const struct base_buf *data, const char *shown,
			       enum profdb_workload_read how, void **out, struct base_err *err)
{
	struct profdb_workloads *w;
	int r = profdb_workloads_parse_shown(data, shown, how, &w, err);

	*out = w;
	return r;
}

static int workloads_parse(const struct base_buf *data, const char *shown, void **out,
			   struct base_err *err)
{
	return workloads_parse_how(data, shown, PROFDB_WORKLOADS_ALL, out, err);
}

static int workloads_parse_stored(const struct base_buf *data, const char *shown, void **out,
				  struct base_err *err)
{
	return workloads_parse_how(data, shown, PROFDB_WORKLOADS_STORED, out, err);
}

/* Read alone: nothing of them is written. */
static int workload_counts_parse(const struct base_buf *data, const char *shown, void **out,
				 struct base_err *err)
{
	return workloads_parse_how(data, shown, PROFDB_WORKLOADS_COUNTS, out, err);
}

static int workload_images_parse(const struct base_buf *data, const char *shown, void **out,
				 struct base_err *err)
{
	return workloads_parse_how(data, shown, PROFDB_WORKLOADS_IMAGES, out, err);
}

static int workloads_merge(void *to, const void *from)
{
	return profdb_workloads_merge(to, from);
}

static int workloads_format(const void *of, struct base_buf *out, struct base_err *err)
{
	return profdb_workloads_format(of, out, err);
}

static struct profdb_profile *workloads_header(const void *of)
{
	return ((const struct profdb_workloads *)of)->header;
}

const struct profdb_whole profdb_whole_workloads = {
	.name = PROFDB_WORKLOADS,
	.what = "workloads",
	.make = workloads_make,
	.release = workloads_release,
	.parse = workloads_parse,
	.parse_stored = workloads_parse_stored,
	.merge = workloads_merge,
	.format = workloads_format,
	.header = workloads_header,
};

/* Never written. */
const struct profdb_whole profdb_whole_counts = { .name = PROFDB_WORKLOADS,
						  .parse = workload_counts_parse };
const struct profdb_whole profdb_whole_workload_images = { .name = PROFDB_WORKLOADS,
							   .parse = workload_images_parse };

/* ---- all of them ----------------------------------------------------------------------------- */

const struct profdb_whole *const profdb_wholes[PROFDB_NR_WHOLES] = { &profdb_whole_callpaths,
								     &profdb_whole_workloads };

int profdb_whole_header(const struct profdb_whole *kind, const void *data, size_t len,
			struct profdb_profile **header, size_t *binary, struct base_err *err)
{
	const struct profdb_profile *h;
	enum profdb_format format;
	int r;

	profdb_profile_free(*header);
	*header = NULL;
	r = profdb_header_parse(data, len, header, binary, &format, err);
	if (r < 0)
		return r;
	h = *header;
	if (format != PROFDB_FORMAT_1 || h->kind != PROFDB_NAMED || h->nr_paths != 1 ||
	    strcmp(h->paths[0], kind->name) != 0)
		return base_fail(err, -DCPI_EFORMAT, "it holds no %s", kind->what);
	return 0;
}

bool profdb_whole_name(const char *name)
{
	for (size_t i = 0; i < PROFDB_NR_WHOLES; i++)
		if (!strcmp(name, profdb_wholes[i]->name))
			return true;
	return false;
}
