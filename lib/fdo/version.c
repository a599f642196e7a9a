/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of one build of a program are found again in another build: by names of procedures, or
 * equal code, and by hashes of their blocks. */
#include <errno.h>
#include <stdlib.h>

#include "fdo.h"
#include "insn.h"

#define NO_TWIN	 UINT32_MAX
#define CODE_MAX (1u << 20) /* bytes of a procedure that are compared */
#define LEAST	 3	    /* blocks of a procedure that is known by its code alone */

/* Code from where the procedure branches to, or behind an instruction that may go elsewhere, up to
 * and with the next of these; without padding. */
struct block {
	uint64_t vaddr;
	uint32_t len;
	uint32_t twin; /* index of the equal block in the other build */
	uint64_t hash; /* of what its instructions do and of their lengths, not of their constants
			  and addresses */
	uint64_t near; /* of its own hash and its neighbours' */
	uint64_t to;   /* address of the equal block, or FDO_NONE */
};

struct code {
	struct block *v;
	size_t nr, cap;
};

struct fdo_version {
	struct image *from, *to;
	struct insn_decoder *d;
	struct base_map procedures; /* struct code by address in @from */
	struct base_map by_code;    /* procedures of @to that @from has not by name */
	bool indexed;
	uint32_t nr, nr_found; /* procedures that were asked for; those with a block in @to */
};

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint64_t hash_insn(uint64_t before, const struct insn *i)
{
	uint64_t key[] = { i->flow,	     i->kinds, i->reads.gpr, i->reads.vector, i->writes.gpr,
			   i->writes.vector, i->base,  i->index,     i->len };

	/* A branch may be turned round, and be shorter where it leads less far. */
	return base_hash64_seeded(before, key,
				  i->flow == INSN_PLAIN ? sizeof(key) : sizeof(key[0]));
}

static int add_block(struct code *c, const struct block *b)
{
	int r = b->len ? base_grow(&c->v, &c->cap, c->nr + 1, sizeof(*c->v)) : 0;

	if (r >= 0 && b->len)
		c->v[c->nr++] = *b;
	return r;
}

