/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An unwind table is made from an ELF file here: from .eh_frame, the routines of its symbols, a
 * CPython that it holds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "eh_frame.h"
#include "height.h"
#include "python.h"
#include "python_layout.h"
#include "unwind.h"
#include "unwind_rows.h"

/* ---- routines by symbols --------------------------------------------------------------------- */

struct image_routine {
	uint64_t vaddr, len;
};

struct image_routines {
	struct image_routine *v; /* ascending, disjoint */
	size_t nr, cap;
};

enum { MAX_ROUTINES = 1 << 22 };

static int add(struct image_routines *r, const GElf_Sym *sym)
{
	int e;

	if (GELF_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF || !sym->st_size ||
	    sym->st_size > UINT64_MAX - sym->st_value)
		return 0;
	if (r->nr == MAX_ROUTINES)
		return -DCPI_ELIMIT;
	e = base_grow(&r->v, &r->cap, r->nr + 1, sizeof(*r->v));
	if (e >= 0)
		r->v[r->nr++] = (struct image_routine){ sym->st_value, sym->st_size };
	return e;
}

static int add_table(struct image_routines *r, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t nr = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;
	GElf_Sym sym;
	int e = 0;

	for (size_t i = 1; i < nr && i < INT32_MAX && e >= 0; i++)
		if (gelf_getsym(data, (int)i, &sym))
			e = add(r, &sym);
	return e;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct image_routine *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return (x->len > y->len) - (x->len < y->len);
}

/* One name of several stays for a routine. */
static void sort(struct image_routines *r)
{
	size_t kept = 0;
	uint64_t end = 0;

	if (r->nr)
		qsort(r->v, r->nr, sizeof(*r->v), by_vaddr);
	for (size_t i = 0; i < r->nr; i++) {
		if (r->v[i].vaddr < end)
			continue;
		end = r->v[i].vaddr + r->v[i].len;
		r->v[kept++] = r->v[i];
	}
	r->nr = kept;
}

/* Symbols of functions that have a length; none is no error. 0, -ENOMEM, or -DCPI_ELIMIT. */
static int image_routines_read(struct image_routines *r, const struct image_elf *f)
{
	GElf_Shdr sh;
	int e = 0;

	*r = (struct image_routines){ 0 };
	for (Elf_Scn *scn = NULL; e >= 0 && (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &sh) &&
		    (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM))
			e = add_table(r, scn, &sh);
	sort(r);
	return e;
}

/* The index of the first one that begins at @vaddr or behind it. */
static size_t image_routines_find(const struct image_routines *r, uint64_t vaddr)
{
	size_t from = 0, to = r->nr;

	while (from < to) {
		size_t mid = from + (to - from) / 2;

		if (r->v[mid].vaddr < vaddr)
			from = mid + 1;
		else
			to = mid;
	}
	return from;
}

static void image_routines_release(struct image_routines *r)
{
	free(r->v);
	*r = (struct image_routines){ 0 };
}

/* ---- CPython --------------------------------------------------------------------------------- */

/* Bytes at an address of the file, as far as it has them. */
static size_t read_at(const struct image_elf *f, uint64_t vaddr, void *to, size_t len)
{
	size_t nr = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(f->elf, &nr) != 0)
		return 0;
	for (size_t i = 0; i < nr && gelf_getphdr(f->elf, (int)i, &ph); i++) {
		uint64_t in = vaddr - ph.p_vaddr;

		if (ph.p_type != PT_LOAD || vaddr < ph.p_vaddr || in >= ph.p_filesz)
			continue;
		return image_elf_read(f, ph.p_offset + in, to,
				      len < ph.p_filesz - in ? len : (size_t)(ph.p_filesz - in));
	}
	return 0;
}

static void take(const struct image_elf *f, const char *name, const GElf_Sym *sym,
		 struct python_part *parts)
{
#define X(id, text) text,
	static const char *const names[] = { PYTHON_SYMBOLS(X) };
#undef X

