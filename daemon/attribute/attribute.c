/* SPDX-License-Identifier: BSD-2-Clause */
/* The verdict on a sample: the process's mappings and registries, or the kernel's code, tell. */
#include "attribute.h"

/* A registry is polled four times in a second. */
#define WAIT_NS 1000000000ull

static struct verdict in_image(struct image *image, uint64_t off)
{
	return (struct verdict){ .kind = VERDICT_IMAGE, .image = image, .off = off };
}

static struct verdict in_bucket(enum account_bucket bucket)
{
	return (struct verdict){ .kind = VERDICT_BUCKET, .bucket = bucket };
}

static const struct verdict later = { .kind = VERDICT_LATER };

struct verdict attribute_kernel(const struct attribute *a, const struct driver_count *c)
{
	uint64_t off = 0;
	bool idle = false;
	struct image *img = a->kernel ? kernel_lookup(a->kernel, c, &off, &idle) : NULL;

	if (idle)
		return in_bucket(ACCOUNT_BUCKET_IDLE);
	return img ? in_image(img, off) : in_bucket(ACCOUNT_BUCKET_KERNEL_UNKNOWN);
}

/* ---- mappings -------------------------------------------------------------------------------- */

static enum account_bucket unknown(const struct sample *s)
{
	if (s->dynamic)
		return ACCOUNT_BUCKET_DYNAMIC_UNKNOWN;
	return !s->p || s->p->placeholder ? ACCOUNT_BUCKET_UNKNOWN_PROCESS : ACCOUNT_BUCKET_UNKNOWN;
}

static struct image *image_of(const struct attribute *a, const struct sample *s,
			      const struct map *m)
{
	struct images_owner owner;

	if (!m->image->apart && !s->p->label)
		return m->image;
	owner = process_owner(s->p);
	return images_of(a->images, m->image, &owner);
}

/* A client told of code there: a private mapping of a file may be written to like any other. */
static struct verdict claimed(struct sample *s, const struct map *m, struct image *img,
			      uint64_t off)
{
	s->image = image_get(img);
	s->off = off;
	s->mapped_ns = m->since_ns;
	return later;
}

static struct verdict in_file(const struct attribute *a, struct sample *s, const struct map *m,
			      struct image *img)
{
	uint64_t off = m->file_off + (s->addr - m->start);

	if (a->dyn && dyn_claims(s->p, s->addr))
		return claimed(s, m, img, off);
	if (!m->image->watched && a->dyn && a->live)
		dyn_sampled(a->dyn, s->p, m);
	return in_image(img, off);
}

static struct verdict attribute_mapped(const struct attribute *a, struct sample *s)
{
	const struct map *m = s->map;

	if (s->dynamic && a->dyn && a->live)
		dyn_watch(a->dyn, s->p);
	if (m && m->since_ns > s->first_ns)
		return in_bucket(ACCOUNT_BUCKET_AMBIGUOUS);
	if (m && m->kind == MAP_IMAGE)
		return in_file(a, s, m, image_of(a, s, m));
	return m || (s->p && s->p->dyn) ? later : in_bucket(unknown(s));
}

/* ---- dynamic code ---------------------------------------------------------------------------- */

static struct verdict not_found(struct sample *s, enum dyn_where where)
{
	if (where == DYN_REUSED)
		return in_bucket(ACCOUNT_BUCKET_REUSED);
	if (where == DYN_NO_CAPACITY)
		return in_bucket(ACCOUNT_BUCKET_QUOTA);
	if (where == DYN_NO_BUDGET)
		return in_bucket(ACCOUNT_BUCKET_BUDGET);
	if (where == DYN_GENERATION)
		return in_bucket(ACCOUNT_BUCKET_GENERATION);
	return s->image ? in_image(s->image, s->off) : in_bucket(unknown(s));
}

static struct verdict attribute_dynamic(const struct attribute *a, struct sample *s, bool last)
{
	const struct dyn_query q = { .addr = s->addr,
				     .first_ns = s->first_ns,
				     .time_ns = s->time_ns,
				     .count = s->count,
				     .generation = s->generation,
				     .generation_read = s->generation_read,
				     .generation_unread = s->generation_unread,
				     .last = last || !attribute_may_wait(a, s->p, &s->until_ns),
				     .dynamic = s->dynamic && a->live,
				     .map_start = s->map_start,
				     .mapped_ns = s->mapped_ns,
				     .next = a->next,
				     .nr_next = a->nr_next };
	enum dyn_where where = DYN_NONE;
	struct image *img = NULL;
	uint64_t off = 0;

	if (a->dyn)
		where = dyn_lookup(a->dyn, s->p, &q, &img, &off);
	if (where == DYN_LATER)
		return later;
	image_put(s->image);
	return where == DYN_FOUND ? in_image(img, off) : not_found(s, where);
}

struct verdict attribute_sample(const struct attribute *a, struct sample *s, bool last)
{
	struct verdict v;

	if (s->mode == DRIVER_KERNEL)
		return attribute_kernel(a, &(struct driver_count){ .first_ns = s->first_ns,
								   .time_ns = s->time_ns,
								   .pid = s->pid,
								   .addr = s->addr });
	if (s->mode != DRIVER_USER)
		return in_bucket(s->bucket);
	if (s->waits)
		return attribute_dynamic(a, s, last);
	v = attribute_mapped(a, s);
	s->waits = v.kind == VERDICT_LATER;
	return v;
}

struct verdict attribute_function(const struct attribute *a, const struct process *p, uint64_t key,
				  uint32_t instr)
{
	enum dyn_where where = DYN_NONE;
	struct image *img = NULL;
	uint64_t off = 0;

	if (!p)
		return in_bucket(ACCOUNT_BUCKET_UNKNOWN_PROCESS);
	if (a->dyn)
		where = dyn_function_find(p, key, instr, &img, &off);
	if (where == DYN_FOUND)
		image_label(img, p->label);
	if (where == DYN_FOUND)
		return in_image(img, off);
	return in_bucket(where == DYN_NO_CAPACITY ? ACCOUNT_BUCKET_QUOTA
						  : ACCOUNT_BUCKET_DYNAMIC_UNKNOWN);
}

bool attribute_is_due(const struct process *p, uint64_t news)
{
	return p->exited || dyn_has_registry(p) || news != dyn_news(p);
}

bool attribute_may_wait(const struct attribute *a, const struct process *p, uint64_t *until_ns)
{
	if (!p || p->exited)
		return false;
	if (!dyn_has_registry(p))
		return !a->flushing;
	if (!*until_ns)
		*until_ns = a->resolved_ns + WAIT_NS;
	return !a->live || a->resolved_ns < *until_ns;
}
