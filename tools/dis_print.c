/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions of an image are printed by several threads, in order. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bound.h"
#include "dis.h"

/* A piece of about that many bytes takes a thread some 10 ms. */
enum { PIECE_LEN = 128 << 10, THREADS_MAX = 16 };

struct piece {
	struct dis_range range;
	struct dis_text text;
	int r;
	pthread_t thread;
	bool started;
};

/* A place at or behind @want where decoding begins anew whatever stands before. */
static uint64_t cut(struct image *img, const struct dis_range *range, uint64_t want)
{
	size_t lo = BASE_BOUND(i, image_nr_symbols(img), image_symbol(img, i)->vaddr < want);

	if (!image_symbol(img, lo) || image_symbol(img, lo)->vaddr > range->end)
		return range->end;
	return image_symbol(img, lo)->vaddr;
}

static void *work(void *arg)
{
	struct piece *p = arg;
	struct dis_sink sink = { dis_text_label, dis_text_insn, &p->text };
	struct insn_disasm *d;

	p->r = insn_disasm_open(image_machine(p->text.img), &d, NULL);
	if (p->r >= 0) {
		dis_walk(p->text.img, d, &p->range, &sink);
		insn_disasm_close(d);
	}
	if (p->text.failed)
		p->r = -ENOMEM;
	return NULL;
}

/* Lines are looked up in the image, which is one thread's at a time. */
static size_t threads_wanted(bool source)
{
	long nr = source ? 1 : sysconf(_SC_NPROCESSORS_ONLN);

	return nr < 1 ? 1 : nr > THREADS_MAX ? THREADS_MAX : (size_t)nr;
}

/* Pieces for one round, from *@at on; returns how many. */
static size_t share_out(struct image *img, const struct dis_range *range, uint64_t *at, size_t max,
			struct piece *pieces)
{
	size_t nr = 0;

	for (; nr < max && *at < range->end; nr++) {
		struct piece *p = &pieces[nr];
		uint64_t end = range->end - *at > PIECE_LEN ? cut(img, range, *at + PIECE_LEN)
							    : range->end;

		p->range = *range;
		p->range.code += *at - range->vaddr;
		p->range.vaddr = *at;
		p->range.end = *at = end;
		p->text.img = img;
		p->text.len = 0;
	}
	return nr;
}

/* Where no thread is to be had, this one does it. */
static int round_of(struct piece *pieces, size_t nr, FILE *to)
{
	int r = 0;

	for (size_t i = 1; i < nr; i++)
		pieces[i].started = !pthread_create(&pieces[i].thread, NULL, work, &pieces[i]);
	for (size_t i = 0; i < nr; i++) {
		if (pieces[i].started)
			pthread_join(pieces[i].thread, NULL);
		else
			work(&pieces[i]);
		pieces[i].started = false;
		if (pieces[i].r < 0)
			r = pieces[i].r;
		fwrite(pieces[i].text.data, 1, pieces[i].text.len, to);
	}
	return r;
}

int dis_print(struct image *img, const struct dis_range *range, bool bytes, bool source, FILE *to,
	      struct base_err *err)
{
	size_t max = threads_wanted(source), nr;
	struct piece *pieces = calloc(max, sizeof(*pieces));
	uint64_t at = range->vaddr;
	int r = pieces ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < max; i++) {
		pieces[i].text.bytes = bytes;
		pieces[i].text.source = source;
	}
	while (r >= 0 && (nr = share_out(img, range, &at, max, pieces)))
		r = round_of(pieces, nr, to);
	for (size_t i = 0; pieces && i < max; i++)
		dis_text_release(&pieces[i].text);
	free(pieces);
	return r < 0 ? base_fail_errno(err, r, "cannot disassemble '%s'", image_path(img)) : 0;
}
