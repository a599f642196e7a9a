/* SPDX-License-Identifier: BSD-2-Clause */
/* Each byte of each routine of a file: is its computed rule the one of .eh_frame? */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agree.h"
#include "image.h"
#include "unwind.h"
#include "unwind_rows.h"

struct file {
	struct agree *a;
	struct image *img;
	struct unwind_table *table, *own; /* @own: of the routine, by address */
	struct unwind_builder *builder;
	struct height *h;
	const struct image_symbol *sym;
};

static int row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	return unwind_builder_add(ctx, addr, rule);
}

/* A copy may be in memory while the register still holds it: only two places in memory differ. */
static bool place_differs(uint8_t at, int16_t words, uint8_t their_at, int16_t their_words)
{
	if (at == UNWIND_AT_SAME || at == UNWIND_AT_LOST)
		return false;
	return their_at == UNWIND_AT_CFA && words != their_words;
}

static void compare(struct file *f, uint64_t vaddr, const struct unwind_rule *own,
		    const struct unwind_rule *theirs)
{
	struct agree *a = f->a;
	bool differs;

	if (own->base != theirs->base) {
		a->apart++;
		return;
	}
	a->compared++;
	differs = own->off != theirs->off || theirs->returns ||
		  place_differs(own->fp_at, own->fp_words, theirs->fp_at, theirs->fp_words) ||
		  place_differs(own->link_at, own->link_words, theirs->link_at, theirs->link_words);
	if (!differs)
		return;
	if (!a->wrong++ || a->wrong <= a->max_lines)
		if (a->to)
			fprintf(a->to,
				"%s+%#" PRIx64 ": CFA %u%+d, rbp %u:%d, rbx %u:%d; .eh_frame: CFA "
				"%u%+d, rbp %u:%d, rbx %u:%d\n",
				f->sym->name, vaddr - f->sym->vaddr, own->base, own->off,
				own->fp_at, own->fp_words, own->link_at, own->link_words,
				theirs->base, theirs->off, theirs->fp_at, theirs->fp_words,
				theirs->link_at, theirs->link_words);
}

static void compare_all(struct file *f)
{
	uint64_t wrong = f->a->wrong;

	for (uint64_t i = 0; i < f->sym->len; i++) {
		const struct unwind_rule *own = unwind_find(f->own, f->sym->vaddr + i), *theirs;
		uint64_t off;

		if (own->how != UNWIND_CFA || image_off(f->img, f->sym->vaddr + i, &off) < 0)
			continue;
		theirs = unwind_find(f->table, off);
		if (theirs->how == UNWIND_CFA)
			compare(f, f->sym->vaddr + i, own, theirs);
		else
			f->a->apart++;
	}
	f->a->wrong_routines += f->a->wrong != wrong;
}

static int routine(struct file *f)
{
	struct height_report report;
	uint8_t *code = malloc(f->sym->len);
	size_t len = code ? image_bytes(f->img, f->sym->vaddr, code, f->sym->len) : 0;
	int r = code ? 0 : -ENOMEM;

	f->builder = unwind_builder_new();
	if (!f->builder)
		r = -ENOMEM;
	if (r == 0 && len == f->sym->len)
		r = height_rows(f->h, code, len, f->sym->vaddr, row, f->builder, &report);
	else
		memset(&report, 0, sizeof(report));
	if (r == 0)
		r = unwind_builder_done(f->builder, &f->own);
	if (r == 0) {
		for (size_t i = 0; i < HEIGHT_NR_REASONS; i++)
			f->a->bytes[i] += report.bytes[i];
		f->a->routines++;
		f->a->refused += report.refused != HEIGHT_PROVEN;
		compare_all(f);
		unwind_free(f->own);
	}
	unwind_builder_free(f->builder);
	free(code);
	return r;
}

static int routines(struct file *f)
{
	size_t nr = image_nr_symbols(f->img);
	uint64_t end = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < nr; i++) {
		f->sym = image_symbol(f->img, i);
		if (!f->sym->len || f->sym->vaddr < end)
			continue;
		end = f->sym->vaddr + f->sym->len;
		r = routine(f);
	}
	return r;
}

static int open_table(const char *path, struct unwind_table **out, struct base_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r;

	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot open '%s'", path);
	r = image_rows_read(fd, path, out, err);
	close(fd);
	return r;
}

int agree_file(const char *path, struct agree *a, struct base_err *err)
{
	struct file f = { .a = a };
	int r = image_open_path(path, IMAGE_FILE, &f.img, err);

	if (r < 0)
		return r;
	r = height_open(image_machine(f.img), &f.h);
	if (r == 0)
		r = open_table(path, &f.table, err);
	if (r == 0)
		r = routines(&f);
	unwind_free(f.table);
	height_close(f.h);
	image_close(f.img);
	return r;
}

void agree_print(const struct agree *a, FILE *to)
{
	uint64_t all = 0;

	for (size_t i = 0; i < HEIGHT_NR_REASONS; i++)
		all += a->bytes[i];
	fprintf(to, "%" PRIu64 " routines, %" PRIu64 " refused, %" PRIu64 " bytes\n", a->routines,
		a->refused, all);
	for (int i = 0; i < HEIGHT_NR_REASONS; i++)
		if (a->bytes[i])
			fprintf(to, "%6.2f %%  %s\n", 100. * (double)a->bytes[i] / (double)all,
				height_reason_text(i));
	fprintf(to,
		"compared %" PRIu64 ", cannot be compared %" PRIu64 ", wrong %" PRIu64
		" in %" PRIu64 " routines\n",
		a->compared, a->apart, a->wrong, a->wrong_routines);
}
