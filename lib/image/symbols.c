/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The symbols of an image are read from its sections, from the linker's stubs and from .eh_frame;
 * named, sorted and nested.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "eh_frame.h"
#include "image_internal.h"

/* @name, "memcpy@plt", is the callee's to free. */
typedef int image_stub_fn(void *ctx, char *name, uint64_t vaddr, uint64_t len);

/* ---- the linker's stubs ---------------------------------------------------------------------- */

/*
 * The linker's stubs: each jumps to where a word of the GOT points, and a relocation says which
 * procedure's address the loader puts there. The stub has its name.
 */

/* The symbol that the loader stores in the word at @vaddr. */
struct slot {
	uint64_t vaddr;
	const char *name; /* NULL: the answer of the procedure at @addend */
	uint64_t addend;
};

struct slots {
	struct slot *v;
	size_t nr, cap;
};

/* A stub, and the word that it jumps by. */
struct stub {
	uint64_t vaddr, len, slot;
};

static int stub_by_vaddr(const void *pa, const void *pb)
{
	const struct slot *a = pa, *b = pb;

	return (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

/* Its word is found by calling the procedure at its addend. */
static bool is_indirect(uint32_t machine, uint64_t type)
{
	switch (machine) {
	case EM_X86_64:
		return type == R_X86_64_IRELATIVE;
	case EM_AARCH64:
		return type == R_AARCH64_IRELATIVE;
	default:
		return machine == EM_RISCV && type == R_RISCV_IRELATIVE;
	}
}

static int add_relocations(struct slots *s, const struct image_elf *f, Elf_Scn *scn,
			   const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL), *symbols = NULL;
	size_t nr = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;
	Elf_Scn *table = elf_getscn(f->elf, sh->sh_link);
	GElf_Shdr table_sh = { 0 };
	GElf_Rela rela;
	int r = 0;

	if (table && gelf_getshdr(table, &table_sh) && table_sh.sh_type == SHT_DYNSYM)
		symbols = elf_getdata(table, NULL);
	for (size_t i = 0; i < nr && i < INT32_MAX && r >= 0; i++) {
		struct slot one = { 0 };
		GElf_Sym sym;

		if (!gelf_getrela(data, (int)i, &rela))
			break;
		if (!GELF_R_SYM(rela.r_info) &&
		    !is_indirect(f->header.e_machine, GELF_R_TYPE(rela.r_info)))
			continue;
		if (GELF_R_SYM(rela.r_info) && symbols && GELF_R_SYM(rela.r_info) <= INT32_MAX &&
		    gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &sym))
			one.name = elf_strptr(f->elf, table_sh.sh_link, sym.st_name);
		one.vaddr = rela.r_offset;
		one.addend = (uint64_t)rela.r_addend;
		r = base_grow(&s->v, &s->cap, s->nr + 1, sizeof(*s->v));
		if (r >= 0)
			s->v[s->nr++] = one;
	}
	return r;
}

