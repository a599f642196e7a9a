/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of driver.h whose arguments, or whose machine, are checked before the source gets them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "source.h"

/* ---- arguments ------------------------------------------------------------------------------- */

static bool is_valid(const struct driver_client *c)
{
	bool good = c->words % sizeof(uint32_t) == 0 && c->cursor % sizeof(uint64_t) == 0 &&
		    (!c->words_ino || c->words_off % 4096 == 0) &&
		    ((!c->words && !c->cursor) || c->stands);

	for (size_t i = 0; i < c->nr_ranges && good; i++)
		good = c->ranges[i].kind == DRIVER_RANGE_SINGLE ||
		       (c->ranges[i].kind == DRIVER_RANGE_WORDS && c->words && c->nr_words &&
			!(c->nr_words & (c->nr_words - 1)));
	return good;
}

int driver_client_set(struct driver *d, int32_t pid, const struct driver_client *client)
{
	if (client && client->nr_ranges > DRIVER_NR_RANGES)
		return -DCPI_ELIMIT;
	if (pid <= 0 || (client && !is_valid(client)))
		return -EINVAL;
	return d->ops->client_set ? d->ops->client_set(d, pid, client) : 0;
}

int driver_block_put(struct driver *d, const struct vtrace_code *code)
{
	const struct vtrace_block *b = &code->block;
	bool good = b->nr_uops > 0 && b->nr_uops <= VTRACE_BLOCK_UOPS && b->nr_insns > 0 &&
		    b->nr_insns <= VTRACE_BLOCK_INSNS && b->len > 0 && b->len <= VTRACE_BLOCK_BYTES;

	if (!d->traces)
		return -DCPI_EUNSUPPORTED;
	for (size_t i = 0; good && i < b->nr_uops; i++)
		good = vtrace_uop_is_sound(&code->uops[i]);
	for (size_t i = 0; good && i < b->nr_insns; i++)
		good = code->insns[i].offset < b->len && code->insns[i].first < b->nr_uops;
	return good ? d->traces->block_put(d, code) : -EINVAL;
}

/* ---- the kernel ------------------------------------------------------------------------------ */

enum { RELEASE_MAX = 512 };

/*
 * What the kernel that runs says of its version. A distribution's release, "6.1.0-56-amd64", names
 * no stable version; Debian has it in the version, Ubuntu in a file.
 */
static const char *own_release(char text[RELEASE_MAX])
{
	struct utsname name = { 0 };
	char signature[128] = "";
	FILE *f = fopen("/proc/version_signature", "re");

	if (f) {
		if (!fgets(signature, sizeof(signature), f))
			*signature = '\0';
		fclose(f);
	}
	if (uname(&name) < 0)
		return "?";
	snprintf(text, RELEASE_MAX, "%s %s %s", name.release, name.version, signature);
	return text;
}

/* The highest number behind "MAJOR.MINOR." that a word of @text begins with. */
static unsigned int stable_number(const char *text, unsigned int major, unsigned int minor)
{
	unsigned int best = 0, number[3];

	for (; *text; text += strcspn(text, " "), text += strspn(text, " "))
		if (sscanf(text, "%u.%u.%u", &number[0], &number[1], &number[2]) == 3 &&
		    number[0] == major && number[1] == minor && number[2] > best)
			best = number[2];
	return best;
}

/*
 * Before that, a read of user memory could wait for a lock that the interrupted code holds, and
 * used page tables that were being switched: docs/decisions/instruction-traces.md.
 */
static bool reads_safely(const char *release)
{
	unsigned int major, minor;

	if (sscanf(release, "%u.%u", &major, &minor) != 2)
		return false;
	if (major == 6 && minor == 1)
		return stable_number(release, major, minor) >= 36;
	return major > 6 || (major == 6 && minor >= 4);
}

static int sample_reads_memory(const char *release, const char *what, struct base_err *err)
{
	char text[RELEASE_MAX];

	if (!release)
		release = own_release(text);
	if (reads_safely(release))
		return 0;
	base_fail(err, -DCPI_EUNSUPPORTED, "no %s on Linux '%.*s'", what,
		  (int)strcspn(release, " "), release);
	base_hint(err, "reading user memory in the sampling interrupt is safe from Linux 6.1.36 on "
		       "in 6.1, and from 6.4 on");
	return -DCPI_EUNSUPPORTED;
}

int driver_traces_possible(const char *release, struct base_err *err)
{
	return sample_reads_memory(release, "traces", err);
}

int driver_callpaths_possible(const char *release, struct base_err *err)
{
	return sample_reads_memory(release, "call paths", err);
}
