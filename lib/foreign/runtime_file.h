/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside lib/foreign: what the readers of files that runtimes write share. All that is judged was
 * copied before, so it may change in the file meanwhile.
 */
#ifndef DCPI_FOREIGN_RUNTIME_FILE_H
#define DCPI_FOREIGN_RUNTIME_FILE_H

#include "foreign.h"

struct runtime_pages;

struct runtime_file {
	const struct foreign_file *from;
	uint64_t size;	    /* when it was looked at: nothing behind it is read */
	uint64_t trace_off; /* where in the file the trace begins */
	struct base_buf trace;
	struct base_buf code;	     /* code of one routine */
	struct runtime_pages *pages; /* pages of the process's memory that were read before */
};

/*
 * 0; -DCPI_ETRUNCATED where it ends before @place, or what stands before that is another than
 * runtime_file_end found, -EINVAL where it is no regular file, -errno.
 */
int runtime_file_open(struct runtime_file *f, const struct foreign_file *from,
		      const struct foreign_place *place);
/* For the next reading. 0 or as peek. */
int runtime_file_end(struct runtime_file *f, struct foreign_place *place);
void runtime_file_release(struct runtime_file *f);
/*
 * *@at: @len bytes from @off on, which lie before the size; a copy that is good until the next
 * call. 0, -DCPI_ETRUNCATED (it was cut meanwhile), -ENOMEM, -errno.
 */
int runtime_file_peek(struct runtime_file *f, uint64_t off, size_t len, const uint8_t **at);
/* Read memory again at the next peek. */
void runtime_file_forget(struct runtime_file *f);
/* Nothing but zeros from @off to the end, as far as its next 4 MiB tell: it is yet to be written.
 */
bool runtime_file_is_blank(const struct runtime_file *f, uint64_t off);
/* Has the caller of the reader enough, for this time? */
bool runtime_file_is_enough(const struct runtime_file *f, const struct base_buf *out);

/* Can a process have code there, and a record tell of it? */
bool runtime_code_is_good(uint64_t addr, uint64_t len);
/*
 * *@code: what stands at @addr in the process's memory, or at @off in the file; until the next
 * call. NULL where memory cannot be read. 0, -ENOMEM, of the file as peek.
 */
int runtime_code_fetch(struct runtime_file *f, uint64_t addr, size_t len, const uint8_t **code);
int runtime_code_copy(struct runtime_file *f, uint64_t off, size_t len, const uint8_t **code);

struct runtime_routine {
	uint16_t flags; /* beside WIRE_ROUTINE_CODE */
	uint64_t addr, code_len;
	const uint8_t *code; /* NULL: not known */
	const char *name;
	size_t name_len;		      /* length of the name; a longer one is cut */
	const struct base_buf *lines, *files; /* as they stand in the record; NULL: none */
	uint32_t nr_files;
	const struct base_buf *frames; /* struct wire_frame; NULL: none */
};

/* The next number of a change. */
uint64_t runtime_seq_next(uint64_t *seq);
/* Append its record. 0 or -ENOMEM. */
int runtime_routine_put(const struct runtime_routine *routine, uint64_t *seq, struct base_buf *out);

#endif
