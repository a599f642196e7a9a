/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of exclusions, and of labels that outlive a daemon. */
#include <stdlib.h>
#include <string.h>

#include "exclude.h"
#include "track.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try_labels(const char *text, size_t len)
{
	struct labels t = { 0 };
	int r = labels_keep_parse(&t, text, len, "boot");

	if (r > 0 || (r < 0 && t.nr_kept))
		abort();
	for (size_t i = 0; i < t.nr_kept; i++)
		if (t.kept[i].pid < 1 || !t.kept[i].start_ns ||
		    label_check(t.kept[i].text, strlen(t.kept[i].text), NULL) < 0)
			abort();
	labels_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct exclude x = { 0 };
	struct base_err err = { 0 };
	int r = exclude_parse(&x, (const char *)data, len, "fuzz", &err);

	if (r > 0 || (r < 0) != (err.text[0] != '\0') || exclude_has_pid(&x, 0) ||
	    exclude_has_image(&x, ""))
		abort();
	for (size_t i = 0; i < x.nr_pids; i++)
		if (x.pids[i].first < 1 || !exclude_has_pid(&x, x.pids[i].first) ||
		    !exclude_has_pid(&x, x.pids[i].last))
			abort();
	exclude_release(&x);
	try_labels((const char *)data, len);
	return 0;
}
