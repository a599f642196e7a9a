/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the reader process and the parser (dcpid-parse.c), over a sequenced-packet socket: the
 * reader sends a request with at most one descriptor, a file opened to read; the parser asks for
 * bytes of the process's memory until it has done, and writes a long answer into the answers' memfd
 * itself. Requests and answers are those of dcpid (reader_internal.h), as far as the bytes of an
 * application are concerned:
 *
 * READER_FILE_ID: file -> id, no_elf, dump; text, if it is wanted and the code is not too large.
 *
 * READER_ROWS: file -> long answer, an unwind table.
 *
 * READER_CODE_ROWS: routines, addr, end, size -> long answer, an unwind table.
 *
 * READER_REGISTRY_OPEN: registry -> (its header is good).
 *
 * READER_REGISTRY_READ, READER_FILE_READ, READER_GDB_LIST, READER_GDB_OBJECT: as there; no memory
 * if life is 0.
 *
 * READER_GDB_FIND: file, addr, seq (its offset there), since_ns (deadline, of base_now_ns),
 * entry.node (the symbol, if known) -> gdb.state (the symbol, or 0), gdb.heads[0] (its address).
 */
#ifndef DCPI_PARSER_H
#define DCPI_PARSER_H

#include <errno.h>
#include <unistd.h>

#include "reader_internal.h"

enum { PARSER_SOCKET_FD = 0, PARSER_ANSWERS_FD = 1 };
/* Bytes of memory in one message. */
enum { PARSER_BYTES = 64 << 10 };

/* To the reader. */
struct parser_word {
	uint64_t addr, len; /* memory is wanted; len 0: it has done */
	struct reader_answer answer;
};
/* From the reader: so many bytes of memory, or -errno; only they are sent. */
struct parser_memory {
	int64_t n;
	uint8_t bytes[PARSER_BYTES];
};

/*
 * In the reader: the parser's answer to @q, about @file (-1: none) and the memory behind the
 * descriptor @memory (-1: none). Its status; where the parser is gone this process ends, as dcpid
 * replaces both.
 */
int parser_ask(const struct reader_request *q, int file, int memory, struct reader_answer *a);
/* In the reader, as struct registry_memory has it: @ctx is a pointer to the descriptor. -ESRCH: the
 * program is gone. */
static inline ssize_t reader_memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	const int *fd = ctx;
	ssize_t n = pread(*fd, to, len, (off_t)addr);

	if (n < 0)
		return -errno;
	return n || !len ? n : -ESRCH;
}

#endif