static int read_slots(struct slots *s, const struct image_elf *f)
{
	GElf_Shdr sh;
	int r = 0;

	for (Elf_Scn *scn = NULL; r >= 0 && (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_RELA && (sh.sh_flags & SHF_ALLOC))
			r = add_relocations(s, f, scn, &sh);
	if (s->nr)
		qsort(s->v, s->nr, sizeof(*s->v), stub_by_vaddr);
	return r;
}

static uint32_t word_at(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* [endbr64] [bnd] jmp *distance(%rip), in a place of 8 or 16 bytes. */
static bool x86_stub(const uint8_t *p, size_t len, uint64_t vaddr, struct stub *out)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = 0;

	if (len >= sizeof(endbr) && memcmp(p, endbr, sizeof(endbr)) == 0)
		at = sizeof(endbr);
	if (at < len && p[at] == 0xf2)
		at++;
	if (len < at + 6 || p[at] != 0xff || p[at + 1] != 0x25)
		return false;
	out->vaddr = vaddr;
	out->len = len;
	out->slot = vaddr + at + 6 + (uint64_t)(int64_t)(int32_t)word_at(p + at + 2);
	return true;
}

/* [bti c] adrp x16, page; ldr x17, [x16, #offset]; add x16, x16, #offset; br x17 */
static bool aarch64_stub(const uint8_t *p, size_t len, uint64_t vaddr, struct stub *out)
{
	size_t at = len >= 4 && word_at(p) == 0xd503245f ? 4 : 0;
	uint32_t adrp, ldr;
	int64_t pages;

	if (len < at + 16)
		return false;
	adrp = word_at(p + at);
	ldr = word_at(p + at + 4);
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return false;
	/* bits 23 to 5 are the high part, 30 and 29 the low one, of a signed 21-bit number */
	pages = (int64_t)((int32_t)((adrp & 0x00ffffe0) << 8) >> 13 << 2) | ((adrp >> 29) & 3);
	out->vaddr = vaddr;
	out->len = at + 16;
	out->slot = ((vaddr + at) & ~(uint64_t)0xfff) + (uint64_t)(pages * 4096) +
		    8 * (uint64_t)((ldr >> 10) & 0xfff);
	return true;
}

/* auipc t3, high; ld t3, low(t3); jalr t1, t3; nop */
static bool riscv_stub(const uint8_t *p, size_t len, uint64_t vaddr, struct stub *out)
{
	uint32_t auipc, ld;

	if (len < 16)
		return false;
	auipc = word_at(p);
	ld = word_at(p + 4);
	if ((auipc & 0xfff) != 0xe17 || (ld & 0xfffff) != 0xe3e03)
		return false;
	out->vaddr = vaddr;
	out->len = 16;
	out->slot = vaddr + (uint64_t)(int64_t)(int32_t)(auipc & ~0xfffu) +
		    (uint64_t)(int64_t)((int32_t)ld >> 20);
	return true;
}

typedef bool (*stub_fn)(const uint8_t *p, size_t len, uint64_t vaddr, struct stub *out);

static int name_stub(const struct stub *stub, const struct slots *slots, image_stub_fn *fn,
		     void *ctx)
{
	struct slot key = { .vaddr = stub->slot }, *slot = NULL;
	char *name;
	int n;

	if (slots->nr)
		slot = bsearch(&key, slots->v, slots->nr, sizeof(key), stub_by_vaddr);
	if (!slot)
		return 0;
	n = slot->name && *slot->name
		    ? asprintf(&name, "%s@plt", slot->name)
		    : asprintf(&name, "*ABS*+0x%llx@plt", (unsigned long long)slot->addend);
	if (n < 0)
		return -ENOMEM;
	return fn(ctx, name, stub->vaddr, stub->len);
}

static int read_stubs(Elf_Scn *scn, const GElf_Shdr *sh, uint32_t machine,
		      const struct slots *slots, image_stub_fn *fn, void *ctx)
{
	stub_fn is_stub = machine == EM_X86_64	  ? x86_stub
			  : machine == EM_AARCH64 ? aarch64_stub
			  : machine == EM_RISCV	  ? riscv_stub
						  : NULL;
	Elf_Data *data = is_stub ? elf_rawdata(scn, NULL) : NULL;
	/* x86's stubs fill places of one size; the others are known by their instructions. */
	size_t step = machine != EM_X86_64 ? 4 : sh->sh_entsize == 8 ? 8 : 16;
	int r = 0;

	if (!data || !data->d_buf)
		return 0;
	for (size_t at = 0; at < data->d_size && r >= 0;) {
		const uint8_t *p = (const uint8_t *)data->d_buf + at;
		size_t left = data->d_size - at;
		struct stub stub = { 0 };

		if (machine == EM_X86_64 && left > step)
			left = step;
		if (is_stub(p, left, sh->sh_addr + at, &stub))
			r = name_stub(&stub, slots, fn, ctx);
		at += machine == EM_X86_64 || !stub.len ? step : stub.len;
	}
	return r;
}

/* Calls @fn for each stub whose procedure is known: x86-64, aarch64, riscv64. 0, -ENOMEM, or what
 * @fn returned below 0. */
static int image_stubs_read(const struct image_elf *f, image_stub_fn *fn, void *ctx)
{
	struct slots slots = { 0 };
	GElf_Shdr sh;
	int r = read_slots(&slots, f);

	for (Elf_Scn *scn = NULL; r >= 0 && (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &sh) && (sh.sh_flags & SHF_EXECINSTR) &&
		    sh.sh_type == SHT_PROGBITS &&
		    strncmp(image_elf_section_name(f, &sh), ".plt", 4) == 0)
			r = read_stubs(scn, &sh, f->header.e_machine, &slots, fn, ctx);
	free(slots.v);
	return r;
}

/* ---- ranges of .eh_frame --------------------------------------------------------------------- */

int image_ranges_read(struct image_ranges *out, const struct image_elf *f)
{
	struct image_eh_frame eh;
	struct image_fde fde;
	size_t at = 0;

	if (!image_eh_frame_open(&eh, f))
		return 0;
	while (image_eh_frame_next(&eh, &at, &fde)) {
		int r = base_grow(&out->v, &out->cap, out->nr + 1, sizeof(*out->v));

		if (r < 0)
			return r;
		out->v[out->nr++] = (struct image_range){ .vaddr = fde.vaddr, .len = fde.len };
	}
	return 0;
}

/* ---- symbols --------------------------------------------------------------------------------- */

enum { SORT_FUNC, SORT_LABEL, SORT_OBJECT, SORT_STUB, SORT_SECTION, SORT_FRAME };

/* A name as the file has it, before one is chosen for each address. */
struct candidate {
	const char *name;
	uint64_t vaddr, len;
	uint64_t section_end;
	uint8_t sort;
	bool local;
	uint32_t symbol; /* index in the result, UINT32_MAX: dropped */
};

struct section {
	uint64_t start, end;
	bool exec;
};

struct build {
	struct image_symbols *out;
	bool versioned; /* names may carry a version */
	struct candidate *v;
	size_t nr, cap;
	struct section *sections;
	size_t nr_sections, cap_sections;
};

static int own(struct image_symbols *s, char *name)
{
	int r = name ? base_grow(&s->owned, &s->cap_owned, s->nr_owned + 1, sizeof(*s->owned))
		     : -ENOMEM;

	if (r < 0) {
		free(name);
		return r;
	}
	s->owned[s->nr_owned++] = name;
	return 0;
}

static int add(struct build *b, const struct candidate *c)
{
	int r = base_grow(&b->v, &b->cap, b->nr + 1, sizeof(*b->v));

	if (r < 0)
		return r;
	b->v[b->nr] = *c;
	if (b->v[b->nr].len > UINT64_MAX - c->vaddr)
		b->v[b->nr].len = UINT64_MAX - c->vaddr;
	b->nr++;
	return 0;
}

/* "memcpy@@GLIBC_2.14": the version is the linker's affair; elsewhere a name may hold any byte. */
static int plain_name(struct build *b, const char **name)
{
	const char *at = strchr(*name, '@');
	char *copy;
	int r;

	if (!b->versioned || !at || at == *name)
		return 0;
	copy = strndup(*name, (size_t)(at - *name));
	r = own(b->out, copy);
	if (r >= 0)
		*name = copy;
	return r;
}

/* GHC says of code behind its info tables that it is an object, which has a size. */
static bool may_be_code(const GElf_Sym *sym)
{
	int type = GELF_ST_TYPE(sym->st_info);

	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE ||
	       (type == STT_OBJECT && sym->st_size);
}

static uint8_t sort_of(int type)
{
	if (type == STT_NOTYPE)
		return SORT_LABEL;
	return type == STT_OBJECT ? SORT_OBJECT : SORT_FUNC;
}

static int add_symbol(struct build *b, const GElf_Sym *sym, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);
	struct candidate c = { .vaddr = sym->st_value, .len = sym->st_size };
	int r;

	if (!may_be_code(sym))
		return 0;
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= b->nr_sections ||
	    !b->sections[sym->st_shndx].exec)
		return 0;
	/* "$x": marks code among data for disassemblers; ".L": labels that were not meant to stay
	 */
	if (!name || !*name ||
	    (type == STT_NOTYPE && (*name == '$' || strncmp(name, ".L", 2) == 0)))
		return 0;
	if ((r = plain_name(b, &name)) < 0)
		return r;
	c.name = name;
	c.sort = sort_of(type);
	c.local = GELF_ST_BIND(sym->st_info) == STB_LOCAL;
	c.section_end = b->sections[sym->st_shndx].end;
	return add(b, &c);
}

