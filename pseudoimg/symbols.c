/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols alone, for the kernel: its instructions are not kept, its offsets are. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pseudoimg_internal.h"

struct entry {
	struct pseudoimg_span at;
	const char *name;
};

/* Leave out symbols outside the text. Returns how many remain, sorted. */
static size_t collect(struct entry *v, const struct pseudoimg_symbol *syms, size_t nr,
		      uint64_t text_len)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++) {
		if (syms[i].off >= text_len)
			continue;
		v[kept] = (struct entry){
			.at = { .start = syms[i].off, .len = syms[i].len, .order = i },
			.name = syms[i].name
		};
		if (v[kept].at.len > text_len - syms[i].off)
			v[kept].at.len = text_len - syms[i].off;
		kept++;
	}
	if (kept)
		qsort(v, kept, sizeof(*v), pseudoimg_span_compare);
	return kept;
}

static void set_lengths(struct entry *v, size_t nr, uint64_t text_len)
{
	uint64_t next = text_len;

	for (size_t i = nr; i--;) {
		if (i + 1 < nr && v[i + 1].at.start != v[i].at.start)
			next = v[i + 1].at.start;
		if (!v[i].at.len)
			v[i].at.len = next - v[i].at.start;
	}
}

static int make_tables(const struct entry *v, size_t nr, struct base_buf *symbols,
		       struct base_buf *strings)
{
	Elf64_Sym sym = { 0 };
	int r = base_buf_append(strings, "", 1);

	if (r >= 0)
		r = base_buf_append(symbols, &sym, sizeof(sym));
	for (size_t i = 0; r >= 0 && i < nr; i++) {
		if (strings->len > UINT32_MAX)
			return -DCPI_ELIMIT;
		sym = (Elf64_Sym){ .st_name = (uint32_t)strings->len,
				   .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
				   .st_shndx = 1,
				   .st_value = v[i].at.start,
				   .st_size = v[i].at.len };
		r = pseudoimg_name_put(strings, v[i].name, strlen(v[i].name));
		if (r >= 0)
			r = base_buf_append(symbols, &sym, sizeof(sym));
	}
	return r;
}

static int add_sections(struct pseudoimg_elf *e, uint64_t text_len, const struct base_buf *note,
			const struct base_buf *symbols, const struct base_buf *strings)
{
	const struct pseudoimg_section v[] = {
		{ .name = ".text",
		  .type = SHT_NOBITS,
		  .flags = SHF_ALLOC | SHF_EXECINSTR,
		  .len = text_len,
		  .align = 1 },
		{ .name = ".note.gnu.build-id",
		  .type = SHT_NOTE,
		  .align = 4,
		  .data = note->data,
		  .len = note->len },
		{ .name = ".symtab",
		  .type = SHT_SYMTAB,
		  .align = 8,
		  .entsize = sizeof(Elf64_Sym),
		  .link = 4,
		  .info = (uint32_t)(symbols->len / sizeof(Elf64_Sym)),
		  .data = symbols->data,
		  .len = symbols->len },
		{ .name = ".strtab",
		  .type = SHT_STRTAB,
		  .align = 1,
		  .data = strings->data,
		  .len = strings->len },
	};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < sizeof(v) / sizeof(v[0]); i++)
		r = pseudoimg_elf_add(e, &v[i]);
	return r;
}

int pseudoimg_write_symbols(const struct pseudoimg_symbol *syms, size_t nr, uint64_t text_len,
			    uint32_t machine, const struct base_id *build_id, int fd,
			    struct base_err *err)
{
	struct base_buf note = { 0 }, symbols = { 0 }, strings = { 0 };
	struct pseudoimg_elf e = { .machine = (uint16_t)machine };
	struct entry *v = calloc(nr + 1, sizeof(*v));
	int r = v ? 0 : -ENOMEM;

	if (r < 0)
		goto out;
	if (!pseudoimg_machine_known(machine) || !build_id->len ||
	    build_id->len > sizeof(build_id->bytes)) {
		r = -EINVAL;
		goto out;
	}
	nr = collect(v, syms, nr, text_len);
	set_lengths(v, nr, text_len);
	r = make_tables(v, nr, &symbols, &strings);
	if (r >= 0)
		r = pseudoimg_build_id_note(&note, build_id->bytes, build_id->len);
	if (r >= 0)
		r = add_sections(&e, text_len, &note, &symbols, &strings);
	if (r >= 0)
		r = pseudoimg_elf_write(&e, fd, NULL, err);
out:
	if (r < 0)
		base_fail_errno(err, r, "cannot write symbols");
	free(v);
	pseudoimg_elf_release(&e);
	base_buf_release(&note);
	base_buf_release(&symbols);
	base_buf_release(&strings);
	return r < 0 ? r : 0;
}
