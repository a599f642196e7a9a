/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of images finds or makes the image that samples are counted in. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "images.h"

enum { NR_LATELY = 16 };

struct images {
	struct base_map by_key;
	struct image
		*lately[NR_LATELY]; /* files' images that were got last, by identity; or NULL */
	struct image *buckets[ACCOUNT_NR_BUCKETS];
	const struct base_opt_list *apart;
	const struct exclude *exclude;
	struct base_buf key; /* the key of a lookup: a buffer that every search uses */
};

struct images *images_new(void)
{
	return calloc(1, sizeof(struct images));
}

static void image_free(struct image *img)
{
	if (!img)
		return;
	profdb_profile_free(img->counts);
	workload_table_free(img->workloads);
	image_values_clear(img);
	free(img->path);
	free(img->stem);
	free(img->process);
	free(img->label);
	free(img);
}

void images_free(struct images *t)
{
	void *value;

	if (!t)
		return;
	for (size_t pos = 0; base_map_next(&t->by_key, &pos, &value);)
		image_free(value);
	base_map_release(&t->by_key);
	base_buf_release(&t->key);
	free(t);
}

/*
 * A pseudo-image changes its build-id as it grows, so its file name is what it is known by; an
 * image without identity is known by its path.
 */
static int make_key(struct base_buf *key, enum profdb_kind kind, const struct base_id *id,
		    const struct base_id *text, const char *path, const char *stem)
{
	uint8_t byte = (uint8_t)kind;
	int r;

	key->len = 0;
	r = base_buf_append(key, &byte, 1);
	if (r < 0)
		return r;
	if (kind == PROFDB_DYNAMIC)
		return base_buf_append(key, stem, strlen(stem));
	if (!id || !id->len)
		return base_buf_append(key, path, strlen(path) + 1);
	r = base_buf_append(key, id->bytes, id->len);
	return r < 0 || !text->len ? r : base_buf_append(key, text, 1 + (size_t)text->len);
}

static int key_of(struct base_buf *key, const struct image *img)
{
	return make_key(key, img->kind, &img->id, &img->text, img->path, img->stem);
}

static int set_text(struct image *img, const struct base_id *text)
{
	char word[BASE_ID_TEXT_LEN];

	img->text = *text;
	return text->len ? profdb_profile_set_word(img->counts, "text", base_id_text(text, word))
			 : 0;
}

static struct image *image_new(enum profdb_kind kind, const struct base_id *id, const char *path,
			       const char *stem)
{
	static const struct base_id none;
	struct image *img = calloc(1, sizeof(*img));

	if (!img)
		return NULL;
	img->kind = kind;
	img->id = id ? *id : none;
	img->path = strdup(path);
	img->stem = strdup(stem);
	img->counts = profdb_profile_new(kind, &img->id, path);
	if (img->path && img->stem && img->counts)
		return img;
	image_free(img);
	return NULL;
}

/* Look up the key that was made last. */
static struct image *search(const struct images *t)
{
	return base_map_get(&t->by_key, t->key.data, t->key.len);
}

static struct image *add(struct images *t, struct image *img)
{
	if (img && base_map_set(&t->by_key, t->key.data, t->key.len, img) < 0) {
		image_free(img);
		img = NULL;
	}
	return img;
}

void images_choose(struct images *t, const struct base_opt_list *apart,
		   const struct exclude *exclude)
{
	t->apart = apart;
	t->exclude = exclude;
}

bool images_is_excluded(const struct images *t, const char *name)
{
	return t->exclude && exclude_has_image(t->exclude, name);
}

bool images_is_apart(const struct images *t, const char *name)
{
	if (!name)
		return t->apart && t->apart->nr;
	for (size_t i = 0; t->apart && i < t->apart->nr; i++)
		if (strcmp(t->apart->items[i], name) == 0 ||
		    strcmp(t->apart->items[i], base_path_name(name)) == 0)
			return true;
	return false;
}

static struct image **lately_of(struct images *t, const struct base_id *id)
{
	return &t->lately[id->bytes[0] % NR_LATELY];
}

/* Got before by the same path: nothing about it is new. */
static bool is_as_lately(const struct image *img, const struct base_id *id,
			 const struct base_id *text, const char *path)
{
	return img && base_id_equal(&img->id, id) && base_id_equal(&img->text, text) &&
	       strcmp(img->path, path) == 0;
}

static struct image *get(struct images *t, enum profdb_kind kind, const struct base_id *id,
			 const struct base_id *text, const char *path, const char *stem)
{
	struct image **lately = kind == PROFDB_FILE && id && id->len ? lately_of(t, id) : NULL;
	struct image *img;

	if (lately && is_as_lately(*lately, id, text, path))
		return *lately;
	if (make_key(&t->key, kind, id, text, path, stem) < 0)
		return NULL;
	img = search(t);
	if (!img) {
		img = image_new(kind, id, path, stem);
		if (img && set_text(img, text) < 0) {
			image_free(img);
			img = NULL;
		}
		img = add(t, img);
	}
	/* Without memory for one more name the image is still the right one. */
	else if (kind == PROFDB_FILE && strcmp(img->path, path) != 0)
		profdb_profile_add_path(img->counts, path);
	if (img && kind == PROFDB_FILE)
		img->apart |= images_is_apart(t, path);
	/* A pseudo-image's name says what program made it, and more. */
	if (img && kind != PROFDB_DYNAMIC && kind != PROFDB_NAMED)
		img->excluded |= images_is_excluded(t, path);
	if (lately)
		*lately = img;
	return img;
}

struct image *images_get(struct images *t, enum profdb_kind kind, const struct base_id *id,
			 const char *path, const char *stem)
{
	static const struct base_id none;

	return get(t, kind, id, &none, path, stem);
}