static int add_table(struct build *b, const struct image_elf *f, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t nr = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;
	GElf_Sym sym;
	int r = 0;

	for (size_t i = 1; i < nr && i < INT32_MAX && r >= 0; i++)
		if (gelf_getsym(data, (int)i, &sym))
			r = add_symbol(b, &sym, elf_strptr(f->elf, sh->sh_link, sym.st_name));
	return r;
}

static int read_sections(struct build *b, const struct image_elf *f)
{
	GElf_Shdr sh;
	int r;

	b->nr_sections = 0;
	r = base_grow(&b->sections, &b->cap_sections, 1, sizeof(*b->sections));
	if (r < 0)
		return r;
	b->sections[b->nr_sections++] = (struct section){ 0 };
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));) {
		struct section s = { 0 };

		if (gelf_getshdr(scn, &sh)) {
			s.exec = (sh.sh_flags & SHF_EXECINSTR) != 0;
			s.start = sh.sh_addr;
			if (base_add_overflow(sh.sh_addr, sh.sh_size, &s.end))
				s.end = UINT64_MAX;
		}
		r = base_grow(&b->sections, &b->cap_sections, b->nr_sections + 1,
			      sizeof(*b->sections));
		if (r < 0)
			return r;
		b->sections[b->nr_sections++] = s;
	}
	return 0;
}

