/* SPDX-License-Identifier: BSD-2-Clause */
/* Room for unwind tables in the kernel: given out, and taken from who was not used for longest. No
 * kernel is needed. */
#include "bpf_rows.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct unwind_row) == 4 && CALLPATH_RULE_WORDS == 4, "words");

uint32_t *bpf_rows_word(const struct bpf_rows *r, uint32_t number)
{
	uint32_t *bank = r->banks[number >> (CALLPATH_CHUNK_BITS + CALLPATH_BANK_BITS)];

	return bank + number % (CALLPATH_CHUNK * CALLPATH_BANK);
}

/* Its number, or 0. */
static uint32_t find(const struct bpf_rows *r, const struct driver_file *file)
{
	for (uint32_t i = 1; i < CALLPATH_NR_FILES; i++)
		if (r->files[i].known && !r->files[i].replaced &&
		    !memcmp(&r->files[i].file, file, sizeof(*file)))
			return i;
	return 0;
}

/* ---- eviction -------------------------------------------------------------------------------- */

static uint64_t used_ns(const struct bpf_rows *r, uint32_t number)
{
	const struct bpf_rows_file *f = &r->files[number];
	uint64_t walked = f->nr_chunks ? r->tables[number].used_ns : 0;

	return walked > f->put_ns ? walked : f->put_ns;
}

/* The one that was not used for longest; 0: there is none but @keep, and those that go anyway. */
static uint32_t oldest(const struct bpf_rows *r, bool with_table, uint32_t keep)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < CALLPATH_NR_FILES; i++) {
		if (i == keep || !r->files[i].known || r->files[i].replaced ||
		    (with_table && !r->files[i].nr_chunks))
			continue;
		if (!found || used_ns(r, i) < used_ns(r, found))
			found = i;
	}
	return found;
}

/* No program finds the table any more, but may be in it until it was waited for. */
static uint32_t free_chunks(struct bpf_rows *r, uint32_t number)
{
	struct bpf_rows_file *f = &r->files[number];
	uint32_t nr = f->nr_chunks;

	if (!nr)
		return 0;
	memset(&r->taken[f->chunk], 0, nr * sizeof(r->taken[0]));
	r->nr_tables--;
	r->bytes -= (uint64_t)nr * CALLPATH_CHUNK * sizeof(uint32_t);
	f->nr_chunks = 0;
	return nr;
}

static uint32_t forget(struct bpf_rows *r, uint32_t number)
{
	r->ops->forget(r->ctx, &r->files[number].file);
	r->files[number].known = false;
	return free_chunks(r, number);
}

static uint32_t evict(struct bpf_rows *r, uint32_t number)
{
	r->evicted += r->files[number].nr_chunks != 0;
	return forget(r, number);
}

static void settle(struct bpf_rows *r)
{
	r->ops->changed(r->ctx);
	r->ops->wait(r->ctx);
	for (uint32_t i = 0; i < r->nr_replaced; i++) {
		free_chunks(r, r->replaced[i]);
		r->files[r->replaced[i]] = (struct bpf_rows_file){ .known = false };
	}
	r->nr_replaced = 0;
}

/* Its file leads elsewhere by now. Programs are waited for once for many of these. */
static void replace(struct bpf_rows *r, uint32_t number)
{
	if (!number || !r->files[number].known)
		return;
	r->files[number].replaced = true;
	r->replaced[r->nr_replaced++] = number;
	if (r->nr_replaced == BPF_ROWS_REPLACED)
		settle(r);
}

/* ---- room ------------------------------------------------------------------------------------ */

/* The first of @nr chunks in a row that are free; CALLPATH_NR_CHUNKS: there is none. */
static uint32_t find_run(const struct bpf_rows *r, uint32_t nr)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i < CALLPATH_NR_CHUNKS; i++) {
		run = r->taken[i] ? 0 : run + 1;
		if (run == nr)
			return i + 1 - nr;
	}
	return CALLPATH_NR_CHUNKS;
}

