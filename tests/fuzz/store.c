/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a batch, with its checksum put right, and as rows of a server's answers: a byte
 * before each says to which question. What is refused leaves nothing, what is taken becomes the
 * files of a database.
 */
#include <ftw.h>
#include <stdio.h>
#include <unistd.h>
#include <zstd.h>

#include "fetch.h"
#include "sealed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { HEAD = 8 + 32 };

static void try_batch(const uint8_t *data, size_t len)
{
	struct store_batch b, again;
	struct base_buf file = { 0 };

	if (store_batch_parse(data, len, &b, NULL) < 0) {
		CHECK(store_batch_len(&b) == 0);
		return;
	}
	CHECK(store_batch_format(&b, &file) == 0);
	CHECK(store_batch_parse(file.data, file.len, &again, NULL) == 0);
	CHECK(store_batch_len(&again) == store_batch_len(&b));
	store_batch_release(&b);
	store_batch_release(&again);
	base_buf_release(&file);
}

/* The bytes as what a batch's compressed part holds. */
static void try_sealed(const uint8_t *data, size_t len)
{
	size_t bound = ZSTD_compressBound(len);
	uint8_t *file = calloc(1, HEAD + bound);
	struct base_sha256 s;

	CHECK(file);
	memcpy(file, "DCPIBAT2", 8);
	bound = ZSTD_compress(file + HEAD, bound, data, len, 1);
	CHECK(!ZSTD_isError(bound));
	base_sha256_init(&s);
	base_sha256_add(&s, file + HEAD, bound);
	base_sha256_end(&s, file + 8);
	try_batch(file, HEAD + bound);
	free(file);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void write_database(struct fetch *f)
{
	char dir[] = "/tmp/dcpi-fuzz-XXXXXX";
	struct store_fetched out;
	struct base_err err = { 0 };

	CHECK(mkdtemp(dir));
	if (fetch_write(f, dir, &out, &err) >= 0)
		CHECK(out.profiles == f->nr_profiles);
	CHECK(nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

static void take_row(struct fetch *f, enum fetch_row row, struct store_reader *r)
{
	struct store_reader ahead = *r;
	uint64_t number;

	/* A routine is taken where it has samples: here each has some. */
	if (row == FETCH_ROUTINE) {
		number = store_get_number(&ahead, 8);
		CHECK(base_map_set(&f->wanted, &number, sizeof(number), f) == 0);
	}
	fetch_take(f, row, r);
}

static void try_answer(const uint8_t *data, size_t len, const struct store_want *w)
{
	struct fetch f = { .w = w, .nr_events = 1 };
	struct store_reader r = { data, data + len, false };

	f.events[0] = (struct profdb_event){ .name = "cycles", .period = 62000, .enabled = 1 };
	while (r.at < r.end && !r.bad)
		take_row(&f, (enum fetch_row)(store_get_number(&r, 1) % FETCH_NR_ROWS), &r);
	if (f.nr_profiles)
		write_database(&f);
	fetch_release(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const char *const images[] = { "/bin/x", "x" };
	const struct store_want all = { .by_platform = true };
	const struct store_want some = {
		.by_epoch = true, .symbols = true, .images = images, .nr_images = 2
	};

	if (!len)
		return 0;
	try_batch(data, len);
	try_sealed(data + 1, len - 1);
	try_answer(data + 1, len - 1, *data & 1 ? &all : &some);
	return 0;
}