/* *@found: the file has such a table, whatever is in it. */
static int add_tables(struct build *b, const struct image_elf *f, uint32_t type, bool *found)
{
	GElf_Shdr sh;
	int r = read_sections(b, f);

	for (Elf_Scn *scn = NULL; r >= 0 && (scn = elf_nextscn(f->elf, scn));) {
		if (!gelf_getshdr(scn, &sh) || sh.sh_type != type)
			continue;
		*found = true;
		r = add_table(b, f, scn, &sh);
	}
	return r;
}

static int add_stub(void *ctx, char *name, uint64_t vaddr, uint64_t len)
{
	struct candidate c = {
		.name = name, .vaddr = vaddr, .len = len, .sort = SORT_STUB, .local = true
	};
	struct build *b = ctx;
	int r = own(b->out, name);

	return r < 0 ? r : add(b, &c);
}

static bool in_code(const struct build *b, uint64_t vaddr)
{
	for (size_t i = 0; i < b->nr_sections; i++)
		if (b->sections[i].exec && vaddr >= b->sections[i].start &&
		    vaddr < b->sections[i].end)
			return true;
	return false;
}

/* 1, 0 where there are none, or negative. */
static int add_frames(struct build *b, const struct image_elf *f)
{
	struct image_ranges ranges = { 0 };
	int r = image_ranges_read(&ranges, f);

	if (r >= 0)
		r = read_sections(b, f);
	for (size_t i = 0; i < ranges.nr && r >= 0; i++) {
		struct candidate c = { .name = "",
				       .vaddr = ranges.v[i].vaddr,
				       .len = ranges.v[i].len,
				       .sort = SORT_FRAME,
				       .local = true };

		if (in_code(b, c.vaddr))
			r = add(b, &c);
	}
	free(ranges.v);
	return r < 0 ? r : ranges.nr > 0;
}

/* They reach to whatever comes next, as symbols without a size do. */
static int add_guessed(struct build *b, const struct image_elf *f)
{
	struct image_ranges starts = { 0 };
	int r = image_starts_read(&starts, f);

	for (size_t i = 0; i < starts.nr && r >= 0; i++)
		r = add(b, &(struct candidate){ .name = "",
						.vaddr = starts.v[i].vaddr,
						.section_end = starts.v[i].vaddr + starts.v[i].len,
						.sort = SORT_FRAME,
						.local = true });
	free(starts.v);
	return r;
}

static bool is_stubs(const char *section)
{
	return strncmp(section, ".plt", 4) == 0 || strncmp(section, ".iplt", 5) == 0;
}

/* The rest of the linker's stubs gets the name of its section. */
static int add_stubs(struct build *b, const struct image_elf *f)
{
	GElf_Shdr sh;
	int r = 0;

	for (Elf_Scn *scn = NULL; r >= 0 && (scn = elf_nextscn(f->elf, scn));) {
		struct candidate c = { .sort = SORT_SECTION, .local = true };
		const char *name;
		char *text;

		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR))
			continue;
		name = image_elf_section_name(f, &sh);
		if (!is_stubs(name))
			continue;
		if (asprintf(&text, "[%s]", name) < 0)
			return -ENOMEM;
		if ((r = own(b->out, text)) < 0)
			return r;
		c.name = text;
		c.vaddr = sh.sh_addr;
		c.len = sh.sh_size;
		r = add(b, &c);
	}
	return r;
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/*
 * Order by address; of several names for one address the plainest comes first, the same in every
 * run.
 */
