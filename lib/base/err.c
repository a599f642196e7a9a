/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors and hints are put into words here. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "base.h"

const char *base_strerror(int code)
{
	static const char *const texts[] = {
#define X(code, text) [code - DCPI_ERROR_BASE] = text,
		DCPI_ERRORS(X)
#undef X
	};

	if (code == INT_MIN)
		return "unknown error";
	if (code < 0)
		code = -code;
	if (code < DCPI_ERROR_BASE)
		return strerror(code);
	if (code == DCPI_ERROR_BASE || code >= DCPI_ERROR_END)
		return "unknown error";
	return texts[code - DCPI_ERROR_BASE];
}

/* The cause comes last but is what a reader needs: a long message is cut before it. */
__attribute__((format(printf, 4, 0))) static int
record(struct base_err *err, int code, const char *cause, const char *fmt, va_list args)
{
	size_t space;

	if (!err || err->code)
		return code;
	space = sizeof(err->text) - (cause ? strnlen(cause, sizeof(err->text) / 2) + 2 : 0);
	if (vsnprintf(err->text, space, fmt, args) < 0)
		err->text[0] = '\0';
	if (cause) {
		size_t at = strlen(err->text);

		snprintf(err->text + at, sizeof(err->text) - at, ": %s", cause);
	}
	base_text_clean(err->text);
	err->code = code;
	err->hint[0] = '\0';
	return code;
}

int base_fail(struct base_err *err, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	record(err, code, NULL, fmt, args);
	va_end(args);
	return code;
}

int base_fail_errno(struct base_err *err, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	record(err, code, base_strerror(code), fmt, args);
	va_end(args);
	return code;
}

void base_hint(struct base_err *err, const char *fmt, ...)
{
	va_list args;

	if (!err || !err->code || err->hint[0])
		return;
	va_start(args, fmt);
	if (vsnprintf(err->hint, sizeof(err->hint), fmt, args) < 0)
		err->hint[0] = '\0';
	va_end(args);
	base_text_clean(err->hint);
}

void base_err_print(const struct base_err *err, const char *prog, FILE *to)
{
	fprintf(to, "%s: %s\n", prog, err->text[0] ? err->text : base_strerror(err->code));
	if (err->hint[0])
		fprintf(to, "hint: %s\n", err->hint);
}