	for (size_t k = 0; k < PYTHON_NR_SYMBOLS; k++) {
		struct python_part *p = &parts[k];
		size_t len = sym->st_size < sizeof(p->bytes) ? sym->st_size : sizeof(p->bytes);

		if (strcmp(name, names[k]) != 0)
			continue;
		p->vaddr = sym->st_value;
		p->size = sym->st_size;
		p->len = read_at(f, sym->st_value, p->bytes, len);
	}
}

static void take_table(const struct image_elf *f, Elf_Scn *scn, const GElf_Shdr *sh,
		       struct python_part *parts)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t nr = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;
	GElf_Sym sym;

	for (size_t i = 1; i < nr && i < INT32_MAX && gelf_getsym(data, (int)i, &sym); i++) {
		const char *name = elf_strptr(f->elf, sh->sh_link, sym.st_name);

		if (name && sym.st_shndx != SHN_UNDEF &&
		    (!strncmp(name, "Py", 2) || !strncmp(name, "_Py", 3)))
			take(f, name, &sym, parts);
	}
}

/*
 * *@out describes the CPython in the file, if there is a known one, for its executable segment,
 * whose addresses are @above offsets in the file. Else its version is 0.
 */
static void image_python_find(const struct image_elf *f, uint64_t above, struct unwind_python *out)
{
	struct python_part parts[PYTHON_NR_SYMBOLS] = { 0 };
	GElf_Shdr sh;

	*out = (struct unwind_python){ 0 };
	if (f->header.e_machine != EM_X86_64)
		return;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_DYNSYM)
			take_table(f, scn, &sh, parts);
	python_layout(parts, out);
	if (!out->version)
		return;
	out->main -= above;
	out->current -= out->current ? above : 0;
	out->code_type -= above;
	out->code -= out->code ? above : 0;
	out->code_end -= out->code_end ? above : 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

enum {
	MAX_SEGMENTS = 64,
	MAX_PIECES = 1 << 21,
	MAX_ENTRY = 64,	   /* bytes of code at an entry point */
	MIN_SEARCHED = 16, /* bytes of code searched for returns from signals */
	MAX_SEARCHED = 8 << 20,
	MAX_FRAMES_LEN = 256 << 20, /* of .eh_frame */
	MAX_STEPS = 1 << 25,	    /* instructions of its programs */
	MAX_CODE = 4 << 20,	    /* bytes of routines that it says nothing of */
};

/* After so long routines that .eh_frame says nothing of are left out: it has taken its own time,
 * and who asks does not wait without end. */
#define FOLLOW_NS 400000000u
/* A piece of assembly that is looked through. */
#define ASSEMBLY_LEAST 4096u
#define ASSEMBLY_MOST  (1u << 20)

/* A piece of code with rows of its own: those of the entry of .eh_frame at @at, those that its
 * instructions tell, or one rule. */
struct piece {
	uint64_t off, len;
	size_t at;
	uint8_t how; /* UNWIND_NONE: by .eh_frame; BY_CODE */
};

enum { BY_CODE = UNWIND_NR_HOW };

struct segment {
	uint64_t off, vaddr, len;
};

struct reading {
	const struct image_elf *f;
	struct segment segments[MAX_SEGMENTS];
	size_t nr_segments;
	struct piece *pieces;
	size_t nr, cap, nr_covered; /* covered: what .eh_frame has */
	struct image_eh_frame frames;
	bool has_frames;
	uint64_t steps, searched, followed;
	struct image_routines routines;
	struct height *height; /* NULL: not of this machine's code */
	uint64_t followed_ns;  /* routines were followed for so long */
	struct unwind_builder *builder;
	/* The piece whose rows are made: what its addresses are above offsets, and where it ends.
	 */
	uint64_t above, end;
	/* Its rows so far, and the last one's rule. */
	uint64_t nr_rows;
	struct unwind_rule rule;
	const char *limit; /* the bound that was met */
};