static int by_vaddr(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;
	size_t la, lb;

	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	if ((a->sort >= SORT_SECTION) != (b->sort >= SORT_SECTION))
		return a->sort >= SORT_SECTION ? 1 : -1;
	if (!a->len != !b->len)
		return a->len ? -1 : 1;
	if (a->sort != b->sort)
		return a->sort - b->sort;
	if (a->local != b->local)
		return a->local - b->local;
	la = underscores(a->name);
	lb = underscores(b->name);
	if (la != lb)
		return la < lb ? -1 : 1;
	la = strlen(a->name);
	lb = strlen(b->name);
	if (la != lb)
		return la < lb ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* The name is an address that can be asked for. */
static int name_frame(struct build *b, struct candidate *c)
{
	char *name;
	int r;

	if (asprintf(&name, "0x%llx", (unsigned long long)c->vaddr) < 0)
		return -ENOMEM;
	r = own(b->out, name);
	if (r >= 0)
		c->name = name;
	return r;
}

/*
 * Adds nothing where a symbol stands, but its size if it has none. What is guessed has none, and
 * stands in no frame either.
 */
static int choose_frame(struct build *b, struct candidate *c, struct image_symbol *here,
			uint64_t covered, uint64_t *framed)
{
	struct image_symbols *s = b->out;
	int r;

	if (c->vaddr + c->len > *framed)
		*framed = c->vaddr + c->len;
	if (here || c->vaddr < covered || (!c->len && c->vaddr < *framed)) {
		if (here && !here->len)
			here->len = c->len;
		return 0;
	}
	r = name_frame(b, c);
	if (r < 0)
		return r;
	s->guessed |= !c->len;
	c->symbol = (uint32_t)s->nr;
	s->v[s->nr++].sym = (struct image_symbol){ c->name, c->vaddr, c->len };
	return 0;
}

/*
 * One symbol per address; labels inside of a procedure with a size are part of it. Sections are
 * only the ground on which symbols stand; where one names all of its code, nothing else need.
 */
static int choose(struct build *b)
{
	struct image_symbols *s = b->out;
	uint64_t covered = 0, ground = 0, framed = 0;
	int r = 0;

	for (size_t i = 0; i < b->nr && r >= 0; i++) {
		struct candidate *c = &b->v[i];
		struct image_symbol *last = s->nr ? &s->v[s->nr - 1].sym : NULL;
		struct image_symbol *here = last && last->vaddr == c->vaddr ? last : NULL;
		uint64_t *reach = c->sort == SORT_SECTION ? &ground : &covered;

		c->symbol = UINT32_MAX;
		if (c->sort == SORT_FRAME) {
			r = choose_frame(b, c, here, covered > ground ? covered : ground, &framed);
			continue;
		}
		if (here) {
			c->symbol = (uint32_t)s->nr - 1;
			continue;
		}
		if (!c->len && c->vaddr < covered)
			continue;
		c->symbol = (uint32_t)s->nr;
		s->v[s->nr++].sym = (struct image_symbol){ c->name, c->vaddr, c->len };
		if (c->vaddr + c->len > *reach)
			*reach = c->vaddr + c->len;
	}
	return r;
}

/* Without a size, a symbol reaches to the next one or to the end of its section. */
static void extend(struct build *b)
{
	struct image_symbols *s = b->out;

	for (size_t i = 0; i < b->nr; i++) {
		const struct candidate *c = &b->v[i];
		struct image_symbol *sym;
		uint64_t end = c->section_end;

		if (c->symbol == UINT32_MAX || s->v[c->symbol].sym.len)
			continue;
		sym = &s->v[c->symbol].sym;
		if (c->symbol + 1 < s->nr && s->v[c->symbol + 1].sym.vaddr < end)
			end = s->v[c->symbol + 1].sym.vaddr;
		if (end > sym->vaddr)
			sym->len = end - sym->vaddr;
	}
}

/* Procedures may lie inside of others: each knows the one around it. */
static void nest(struct image_symbols *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		size_t o = i;

		while (o && s->v[i].sym.vaddr - s->v[o - 1].sym.vaddr >= s->v[o - 1].sym.len)
			o = s->v[o - 1].outer;
		s->v[i].outer = (uint32_t)o;
	}
}

static int by_name(const void *pa, const void *pb)
{
	const struct image_name *a = pa, *b = pb;
	int r = strcmp(a->name, b->name);

	return r ? r : (a->symbol > b->symbol) - (a->symbol < b->symbol);
}

