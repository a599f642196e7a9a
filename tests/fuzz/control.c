/* SPDX-License-Identifier: BSD-2-Clause */
/* Control requests: bytes that anyone on the machine can send. */
#include <stdlib.h>
#include <string.h>

#include "control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool is_good(const struct control_request *q)
{
	if (q->command == CONTROL_LABEL)
		return q->pid >= 0 && label_check(q->label, strlen(q->label), NULL) == 0;
	if (q->command == CONTROL_REGISTER)
		return q->pid > 0 && q->path[0] == '/' && q->len && q->start + q->len > q->start &&
		       memchr(q->path, '\0', sizeof(q->path)) &&
		       memchr(q->name, '\0', sizeof(q->name));
	return (unsigned int)q->command <= CONTROL_WATCH;
}

/* As control.c does: line by line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	while (len) {
		const uint8_t *end = memchr(data, '\n', len);
		size_t line_len = end ? (size_t)(end - data) : len;
		struct control_request request;
		struct base_err err = { 0 };
		struct base_buf out = { 0 };
		int r = control_request_parse((const char *)data, line_len, &request, &err);

		/* An answer is one line, whatever the request. */
		if (r >= 0 ? !is_good(&request) : err.code != r)
			abort();
		if (r < 0 && control_reply_error(&out, &err) >= 0 &&
		    memchr(out.data, '\n', out.len) != out.data + out.len - 1)
			abort();
		base_buf_release(&out);
		len -= end ? line_len + 1 : line_len;
		data += end ? line_len + 1 : line_len;
	}
	return 0;
}
