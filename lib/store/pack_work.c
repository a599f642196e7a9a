/* SPDX-License-Identifier: BSD-2-Clause */
/* The workloads of an epoch are added up by image; their file goes along, as that of call paths. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store_internal.h"

/* Workloads that differ in what the row has; pids and threads are left to the file. */
struct group {
	const struct profdb_workload *first;
};

struct work {
	struct store_pack *p;
	struct profdb_workloads *w;
	struct group *groups;
	size_t nr_groups, cap_groups;
	struct base_map by_name; /* index + 1 */
	uint32_t *group_of;	 /* indexed by workload */
	struct store_key *images;
};

/* ---- groups ---------------------------------------------------------------------------------- */

static int group(struct work *x, const struct profdb_workload *k, uint32_t *out)
{
	struct base_buf name = { 0 };
	size_t at = 0;
	int r = base_buf_printf(&name, "%s%c%s%c%s%c%s%c%u", k->comm, 0, k->exe, 0, k->cgroup, 0,
				k->label, 0, k->uid);

	if (r >= 0)
		at = (size_t)(uintptr_t)base_map_get(&x->by_name, name.data, name.len);
	if (r >= 0 && !at) {
		r = base_grow(&x->groups, &x->cap_groups, x->nr_groups + 1, sizeof(*x->groups));
		if (r >= 0) {
			x->groups[x->nr_groups++].first = k;
			at = x->nr_groups;
			r = base_map_set(&x->by_name, name.data, name.len, (void *)(uintptr_t)at);
		}
	}
	base_buf_release(&name);
	*out = (uint32_t)at - 1;
	return r;
}

static int make_groups(struct work *x)
{
	size_t nr = profdb_workloads_nr(x->w);
	int r = 0;

	x->group_of = calloc(nr + 1, sizeof(*x->group_of));
	if (!x->group_of)
		return -ENOMEM;
	for (size_t i = 0; i < nr && r >= 0; i++)
		r = group(x, profdb_workloads_workload(x->w, i), &x->group_of[i]);
	return r;
}

static int make_images(struct work *x)
{
	size_t nr = profdb_workloads_nr_images(x->w);

	x->images = calloc(nr + 1, sizeof(*x->images));
	if (!x->images)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		const struct profdb_image_ref *ref = profdb_workloads_image(x->w, i);
		struct profdb_profile *p =
			profdb_profile_new(ref->kind, &ref->id, ref->stem ? ref->stem : ref->path);

		if (!p)
			return -ENOMEM;
		store_image_key(p, x->p->platform, &x->images[i]);
		profdb_profile_free(p);
	}
	return 0;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int put_texts(struct work *x, struct base_buf *row, size_t field)
{
	int r = base_buf_append_leb128(row, x->nr_groups);

	for (size_t i = 0; i < x->nr_groups && r >= 0; i++)
		r = store_put_text(
			row, *(const char *const *)((const char *)x->groups[i].first + field));
	return r;
}

static int put_groups(struct work *x, struct base_buf *row)
{
	static const size_t fields[] = {
		offsetof(struct profdb_workload, comm),
		offsetof(struct profdb_workload, exe),
		offsetof(struct profdb_workload, cgroup),
		offsetof(struct profdb_workload, label),
	};
	int r = 0;

	for (size_t f = 0; f < sizeof(fields) / sizeof(*fields) && r >= 0; f++)
		r = put_texts(x, row, fields[f]);
	if (r >= 0)
		r = base_buf_append_leb128(row, x->nr_groups);
	for (size_t i = 0; i < x->nr_groups && r >= 0; i++)
		r = base_buf_append_le(row, x->groups[i].first->uid, 4);
	return r;
}

/* Three arrays of equal length. */
struct work_sums {
	struct base_buf groups, images, n;
	uint64_t nr;
};