/* Tables but that of @keep go until there is room, and then some. */
static uint32_t make_run(struct bpf_rows *r, uint32_t nr, uint32_t keep)
{
	uint32_t at = find_run(r, nr), freed = 0, number = 0;

	if (at == CALLPATH_NR_CHUNKS && r->nr_replaced) {
		settle(r);
		at = find_run(r, nr);
	}
	if (at < CALLPATH_NR_CHUNKS)
		return at;
	while (at == CALLPATH_NR_CHUNKS || freed < BPF_ROWS_SPARE) {
		number = oldest(r, true, keep);
		if (!number)
			break;
		freed += evict(r, number);
		at = find_run(r, nr);
	}
	settle(r);
	return at;
}

static int make_banks(struct bpf_rows *r, uint32_t chunk, uint32_t nr)
{
	int e = 0;

	for (uint32_t i = chunk / CALLPATH_BANK; e >= 0 && i <= (chunk + nr - 1) / CALLPATH_BANK;
	     i++)
		if (!r->banks[i])
			e = r->ops->bank(r->ctx, i, &r->banks[i]);
	return e;
}

/* A number for one more file. That of @keep stays. */
static uint32_t take_number(struct bpf_rows *r, uint32_t keep)
{
	uint32_t number;

	for (uint32_t i = 1; i < CALLPATH_NR_FILES; i++)
		if (!r->files[i].known)
			return i;
	number = oldest(r, false, keep);
	/* No program can be in a table that there never was. */
	if (evict(r, number))
		settle(r);
	return number;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static uint64_t words_of(const struct unwind_table *t)
{
	return (uint64_t)t->nr_rules * CALLPATH_RULE_WORDS + t->nr_pages + 1 + t->nr_rows;
}

/* The number of the word behind them. */
static uint32_t write_words(const struct bpf_rows *r, uint32_t at, const void *from, uint32_t nr)
{
	const uint32_t bank = CALLPATH_CHUNK * CALLPATH_BANK;
	const uint32_t *words = from;

	while (nr) {
		uint32_t part = bank - at % bank < nr ? bank - at % bank : nr;

		memcpy(bpf_rows_word(r, at), words, part * sizeof(*words));
		words += part;
		at += part;
		nr -= part;
	}
	return at;
}

static void write_table(struct bpf_rows *r, uint32_t number, const struct unwind_table *t,
			uint64_t now_ns)
{
	struct callpath_table *to = &r->tables[number];
	uint32_t rules = r->files[number].chunk * CALLPATH_CHUNK;
	uint32_t pages = write_words(r, rules, t->rules, t->nr_rules * CALLPATH_RULE_WORDS);
	uint32_t rows = write_words(r, pages, t->pages, t->nr_pages + 1);

	write_words(r, rows, t->rows, t->nr_rows);
	*to = (struct callpath_table){
		.rules = rules,
		.pages = pages,
		.rows = rows,
		.first_page = t->first_page,
		.nr_pages = t->nr_pages,
		.nr_rows = t->nr_rows,
		.nr_rules = t->nr_rules,
		.python = t->python.version,
		.used_ns = now_ns,
		.version = ++r->version,
	};
}

static int put_table(struct bpf_rows *r, uint32_t number, const struct unwind_table *t,
		     uint64_t now_ns)
{
	uint32_t nr = (uint32_t)((words_of(t) + CALLPATH_CHUNK - 1) / CALLPATH_CHUNK);
	uint32_t chunk = make_run(r, nr, number);
	int e;

	if (chunk == CALLPATH_NR_CHUNKS)
		return -DCPI_ELIMIT;
	e = make_banks(r, chunk, nr);
	if (e < 0)
		return e;
	memset(&r->taken[chunk], 1, nr * sizeof(r->taken[0]));
	r->files[number].chunk = chunk;
	r->files[number].nr_chunks = nr;
	r->pythons[number] = t->python;
	r->nr_tables++;
	r->bytes += (uint64_t)nr * CALLPATH_CHUNK * sizeof(uint32_t);
	write_table(r, number, t, now_ns);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return 0;
}

/* A number for the table of @file, which has none under that. *@old: the number of the one that it
 * replaces, or 0. */
static uint32_t know(struct bpf_rows *r, const struct driver_file *file, uint64_t now_ns,
		     uint32_t *old)
{
	uint32_t number = find(r, file);

	*old = number && r->files[number].nr_chunks ? number : 0;
	if (!number || *old) {
		number = take_number(r, number);
		r->files[number] = (struct bpf_rows_file){ .file = *file, .known = true };
	}
	r->files[number].put_ns = now_ns;
	return number;
}

int bpf_rows_put(struct bpf_rows *r, const struct driver_file *file,
		 const struct unwind_table *table, uint64_t now_ns)
{
	uint32_t number, old;
	int e = 0;

	if (table && words_of(table) > (uint64_t)CALLPATH_NR_CHUNKS * CALLPATH_CHUNK)
		return -DCPI_ELIMIT;
	number = know(r, file, now_ns, &old);
	if (table)
		e = put_table(r, number, table, now_ns);
	/* Without one it is not missing all the same. */
	if (r->ops->lead(r->ctx, file, r->files[number].nr_chunks ? number : 0) < 0 && e >= 0)
		e = -ENOMEM;
	r->ops->changed(r->ctx);
	replace(r, old);
	if (old && !table)
		settle(r);
	return e;
}

bool bpf_rows_is_asked(const struct bpf_rows *r, const struct driver_file *file)
{
	uint32_t number = find(r, file);

	return number && !r->files[number].again;
}

bool bpf_rows_ask(struct bpf_rows *r, const struct driver_file *file, uint64_t now_ns)
{
	uint32_t number = find(r, file);

	if (bpf_rows_is_asked(r, file))
		return false;
	if (!number) {
		number = take_number(r, 0);
		r->files[number] = (struct bpf_rows_file){ .file = *file, .known = true };
	}
	r->files[number].again = false;
	r->files[number].put_ns = now_ns;
	r->ops->lead(r->ctx, file, 0);
	return true;
}

/* So often a file is looked for in another process. */
enum { AGAIN_MAX = 32 };

void bpf_rows_again(struct bpf_rows *r, const struct driver_file *file)
{
	uint32_t number = find(r, file);

	if (!number || r->files[number].nr_chunks || r->files[number].nr_again == AGAIN_MAX)
		return;
	r->files[number].nr_again++;
	r->files[number].again = true;
	r->ops->forget(r->ctx, file);
	r->ops->changed(r->ctx);
}

void bpf_rows_forget(struct bpf_rows *r, const struct driver_file *files, size_t nr)
{
	uint32_t freed = 0, number;

	for (size_t i = 0; i < nr; i++) {
		number = find(r, &files[i]);
		if (number)
			freed += forget(r, number);
	}
	if (freed)
		settle(r);
	else if (nr)
		r->ops->changed(r->ctx);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

static bool has_table(const struct bpf_rows *r, uint32_t number, const struct driver_file *file)
{
	const struct bpf_rows_file *f = &r->files[number];

	return f->known && !f->replaced && f->nr_chunks && !memcmp(&f->file, file, sizeof(*file));
}

/* How many of the @nr rows from word @first on begin at @low or before. */
static uint32_t rows_below(const struct bpf_rows *r, uint32_t first, uint32_t nr, uint32_t low)
{
	uint32_t from = 0;

	while (from < nr) {
		uint32_t mid = from + (nr - from) / 2;

		if ((*bpf_rows_word(r, first + mid) & 0xffff) <= low)
			from = mid + 1;
		else
			nr = mid;
	}
	return from;
}

static uint32_t rule_number(const struct bpf_rows *r, const struct callpath_table *t, uint64_t off)
{
	uint64_t page = (off >> UNWIND_PAGE_BITS) - t->first_page;
	uint32_t from, to, below;

	if (page >= t->nr_pages)
		return 0;
	from = *bpf_rows_word(r, t->pages + (uint32_t)page);
	to = *bpf_rows_word(r, t->pages + (uint32_t)page + 1);
	below = from + rows_below(r, t->rows + from, to - from, off & 0xffff);
	return below ? *bpf_rows_word(r, t->rows + below - 1) >> 16 : 0;
}

bool bpf_rows_rule(struct bpf_rows *r, const struct driver_file *file, uint64_t off,
		   struct unwind_rule *rule)
{
	uint32_t *found = &r->found[base_hash64(file, sizeof(*file)) % BPF_ROWS_FOUND], number;

	if (!has_table(r, *found, file))
		*found = find(r, file);
	if (!has_table(r, *found, file))
		return false;
	number = rule_number(r, &r->tables[*found], off);
	memcpy(rule, bpf_rows_word(r, r->tables[*found].rules + number * CALLPATH_RULE_WORDS),
	       sizeof(*rule));
	return number != 0;
}
