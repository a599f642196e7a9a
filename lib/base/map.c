/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base.h"

/* Open addressing, linear probing; a slot is in use while it has a value. */
struct base_map_slot {
	uint64_t hash;
	void *key, *value;
	size_t key_len;
};

/* Of this process: 0 is not chosen yet. Threads may choose at once; the first one's holds. */
static uint64_t seed_get(void)
{
	static _Atomic uint64_t chosen;
	uint64_t seed = atomic_load_explicit(&chosen, memory_order_relaxed), fresh = 0;

	if (seed)
		return seed;
	/* Where there are no random numbers yet, what address layout and clock make up must do. */
	if (getentropy(&fresh, sizeof(fresh)) < 0)
		fresh = base_hash_u64((uintptr_t)&fresh) ^ base_now_ns();
	fresh |= 1;
	return atomic_compare_exchange_strong(&chosen, &seed, fresh) ? fresh : seed;
}

static uint64_t hash_key(const void *key, size_t key_len)
{
	return base_hash64_seeded(seed_get(), key, key_len);
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
		    (!key_len || !memcmp(s->key, key, key_len)))
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
			*find(&bigger, s->hash, s->key, s->key_len) = *s;
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
	void *copy = malloc(key_len ? key_len : 1);

	if (!copy)
		return -ENOMEM;
	/* Three quarters full at most: probes stay short, and a search ends. */
	if (m->nr >= m->cap - m->cap / 4 && rehash(m) < 0) {
		free(copy);
		return -ENOMEM;
	}
	if (key_len)
		memcpy(copy, key, key_len);
	*find(m, hash, key, key_len) = (struct base_map_slot){
		.hash = hash, .key = copy, .value = value, .key_len = key_len
	};
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
	free(s->key);
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
		free(m->slots[i].key);
	free(m->slots);
	*m = (struct base_map){ 0 };
}
