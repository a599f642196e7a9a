/* SPDX-License-Identifier: BSD-2-Clause */
/* The hash table from byte keys to pointers is implemented here. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

/* Open addressing, linear probing; a slot is in use while it has a value. Most keys are a pid, or
 * as short. */
struct base_map_slot {
	uint64_t hash;
	union {
		void *far;
		uint8_t here[sizeof(void *)];
	} key;
	void *value;
	size_t key_len;
};

static bool is_here(const struct base_map_slot *s)
{
	return s->key_len <= sizeof(s->key.here);
}

static const void *key_of(const struct base_map_slot *s)
{
	return is_here(s) ? s->key.here : s->key.far;
}

static void free_key(struct base_map_slot *s)
{
	if (!is_here(s))
		free(s->key.far);
}

/*
 * The seed of this process: 0 is not chosen yet. Threads may choose at once; the first choice
 * holds.
 */
static uint64_t seed_get(void)
{
	static _Atomic uint64_t chosen;
	uint64_t seed = atomic_load_explicit(&chosen, memory_order_relaxed), fresh;

	if (seed)
		return seed;
	fresh = base_hash_seed();
	return atomic_compare_exchange_strong(&chosen, &seed, fresh) ? fresh : seed;
}

static uint64_t hash_key(const void *key, size_t key_len)
{
	uint64_t word = 0;

	if (key_len > sizeof(word))
		return base_hash64_seeded(seed_get(), key, key_len);
	if (key_len)
		memcpy(&word, key, key_len);
	return base_hash_u64(seed_get() ^ word);
}

/* The slot that holds the key, or the free one where it belongs. There is always a free one. */
static struct base_map_slot *find(const struct base_map *m, uint64_t hash, const void *key,
				  size_t key_len)
{
	size_t i = hash & (m->cap - 1);

	for (;; i = (i + 1) & (m->cap - 1)) {
		struct base_map_slot *s = &m->slots[i];

		if (!s->value)
			return s;
		if (s->hash == hash && s->key_len == key_len &&
		    (!key_len || !memcmp(key_of(s), key, key_len)))
			return s;
	}
}

static int rehash(struct base_map *m)
{
	struct base_map bigger = { .nr = m->nr, .cap = m->cap ? m->cap * 2 : 16 };

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->cap; i++) {
		const struct base_map_slot *s = &m->slots[i];

		if (s->value)
			*find(&bigger, s->hash, key_of(s), s->key_len) = *s;
	}
	free(m->slots);
	*m = bigger;
	return 0;
}

void *base_map_get(const struct base_map *m, const void *key, size_t key_len)
{
	if (!m->nr)
		return NULL;
	return find(m, hash_key(key, key_len), key, key_len)->value;
}

static int fill(struct base_map *m, uint64_t hash, const void *key, size_t key_len, void *value)
{
	struct base_map_slot slot = { .hash = hash, .value = value, .key_len = key_len };

	if (!is_here(&slot))
		slot.key.far = malloc(key_len);
	if (!is_here(&slot) && !slot.key.far)
		return -ENOMEM;
	/* Three quarters full at most: probes stay short, and a search ends. */
	if (m->nr >= m->cap - m->cap / 4 && rehash(m) < 0) {
		free_key(&slot);
		return -ENOMEM;
	}
	if (key_len)
		memcpy(is_here(&slot) ? slot.key.here : slot.key.far, key, key_len);
	*find(m, hash, key, key_len) = slot;
	m->nr++;
	return 0;
}

int base_map_set(struct base_map *m, const void *key, size_t key_len, void *value)
{
	uint64_t hash = hash_key(key, key_len);
	struct base_map_slot *s;

	if (!value)
		return -EINVAL;
	s = m->nr ? find(m, hash, key, key_len) : NULL;
	if (!s || !s->value)
		return fill(m, hash, key, key_len, value);
	s->value = value;
	return 0;
}

/* Move later slots of the run back over the hole, so that no search stops short of its key. */
static void close_hole(struct base_map *m, size_t hole)
{
	size_t mask = m->cap - 1;

	for (size_t i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
		size_t home = m->slots[i].hash & mask;

		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		m->slots[hole] = m->slots[i];
		hole = i;
	}
	m->slots[hole] = (struct base_map_slot){ 0 };
}

void *base_map_del(struct base_map *m, const void *key, size_t key_len)
{
	struct base_map_slot *s;
	void *value;

	if (!m->nr)
		return NULL;
	s = find(m, hash_key(key, key_len), key, key_len);
	value = s->value;
	if (!value)
		return NULL;
	free_key(s);
	close_hole(m, (size_t)(s - m->slots));
	m->nr--;
	return value;
}

bool base_map_next(const struct base_map *m, size_t *pos, void **value)
{
	while (*pos < m->cap) {
		const struct base_map_slot *s = &m->slots[(*pos)++];

		if (s->value) {
			*value = s->value;
			return true;
		}
	}
	return false;
}

void base_map_release(struct base_map *m)
{
	for (size_t i = 0; i < m->cap; i++)
		free_key(&m->slots[i]);
	free(m->slots);
	*m = (struct base_map){ 0 };
}
