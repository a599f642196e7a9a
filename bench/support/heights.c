/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heights DB [FACILITY…]: of how many samples in JIT code the caller is certain by rules computed
 * from the code (lib/height), and the reasons for the rest, for each facility.
 * heights -agree FILE…: compare such rules with those that compilers wrote into these files.
 */
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "height.h"
#include "image.h"
#include "profdb.h"

enum { NO_ROUTINE = HEIGHT_NR_REASONS, NO_IMAGE, NR_COLUMNS };

struct facility {
	char *name;
	uint64_t samples[NR_COLUMNS];
	uint64_t by_proof[HEIGHT_NR_PROOFS];
	struct facility *next;
};

static struct {
	struct profdb *db;
	struct image_store *store;
	char **wanted;
	struct height *h;
	struct facility *facilities;
	bool list; /* print the routines that have no rule at a sample */
} t;

static void *need(void *p)
{
	if (!p)
		abort();
	return p;
}

static int no_row(void *ctx, uint64_t addr, const struct unwind_rule *rule)
{
	(void)ctx;
	(void)addr;
	(void)rule;
	return 0;
}

static struct facility *facility_of(const char *name, size_t len)
{
	struct facility *f = t.facilities;

	while (f && (strlen(f->name) != len || memcmp(f->name, name, len) != 0))
		f = f->next;
	if (f)
		return f;
	f = need(calloc(1, sizeof(*f)));
	f->name = need(strndup(name, len));
	f->next = t.facilities;
	t.facilities = f;
	return f;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The routine whose rules were computed last. */
struct computed {
	const struct image_symbol *sym;
	struct height_report report;
};

static void compute(struct image *img, const struct image_symbol *sym, struct computed *c)
{
	uint8_t *code = need(malloc(sym->len ? sym->len : 1));
	size_t len = image_bytes(img, sym->vaddr, code, sym->len);

	if (height_rows(t.h, code, len, sym->vaddr, no_row, NULL, &c->report) < 0)
		abort();
	c->sym = sym;
	free(code);
}

static void add(struct facility *f, struct image *img, uint64_t off, uint64_t n, struct computed *c)
{
	const struct image_symbol *sym = NULL;
	enum height_reason reason;
	uint64_t vaddr;

	if (image_vaddr(img, off, &vaddr) == 0)
		sym = image_symbol_at(img, vaddr);
	/* Memory that no source told of: it begins at a page, not at a routine. */
	if (!sym || strncmp(sym->name, "[anonymous]", 11) == 0) {
		f->samples[NO_ROUTINE] += n;
		return;
	}
	if (sym != c->sym)
		compute(img, sym, c);
	reason = height_reason_at(t.h, vaddr - sym->vaddr);
	f->samples[reason] += n;
	if (reason == HEIGHT_PROVEN)
		f->by_proof[c->report.proof] += n;
	else if (t.list)
		printf("%s\t%" PRIu64 "\t%s\t+%#" PRIx64 "\t%s\n", f->name, n,
		       height_reason_text(reason), vaddr - sym->vaddr, sym->name);
}

static uint64_t sum(const struct profdb_profile *p, const struct profdb_entry *e)
{
	uint64_t n = 0;

	for (size_t i = 0; i < profdb_profile_nr_events(p); i++)
		n += e->count[i];
	return n;
}

static bool wanted(const char *name, size_t len)
{
	if (!*t.wanted)
		return true;
	for (char **w = t.wanted; *w; w++)
		if (strlen(*w) == len && memcmp(*w, name, len) == 0)
			return true;
	return false;
}

static void add_profile(struct profdb_profile *p, const char *path, struct facility *f)
{
	const char *paths[] = { path, NULL };
	struct image_query query = { .kind = IMAGE_DYNAMIC,
				     .id = *profdb_profile_image(p),
				     .paths = paths };
	struct computed c = { 0 };
	struct base_err err = { 0 };
	struct image *img;
	int r = image_open(t.store, &query, &img, &err);

	if (r < 0)
		fprintf(stderr, "heights: %s\n", err.text);
	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);

