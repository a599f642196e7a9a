/* SPDX-License-Identifier: BSD-2-Clause */
/* Epochs begin at full hours of UTC, or as often as is wanted, whatever the clock did meanwhile. */
#include <string.h>

#include "every.h"
#include "when.h"

enum { MINUTE = 60, WEEK = 7 * EVERY_DAY };

int every_parse(const char *text, int64_t *out, struct base_err *err)
{
	int64_t span = 0;

	*out = 0;
	if (!text || !strcmp(text, "off"))
		return 0;
	if (when_span(text, &span) < 0 || span % MINUTE || span > WEEK) {
		base_fail(err, -DCPI_EUSAGE, "-epoch_every '%.40s' is no time between epochs",
			  text);
		base_hint(err, "whole minutes up to a week: 1h, 30m, 1d; or off");
		return -DCPI_EUSAGE;
	}
	*out = span;
	return 0;
}
