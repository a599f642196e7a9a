/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes that dcpitop reads from the daemon's socket: a line, and samples behind it; and what it
 * shows of these. */
#include <stdlib.h>
#include <string.h>

#include "live.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void show(struct profdb_workloads *w)
{
	static const char keys[] = "wpi/x\nsrz+h ";
	struct live_sums sums = { 0 };
	struct live_view v;
	char line[1000];

	workload_filter_init(&sums.filter);
	if (analysis_open_empty(NULL, NULL, 0, &sums.a, NULL) < 0)
		abort();
	live_view_init(&v, &sums);
	live_sums_add(&sums, w, 1000000000);
	live_view_samples(&v, "");
	for (const char *k = keys; *k; k++) {
		live_view_key(&v, *k);
		for (unsigned int y = 0; y < v.height; y++) {
			live_view_line(&v, y, line, sizeof(line));
			if (base_text_width(line) > v.width)
				abort();
		}
	}
	live_view_release(&v);
	live_sums_release(&sums);
	analysis_close(sums.a);
}

/* The samples have a target of their own (workloads): names in them are any bytes here. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *end = len ? memchr(data, '\n', len) : NULL;
	struct profdb_workloads *w = NULL;
	struct live_head head;
	struct base_err err = { 0 };
	char *line = strndup((const char *)data, end ? (size_t)(end - data) : len);
	size_t at = end ? (size_t)(end + 1 - data) : len;

	if (!line)
		abort();
	if (live_head_parse(line, &head, &err) < 0 ? !err.code : head.bytes > INT32_MAX)
		abort();
	if (profdb_workloads_parse(data + at, len - at, &w, &err) >= 0)
		show(w);
	free(line);
	return 0;
}
