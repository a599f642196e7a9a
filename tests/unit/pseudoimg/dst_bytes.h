/* SPDX-License-Identifier: BSD-2-Clause */
/* DST built byte by byte, so that tests do not lean on the writers of dbgdyn_vms.h. */
#ifndef DCPI_TEST_DST_BYTES_H
#define DCPI_TEST_DST_BYTES_H

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base.h"

/* A record of @type: u16 whole length - 1, u16 type, body. */
static inline void dst_put(struct base_buf *b, unsigned int type, const void *body, size_t len)
{
	const size_t coded = 4 + len - 1;
	const uint8_t head[] = { (uint8_t)coded, (uint8_t)(coded >> 8), (uint8_t)type,
				 (uint8_t)(type >> 8) };

	if (base_buf_append(b, head, sizeof(head)) < 0 || base_buf_append(b, body, len) < 0)
		abort();
}

#define DST_BYTES(b, type, ...)                                                                    \
	dst_put((b), (type), (const uint8_t[]){ __VA_ARGS__ },                                     \
		sizeof((const uint8_t[]){ __VA_ARGS__ }))

/* Module "m" in C, version 1.13, compiler unnamed. */
static inline void dst_modbeg(struct base_buf *b)
{
	DST_BYTES(b, 188, 0, 0, 7, 0, 0, 0, 1, 0, 13, 0, 1, 'm', 0);
}

static inline void dst_modend(struct base_buf *b)
{
	dst_put(b, 189, NULL, 0);
}

/* A routine (one-letter name) at @addr, then its end. */
static inline void dst_rtnbeg(struct base_buf *b, uint8_t addr, char name)
{
	DST_BYTES(b, 190, 0, addr, 0, 0, 0, 0, 0, 0, 0, 1, (uint8_t)name);
}

static inline void dst_rtnend(struct base_buf *b, uint8_t len)
{
	DST_BYTES(b, 191, 0, len, 0, 0, 0);
}

/*
 * A module as a port from OpenVMS writes it: routine @name and its one line at address @addr, @len
 * bytes long, and a procedure descriptor.
 */
static inline void dst_absolute_module(struct base_buf *b, uint32_t addr, uint8_t len, char name)
{
	const uint8_t a[] = { (uint8_t)addr, (uint8_t)(addr >> 8), (uint8_t)(addr >> 16),
			      (uint8_t)(addr >> 24) };

	dst_modbeg(b);
	DST_BYTES(b, 190, 0, a[0], a[1], a[2], a[3], 0x10, 0x20, a[2], 0, 1, (uint8_t)name);
	DST_BYTES(b, 185, 16, a[0], a[1], a[2], a[3], 0, 14, len);
	dst_rtnend(b, len);
	dst_modend(b);
}

/* Module m with routine r at 0x10, 0x80 bytes, and these LINE_NUM and SOURCE commands. */
static inline void dst_module(struct base_buf *b, const uint8_t *line, size_t line_len,
			      const uint8_t *source, size_t source_len)
{
	dst_modbeg(b);
	if (source_len)
		dst_put(b, 155, source, source_len);
	dst_rtnbeg(b, 0x10, 'r');
	if (line_len)
		dst_put(b, 185, line, line_len);
	dst_rtnend(b, 0x80);
	dst_modend(b);
}

#endif
