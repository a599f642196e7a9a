/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages in the wire format of Protocol Buffers
 * (https://protobuf.dev/programming-guides/encoding), into a buffer. One format needs these three
 * functions of it; a library would bring a generator into each build for them. All return 0 or
 * -ENOMEM.
 */
#ifndef DCPI_EXPORT_PROTOBUF_H
#define DCPI_EXPORT_PROTOBUF_H

#include "base.h"

enum { PROTOBUF_VARINT = 0, PROTOBUF_LENGTH = 2 };

static inline int protobuf_varint(struct base_buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v > 0x7f; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	return base_buf_append(b, bytes, n);
}

/* A number, which readers take for 0 where it is left out. */
static inline int protobuf_number(struct base_buf *b, unsigned int field, uint64_t v)
{
	int r = v ? protobuf_varint(b, field << 3 | PROTOBUF_VARINT) : 0;

	return r < 0 || !v ? r : protobuf_varint(b, v);
}

/* Bytes, a text, or another message. */
static inline int protobuf_bytes(struct base_buf *b, unsigned int field, const void *data,
				 size_t len)
{
	int r = protobuf_varint(b, field << 3 | PROTOBUF_LENGTH);

	if (r >= 0)
		r = protobuf_varint(b, len);
	return r < 0 ? r : base_buf_append(b, data, len);
}

#endif