static int by_address(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* The addresses in the code that it branches to, ascending. NULL: no memory. */
static uint64_t *targets_of(struct insn_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
			    size_t *nr)
{
	uint64_t *v = NULL;
	size_t cap = 0;
	struct insn i;

	*nr = 0;
	for (size_t at = 0; at < len; at += i.len) {
		if (base_grow(&v, &cap, *nr + 1, sizeof(*v)) < 0) {
			free(v);
			return NULL;
		}
		insn_decode_flow(d, code + at, len - at, vaddr + at, &i);
		if ((i.flow == INSN_BRANCH || i.flow == INSN_JUMP) && i.target - vaddr < len)
			v[(*nr)++] = i.target;
	}
	if (*nr)
		qsort(v, *nr, sizeof(*v), by_address);
	return v;
}

static struct block block_from(uint64_t vaddr)
{
	return (struct block){ .vaddr = vaddr, .twin = NO_TWIN, .to = FDO_NONE };
}

static int cut_blocks(struct insn_decoder *d, const uint8_t *code, size_t len, uint64_t vaddr,
		      struct code *c)
{
	size_t nr_targets, t = 0;
	uint64_t *targets = targets_of(d, code, len, vaddr, &nr_targets);
	struct block b = block_from(vaddr);
	struct insn i;
	int r = targets || !len ? 0 : -ENOMEM;

	for (size_t at = 0; at < len && r >= 0; at += i.len) {
		bool padding;

		while (t < nr_targets && targets[t] < vaddr + at)
			t++;
		if (t < nr_targets && targets[t] == vaddr + at) {
			r = add_block(c, &b);
			b = block_from(vaddr + at);
		}
		insn_decode(d, code + at, len - at, vaddr + at, &i);
		padding = i.kinds & INSN_PADDING;
		if (!padding) {
			b.hash = hash_insn(b.hash, &i);
			b.len = (uint32_t)(vaddr + at + i.len - b.vaddr);
		}
		if ((padding || i.flow != INSN_PLAIN) && r >= 0) {
			r = add_block(c, &b);
			b = block_from(vaddr + at + i.len);
		}
	}
	free(targets);
	return r < 0 ? r : add_block(c, &b);
}

static void hash_neighbours(struct code *c)
{
	for (size_t i = 0; i < c->nr; i++) {
		uint64_t key[] = { i ? c->v[i - 1].hash : 0, c->v[i].hash,
				   i + 1 < c->nr ? c->v[i + 1].hash : 0 };

		c->v[i].near = base_hash64(key, sizeof(key));
	}
}

/* 0, without blocks where the code is not in the image; or -ENOMEM. */
static int read_code(struct insn_decoder *d, struct image *img, const struct image_symbol *s,
		     struct code *c)
{
	size_t len = s->len < CODE_MAX ? s->len : CODE_MAX;
	uint8_t *bytes = malloc(len + 1);
	int r = bytes ? 0 : -ENOMEM;

	c->nr = 0;
	if (r >= 0)
		r = cut_blocks(d, bytes, image_bytes(img, s->vaddr, bytes, len), s->vaddr, c);
	hash_neighbours(c);
	free(bytes);
	return r;
}

/* ---- equal blocks ---------------------------------------------------------------------------- */

struct key {
	uint64_t hash;
	uint32_t index;
};

static int by_hash(const void *pa, const void *pb)
{
	const struct key *a = pa, *b = pb;

	return (a->hash > b->hash) - (a->hash < b->hash);
}

/* Returns the hashes of blocks without a twin, ascending. NULL: no memory. */
static struct key *keys_of(const struct code *c, bool near, size_t *nr)
{
	struct key *k = calloc(c->nr + 1, sizeof(*k));

	*nr = 0;
	for (size_t i = 0; k && i < c->nr; i++)
		if (c->v[i].twin == NO_TWIN)
			k[(*nr)++] =
				(struct key){ near ? c->v[i].near : c->v[i].hash, (uint32_t)i };
	if (k && *nr)
		qsort(k, *nr, sizeof(*k), by_hash);
	return k;
}

static void pair(struct code *a, size_t i, struct code *b, size_t k)
{
	a->v[i].twin = (uint32_t)k;
	b->v[k].twin = (uint32_t)i;
}

/* Number of keys equal to the first one of @k. */
static size_t nr_equal(const struct key *k, size_t nr)
{
	size_t n = 0;

	while (n < nr && k[n].hash == k[0].hash)
		n++;
	return n;
}

/* Blocks whose hash is alone of its kind in both. 0 or -ENOMEM. */
static int pair_unique(struct code *a, struct code *b, bool near)
{
	size_t nr_a, nr_b, i = 0, k = 0, same_a, same_b;
	struct key *of_a = keys_of(a, near, &nr_a), *of_b = keys_of(b, near, &nr_b);
	int r = of_a && of_b ? 0 : -ENOMEM;

	while (r >= 0 && i < nr_a && k < nr_b) {
		same_a = nr_equal(of_a + i, nr_a - i);
		same_b = nr_equal(of_b + k, nr_b - k);
		if (of_a[i].hash < of_b[k].hash) {
			i += same_a;
		} else if (of_a[i].hash > of_b[k].hash) {
			k += same_b;
		} else {
			if (same_a == 1 && same_b == 1)
				pair(a, of_a[i].index, b, of_b[k].index);
			i += same_a;
			k += same_b;
		}
	}
	free(of_a);
	free(of_b);
	return r;
}

static bool may_pair(const struct code *a, size_t i, const struct code *b, size_t k)
{
	return i < a->nr && k < b->nr && a->v[i].twin == NO_TWIN && b->v[k].twin == NO_TWIN &&
	       a->v[i].hash == b->v[k].hash;
}

/* Equal neighbours of twins are twins. */
static void pair_neighbours(struct code *a, struct code *b)
{
	for (size_t i = 0; i < a->nr; i++)
		if (a->v[i].twin != NO_TWIN && may_pair(a, i + 1, b, a->v[i].twin + 1))
			pair(a, i + 1, b, a->v[i].twin + 1);
	for (size_t i = a->nr; i-- > 1;)
		if (a->v[i].twin != NO_TWIN && a->v[i].twin &&
		    may_pair(a, i - 1, b, a->v[i].twin - 1))
			pair(a, i - 1, b, a->v[i].twin - 1);
}

/* The number of pairs, or -ENOMEM. */
static int pair_blocks(struct code *a, struct code *b)
{
	int nr = 0, r;

	if (may_pair(a, 0, b, 0))
		pair(a, 0, b, 0);
	pair_neighbours(a, b);
	r = pair_unique(a, b, true);
	pair_neighbours(a, b);
	if (r >= 0)
		r = pair_unique(a, b, false);
	pair_neighbours(a, b);
	for (size_t i = 0; i < a->nr; i++)
		nr += a->v[i].twin != NO_TWIN;
	return r < 0 ? r : nr;
}

/* ---- procedures ------------------------------------------------------------------------------ */

static uint64_t hash_code(const struct code *c)
{
	uint64_t hash = c->nr;

	for (size_t i = 0; i < c->nr; i++)
		hash = base_hash64_seeded(hash, &c->v[i].hash, sizeof(c->v[i].hash));
	return hash;
}

/* Procedures of @to whose names @from has not are found by their code, unless two are equal. */
static int index_by_code(struct fdo_version *v)
{
	static const struct image_symbol several;
	struct code c = { 0 };
	int r = 0;

	v->indexed = true;
	for (size_t i = 0; i < image_nr_symbols(v->to) && r >= 0; i++) {
		const struct image_symbol *s = image_symbol(v->to, i);
		size_t pos = 0;
		uint64_t hash;

		if (image_symbol_find(v->from, s->name, &pos))
			continue;
		r = read_code(v->d, v->to, s, &c);
		hash = hash_code(&c);
		if (r >= 0 && c.nr >= LEAST)
			r = base_map_set(&v->by_code, &hash, sizeof(hash),
					 base_map_get(&v->by_code, &hash, sizeof(hash))
						 ? (void *)&several
						 : (void *)s);
	}
	free(c.v);
	return r;
}

/* Pairs the blocks of @a with those of @s. Returns the number of pairs, or -ENOMEM. */
static int try_procedure(struct fdo_version *v, struct code *a, const struct image_symbol *s)
{
	struct code b = { 0 };
	int r = read_code(v->d, v->to, s, &b);

	for (size_t i = 0; i < a->nr; i++)
		a->v[i].twin = NO_TWIN;
	if (r >= 0)
		r = pair_blocks(a, &b);
	for (size_t i = 0; i < a->nr; i++)
		a->v[i].to = a->v[i].twin == NO_TWIN ? FDO_NONE : b.v[a->v[i].twin].vaddr;
	free(b.v);
	return r;
}

/* Several procedures may have the name: the one in which most blocks are found is taken. Returns
 * the number of pairs, or -ENOMEM. */
static int try_name(struct fdo_version *v, struct code *a, const char *name)
{
	const struct image_symbol *s, *best = NULL, *last = NULL;
	size_t pos = 0;
	int r = 0, most = 0;

	while (r >= 0 && (s = image_symbol_find(v->to, name, &pos))) {
		r = try_procedure(v, a, s);
		last = s;
		if (r > most) {
			most = r;
			best = s;
		}
	}
	if (r >= 0 && best && best != last)
		r = try_procedure(v, a, best);
	return r < 0 ? r : most;
}

static int try_code(struct fdo_version *v, struct code *a)
{
	uint64_t hash = hash_code(a);
	const struct image_symbol *s;
	int r = v->indexed ? 0 : index_by_code(v);

	s = r < 0 ? NULL : base_map_get(&v->by_code, &hash, sizeof(hash));
	return s && s->name ? try_procedure(v, a, s) : r;
}

static int pair_procedure(struct fdo_version *v, struct code *a, const struct image_symbol *s)
{
	size_t pos = 0;
	int r = read_code(v->d, v->from, s, a);

	if (r >= 0)
		r = image_symbol_find(v->to, s->name, &pos) ? try_name(v, a, s->name)
							    : try_code(v, a);
	v->nr++;
	v->nr_found += r > 0;
	return r;
}

/* The blocks of the procedure @s of @from, paired at the first question. */
static int procedure(struct fdo_version *v, const struct image_symbol *s, struct code **out)
{
	int r;

	*out = base_map_get(&v->procedures, &s->vaddr, sizeof(s->vaddr));
	if (*out)
		return 0;
	*out = calloc(1, sizeof(**out));
	r = *out ? base_map_set(&v->procedures, &s->vaddr, sizeof(s->vaddr), *out) : -ENOMEM;
	if (r < 0)
		free(*out);
	return r < 0 ? r : pair_procedure(v, *out, s);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static const struct block *block_at(const struct code *c, uint64_t vaddr)
{
	size_t from = 0, to = c->nr;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (c->v[mid].vaddr <= vaddr)
			from = mid + 1;
		else
			to = mid;
	}
	return from && vaddr - c->v[from - 1].vaddr < c->v[from - 1].len ? &c->v[from - 1] : NULL;
}

int fdo_version_place(struct fdo_version *v, uint64_t vaddr, uint64_t *out)
{
	const struct image_symbol *s = image_symbol_at(v->from, vaddr);
	const struct block *b;
	struct code *c;
	int r = s ? procedure(v, s, &c) : 0;

	*out = FDO_NONE;
	b = s && r >= 0 ? block_at(c, vaddr) : NULL;
	if (b && b->to != FDO_NONE)
		*out = b->to + (vaddr - b->vaddr);
	return r < 0 ? r : 0;
}

struct image *fdo_version_from(const struct fdo_version *v)
{
	return v->from;
}

void fdo_version_found(const struct fdo_version *v, uint32_t *nr, uint32_t *found)
{
	*nr = v->nr;
	*found = v->nr_found;
}

int fdo_version_open(struct image *from, struct image *to, struct fdo_version **out,
		     struct base_err *err)
{
	struct fdo_version *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return base_fail_errno(err, -ENOMEM, "cannot compare builds");
	v->from = from;
	v->to = to;
	r = insn_decoder_open(image_machine(to), &v->d, err);
	if (r < 0) {
		free(v);
		return r;
	}
	*out = v;
	return 0;
}

void fdo_version_close(struct fdo_version *v)
{
	size_t pos = 0;
	void *c;

	if (!v)
		return;
	while (base_map_next(&v->procedures, &pos, &c)) {
		free(((struct code *)c)->v);
		free(c);
	}
	base_map_release(&v->procedures);
	base_map_release(&v->by_code);
	insn_decoder_close(v->d);
	free(v);
}
