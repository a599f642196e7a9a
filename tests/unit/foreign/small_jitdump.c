/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <stdlib.h>

#include "small_jitdump.h"

void small_jitdump_header(struct jitdump_header *header)
{
	*header = (struct jitdump_header){ .magic = JITDUMP_MAGIC,
					   .version = JITDUMP_VERSION,
					   .total_size = sizeof(*header),
					   .elf_mach = EM_X86_64,
					   .pad = 0xdeadbeef,
					   .pid = SMALL_PID,
					   .timestamp = 1 };
}

static void put(struct base_buf *b, const void *data, size_t len)
{
	if (base_buf_append(b, data, len) < 0)
		abort();
}

size_t small_jitdump_begin(struct base_buf *b)
{
	struct jitdump_header header;
	size_t at = b->len;

	small_jitdump_header(&header);
	put(b, &header, sizeof(header));
	return at;
}

size_t small_jitdump_record(struct base_buf *b, uint32_t id, uint64_t time, const void *body,
			    size_t len)
{
	struct jitdump_head head = { id, (uint32_t)(sizeof(head) + len), time };
	size_t at = b->len;

	put(b, &head, sizeof(head));
	put(b, body, len);
	return at;
}

size_t small_jitdump_load(struct base_buf *b, uint64_t time, uint64_t addr, uint64_t len,
			  const char *name)
{
	struct jitdump_load load = {
		.pid = SMALL_PID, .tid = 0xabababab, .code_addr = addr, .code_size = len
	};
	struct base_buf body = { 0 };
	size_t at;

	put(&body, &load.head + 1, sizeof(load) - sizeof(load.head));
	put(&body, name, strlen(name) + 1);
	for (uint64_t i = 0; i < len; i++)
		put(&body, &(uint8_t){ (uint8_t)(addr + i) }, 1);
	at = small_jitdump_record(b, JITDUMP_LOAD, time, body.data, body.len);
	base_buf_release(&body);
	return at;
}

size_t small_jitdump_move(struct base_buf *b, uint64_t time, uint64_t from, uint64_t to,
			  uint64_t len)
{
	struct jitdump_move move = {
		.pid = SMALL_PID, .old_code_addr = from, .new_code_addr = to, .code_size = len
	};

	return small_jitdump_record(b, JITDUMP_MOVE, time, &move.head + 1,
				    sizeof(move) - sizeof(move.head));
}

size_t small_jitdump_debug(struct base_buf *b, uint64_t addr, const struct small_line *lines,
			   size_t nr)
{
	struct base_buf body = { 0 };
	size_t at;

	put(&body, &addr, sizeof(addr));
	put(&body, &(uint64_t){ nr }, sizeof(uint64_t));
	for (size_t i = 0; i < nr; i++) {
		struct jitdump_entry entry = { .addr = lines[i].addr, .line = lines[i].line };

		put(&body, &entry, sizeof(entry));
		put(&body, lines[i].file, strlen(lines[i].file) + 1);
	}
	at = small_jitdump_record(b, JITDUMP_DEBUG, 5, body.data, body.len);
	base_buf_release(&body);
	return at;
}
