/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GDB's JIT interface: the first byte says what the rest is. Even: an ELF file that is asked for
 * the symbol, and where it would be mapped. Odd: a process's memory from MEMORY_AT on, whose list
 * begins with it; from reading (second byte) on it is another memory. What comes out must be
 * well-formed and no more than was promised, and a list that was refused must leave no trace.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define MEMORY_AT 0x10000ull

struct memory {
	const uint8_t *data;
	size_t len;
	unsigned int nr_reads, change_at;
};

static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct memory *m = ctx;

	if (addr < MEMORY_AT || addr - MEMORY_AT > m->len || len > m->len - (addr - MEMORY_AT))
		return -EFAULT;
	memcpy(to, m->data + (addr - MEMORY_AT), len);
	if (++m->nr_reads > m->change_at && len)
		((uint8_t *)to)[len / 2] ^= 8;
	return (ssize_t)len;
}

static void try_file(const uint8_t *data, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC), r;
	uint64_t value = 0, bias;

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	for (unsigned int machine = 62; machine <= 183; machine += 121) {
		r = foreign_gdb_symbol(fd, machine, UINT64_MAX, &value);
		if ((r != 0 && r != 1) || (r == 1 && !value))
			abort();
	}
	r = foreign_gdb_bias(fd, 0x400000, len, &bias);
	if (r != 0 && r != -DCPI_EFORMAT)
		abort();
	close(fd);
}

static void try_object(const struct foreign_memory *memory, struct foreign_gdb_entry e)
{
	struct base_buf out = { 0 };
	int r = foreign_gdb_object(memory, 62, 5, &e, &out);
	const struct wire_head *h;
	size_t pos = 0;

	if (r != 0 && r != 1 && r != -EAGAIN && r != -DCPI_EFORMAT)
		abort();
	if (r < 0 && out.len)
		abort();
	while ((h = wire_next(out.data, out.len, &pos))) {
		struct wire_routine_view v;

		if (h->type != WIRE_ROUTINE || wire_routine_parse(h, &v) < 0 || v.rec->seq != 5)
			abort();
	}
	if (pos != out.len)
		abort();
	base_buf_release(&out);
}

static void try_list(const uint8_t *data, size_t len, unsigned int change_at)
{
	struct memory m = { data, len, 0, change_at };
	const struct foreign_memory memory = { memory_read, &m };
	struct foreign_gdb g = { .heads = { MEMORY_AT, MEMORY_AT + 24 }, .nr_heads = 2 },
			   before = g;
	struct base_buf out = { 0 };
	int r = foreign_gdb_list(&memory, &g, &out);
	const struct foreign_gdb_entry *e = (const void *)out.data;
	size_t nr = out.len / sizeof(*e);

	if (out.len % sizeof(*e) || nr > FOREIGN_GDB_ENTRIES)
		abort();
	if (r != 1 && r != 2 && r != -EAGAIN && r != -DCPI_EFORMAT)
		abort();
	if (r < 0 && (out.len || memcmp(&g, &before, sizeof(g)) != 0))
		abort();
	if (r > 0 && !g.state)
		abort();
	for (size_t i = 0; i < nr && i < 4; i++)
		try_object(&memory, e[i]);
	base_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len < 2)
		return 0;
	if (data[0] % 2)
		try_list(data + 2, len - 2, data[1] ? data[1] : UINT32_MAX);
	else
		try_file(data + 2, len - 2);
	return 0;
}
