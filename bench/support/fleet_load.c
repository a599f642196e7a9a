/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of simulated machines are sent as a relay would: hour by hour, many machines in a request.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "store_internal.h"

enum { AT_ONCE = 64 << 20 };

struct total {
	uint64_t number;
	uint32_t count;
};

/* The rows that one sender makes for one machine and hour. */
struct load {
	const struct fleet *f;
	struct fleet_load *l;
	struct store_batch b;
	uint32_t *count;
	struct total *totals;
	size_t nr_totals, cap_totals;
	uint64_t sums[FLEET_IMAGES];
	uint32_t machine, hour;
	struct base_map seen;	 /* images that were sent */
	struct base_map numbers; /* routines that were sent */
};

static uint32_t epoch_of(const struct load *x)
{
	return x->l->begin + x->hour * 3600;
}

static int put_platform(const struct load *x, struct base_buf *row)
{
	char name[32];

	snprintf(name, sizeof(name), "host%05u", x->machine);
	return store_put_text(row, name);
}

static int put_key(struct base_buf *row, uint64_t version)
{
	int r = base_buf_append_le(row, fleet_mix(version, 1), 8);

	return r < 0 ? r : base_buf_append_le(row, fleet_mix(version, 2), 8);
}

/* ---- images and routines --------------------------------------------------------------------- */

/* true: it is new. */
static bool is_new(struct load *x, uint64_t number)
{
	return !base_map_get(&x->seen, &number, sizeof(number)) &&
	       base_map_set(&x->seen, &number, sizeof(number), x) >= 0;
}

static int put_image(struct load *x, size_t image, uint64_t version)
{
	static const uint8_t none[STORE_KEY];
	const struct fleet_source *s = x->f->images[image].source;
	struct base_buf *row = &x->b.rows[STORE_IMAGE];
	char id[48], path[PROFDB_PATH_MAX];
	int r;

	snprintf(id, sizeof(id), "%016llx%016llx", (unsigned long long)version,
		 (unsigned long long)fleet_mix(version, 3));
	snprintf(path, sizeof(path), "%s-%zu", s->path, image);
	r = put_key(row, version);
	if (r >= 0)
		r = base_buf_append_le(row, 1, 8);
	if (r >= 0)
		r = store_put_text(row, profdb_kind_name(s->kind));
	if (r >= 0)
		r = store_put_text(row, id);
	for (int i = 0; i < 4 && r >= 0; i++) /* path, text, name, stem */
		r = store_put_text(row, i == 0 ? path : i == 2 ? base_path_name(path) : "");
	if (r >= 0)
		r = base_buf_append(row, none, sizeof(none));
	if (r >= 0)
		r = base_buf_append_le(row, 62, 4);
	return r < 0 ? r : base_buf_append(row, s->symbols.data, s->symbols.len);
}

static int put_routine(struct load *x, const struct fleet_routine *t, uint64_t number,
		       uint64_t version)
{
	struct base_buf *row = &x->b.rows[STORE_ROUTINE];
	int r = base_buf_append_le(row, number, 8);

	if (r >= 0)
		r = put_key(row, version);
	if (r >= 0)
		r = store_put_text(row, t->name);
	if (r >= 0)
		r = base_buf_append_le(row, t->off, 8);
	if (r >= 0)
		r = base_buf_append_le(row, t->len, 8);
	return r < 0 ? r : base_buf_append_le(row, 1, 8);
}

/* A routine's number, which readers of a store check; its row is put at the first time. */
static int number_of(struct load *x, const struct fleet_routine *t, uint64_t version,
		     size_t routine, uint64_t *number)
{
	const uint64_t key[2] = { version, routine };
	struct base_buf owner = { 0 };
	struct store_key image;
	int r;

	*number = (uintptr_t)base_map_get(&x->numbers, key, sizeof(key));
	if (*number)
		return 0;
	r = put_key(&owner, version);
	if (r >= 0) {
		memcpy(image.bytes, owner.data, sizeof(image.bytes));
		*number = store_routine_key(&image, t->name, t->off);
		r = base_map_set(&x->numbers, key, sizeof(key), (void *)(uintptr_t)*number);
	}
	base_buf_release(&owner);
	return r < 0 ? r : put_routine(x, t, *number, version);
}

/* ---- profiles -------------------------------------------------------------------------------- */

static int put_entries(const struct fleet_image *i, const uint32_t *count, uint64_t *entries,
		       struct base_buf *row)
{
	struct store_offsets x = { .nr = 0 };
	int r = base_buf_append(row, "\0", 2); /* off and n, which version 1 had */

	for (size_t k = 0; k < i->source->nr_places && r >= 0; k++)
		if (count[k])
			r = store_offsets_add(&x, i->places[k].off, count[k]);
	*entries += x.nr + x.nr_far;
	if (r >= 0)
		r = store_offsets_put(&x, row);
	store_offsets_release(&x);
	return r;
}

