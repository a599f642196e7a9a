/* SPDX-License-Identifier: BSD-2-Clause */
/* Options about estimates and stalls that span procedures are checked. */
#include <stdlib.h>
#include <string.h>

#include "estimation.h"

static int find_outside(const char *how, enum stall_outside *out, struct base_err *err)
{
	static const char *const names[] = {
		[STALL_OPTIMISTIC] = "optimistic",
		[STALL_PESSIMISTIC] = "pessimistic",
		[STALL_SELECTIVE] = "selective",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (strcmp(how, names[i]) != 0)
			continue;
		*out = (enum stall_outside)i;
		return 0;
	}
	base_fail(err, -DCPI_EUSAGE, "-cross_procedure cannot be '%s'", how);
	base_hint(err, "optimistic, pessimistic or selective");
	return -DCPI_EUSAGE;
}

int estimation_least(const struct estimation *e, enum freq_confidence usual,
		     enum freq_confidence *least, struct base_err *err)
{
	if (e->low + e->medium + e->high > 1)
		return base_fail(err, -DCPI_EUSAGE,
				 "-conf_low, -conf_med and -conf_high exclude each other");
	*least = e->low ? FREQ_LOW : e->medium ? FREQ_MEDIUM : e->high ? FREQ_HIGH : usual;
	return 0;
}

void estimation_text(double freq, enum freq_confidence confidence, char *buf, size_t buf_len)
{
	char digits[32];

	/* Within 10 % is one digit, a factor of two is none. */
	snprintf(digits, sizeof(digits), "%.*e", confidence == FREQ_HIGH ? 1 : 0, freq);
	snprintf(buf, buf_len, "%g", strtod(digits, NULL));
}

int estimation_check(const struct estimation *e, enum freq_confidence *least,
		     enum stall_outside *outside, struct base_err *err)
{
	int r = estimation_least(e, FREQ_MEDIUM, least, err);

	*outside = STALL_OPTIMISTIC;
	return r >= 0 && e->outside ? find_outside(e->outside, outside, err) : r;
}
