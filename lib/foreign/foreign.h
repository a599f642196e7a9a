/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readers of what others announce their code with: made into records as libdbgdyn writes them
 * (wire.h). Every byte was written by somebody else. Runs in the reader process, which is replaced
 * when it dies or does not answer.
 */
#ifndef DCPI_FOREIGN_H
#define DCPI_FOREIGN_H

#include "base.h"
#include "wire.h"

/* No object gives more bytes of records, nor more routines, than this. */
#define FOREIGN_OBJECT_MAX   (64u << 20)
#define FOREIGN_ROUTINES_MAX (1u << 17)
/* DWARF in larger sections, or that takes longer to read, is left aside, and symbols alone used. */
#define FOREIGN_INFO_MAX (16u << 20)
#define FOREIGN_LINE_MAX (2u << 20)
#define FOREIGN_DWARF_NS 250000000ull

/* Read memory of the process: how many bytes from @addr on could be read, or -errno where none. */
typedef ssize_t foreign_read_fn(void *ctx, uint64_t addr, void *to, size_t len);

struct foreign_object {
	const struct wire_object *rec; /* its elf_len bytes are at @elf; elsewhere checked */
	const void *elf;
	uint32_t machine;      /* EM_* that it has to be for */
	uint16_t flags;	       /* of the records, beside what their code says of itself */
	foreign_read_fn *read; /* NULL: the process is gone */
	void *ctx;
};

/*
 * Append the object's routines, ascending and disjoint, as WIRE_ROUTINE records of its seq, part 0,
 * 1, …: its FUNC symbols within [addr, addr + code_len) of @rec, one for each address, none within
 * another; with the lines and inlined parts of its DWARF (not compressed, nor in another file).
 * Code is what runs (WIRE_ROUTINE_FETCHED), where that cannot be read what the file has. Returns
 * how many; -DCPI_EFORMAT (not an ELF64 file of that machine, or a table that leaves it or is not
 * aligned), -DCPI_ELIMIT (then those in @out are good, and there were more), -ENOMEM.
 */
int foreign_elf_object(const struct foreign_object *object, struct base_buf *out);

#endif
