/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader of ELF files that a process has in memory: the input is where its code is said to lie
 * (bias, address, length: 24 bytes), then the file. What comes out must be well-formed, ascending
 * and disjoint, within that place, and no more than was promised.
 */
#include <stdlib.h>

#include "foreign.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	(void)ctx;
	if (addr % 3 == 0)
		return -14;
	memset(to, 0x90, len);
	return (ssize_t)len;
}

static void check(const struct wire_object *rec, const struct base_buf *out, int nr)
{
	uint64_t end = rec->addr;
	const struct wire_head *h;
	size_t pos = 0;
	uint32_t part = 0;

	while ((h = wire_next(out->data, out->len, &pos))) {
		struct wire_routine_view v;

		if (wire_routine_parse(h, &v) < 0 || v.rec->part != part++ || v.rec->addr < end)
			abort();
		end = v.rec->addr + v.rec->code_len;
		if (end - rec->addr > rec->code_len)
			abort();
	}
	if (pos != out->len || (nr >= 0 && part != (uint32_t)nr))
		abort();
	if (out->len > FOREIGN_OBJECT_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct wire_object rec = { .head = { .len = sizeof(rec), .type = WIRE_OBJECT }, .seq = 1 };
	struct foreign_object from = { .rec = &rec,
				       .read = memory_read,
				       .deadline_ns = base_now_ns() + FOREIGN_DWARF_NS };
	struct base_buf out = { 0 };
	uint16_t machine = 0;
	int r;

	if (len < 24)
		return 0;
	memcpy(&rec.bias, data, 8);
	memcpy(&rec.addr, data + 8, 8);
	memcpy(&rec.code_len, data + 16, 8);
	if (!rec.code_len || rec.addr + rec.code_len < rec.addr)
		return 0;
	from.elf = data + 24;
	rec.elf_len = len - 24;
	if (rec.elf_len > 20)
		memcpy(&machine, data + 24 + 18, sizeof(machine));
	from.machine = machine;
	r = foreign_elf_object(&from, &out);
	if (r < 0 && r != -DCPI_EFORMAT && r != -DCPI_ELIMIT)
		abort();
	if (r == -DCPI_EFORMAT && out.len)
		abort();
	check(&rec, &out, r);
	base_buf_release(&out);
	return 0;
}