static int put_image_sums(struct work *x, uint32_t image, uint64_t *sum, struct work_sums *out)
{
	int r = 0;

	for (size_t g = 0; g < x->nr_groups && r >= 0; g++) {
		if (!sum[g])
			continue;
		r = base_buf_append_le(&out->groups, g, 4);
		if (r >= 0)
			r = base_buf_append(&out->images, x->images[image].bytes, STORE_KEY);
		if (r >= 0)
			r = base_buf_append_le(&out->n, sum[g], 8);
		sum[g] = 0;
		out->nr++;
	}
	return r;
}

/* Samples of each group in each image; counts ascend by image. */
static int add_up(struct work *x, size_t event, struct work_sums *out)
{
	size_t nr = profdb_workloads_nr_counts(x->w);
	uint64_t *sum = calloc(x->nr_groups + 1, sizeof(*sum));
	int r = sum ? 0 : -ENOMEM;

	for (size_t i = 0; i < nr && r >= 0; i++) {
		struct profdb_workload_count c = profdb_workloads_count(x->w, i);

		sum[x->group_of[c.workload]] += c.count[event];
		if (i + 1 == nr || profdb_workloads_count(x->w, i + 1).image != c.image)
			r = put_image_sums(x, c.image, sum, out);
	}
	free(sum);
	return r;
}

static int put_sums(struct work *x, size_t event, struct base_buf *row)
{
	struct work_sums sums = { .nr = 0 };
	int r = add_up(x, event, &sums);

	if (r >= 0)
		r = store_put_array(row, sums.nr, &sums.groups);
	if (r >= 0)
		r = store_put_array(row, sums.nr, &sums.images);
	if (r >= 0)
		r = store_put_array(row, sums.nr, &sums.n);
	base_buf_release(&sums.groups);
	base_buf_release(&sums.images);
	base_buf_release(&sums.n);
	return r;
}

static int put_row(struct work *x, size_t event)
{
	const struct profdb_event *e = profdb_workloads_event(x->w, event);
	struct base_buf *row = &x->p->out->rows[STORE_WORK];
	int r = store_put_text(row, e->name);

	if (r >= 0)
		r = base_buf_append_le(row, x->p->begin, 4);
	if (r >= 0)
		r = store_put_text(row, x->p->name);
	if (r >= 0)
		r = base_buf_append_le(row, x->p->ver, 8);
	if (r >= 0)
		r = base_buf_append_le(row, e->period, 8);
	if (r >= 0)
		r = put_groups(x, row);
	return r < 0 ? r : put_sums(x, event, row);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int put_part(struct store_pack *p, const char *kind,
		    int (*bytes)(struct profdb *db, const char *epoch, const char *platform,
				 struct base_buf *out, struct base_err *err))
{
	struct base_buf *row = &p->out->rows[STORE_PART], file = { 0 };
	int r = bytes(p->db, p->epoch, p->platform, &file, NULL);

	if (r < 0) {
		base_buf_release(&file);
		return r == -ENOMEM ? r : 0;
	}
	r = base_buf_append_le(row, p->begin, 4);
	if (r >= 0)
		r = store_put_text(row, p->name);
	if (r >= 0)
		r = store_put_text(row, kind);
	if (r >= 0)
		r = base_buf_append_le(row, p->ver, 8);
	if (r >= 0)
		r = store_put_string(row, file.data, file.len);
	base_buf_release(&file);
	return r;
}

static int put_workloads(struct store_pack *p)
{
	struct work x = { .p = p };
	int r = profdb_workloads_load_counts(p->db, p->epoch, p->platform, &x.w, NULL);

	if (r < 0)
		return r == -ENOMEM ? r : 0;
	r = make_groups(&x);
	if (r >= 0)
		r = make_images(&x);
	for (size_t i = 0; r >= 0 && i < profdb_workloads_nr_events(x.w); i++)
		r = put_row(&x, i);
	profdb_workloads_free(x.w);
	free(x.groups);
	free(x.group_of);
	free(x.images);
	base_map_release(&x.by_name);
	return r;
}

int store_pack_work(struct store_pack *p)
{
	int r = put_workloads(p);

	if (r >= 0)
		r = put_part(p, "workloads", profdb_workloads_bytes);
	if (r >= 0)
		r = put_part(p, "callpaths", profdb_callpaths_bytes);
	return r;
}