static int put_profile(struct load *x, size_t image, uint64_t version, uint64_t sum)
{
	const struct fleet_image *i = &x->f->images[image];
	struct base_buf *row = &x->b.rows[STORE_PROF];
	char file[PROFDB_PATH_MAX];
	int r = store_put_text(row, x->f->event);

	snprintf(file, sizeof(file), "%s%zu.%s.%016llx%016llx", base_path_name(i->source->path),
		 image, profdb_kind_name(i->source->kind), (unsigned long long)version,
		 (unsigned long long)fleet_mix(version, 3));
	if (r >= 0)
		r = put_key(row, version);
	if (r >= 0)
		r = base_buf_append_le(row, epoch_of(x), 4);
	if (r >= 0)
		r = put_platform(x, row);
	if (r >= 0)
		r = store_put_text(row, file);
	if (r >= 0)
		r = base_buf_append_le(row, epoch_of(x) * UINT64_C(1000000000) + x->machine, 8);
	if (r >= 0)
		r = base_buf_append_le(row, x->f->period, 8);
	if (r >= 0)
		r = base_buf_append_le(row, 1000000, 4);
	if (r >= 0)
		r = store_put_text(row, "");
	if (r >= 0)
		r = base_buf_append_le(row, sum, 8);
	x->l->rows++;
	return r < 0 ? r : put_entries(i, x->count, &x->l->entries, row);
}

/* ---- totals ---------------------------------------------------------------------------------- */

static int add_total(struct load *x, size_t image, uint64_t version, size_t routine, uint32_t n)
{
	const struct fleet_routine *t = &x->f->images[image].source->routines[routine];
	/* Routines of pseudo-images are told apart by their names alone. */
	bool dynamic = x->f->images[image].source->kind == PROFDB_DYNAMIC;
	uint64_t owner = dynamic ? fleet_mix(77, image) : version;
	uint64_t number;
	int r = base_grow(&x->totals, &x->cap_totals, x->nr_totals + 1, sizeof(*x->totals));

	if (r >= 0 && dynamic && is_new(x, owner))
		r = put_image(x, image, owner);
	if (r >= 0)
		r = number_of(x, t, owner, routine, &number);
	if (r >= 0)
		x->totals[x->nr_totals++] = (struct total){ number, n };
	return r;
}

static int add_totals(struct load *x, size_t image, uint64_t version)
{
	const struct fleet_image *i = &x->f->images[image];
	int r = 0;

	for (size_t k = 0; k < i->source->nr_places && r >= 0;) {
		uint32_t routine = i->places[k].routine, n = 0;

		for (; k < i->source->nr_places && i->places[k].routine == routine; k++)
			n += x->count[k];
		if (n)
			r = add_total(x, image, version, routine, n);
	}
	return r;
}

static int compare(const void *pa, const void *pb)
{
	const struct total *a = pa, *b = pb;

	return (a->number > b->number) - (a->number < b->number);
}

static int put_totals(struct load *x)
{
	struct base_buf *row = &x->b.rows[STORE_TOTALS];
	uint64_t sum = 0;
	int r = store_put_text(row, x->f->event);

	qsort(x->totals, x->nr_totals, sizeof(*x->totals), compare);
	for (size_t i = 0; i < x->nr_totals; i++)
		sum += x->totals[i].count;
	if (r >= 0)
		r = store_put_text(row, "");
	if (r >= 0)
		r = base_buf_append_le(row, epoch_of(x), 4);
	if (r >= 0)
		r = put_platform(x, row);
	if (r >= 0)
		r = base_buf_append_le(row, epoch_of(x) * UINT64_C(1000000000) + x->machine, 8);
	if (r >= 0)
		r = base_buf_append_le(row, x->f->period, 8);
	if (r >= 0)
		r = base_buf_append_le(row, 1000000, 4);
	if (r >= 0)
		r = base_buf_append_le(row, sum, 8);
	if (r >= 0)
		r = base_buf_append_leb128(row, x->nr_totals);
	for (size_t i = 0; i < x->nr_totals && r >= 0; i++)
		r = base_buf_append_le(row, x->totals[i].number, 8);
	if (r >= 0)
		r = base_buf_append_leb128(row, x->nr_totals);
	for (size_t i = 0; i < x->nr_totals && r >= 0; i++)
		r = base_buf_append_le(row, x->totals[i].count, 8);
	x->l->samples += sum;
	x->l->routines += x->nr_totals;
	x->l->rows++;
	return r;
}

/* ---- workloads ------------------------------------------------------------------------------- */

static int put_groups(const struct fleet *f, struct base_buf *row)
{
	int r = 0;

	for (int column = 0; column < 4 && r >= 0; column++) {
		r = base_buf_append_leb128(row, f->nr_workloads);
		for (size_t g = 0; g < f->nr_workloads && r >= 0; g++) {
			const struct profdb_workload *k = &f->workloads[g];

			r = store_put_text(row, column == 0   ? k->comm
						: column == 1 ? k->exe
						: column == 2 ? k->cgroup
							      : k->label);
		}
	}
	if (r >= 0)
		r = base_buf_append_leb128(row, f->nr_workloads);
	for (size_t g = 0; g < f->nr_workloads && r >= 0; g++)
		r = base_buf_append_le(row, f->workloads[g].uid, 4);
	return r;
}