static void name_all(struct build *b)
{
	struct image_symbols *s = b->out;
	size_t nr = 0;

	for (size_t i = 0; i < b->nr; i++)
		if (b->v[i].symbol != UINT32_MAX)
			s->names[s->nr_names++] =
				(struct image_name){ b->v[i].name, b->v[i].symbol };
	qsort(s->names, s->nr_names, sizeof(*s->names), by_name);
	for (size_t i = 0; i < s->nr_names; i++)
		if (!nr || by_name(&s->names[nr - 1], &s->names[i]) != 0)
			s->names[nr++] = s->names[i];
	s->nr_names = nr;
}

/* How much of a section something says whose it is. Candidates are sorted. */
static uint64_t announced(const struct build *b, const struct section *in)
{
	uint64_t at = in->start, sum = 0;

	for (size_t i = 0; i < b->nr && at < in->end; i++) {
		const struct candidate *c = &b->v[i];
		uint64_t end = c->vaddr + c->len < in->end ? c->vaddr + c->len : in->end;

		if (c->vaddr > at)
			at = c->vaddr;
		if (end > at) {
			sum += end - at;
			at = end;
		}
	}
	return sum;
}

/*
 * Is it so for four fifths of the code? Where the compiler left .eh_frame out, that of the C
 * library's start and of libgcc is there all the same; where it did not, only padding is missing.
 * The linker's stubs are told of in any case. 1, 0, or negative.
 */
static int says_enough(struct build *b, const struct image_elf *f)
{
	uint64_t sum = 0, total = 0;
	GElf_Shdr sh;
	int r = read_sections(b, f);
	size_t i = 0;

	if (b->nr)
		qsort(b->v, b->nr, sizeof(*b->v), by_vaddr);
	for (Elf_Scn *scn = NULL; r >= 0 && (scn = elf_nextscn(f->elf, scn));) {
		const struct section *s = &b->sections[++i];

		if (!gelf_getshdr(scn, &sh) || !s->exec || is_stubs(image_elf_section_name(f, &sh)))
			continue;
		total += s->end > s->start ? s->end - s->start : 0;
		sum += announced(b, s);
	}
	return r < 0 ? r : sum >= total / 5 * 4;
}

static int finish(struct build *b)
{
	struct image_symbols *s = b->out;
	int r;

	if (!b->nr)
		return 0;
	s->v = calloc(b->nr, sizeof(*s->v));
	s->names = calloc(b->nr, sizeof(*s->names));
	if (!s->v || !s->names)
		return -ENOMEM;
	qsort(b->v, b->nr, sizeof(*b->v), by_vaddr);
	r = choose(b);
	if (r < 0)
		return r;
	extend(b);
	nest(s);
	name_all(b);
	return 0;
}

int image_symbols_read(struct image_symbols *s, const struct image_elf *f,
		       const struct image_elf *debug, const struct image_elf *mini, bool versioned,
		       struct base_err *err)
{
	struct build b = { .out = s, .versioned = versioned };
	bool found = false, part = false, full;
	int r = add_tables(&b, f, SHT_SYMTAB, &found);

	if (r >= 0 && !found && debug)
		r = add_tables(&b, debug, SHT_SYMTAB, &found);
	if (r >= 0 && !found && mini)
		r = add_tables(&b, mini, SHT_SYMTAB, &part);
	full = found || part;
	if (r >= 0 && !found)
		r = add_tables(&b, f, SHT_DYNSYM, &found);
	if (r >= 0)
		r = image_stubs_read(f, add_stub, &b);
	if (r >= 0)
		r = add_stubs(&b, f);
	if (r >= 0)
		r = add_frames(&b, f);
	if (r > 0 && !full)
		r = says_enough(&b, f);
	if (r == 0 && !full)
		r = add_guessed(&b, f);
	if (r >= 0)
		r = finish(&b);
	free(b.v);
	free(b.sections);
	if (r < 0) {
		image_symbols_release(s);
		return base_fail_errno(err, r, "cannot read the symbols of '%s'", f->path);
	}
	return 0;
}

void image_symbols_release(struct image_symbols *s)
{
	for (size_t i = 0; i < s->nr_owned; i++)
		free(s->owned[i]);
	image_index_close(s->index);
	free(s->owned);
	free(s->v);
	free(s->names);
	memset(s, 0, sizeof(*s));
}
