/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between dcpid (reader.c) and its helper (dcpid-reader.c): one request and one answer at a time
 * over a sequenced-packet socket, descriptors beside them (SCM_RIGHTS), long answers in a memfd
 * that dcpid reads (never maps) and the helper, or its parser (parser.h), writes.
 */
#ifndef DCPI_READER_INTERNAL_H
#define DCPI_READER_INTERNAL_H

#include "base.h"
#include "budget.h"
#include "foreign.h"
#include "helper.h"
#include "registry.h"
#include "wire.h"

enum reader_op {
	READER_IMAGE_ID = 1,  /* pid, addr, end, dev_*, inode or id, path -> id, text, roots,
				 no_elf, extent; or descriptor, owner */
	READER_REGISTRY_OPEN, /* pid, addr, end -> descriptor */
	READER_REGISTRY_READ, /* descriptor, pid, uid, life, place -> place, long answer */
	READER_RANGE_READ,    /* pid, uid, life, range -> long answer */
	READER_ROOT_OPEN,     /* pid, uid, life -> descriptor, ns_pid */
	READER_PERFMAP_OPEN,  /* descriptor (of the root), ns_pid, uid, since -> descriptor */
	READER_FILE_READ, /* descriptor, kind, pid, uid, life, file, seen -> file, seen, long answer
			   */
	READER_GDB_FIND,  /* pid, uid, life -> gdb (heads alone) */
	READER_GDB_LIST,  /* pid, uid, life, gdb -> gdb, long answer of entries */
	READER_GDB_OBJECT, /* pid, uid, life, entry, seq -> print, long answer */
	READER_CODE_READ,  /* pid, addr, end -> long answer of bytes */
	READER_CLOSE,	   /* descriptor */
	READER_FILE_ID,	   /* descriptor (of a socket) -> id, text, extent */
	READER_REMOVED, /* pid, addr, end, id, path; descriptor to copy to, or none -> mode, owner,
			   size; text and roots where it was copied */
	READER_ROWS,	/* pid, addr, end, dev_*, inode or id, path, size; or descriptor
			   -> long answer, an unwind table */
	READER_CODE_ROWS, /* descriptor (of struct reader_routine, and struct wire_frame behind
			     them), pid, addr, end, size (how many routines)
			     -> long answer, an unwind table */
	READER_MAPS,	  /* pid -> long answer, the text of its mappings */
	READER_MAPPED,	  /* pid, dev_*, inode, addr, end, size (the offset) -> 1 or 0 */
};

struct reader_request {
	uint32_t op;
	uint32_t kind; /* enum foreign_kind */
	int32_t pid, ns_pid;
	uint32_t uid; /* whose program it has to be; its user's budget the request is charged to */
	uint64_t since_ns; /* CLOCK_REALTIME */
	uint64_t life;	   /* registry_process_life; 0: not known, no memory is read */
	uint64_t addr, end;
	uint64_t inode, size;
	uint32_t dev_major, dev_minor;
	struct registry_place place;
	struct foreign_place file;
	struct wire_range range;
	struct foreign_gdb gdb;
	struct foreign_gdb_entry entry;
	uint64_t seq;
	struct foreign_seen seen;
	struct base_id id;   /* the file has it; then dev_* and inode are not known */
	uint32_t wants_text; /* READER_FILE_ID between reader and parser: hash the code too */
	char path[1024];     /* "" where it is longer */
};

struct reader_answer {
	int32_t status;	 /* as the call's result */
	uint32_t id_len; /* 0: no image but a file that is to be followed */
	uint32_t owner;	 /* uid of that */
	uint64_t dev, ino, size;
	uint32_t mode;
	struct foreign_seen seen;
	uint32_t no_elf; /* the file is none */
	uint32_t dump;	 /* the parser's: it begins as a jitdump file does */
	int32_t ns_pid;
	struct registry_place place;
	struct foreign_place file;
	struct foreign_gdb gdb;
	uint64_t print;
	uint64_t len; /* bytes in the answers' memfd */
	uint8_t id[32];
	struct base_id text;
	uint32_t roots;
	uint64_t age_s; /* of a file that may be removed */
	struct base_extent extent;
};

/* Bytes of a text that is no hash of the code but tells which file it is. */
enum { READER_TEXT_FILE = 8 };

/* A larger file is not copied. */
#define READER_COPY_MAX (64u << 20)

/* Descriptors the helper starts with; the last is its socket to the parser (parser.h). */
enum { READER_SOCKET_FD = 3, READER_ANSWERS_FD, READER_PARSER_FD };
/* No answer is longer: a full soft limit, one record of the ring, fetched code. */
#define READER_ANSWER_MAX (256u << 20)

/* How much a helper has worked (reader.c). */
struct helper_effort {
	uint64_t ran_ns, ready_ns;
};

/* An unwind table that the helpers make, and how far they are. */
struct reader_making {
	bool asked;
	uint64_t since_ns, looked_ns;
	struct helper_effort before, looked;
	uint64_t idle_ns; /* they neither worked nor lacked a CPU */
};

struct reader {
	struct helper helper, parser;
	int answers;		 /* or -1 */
	struct budgets *budgets; /* the caller's; NULL: every request has timeout_ms */
	struct reader_making making;
	unsigned int timeout_ms;
	void (*meanwhile)(void *ctx);
	void *ctx;
};

/* One request (reader.c), whose long answer is appended to @out: normalized records. */
int reader_call_long(struct reader *r, const struct reader_request *q, int fd,
		     struct reader_answer *a, struct base_buf *out);

/* Send and receive one message with at most one descriptor (-1: none). 0 or -errno; *@fd_out is -1
 * where none came. */
int reader_send(int sock, const void *data, size_t len, int fd);
int reader_receive(int sock, void *data, size_t len, int *fd_out);
/* The same from a peer that is not trusted: @close_fd closes what is not wanted. */
int reader_receive_from(int sock, void *data, size_t len, int *fd_out,
			void (*close_fd)(int fd, uint32_t uid), uint32_t uid);
/* A long answer goes into the file @fd, in place of the one before; @a, whose status is that of the
 * request, gets its length, or why it could not be written. */
void reader_put_answer(int fd, const struct base_buf *out, struct reader_answer *a);
/* The descriptor that comes with the next byte of stream @sock, which stays there. -ENODATA: none.
 */
int reader_peek_fd(int sock);

#endif
