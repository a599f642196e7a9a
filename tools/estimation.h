/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of tools that estimate: the least confidence, and what to assume about code elsewhere. */
#ifndef DCPI_ESTIMATION_H
#define DCPI_ESTIMATION_H

#include "freq.h"
#include "stall.h"

struct estimation {
	bool low, medium, high; /* -conf_low, -conf_med, -conf_high */
	const char *outside;	/* -cross_procedure; NULL: optimistic */
};

/* Lines of an option table, for a static struct estimation @e. */
/* clang-format off */
#define ESTIMATION_OPTIONS(e)                                                                      \
	{ "conf_low", BASE_OPT_FLAG, &(e).low, NULL,                                               \
	  "Take frequencies of any confidence.", 0, 0 },                                           \
	{ "conf_med", BASE_OPT_FLAG, &(e).medium, NULL,                                            \
	  "Take those of medium and high confidence (the default).", 0, 0 },                       \
	{ "conf_high", BASE_OPT_FLAG, &(e).high, NULL,                                             \
	  "Take those of high confidence alone.", 0, 0 },                                          \
	{ "cross_procedure", BASE_OPT_STRING, &(e).outside, "HOW",                                 \
	  "Whether a procedure may wait for what happens outside of it: 'optimistic' (no; the "    \
	  "default), 'pessimistic' (yes, where it is entered and behind calls), or 'selective' "   \
	  "(there, for values that the calling convention hands over).", 0, 0 }
/* clang-format on */

/* A frequency with one digit more than is known at that confidence. */
void estimation_text(double freq, enum freq_confidence confidence, char *buf, size_t buf_len);
/* 0 or -DCPI_EUSAGE with @err. Call after parsing. */
int estimation_check(const struct estimation *e, enum freq_confidence *least,
		     enum stall_outside *outside, struct base_err *err);

#endif