		if (r < 0 || image_machine(img) != EM_X86_64)
			f->samples[NO_IMAGE] += sum(p, e);
		else
			add(f, img, e->off, sum(p, e), &c);
	}
	if (r >= 0)
		image_close(img);
}

/* A pseudo-image's file name begins with its facility. */
static int visit(void *ctx, const char *file, struct profdb_profile *p)
{
	const char *path = profdb_profile_path(p, 0) ? profdb_profile_path(p, 0) : "";
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t len = strcspn(name, "-");

	(void)ctx;
	(void)file;
	if (profdb_profile_kind(p) == PROFDB_DYNAMIC && wanted(name, len))
		add_profile(p, path, facility_of(name, len));
	profdb_profile_free(p);
	return 0;
}

static void bad(void *ctx, const char *file, const struct base_err *err)
{
	(void)ctx;
	fprintf(stderr, "heights: %s: %s\n", file, err->text);
	exit(1);
}

static int walk(struct base_err *err)
{
	char **epochs = profdb_epochs(t.db, err), **platforms;
	int r = epochs ? 0 : err->code;

	for (char **e = epochs; r >= 0 && *e; e++) {
		platforms = profdb_platforms(t.db, *e, err);
		for (char **p = platforms; r >= 0 && p && *p; p++)
			r = profdb_walk(t.db, *e, *p, visit, bad, NULL, err);
		free(platforms);
	}
	free(epochs);
	return r;
}

static const char *column(int i)
{
	return i == NO_ROUTINE ? "in no routine"
	       : i == NO_IMAGE ? "no image"
			       : height_reason_text((enum height_reason)i);
}

static void print(const struct facility *f)
{
	uint64_t all = 0;

	for (int i = 0; i < NR_COLUMNS; i++)
		all += f->samples[i];
	printf("%s: %" PRIu64 " samples\n", f->name, all);
	for (int i = 0; i < NR_COLUMNS; i++)
		if (f->samples[i])
			printf("%7.2f %%  %s\n", 100. * (double)f->samples[i] / (double)all,
			       column(i));
	printf("          (proven: %" PRIu64 " by a return, %" PRIu64 " by a prologue)\n",
	       f->by_proof[HEIGHT_BY_RETURN], f->by_proof[HEIGHT_BY_PROLOGUE]);
}

static int agree(char **files)
{
	int status = 0;

	for (; *files; files++) {
		struct agree a = { .to = stdout, .max_lines = 20 };
		struct base_err err = { 0 };

		if (agree_file(*files, &a, &err) < 0) {
			base_err_print(&err, "heights", stderr);
			return 1;
		}
		printf("%s: ", *files);
		agree_print(&a, stdout);
		status |= a.wrong != 0;
	}
	return status;
}

int main(int argc, char **argv)
{
	struct base_err err = { 0 };

	if (argc > 2 && strcmp(argv[1], "-agree") == 0)
		return agree(argv + 2);
	if (argc > 1 && strcmp(argv[1], "-list") == 0) {
		t.list = true;
		argv++;
		argc--;
	}
	if (argc < 2)
		return 2;
	t.wanted = argv + 2;
	if (height_open(EM_X86_64, &t.h) < 0 || profdb_open(argv[1], false, &t.db, &err) < 0 ||
	    image_store_open(profdb_dyn_fd(t.db), profdb_kernel_fd(t.db), &t.store) < 0 ||
	    walk(&err) < 0) {
		base_err_print(&err, "heights", stderr);
		return 1;
	}
	for (struct facility *f = t.facilities, *next; f; f = next) {
		next = f->next;
		print(f);
		free(f->name);
		free(f);
	}
	height_close(t.h);
	image_store_close(t.store);
	profdb_close(t.db);
	return 0;
}
