/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A batch as a file: "DCPIBAT2", the SHA-256 of what follows, and that: compressed by zstd, for
 * each table the length of its rows (8 bytes), then the rows. Batches of untrusted machines pass a
 * relay, so each row is checked before a server sees it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zstd.h>

#include "store_internal.h"

static const char magic[] = "DCPIBAT2";
enum { MAGIC = 8, SUM = 32, LEVEL = 3 };
#define BATCH_MAX ((size_t)512 << 20)

void store_batch_release(struct store_batch *b)
{
	for (size_t i = 0; i < STORE_NR_SENT; i++)
		base_buf_release(&b->rows[i]);
}

int store_batch_add(struct store_batch *to, const struct store_batch *from)
{
	int r = 0;

	for (size_t i = 0; i < STORE_NR_SENT && r >= 0; i++)
		if (from->rows[i].len)
			r = base_buf_append(&to->rows[i], from->rows[i].data, from->rows[i].len);
	return r;
}

static void sum_of(const void *data, size_t len, uint8_t sum[SUM])
{
	struct base_sha256 s;

	base_sha256_init(&s);
	base_sha256_add(&s, data, len);
	base_sha256_end(&s, sum);
}

static int compress(const struct base_buf *plain, struct base_buf *out)
{
	size_t bound = ZSTD_compressBound(plain->len), head = out->len;
	uint8_t *to;
	int r = plain->len > BATCH_MAX ? -DCPI_ELIMIT
				       : base_buf_extend(out, SUM + bound, (void **)&to);

	if (r < 0)
		return r;
	bound = ZSTD_compress(to + SUM, bound, plain->data, plain->len, LEVEL);
	if (ZSTD_isError(bound))
		return -ENOMEM;
	out->len = head + SUM + bound;
	sum_of(to + SUM, bound, to);
	return 0;
}

int store_batch_format(const struct store_batch *b, struct base_buf *out)
{
	struct base_buf plain = { 0 };
	int r = 0;

	for (size_t i = 0; i < STORE_NR_SENT && r >= 0; i++) {
		r = base_buf_append_le(&plain, b->rows[i].len, 8);
		if (r >= 0 && b->rows[i].len)
			r = base_buf_append(&plain, b->rows[i].data, b->rows[i].len);
	}
	if (r >= 0)
		r = base_buf_append(out, magic, MAGIC);
	if (r >= 0)
		r = compress(&plain, out);
	base_buf_release(&plain);
	return r;
}

