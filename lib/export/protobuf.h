/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages in the wire format of Protocol Buffers, into a buffer. All return 0 or -ENOMEM. */
#ifndef DCPI_EXPORT_PROTOBUF_H
#define DCPI_EXPORT_PROTOBUF_H

#include "base.h"

int protobuf_varint(struct base_buf *b, uint64_t v);
/* A number, which readers take for 0 where it is left out. */
int protobuf_number(struct base_buf *b, unsigned int field, uint64_t v);
/* Bytes, a text, or another message. */
int protobuf_bytes(struct base_buf *b, unsigned int field, const void *data, size_t len);

#endif