struct image *images_get_file(struct images *t, const struct base_id *id,
			      const struct base_id *text, const char *path, const char *stem)
{
	return get(t, PROFDB_FILE, id, text, path, stem);
}

/* The time of a fork is known for most processes; START is left out where it is not. */
static int name_process(const struct images_owner *owner, char **out)
{
	if (!owner->began_ns)
		return asprintf(out, "%d", owner->pid);
	return asprintf(out, "%d-%llu", owner->pid, (unsigned long long)owner->began_ns);
}

/* Behind the image's own key: neither begins like the other. */
static int add_own(struct base_buf *key, const char *process, const char *label)
{
	int r = process ? base_buf_append(key, process, strlen(process)) : 0;

	if (r >= 0 && label)
		r = base_buf_printf(key, "\n%s", label);
	return r;
}

int image_set_label(struct image *img, const char *label)
{
	char *copy = strdup(label);
	int r = copy ? profdb_profile_set_word(img->counts, "label", label) : -ENOMEM;

	if (r < 0) {
		free(copy);
		return r;
	}
	free(img->label);
	img->label = copy;
	return 0;
}

void image_label(struct image *img, const char *label)
{
	if (label && !img->label && image_set_label(img, label) < 0)
		base_log(BASE_LOG_ERROR, "no memory for the label of '%s'", img->stem);
}

static int copy_word(struct image *to, const struct image *from, const char *word)
{
	const char *value = profdb_profile_word(from->counts, word);

	return value ? profdb_profile_set_word(to->counts, word, value) : 0;
}

/* Another image of the same file, that differs by its words in the profile. */
static struct image *new_own(const struct image *img, const char *process, const char *label)
{
	static const char *const words[] = { "identity", "tstart", "tsize" };
	struct image *own = image_new(img->kind, &img->id, img->path, img->stem);
	int r = own ? 0 : -ENOMEM;

	if (r >= 0 && process) {
		own->process = strdup(process);
		r = own->process ? profdb_profile_set_word(own->counts, "process", process)
				 : -ENOMEM;
	}
	if (r >= 0 && label)
		r = image_set_label(own, label);
	for (size_t i = 0; r >= 0 && i < sizeof(words) / sizeof(words[0]); i++)
		r = copy_word(own, img, words[i]);
	if (r >= 0)
		r = set_text(own, &img->text);
	if (r < 0) {
		image_free(own);
		return NULL;
	}
	own->excluded = img->excluded;
	own->bucket = img->bucket;
	return own;
}

struct image *images_of(struct images *t, struct image *img, const struct images_owner *owner)
{
	const char *label = owner->label;
	struct image *own = NULL;
	char *process = NULL;

	if (!img->apart && !label)
		return img;
	if (img->apart && name_process(owner, &process) < 0)
		return NULL;
	if (key_of(&t->key, img) >= 0 && add_own(&t->key, process, label) >= 0) {
		own = search(t);
		if (!own)
			own = add(t, new_own(img, process, label));
	}
	free(process);
	return own;
}

struct image *images_bucket(struct images *t, enum account_bucket bucket)
{
	const char *name = account_bucket_name(bucket);
	struct image *img = t->buckets[bucket];

	if (img)
		return img;
	img = images_get(t, PROFDB_NAMED, NULL, name, name);
	if (img)
		img->bucket = bucket;
	t->buckets[bucket] = img;
	return img;
}

bool images_next(const struct images *t, size_t *pos, struct image **out)
{
	void *value;

	if (!base_map_next(&t->by_key, pos, &value))
		return false;
	*out = value;
	return true;
}

size_t images_nr(const struct images *t)
{
	return t->by_key.nr;
}

bool image_must_wait(const struct image *img)
{
	return img->kind == PROFDB_DYNAMIC && (img->behind || img->writing || !img->id.len);
}

void image_set_id(struct image *img, const struct base_id *id)
{
	img->id = *id;
	profdb_profile_set_image(img->counts, id);
}

/* A profile without these words is as good: no memory is no failure. */
void image_set_extent(struct image *img, const struct base_extent *e)
{
	char start[32], size[32];

	if (!e->size || profdb_profile_word(img->counts, "tsize"))
		return;
	snprintf(start, sizeof(start), "0x%" PRIx64, e->start);
	snprintf(size, sizeof(size), "%" PRIu64, e->size);
	if (profdb_profile_set_word(img->counts, "tstart", start) >= 0)
		profdb_profile_set_word(img->counts, "tsize", size);
}

struct image *image_get(struct image *img)
{
	if (img)
		img->refs++;
	return img;
}

void image_put(struct image *img)
{
	if (img && img->refs)
		img->refs--;
}

/* The buckets are kept by whoever asks for them again; those of labels are not. */
static bool may_be_dropped(const struct image *img)
{
	return (img->kind == PROFDB_FILE || img->kind == PROFDB_DYNAMIC ||
		img->kind == PROFDB_KERNEL || img->label) &&
	       !img->refs && !img->dirty && !img->values;
}

static bool drop(struct images *t, struct image *img)
{
	/* A pseudo-image has its label beside its own key. */
	const char *label = img->kind == PROFDB_DYNAMIC ? NULL : img->label;
	struct image **lately = lately_of(t, &img->id);
	bool done = key_of(&t->key, img) == 0 && add_own(&t->key, img->process, label) == 0 &&
		    base_map_del(&t->by_key, t->key.data, t->key.len) == img;

	if (!done)
		return false;
	*lately = *lately == img ? NULL : *lately;
	image_free(img);
	return true;
}

void images_drop_unused(struct images *t)
{
	struct image *img;

	for (size_t pos = 0; images_next(t, &pos, &img);)
		if (may_be_dropped(img) && drop(t, img))
			pos--;
}