/* ---- segments -------------------------------------------------------------------------------- */

static int by_off(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;

	return (x->off > y->off) - (x->off < y->off);
}

static int read_segments(struct reading *m)
{
	size_t nr = 0;
	GElf_Phdr ph;

	if (elf_getphdrnum(m->f->elf, &nr) != 0)
		return -DCPI_EFORMAT;
	for (size_t i = 0; i < nr && gelf_getphdr(m->f->elf, (int)i, &ph); i++) {
		uint64_t end;

		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) || !ph.p_filesz)
			continue;
		if (base_add_overflow(ph.p_offset, ph.p_filesz, &end) ||
		    base_add_overflow(ph.p_vaddr, ph.p_filesz, &end))
			return -DCPI_EFORMAT;
		if (m->nr_segments == MAX_SEGMENTS) {
			m->limit = "executable segments";
			return -DCPI_ELIMIT;
		}
		m->segments[m->nr_segments++] =
			(struct segment){ ph.p_offset, ph.p_vaddr, ph.p_filesz };
	}
	if (m->nr_segments)
		qsort(m->segments, m->nr_segments, sizeof(m->segments[0]), by_off);
	return 0;
}

static const struct segment *segment_of(const struct reading *m, uint64_t vaddr)
{
	for (size_t i = 0; i < m->nr_segments; i++)
		if (vaddr - m->segments[i].vaddr < m->segments[i].len)
			return &m->segments[i];
	return NULL;
}

