/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any images, as jobs or (whatever is no job) as a file: folded or refused with a reason. What is
 * folded can be folded onto, and then holds it already. Masks change no length and never trip.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pseudoimg_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int new_file(const void *data, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || base_write_all(fd, data, len) < 0)
		abort();
	return fd;
}

static void check_maps(const struct base_buf *maps)
{
	const struct wire_head *rec;
	size_t pos = 0;

	while ((rec = wire_next(maps->data, maps->len, &pos)))
		if (rec->type != WIRE_REPLACES || wire_check(rec) < 0)
			abort();
	if (pos != maps->len)
		abort();
}

static int merge(int base, int job, int out, struct pseudoimg_result *result)
{
	struct pseudoimg_merge fds = {
		.base_fd = base, .job_fd = job, .scratch_fd = new_file(NULL, 0), .out_fd = out
	};
	struct base_buf maps = { 0 };
	struct base_err err = { 0 };
	int r = pseudoimg_merge(&fds, result, &maps, &err);

	if (r > 0 || (r < 0) != (err.code < 0))
		abort();
	if (!r)
		check_maps(&maps);
	base_buf_release(&maps);
	close(fds.scratch_fd);
	return r;
}

static void mask(const uint8_t *data, size_t len)
{
	static const uint32_t machines[] = { 62, 183, 243 };
	uint8_t *copy = malloc(len + 1);

	if (!copy)
		abort();
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		memcpy(copy, data, len);
		if (pseudoimg_mask(machines[i], copy, len) == !memcmp(copy, data, len))
			abort();
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int in = new_file(data, len), first = new_file(NULL, 0), second = new_file(NULL, 0),
	    third = new_file(NULL, 0);
	struct pseudoimg_result a, b, c;

	mask(data, len);
	/* Each fold counts the routines that the next one finds. */
	if (!merge(-1, in, first, &a) && !merge(first, in, second, &b)) {
		if (b.nr_routines < a.nr_routines)
			abort();
		if (merge(second, in, third, &c) < 0 ||
		    memcmp(b.build_id, c.build_id, sizeof(b.build_id)) != 0)
			abort();
	}
	close(in);
	close(first);
	close(second);
	close(third);
	return 0;
}
