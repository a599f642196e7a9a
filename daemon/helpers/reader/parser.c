/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader asks the parser, and copies the memory for it that it wants. */
#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include "parser.h"

static int send_memory(int memory, const struct parser_word *w)
{
	static struct parser_memory m;
	size_t len = w->len < sizeof(m.bytes) ? w->len : sizeof(m.bytes);

	m.n = memory < 0 ? -ESRCH : reader_memory_read(&memory, w->addr, m.bytes, len);
	return reader_send(READER_PARSER_FD, &m,
			   offsetof(struct parser_memory, bytes) + (m.n > 0 ? (size_t)m.n : 0), -1);
}

int parser_ask(const struct reader_request *q, int file, int memory, struct reader_answer *a)
{
	struct parser_word w;
	int r = reader_send(READER_PARSER_FD, q, sizeof(*q), file), none;

	while (r == 0) {
		r = reader_receive(READER_PARSER_FD, &w, sizeof(w), &none);
		if (none >= 0)
			close(none);
		if (r < 0 || !w.len)
			break;
		r = send_memory(memory, &w);
	}
	if (r < 0)
		_exit(BASE_EXIT_FAILED);
	*a = w.answer;
	return a->status;
}
