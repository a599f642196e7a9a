/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of driver.h, handed to the source that was opened. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "source.h"

int driver_start(struct driver *d, struct base_err *err)
{
	return d->ops->start(d, err);
}

int driver_drain(struct driver *d, bool all, const struct driver_sink *sink, struct base_err *err)
{
	return d->ops->drain(d, all, sink, err);
}

int driver_look(struct driver *d)
{
	return d->ops->look ? d->ops->look(d) : -DCPI_EUNSUPPORTED;
}

void driver_busy(struct driver *d, bool busy)
{
	if (d->ops->busy)
		d->ops->busy(d, busy);
}

int driver_wake_at_exec(struct driver *d)
{
	return d->ops->wake_at_exec ? d->ops->wake_at_exec(d) : -DCPI_EUNSUPPORTED;
}

int driver_poll_fd(const struct driver *d)
{
	return d->ops->poll_fd(d);
}

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

void driver_stop(struct driver *d)
{
	d->ops->stop(d);
}

void driver_close(struct driver *d)
{
	if (d)
		d->ops->close(d);
}

size_t driver_nr_events(const struct driver *d)
{
	return d->nr_events + d->nr_timed;
}

size_t driver_nr_sampled(const struct driver *d)
{
	return d->nr_events;
}

const struct driver_event *driver_event_get(const struct driver *d, size_t index)
{
	return index < driver_nr_events(d) ? &d->events[index] : NULL;
}

void driver_stats_get(const struct driver *d, struct driver_stats *out)
{
	*out = d->stats;
}

const char *driver_thread_name(const struct driver *d, uint32_t thread)
{
	return d->ops->thread_name ? d->ops->thread_name(d, thread) : "";
}

void driver_threads_forget(struct driver *d)
{
	if (d->ops->threads_forget)
		d->ops->threads_forget(d);
}

const char *driver_describe(const struct driver *d)
{
	return d->describe;
}

bool driver_is_recorded(const struct driver *d)
{
	return d->utc >= 0;
}

int64_t driver_recorded_utc(const struct driver *d)
{
	return d->utc;
}

const char *driver_agent_env(const struct driver *d)
{
	return d->agent_env;
}

/* ---- waits ---------------------------------------------------------------------------------- */

void driver_wait_stats_get(const struct driver *d, struct driver_wait_stats *out)
{
	*out = (struct driver_wait_stats){ 0 };
	if (d->waits)
		d->waits->stats(d, out);
}

/* ---- traces --------------------------------------------------------------------------------- */

bool driver_has_traces(const struct driver *d)
{
	return d->traces != NULL;
}

int driver_traces_missing(struct driver *d, int (*fn)(void *ctx, const struct insn_trace *w),
			  void *ctx)
{
	return d->traces ? d->traces->missing(d, fn, ctx) : 0;
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

const struct vtrace_code *driver_block_get(const struct driver *d, uint32_t id)
{
	return d->traces ? d->traces->block_get(d, id) : NULL;
}

void driver_trace_stats_get(const struct driver *d, struct driver_trace_stats *out)
{
	*out = (struct driver_trace_stats){ 0 };
	if (d->traces)
		d->traces->stats(d, out);
}

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

/* ---- call paths ------------------------------------------------------------------------------ */

int driver_rows_missing(struct driver *d, int (*fn)(void *ctx, const struct driver_rows_missing *m),
			void *ctx)
{
	return d->callpaths ? d->callpaths->missing(d, fn, ctx) : 0;
}

int driver_rows_put(struct driver *d, const struct driver_file *file,
		    const struct unwind_table *table)
{
	return d->callpaths ? d->callpaths->put(d, file, table) : -DCPI_EUNSUPPORTED;
}

void driver_rows_again(struct driver *d, const struct driver_file *file)
{
	if (d->callpaths)
		d->callpaths->again(d, file);
}

void driver_rows_forget(struct driver *d, const struct driver_file *files, size_t nr)
{
	if (d->callpaths)
		d->callpaths->forget(d, files, nr);
}

bool driver_rows_rule(struct driver *d, const struct driver_file *file, uint64_t off,
		      struct unwind_rule *rule)
{
	return d->callpaths && d->callpaths->rule(d, file, off, rule);
}

void driver_callpath_stats_get(const struct driver *d, struct driver_callpath_stats *out)
{
	*out = (struct driver_callpath_stats){ 0 };
	if (d->callpaths)
		d->callpaths->stats(d, out);
}

int driver_callpaths_possible(const char *release, struct base_err *err)
{
	return sample_reads_memory(release, "call paths", err);
}