static uint64_t part_of(const struct load *x, size_t g, size_t image)
{
	return (uint64_t)((double)x->sums[image] * x->f->images[image].source->share[g] + 0.5);
}

static int put_parts(struct load *x, struct base_buf *row)
{
	size_t nr = 0;
	int r = 0;

	for (size_t g = 0; g < x->f->nr_workloads; g++)
		for (size_t i = 0; i < FLEET_IMAGES; i++)
			nr += part_of(x, g, i) != 0;
	for (int column = 0; column < 3 && r >= 0; column++) {
		r = base_buf_append_leb128(row, nr);
		for (size_t g = 0; g < x->f->nr_workloads && r >= 0; g++)
			for (size_t i = 0; i < FLEET_IMAGES && r >= 0; i++) {
				uint64_t n = part_of(x, g, i);

				if (!n)
					continue;
				r = column == 0	  ? base_buf_append_le(row, g, 4)
				    : column == 1 ? put_key(row, fleet_version(x->f, x->machine, i))
						  : base_buf_append_le(row, n, 8);
			}
	}
	return r;
}

static int put_work(struct load *x)
{
	struct base_buf *row = &x->b.rows[STORE_WORK];
	int r = store_put_text(row, x->f->event);

	if (r >= 0)
		r = base_buf_append_le(row, epoch_of(x), 4);
	if (r >= 0)
		r = put_platform(x, row);
	if (r >= 0)
		r = base_buf_append_le(row, epoch_of(x) * UINT64_C(1000000000) + x->machine, 8);
	if (r >= 0)
		r = base_buf_append_le(row, x->f->period, 8);
	if (r >= 0)
		r = put_groups(x->f, row);
	x->l->rows++;
	return r < 0 ? r : put_parts(x, row);
}

/* ---- an hour of a machine -------------------------------------------------------------------- */

static int put_hour(struct load *x)
{
	int r = 0;

	x->nr_totals = 0;
	for (size_t i = 0; i < FLEET_IMAGES && r >= 0; i++) {
		uint64_t sum = fleet_sample(x->f, x->machine, x->hour, i, x->count);
		uint64_t version = fleet_version(x->f, x->machine, i);

		x->sums[i] = sum;
		if (!sum)
			continue;
		x->l->images++;
		if (is_new(x, version))
			r = put_image(x, i, version);
		if (r >= 0)
			r = put_profile(x, i, version, sum);
		if (r >= 0)
			r = add_totals(x, i, version);
	}
	if (r >= 0)
		r = put_totals(x);
	x->l->machine_hours++;
	return r < 0 ? r : put_work(x);
}

/* Rows that a store would take: those of a machine and hour behind @from. */
static int check(const struct load *x, const size_t from[STORE_NR_SENT], struct base_err *err)
{
	for (size_t t = 0; t < STORE_NR_SENT; t++)
		if (store_rows_check(&store_tables[t], x->b.rows[t].data + from[t],
				     x->b.rows[t].len - from[t], NULL) < 0)
			return base_fail(err, -DCPI_EFORMAT, "rows of '%s' are malformed",
					 store_tables[t].name);
	return 0;
}

static int add_hour(struct load *x, struct base_err *err)
{
	size_t from[STORE_NR_SENT];
	int r;

	for (size_t t = 0; t < STORE_NR_SENT; t++)
		from[t] = x->b.rows[t].len;
	r = put_hour(x);
	return r < 0 ? r : check(x, from, err);
}

static int send(struct load *x, struct store_server *s, struct base_err *err)
{
	int r = store_send(s, &x->b, err);

	for (size_t t = 0; t < STORE_NR_SENT; t++)
		base_buf_clear(&x->b.rows[t]);
	return r;
}

int fleet_load(const struct fleet *f, struct store_server *s, struct fleet_load *l,
	       struct base_err *err)
{
	struct load x = { .f = f, .l = l };
	int r = 0;

	x.count = calloc(fleet_most_places(f) + 1, sizeof(*x.count));
	if (!x.count)
		return -ENOMEM;
	for (x.hour = 0; x.hour < l->hours && r >= 0; x.hour++)
		for (x.machine = l->first; x.machine < l->last && r >= 0; x.machine++) {
			r = add_hour(&x, err);
			if (r >= 0 && store_batch_len(&x.b) >= AT_ONCE)
				r = send(&x, s, err);
		}
	if (r >= 0)
		r = send(&x, s, err);
	store_batch_release(&x.b);
	base_map_release(&x.seen);
	base_map_release(&x.numbers);
	free(x.count);
	free(x.totals);
	return r < 0 ? base_fail_errno(err, r, "cannot load the store") : 0;
}
