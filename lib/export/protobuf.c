/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding).
 * The messages of one format need these three functions of it; a library would bring a generator
 * into each build for them.
 */
#include "protobuf.h"

enum { VARINT = 0, LENGTH = 2 };

int protobuf_varint(struct base_buf *b, uint64_t v)
{
	uint8_t bytes[10];
	size_t n = 0;

	for (; v > 0x7f; v >>= 7)
		bytes[n++] = (uint8_t)(v | 0x80);
	bytes[n++] = (uint8_t)v;
	return base_buf_append(b, bytes, n);
}

int protobuf_number(struct base_buf *b, unsigned int field, uint64_t v)
{
	int r = v ? protobuf_varint(b, field << 3 | VARINT) : 0;

	return r < 0 || !v ? r : protobuf_varint(b, v);
}

int protobuf_bytes(struct base_buf *b, unsigned int field, const void *data, size_t len)
{
	int r = protobuf_varint(b, field << 3 | LENGTH);

	if (r >= 0)
		r = protobuf_varint(b, len);
	return r < 0 ? r : base_buf_append(b, data, len);
}
