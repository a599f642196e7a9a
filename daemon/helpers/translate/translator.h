/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Machine code becomes micro-ops in a helper (dcpid-translate): it came from an application, and
 * decoders are large. The helper has no rights, is killed and replaced where it takes longer than a
 * second, and what it answers is checked against the code, micro-op for micro-op.
 */
#ifndef DCPI_DAEMON_TRANSLATOR_H
#define DCPI_DAEMON_TRANSLATOR_H

#include <stddef.h>
#include <sys/types.h>

#include "base.h"
#include "vtrace.h"

enum {
	TRANSLATOR_CODE = 8192, /* bytes of a request at most */
	TRANSLATOR_BLOCKS = 64, /* limits of an answer */
	TRANSLATOR_DEPTH = 6,	/* so many blocks after the one that is asked for */
	TRANSLATOR_SOCKET = 0,	/* the helper's descriptor */
};

/* On the socket, with @len bytes of code behind it. */
struct translator_request {
	uint32_t arch; /* enum vtrace_arch */
	uint32_t len;
	uint64_t base; /* vaddr of the first byte */
	uint64_t pc;   /* the wanted place: in [base, base + len), vtrace_place_len() bytes of it */
};

/* With @nr struct vtrace_code behind it, the one at pc first. */
struct translator_answer {
	uint32_t nr, pad;
};

/* Where it can be done here at all; else -DCPI_EUNSUPPORTED. */
int translator_arch(enum vtrace_arch *out);

/*
 * Is @c a block that the interpreter may be given? Each count and offset within bounds, each
 * micro-op sound (vtrace_uop_is_sound). Of which code it was made is not asked, nor its place.
 */
bool translator_block_is_sound(const struct vtrace_code *c);
/*
 * The blocks of an answer of @len bytes (8-byte aligned) to @q. How many, or -DCPI_EHELPER: it is
 * not an answer, or one of them is not sound. Then none is to be used.
 */
int translator_check(const struct translator_request *q, const uint8_t *code, const void *answer,
		     size_t len, const struct vtrace_code **blocks);

struct translator;

/* Starts nothing yet. Negative with @err: the program is not there. */
int translator_open(const char *helper_dir, struct translator **out, struct base_err *err);
void translator_close(struct translator *t);
/*
 * The block at @q->pc and those that may follow it, as far as @code reaches, in *@blocks, valid
 * until the next call. How many, or negative: -EINVAL; -ETIMEDOUT, -DCPI_EHELPER: the helper was
 * killed, the next call has another one; -errno.
 */
int translator_call(struct translator *t, const struct translator_request *q, const uint8_t *code,
		    const struct vtrace_code **blocks);
/*
 * Starts the helper where none runs, and waits until it answers: a second at most, whatever the
 * patience is. 0 or as translator_call. A caller that has little patience needs it before its call.
 */
int translator_ready(struct translator *t);
/* Wait so long for an answer, instead of a second. */
void translator_set_patience(struct translator *t, unsigned int ms);
/* The helper that runs, or 0. */
pid_t translator_pid(const struct translator *t);
/* CPU time of this process and of the helper that runs, in ns: calls cost the difference. */
uint64_t translator_cpu_ns(const struct translator *t);

#endif
