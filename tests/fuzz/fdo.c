/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces of any image: the first byte says how many edges there are, of eight bytes each (start,
 * from, to, counts), the rest is an image. Whatever they are, counts agree and text is written.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fdo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { EDGE_LEN = 8 };

static void require(bool ok)
{
	if (!ok)
		abort();
}

/* The highest numbers are the marks of a profile. */
static uint64_t offset_of(const uint8_t *data)
{
	uint16_t off;

	memcpy(&off, data, sizeof(off));
	return off >= UINT16_MAX - 1 ? UINT64_MAX - (UINT16_MAX - off) : off;
}

static struct profdb_profile *read_edges(const uint8_t *data, size_t nr)
{
	static const struct base_id id = { .len = 1 };
	struct profdb_profile *p = profdb_profile_new(PROFDB_FILE, &id, "/x");

	for (size_t i = 0; p && i < nr; i++, data += EDGE_LEN) {
		struct profdb_edge e = { offset_of(data),
					 offset_of(data + 2),
					 offset_of(data + 4),
					 { data[6], data[7] } };

		profdb_profile_edge_add(p, &e);
	}
	return p;
}

static struct image *read_image(const uint8_t *data, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct image *img = NULL;
	struct base_err err = { 0 };
	char path[64];

	if (fd >= 0 && write(fd, data, len) == (ssize_t)len) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		if (image_open_path(path, IMAGE_FILE, &img, &err) < 0)
			img = NULL;
	}
	if (fd >= 0)
		close(fd);
	return img;
}

static void check(const struct fdo *f)
{
	uint64_t came = 0, begun = 0, ran = 0;

	for (size_t i = 0; i < f->nr_edges; i++) {
		uint64_t count = f->edges[i].count[0] + f->edges[i].count[1];

		if (f->edges[i].kind <= FDO_ENTERED)
			came += count;
		if (f->edges[i].kind == FDO_BEGUN)
			begun += count;
	}
	for (size_t i = 0; i < f->nr_ranges; i++) {
		require(f->ranges[i].from <= f->ranges[i].to && f->ranges[i].count);
		ran += f->ranges[i].count;
	}
	require(ran <= came && ran >= came - begun);
}

/* As if it were another build: all code is found in itself, where it can be told apart. */
static void carry(struct image *img, const struct profdb_profile *p)
{
	const struct fdo_traces t = { .profile = p, .weight = 0.5 };
	struct fdo_carried sum = { 0 };
	struct fdo_version *v = NULL;
	struct fdo_making *m;
	struct base_err err = { 0 };
	struct fdo *f = NULL;

	if (fdo_begin(img, &m, &err) < 0)
		return;
	if (fdo_version_open(img, img, &v, &err) >= 0)
		fdo_add_version(m, &t, v, &sum, &err);
	if (fdo_end(m, &f, &err) >= 0)
		check(f);
	require(sum.placed <= sum.edges);
	fdo_free(f);
	fdo_version_close(v);
}

static void use(const struct fdo *f, struct image *img, const struct profdb_profile *p)
{
	struct base_buf out = { 0 };
	struct fdo_quality q;

	check(f);
	carry(img, p);
	fdo_quality(f, img, p, -1, &q);
	fdo_write_bolt(f, &out);
	fdo_write_unsymbolized(f, &out);
	base_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	size_t nr = len ? data[0] : 0;
	struct profdb_profile *p;
	struct image_relink relink;
	struct base_err err = { 0 };
	struct fdo *f = NULL;
	struct image *img;

	if (len < 1 + nr * EDGE_LEN)
		return 0;
	p = read_edges(data + 1, nr);
	img = p ? read_image(data + 1 + nr * EDGE_LEN, len - 1 - nr * EDGE_LEN) : NULL;
	if (img)
		image_relink(img, &relink);
	if (img && fdo_make(p, img, &f, &err) >= 0)
		use(f, img, p);
	fdo_free(f);
	image_close(img);
	profdb_profile_free(p);
	return 0;
}