static const struct segment *segment_at(const struct reading *m, uint64_t off)
{
	for (size_t i = 0; i < m->nr_segments; i++)
		if (off - m->segments[i].off < m->segments[i].len)
			return &m->segments[i];
	return NULL;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static int add_piece(struct reading *m, uint64_t off, uint64_t len, size_t at, uint8_t how)
{
	int r;

	if (m->nr == MAX_PIECES) {
		m->limit = "routines";
		return -DCPI_ELIMIT;
	}
	r = base_grow(&m->pieces, &m->cap, m->nr + 1, sizeof(*m->pieces));
	if (r >= 0)
		m->pieces[m->nr++] = (struct piece){ off, len, at, how };
	return r;
}

static int add_frames(struct reading *m)
{
	struct image_fde fde;
	size_t at = 0;
	int r = 0;

	m->has_frames = image_eh_frame_open(&m->frames, m->f);
	if (!m->has_frames)
		return 0;
	if (m->frames.section.end > MAX_FRAMES_LEN) {
		m->limit = "bytes of .eh_frame";
		return -DCPI_ELIMIT;
	}
	while (r >= 0 && image_eh_frame_next(&m->frames, &at, &fde)) {
		const struct segment *s = segment_of(m, fde.vaddr);
		uint64_t in = s ? fde.vaddr - s->vaddr : 0;

		if (s)
			r = add_piece(m, s->off + in, fde.len < s->len - in ? fde.len : s->len - in,
				      fde.at, UNWIND_NONE);
	}
	return r;
}

/* Pieces of one offset keep the order of .eh_frame. */
static int by_place(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

static void sort_pieces(struct reading *m)
{
	if (m->nr)
		qsort(m->pieces, m->nr, sizeof(*m->pieces), by_place);
}

/* ---- holes: what .eh_frame says nothing of --------------------------------------------------- */

/* The entry point is where the kernel or the loader begins: nothing called it. */
static int add_entry(struct reading *m, uint64_t off, uint64_t end)
{
	const struct segment *s = segment_of(m, m->f->header.e_entry);
	uint64_t entry = s ? s->off + (m->f->header.e_entry - s->vaddr) : 0;

	if (!s || !m->f->header.e_entry || entry < off || entry >= end)
		return 0;
	return add_piece(m, entry, end - entry < MAX_ENTRY ? end - entry : MAX_ENTRY, 0,
			 UNWIND_END);
}

/* A system call that returns from a signal, and what assemblers fill up with before it: a handler
 * returns to its first byte, and a return address is looked up one byte before. */
static const struct {
	uint16_t machine;
	uint8_t how, len, align;
	uint8_t bytes[9];
} sigreturns[] = {
	/* mov $15, %rax; syscall */
	{ EM_X86_64, UNWIND_SIGNAL_X86, 9, 1, { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 } },
	/* mov $15, %eax; syscall */
	{ EM_X86_64, UNWIND_SIGNAL_X86, 7, 1, { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 } },
	/* mov x8, #139; svc #0 */
	{ EM_AARCH64, UNWIND_SIGNAL_AARCH64, 8, 4, { 0x68, 0x11, 0x80, 0xd2, 1, 0, 0, 0xd4 } },
};

static bool fills(const struct reading *m, uint8_t before)
{
	return m->f->header.e_machine == EM_AARCH64 || before == 0x90 || before == 0xcc || !before;
}

static int add_sigreturns_of(struct reading *m, const uint8_t *code, uint64_t off, size_t len,
			     size_t i)
{
	size_t pattern = sigreturns[i].len, align = sigreturns[i].align;
	const uint8_t *at = code, *end = code + len;
	int r = 0;

	while (r >= 0 && (at = memmem(at, (size_t)(end - at), sigreturns[i].bytes, pattern))) {
		size_t before = (size_t)(at - code);

		if ((off + before) % align == 0 && before >= align && fills(m, at[-1]))
			r = add_piece(m, off + before - align, pattern + align, 0,
				      sigreturns[i].how);
		at += pattern;
	}
	return r;
}

static int add_sigreturns(struct reading *m, uint64_t off, uint64_t end)
{
	size_t len = (size_t)(end - off);
	uint8_t *code;
	int r = 0;

	/* Most holes are but filled up to where the next routine is aligned. */
	if (len < MIN_SEARCHED || len > MAX_SEARCHED - m->searched)
		return 0;
	m->searched += len;
	code = malloc(len);
	if (!code)
		return -ENOMEM;
	len = image_elf_read(m->f, off, code, len);
	for (size_t i = 0; r >= 0 && i < sizeof(sigreturns) / sizeof(sigreturns[0]); i++)
		if (sigreturns[i].machine == m->f->header.e_machine)
			r = add_sigreturns_of(m, code, off, len, i);
	free(code);
	return r;
}

/* Do pieces from @first on have some of it already? */
static bool is_taken(const struct reading *m, size_t first, size_t last, uint64_t off, uint64_t len)
{
	for (size_t i = first; i < last; i++)
		if (off < m->pieces[i].off + m->pieces[i].len && m->pieces[i].off < off + len)
			return true;
	return false;
}

/* Routines that .eh_frame says nothing of: those of V8, and what is written in assembly. */
static int add_routines(struct reading *m, const struct segment *s, size_t first, uint64_t off,
			uint64_t end)
{
	uint64_t above = s->vaddr - s->off;
	size_t last = m->nr;
	int r = 0;

	for (size_t i = image_routines_find(&m->routines, off + above);
	     r >= 0 && m->height && i < m->routines.nr; i++) {
		const struct image_routine *q = &m->routines.v[i];

		if (q->vaddr - above >= end || q->len > end - (q->vaddr - above))
			break;
		if (q->len > MAX_CODE - m->followed ||
		    is_taken(m, first, last, q->vaddr - above, q->len))
			continue;
		m->followed += q->len;
		r = add_piece(m, q->vaddr - above, q->len, 0, BY_CODE);
	}
	return r;
}

static int add_hole(struct reading *m, const struct segment *s, uint64_t off, uint64_t end)
{
	size_t first = m->nr;
	int r = add_entry(m, off, end);

	if (r >= 0)
		r = add_sigreturns(m, off, end);
	return r < 0 ? r : add_routines(m, s, first, off, end);
}

/* Between pieces that .eh_frame has, which are in order. */
static int add_holes(struct reading *m)
{
	size_t i = 0;
	int r = 0;

	m->nr_covered = m->nr;
	for (size_t s = 0; r >= 0 && s < m->nr_segments; s++) {
		uint64_t at = m->segments[s].off, end = at + m->segments[s].len;

		for (; r >= 0 && i < m->nr_covered && m->pieces[i].off < end; i++) {
			const struct piece p = m->pieces[i];

			if (p.off > at)
				r = add_hole(m, &m->segments[s], at, p.off);
			if (p.off + p.len > at)
				at = p.off + p.len;
		}
		if (r >= 0 && at < end)
			r = add_hole(m, &m->segments[s], at, end);
	}
	return r;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static int add_row(struct reading *m, uint64_t off, const struct unwind_rule *rule)
{
	int r = unwind_builder_add(m->builder, off, rule);

	if (r == -DCPI_ELIMIT)
		m->limit = "rows";
	return r;
}

static int row(void *ctx, uint64_t vaddr, const struct unwind_rule *rule)
{
	struct reading *m = ctx;
	uint64_t off = vaddr - m->above;

	m->nr_rows++;
	m->rule = *rule;
	return off < m->end ? add_row(m, off, rule) : 0;
}

/* Its instructions say how the stack is; or, of a long piece of assembly with one rule for all of
 * it, where that does not hold. */
static int code_rows(struct reading *m, const struct piece *p, const struct unwind_rule *rule)
{
	const struct segment *s = segment_at(m, p->off);
	uint8_t *code = s ? malloc(p->len) : NULL;
	int r = code || !s ? 0 : -ENOMEM;

	if (s)
		m->above = s->vaddr - s->off;
	if (!code || image_elf_read(m->f, p->off, code, p->len) != p->len)
		;
	else if (rule)
		r = height_steady(m->height, code, p->len, p->off + m->above, rule, row, m);
	else
		r = height_rows(m->height, code, p->len, p->off + m->above, row, m, NULL);
	free(code);
	return r;
}

static int follow(struct reading *m, const struct piece *p, const struct unwind_rule *rule)
{
	uint64_t begun_ns = base_now_ns();
	int r = m->followed_ns < FOLLOW_NS ? code_rows(m, p, rule) : 0;

	m->followed_ns += base_now_ns() - begun_ns;
	return r;
}

/* One rule, for so much code that no compiler made it. */
static bool is_assembly(const struct reading *m, const struct piece *p)
{
	const struct unwind_rule *rule = &m->rule;

	return m->height && m->nr_rows == 1 && p->len >= ASSEMBLY_LEAST &&
	       p->len <= ASSEMBLY_MOST && rule->how == UNWIND_CFA && rule->base == UNWIND_SP &&
	       rule->off > 8;
}

static int frame_rows(struct reading *m, const struct piece *p, const struct image_fde *fde)
{
	struct unwind_rule rule;
	int r;

	m->above = fde->vaddr - p->off;
	m->nr_rows = 0;
	r = image_cfa_run(fde, m->f->header.e_machine, &m->steps, row, m);
	if (r == -DCPI_ELIMIT && !m->limit)
		m->limit = "steps of programs in .eh_frame";
	rule = m->rule;
	return r < 0 || !is_assembly(m, p) ? r : follow(m, p, &rule);
}

static int piece_rows(struct reading *m, const struct piece *p, uint64_t end)
{
	struct unwind_rule rule = { .how = p->how };
	struct image_fde fde;
	size_t at = p->at;
	int r = 0;

	m->end = end;
	if (p->how == BY_CODE) {
		r = follow(m, p, NULL);
	} else if (p->how != UNWIND_NONE) {
		r = add_row(m, p->off, &rule);
	} else if (image_eh_frame_next(&m->frames, &at, &fde)) {
		r = frame_rows(m, p, &fde);
	}
	rule.how = UNWIND_NONE;
	return r < 0 ? r : add_row(m, end, &rule);
}

/* A piece ends where the next one begins. */
static int make_rows(struct reading *m)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->nr; i++) {
		const struct piece *p = &m->pieces[i];
		uint64_t end = p->off + p->len;

		if (i + 1 < m->nr && m->pieces[i + 1].off < end)
			end = m->pieces[i + 1].off;
		if (end > p->off)
			r = piece_rows(m, p, end);
	}
	return r;
}

static int open_height(struct reading *m, uint16_t machine)
{
	int r = height_open(machine, &m->height);

	if (r >= 0) {
		height_set_called(m->height, true);
		r = image_routines_read(&m->routines, m->f);
	}
	/* A file with too many of them has what .eh_frame says all the same. */
	if (r == -DCPI_ELIMIT)
		image_routines_release(&m->routines);
	return r == -DCPI_EUNSUPPORTED || r == -DCPI_ELIMIT ? 0 : r;
}

static int read_all(struct reading *m, struct unwind_table **out)
{
	uint16_t machine = m->f->header.e_machine;
	int r;

	if ((machine != EM_X86_64 && machine != EM_AARCH64) ||
	    m->f->header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    m->f->header.e_ident[EI_DATA] != ELFDATA2LSB)
		return -DCPI_EUNSUPPORTED;
	r = read_segments(m);
	if (r >= 0)
		r = add_frames(m);
	if (r >= 0)
		r = open_height(m, machine);
	sort_pieces(m);
	if (r >= 0)
		r = add_holes(m);
	sort_pieces(m);
	if (r >= 0)
		r = make_rows(m);
	r = r < 0 ? r : unwind_builder_done(m->builder, out);
	/* Its places are told from those of its code. */
	if (r >= 0 && m->nr_segments == 1)
		image_python_find(m->f, m->segments[0].vaddr - m->segments[0].off, &(*out)->python);
	return r;
}

static int rows_of(const struct image_elf *f, const char *name, struct unwind_table **out,
		   struct base_err *err)
{
	struct reading m = { .f = f, .steps = MAX_STEPS, .builder = unwind_builder_new() };
	int r = m.builder ? read_all(&m, out) : -ENOMEM;

	free(m.pieces);
	image_routines_release(&m.routines);
	height_close(m.height);
	unwind_builder_free(m.builder);
	if (r == -DCPI_ELIMIT)
		base_fail(err, r, "cannot make unwind rows of '%s': too many %s", name,
			  m.limit ? m.limit : "rows");
	else if (r < 0)
		base_fail_errno(err, r, "cannot make unwind rows of '%s'", name);
	return r;
}

int image_rows_read(int fd, const char *name, struct unwind_table **out, struct base_err *err)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	*out = NULL;
	if (own < 0)
		return base_fail_errno(err, -errno, "cannot read image '%s'", name);
	return image_rows_take(own, name, out, err);
}

int image_rows_take(int fd, const char *name, struct unwind_table **out, struct base_err *err)
{
	struct image_elf f;
	struct stat st;
	int r;

	*out = NULL;
	if (fstat(fd, &st) < 0) {
		r = -errno;
		close(fd);
		return base_fail_errno(err, r, "cannot read image '%s'", name);
	}
	r = image_elf_take(&f, fd, (uint64_t)st.st_size, name, err);
	if (r < 0)
		return r;
	r = rows_of(&f, name, out, err);
	image_elf_close(&f);
	return r;
}

int image_rows_of_bytes(const void *data, size_t len, const char *name, struct unwind_table **out,
			struct base_err *err)
{
	int fd = memfd_create("dcpi-rows", MFD_CLOEXEC), r;

	*out = NULL;
	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot copy image '%s'", name);
	r = base_write_all(fd, data, len);
	if (r < 0)
		base_fail_errno(err, r, "cannot copy image '%s'", name);
	else
		r = image_rows_read(fd, name, out, err);
	close(fd);
	return r;
}
