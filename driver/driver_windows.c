/* SPDX-License-Identifier: BSD-2-Clause */
/* What driver.h says of windows, for whatever source. */
#include <errno.h>
#include <sys/utsname.h>

#include "driver_internal.h"

int driver_windows_missing(struct driver *d, int (*fn)(void *ctx, const struct vtrace_window *w),
			   void *ctx)
{
	return d->windows ? d->windows->missing(d, fn, ctx) : 0;
}

int driver_block_put(struct driver *d, const struct vtrace_code *code)
{
	const struct vtrace_block *b = &code->block;
	bool good = b->nr_uops > 0 && b->nr_uops <= VTRACE_BLOCK_UOPS && b->nr_insns > 0 &&
		    b->nr_insns <= VTRACE_BLOCK_INSNS && b->len > 0 && b->len <= VTRACE_BLOCK_BYTES;

	if (!d->windows)
		return -DCPI_EUNSUPPORTED;
	for (size_t i = 0; good && i < b->nr_uops; i++)
		good = vtrace_uop_is_sound(&code->uops[i]);
	for (size_t i = 0; good && i < b->nr_insns; i++)
		good = code->insns[i].offset < b->len && code->insns[i].first < b->nr_uops;
	return good ? d->windows->block_put(d, code) : -EINVAL;
}

const struct vtrace_code *driver_block_get(const struct driver *d, uint32_t id)
{
	return d->windows ? d->windows->block_get(d, id) : NULL;
}

void driver_window_stats_get(const struct driver *d, struct driver_window_stats *out)
{
	*out = (struct driver_window_stats){ 0 };
	if (d->windows)
		d->windows->stats(d, out);
}

/* See docs/decisions/windows.md: with hardened usercopy such a read could lock up. */
int driver_windows_possible(const char *release, struct base_err *err)
{
	struct utsname name = { 0 };
	unsigned int major = 0, minor = 0;

	if (!release && uname(&name) == 0)
		release = name.release;
	if (release && sscanf(release, "%u.%u", &major, &minor) == 2 &&
	    (major > 6 || (major == 6 && minor >= 2)))
		return 0;
	base_fail(err, -DCPI_EUNSUPPORTED, "no windows on Linux '%s'", release ? release : "?");
	base_hint(err, "reading user memory in the sampling interrupt is safe from Linux 6.2 on");
	return -DCPI_EUNSUPPORTED;
}