static int decompress(const uint8_t *data, size_t len, struct base_buf *plain)
{
	unsigned long long whole = ZSTD_getFrameContentSize(data, len);
	void *to;
	size_t got;

	if (whole == ZSTD_CONTENTSIZE_ERROR || whole == ZSTD_CONTENTSIZE_UNKNOWN)
		return -DCPI_EFORMAT;
	if (whole > BATCH_MAX)
		return -DCPI_ELIMIT;
	if (base_buf_extend(plain, whole, &to) < 0)
		return -ENOMEM;
	got = ZSTD_decompress(to, whole, data, len);
	return ZSTD_isError(got) || got != whole ? -DCPI_EFORMAT : 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

static bool content_is_right(struct store_reader *r)
{
	struct store_key key;
	size_t len;
	const void *told = store_get_bytes(r, STORE_KEY);
	const char *bytes = (store_get_number(r, 8), store_get_string(r, &len));

	if (!told || !bytes || len > STORE_CONTENT_MAX)
		return false;
	store_content_key(bytes, len, &key);
	return memcmp(told, &key, sizeof(key)) == 0;
}

static bool routine_is_right(struct store_reader *r)
{
	uint64_t number = store_get_number(r, 8);
	const void *image = store_get_bytes(r, STORE_KEY);
	size_t len;
	const char *text = store_get_string(r, &len);
	char *symbol = text ? strndup(text, len) : NULL;
	bool right = image && symbol &&
		     store_routine_key(image, symbol, store_get_number(r, 8)) == number;

	store_get_bytes(r, 16);
	free(symbol);
	return right;
}

/* Texts of an image's row. */
struct image_texts {
	char *kind, *id, *path, *text;
};

static char *get_text(struct store_reader *r)
{
	size_t len;
	const char *text = store_get_string(r, &len);

	return text ? strndup(text, len) : NULL;
}

/* A pseudo-image's key is of its machine too, and its row's version is a time, as of all others. */
static bool identity_is_right(const void *told, uint64_t ver, const struct image_texts *t)
{
	struct base_id id = { 0 };
	struct store_key key;

	if (!told || !t->kind || !t->id || !t->path || !t->text)
		return false;
	if (strcmp(t->kind, profdb_kind_name(PROFDB_DYNAMIC)) == 0)
		return true;
	if (ver > STORE_CONTENT_MAX || (*t->id && base_id_parse(&id, t->id, strlen(t->id)) < 0))
		return false;
	store_file_key(t->kind, &id, t->text, t->path, &key);
	return memcmp(told, &key, sizeof(key)) == 0;
}

/* A row of more symbols would not be read. */
static bool image_is_right(struct store_reader *r)
{
	const void *told = store_get_bytes(r, STORE_KEY);
	uint64_t ver = store_get_number(r, 8);
	struct image_texts t;
	size_t len, nr;
	bool right;

	t.kind = get_text(r);
	t.id = get_text(r);
	t.path = get_text(r);
	t.text = get_text(r);
	right = identity_is_right(told, ver, &t);
	free(t.kind);
	free(t.id);
	free(t.path);
	free(t.text);
	store_get_string(r, &len); /* name */
	store_get_string(r, &len); /* stem */
	store_get_bytes(r, STORE_KEY + 4);
	nr = store_get_count(r, 1);
	right &= nr <= STORE_SYMBOLS_MAX;
	for (size_t i = 0; i < nr && right && !r->bad; i++)
		store_get_string(r, &len);
	store_get_bytes(r, 8 * store_get_count(r, 8));
	store_get_bytes(r, 8 * store_get_count(r, 8));
	return right && !r->bad;
}

static bool rows_are_right(const struct base_buf *rows, bool (*row)(struct store_reader *r))
{
	struct store_reader r = { rows->data, rows->data + rows->len, false };
	bool right = true;

	while (r.at < r.end && right)
		right = row(&r);
	return right;
}

/* Contents, routines, and images but pseudo-images tell themselves what their keys are. */
static bool keys_are_right(const struct store_batch *b)
{
	return rows_are_right(&b->rows[STORE_CONTENT], content_is_right) &&
	       rows_are_right(&b->rows[STORE_ROUTINE], routine_is_right) &&
	       rows_are_right(&b->rows[STORE_IMAGE], image_is_right);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int take_rows(const struct base_buf *plain, struct store_batch *out)
{
	struct store_reader reader = { plain->data, plain->data + plain->len, false };
	/* The clocks of machines differ by a day at most. */
	struct store_rows_facts facts = { .ver_max = ((uint64_t)time(NULL) + 86400) * 1000000000 };

	for (size_t i = 0; i < STORE_NR_SENT; i++) {
		size_t len = store_get_number(&reader, 8);
		const void *rows = store_get_bytes(&reader, len);

		if (!rows || store_rows_check(&store_tables[i], rows, len, &facts) < 0)
			return -DCPI_EFORMAT;
		if (len && base_buf_append(&out->rows[i], rows, len) < 0)
			return -ENOMEM;
	}
	return reader.at == reader.end && keys_are_right(out) ? 0 : -DCPI_EFORMAT;
}

int store_batch_parse(const void *data, size_t len, struct store_batch *out, struct base_err *err)
{
	const uint8_t *v = data;
	struct base_buf plain = { 0 };
	uint8_t sum[SUM];
	int r;

	memset(out, 0, sizeof(*out));
	if (len < MAGIC + SUM || memcmp(v, magic, MAGIC - 1) != 0)
		return base_fail(err, -DCPI_EFORMAT, "this is no batch for a store");
	if (v[MAGIC - 1] != magic[MAGIC - 1])
		return base_fail(err, -DCPI_EVERSION, "a batch of an unknown version");
	sum_of(v + MAGIC + SUM, len - MAGIC - SUM, sum);
	if (memcmp(sum, v + MAGIC, SUM) != 0)
		return base_fail(err, -DCPI_ECHECKSUM, "the batch is damaged");
	r = decompress(v + MAGIC + SUM, len - MAGIC - SUM, &plain);
	if (r >= 0)
		r = take_rows(&plain, out);
	base_buf_release(&plain);
	if (r < 0)
		store_batch_release(out);
	return r < 0 ? base_fail_errno(err, r, "cannot read the batch") : 0;
}
