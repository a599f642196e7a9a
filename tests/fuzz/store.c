/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a batch, with its checksum put right, and as a server's answer to each question: the
 * first byte says to which. What is refused leaves nothing, what is taken becomes a database's
 * files.
 */
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
	memcpy(file, "DCPIBAT1", 8);
	bound = ZSTD_compress(file + HEAD, bound, data, len, 1);
	CHECK(!ZSTD_isError(bound));
	base_sha256_init(&s);
	base_sha256_add(&s, file + HEAD, bound);
	base_sha256_end(&s, file + 8);
	try_batch(file, HEAD + bound);
	free(file);
}

static void try_answer(uint8_t which, const uint8_t *data, size_t len)
{
	static int (*const take[])(struct fetch * f, struct store_reader * r) = {
		fetch_take_image,    fetch_take_content,  fetch_take_head,
		fetch_take_count,    fetch_take_routine,  fetch_take_total,
		fetch_take_platform, fetch_take_workload, fetch_take_part,
	};
	static const struct store_want w = { .by_platform = true };
	struct fetch f = { .w = &w };
	struct store_reader r = { data, data + len, false };
	size_t nr = sizeof(take) / sizeof(*take);

	/* An answer goes to several questions one after another, as images precede their profiles.
	 */
	for (size_t i = 0; i < nr && r.at < r.end && !r.bad; i++)
		while (r.at < r.end && !r.bad && take[(which + i) % nr](&f, &r) >= 0 && (i & 1))
			;
	fetch_release(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (!len)
		return 0;
	try_batch(data, len);
	try_sealed(data + 1, len - 1);
	try_answer(*data, data + 1, len - 1);
	return 0;
}
