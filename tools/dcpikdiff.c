/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpikdiff: the kernel's code as it runs, patched by itself: kept for the tools, and compared. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "fleet.h"
#include "image.h"
#include "insn_x86.h"
#include "kdiff.h"
#include "kernel.h"
#include "profdb.h"
#include "pseudoimg.h"
#include "report.h"
#include "tools.h"

/* ---- where two states of a routine differ, and what that looks like -------------------------- */

const char *const kdiff_causes[KDIFF_NR_CAUSES] = {
	[KDIFF_KEY] = "static key",
	[KDIFF_TRACE] = "tracing",
	[KDIFF_CALL] = "static call",
	[KDIFF_OTHER] = "other",
};

/* The effect of an instruction, as far as it tells patches apart. */
enum insn_class { NOP, JUMP, CALL, ANY };

#define A64_NOP 0xd503201fu

static enum insn_class class_x86(const uint8_t *code, size_t len, size_t *n)
{
	ZydisDecodedInstruction i;

	*n = 1;
	if (!insn_x86_decode_head(true, code, len, &i))
		return ANY;
	*n = i.length;
	if (i.mnemonic == ZYDIS_MNEMONIC_NOP)
		return NOP;
	if (!i.raw.imm[0].is_relative)
		return ANY;
	return i.mnemonic == ZYDIS_MNEMONIC_JMP	   ? JUMP
	       : i.mnemonic == ZYDIS_MNEMONIC_CALL ? CALL
						   : ANY;
}

/* At the start, or behind the landing mark of indirect calls (endbr64). */
static bool is_start_x86(const uint8_t *code, size_t at)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	return at == 0 || (at == sizeof(endbr) && !memcmp(code, endbr, sizeof(endbr)));
}

static enum insn_class class_a64(const uint8_t *code, size_t len, size_t *n)
{
	uint32_t insn;

	*n = len < 4 ? len : 4;
	if (len < 4)
		return ANY;
	memcpy(&insn, code, sizeof(insn));
	if (insn == A64_NOP)
		return NOP;
	if ((insn & 0xfc000000u) == 0x14000000u)
		return JUMP;
	return (insn & 0xfc000000u) == 0x94000000u ? CALL : ANY;
}

/* The call is the second instruction, the first saves the return address; landing marks before. */
static bool is_start_a64(size_t at)
{
	return at <= 12;
}

/* *n: bytes to the next instruction. */
static enum insn_class class_at(uint32_t machine, const uint8_t *code, size_t len, size_t *n)
{
	return machine == EM_X86_64 ? class_x86(code, len, n) : class_a64(code, len, n);
}

static size_t insn_len(uint32_t machine, const uint8_t *code, size_t len)
{
	size_t n;

	class_at(machine, code, len, &n);
	return n;
}

/* The class of a range: all of it nops, or a single instruction. */
static enum insn_class class_of(uint32_t machine, const uint8_t *code, size_t len)
{
	enum insn_class first = ANY;
	size_t n;

	for (size_t at = 0; at < len; at += n) {
		enum insn_class c = class_at(machine, code + at, len - at, &n);

		if (at == 0)
			first = c;
		else if (c != first || c != NOP)
			return ANY;
	}
	return first;
}

static enum kdiff_cause cause_of(uint32_t machine, const uint8_t *was, const uint8_t *is,
				 const struct kdiff_place *p)
{
	enum insn_class a = class_of(machine, was + p->at, p->len);
	enum insn_class b = class_of(machine, is + p->at, p->len);
	bool start = machine == EM_X86_64 ? is_start_x86(is, p->at) : is_start_a64(p->at);

	if ((a == NOP && b == JUMP) || (a == JUMP && b == NOP))
		return KDIFF_KEY;
	if (start && (a == NOP || a == CALL) && (b == NOP || b == CALL))
		return KDIFF_TRACE;
	if ((a == CALL || a == JUMP) && (b == CALL || b == JUMP || b == NOP))
		return KDIFF_CALL;
	return a == NOP && b == CALL ? KDIFF_CALL : KDIFF_OTHER;
}

bool kdiff_next(uint32_t machine, const uint8_t *was, const uint8_t *is, size_t len, size_t from,
		struct kdiff_place *out)
{
	size_t a = from, b = from, start = from;

	*out = (struct kdiff_place){ 0 };
	/* Both are walked by instructions; where they stand together again, a stretch ends. */
	while (a < len) {
		if (a <= b)
			a += insn_len(machine, was + a, len - a);
		if (b < a)
			b += insn_len(machine, is + b, len - b);
		if (a != b)
			continue;
		if (memcmp(was + start, is + start, a - start) != 0)
			break;
		start = a;
	}
	if (start >= len || memcmp(was + start, is + start, a - start) == 0)
		return false;
	out->at = start;
	out->len = a - start;
	for (size_t i = start; i < a; i++)
		out->bytes += was[i] != is[i];
	out->cause = cause_of(machine, was, is, out);
	return true;
}

/* ---- a kernel's code, routine by routine, as it may be shown (lib/kernel) -------------------- */

struct kdiff_routine {
	const char *name; /* name of the symbols */
	uint64_t off;	  /* from the kernel's base */
	size_t len;
	const uint8_t *code; /* in the text; NULL: it could not be read, or shown */
};

struct kdiff_kernel {
	char name[128]; /* "vmlinux-RELEASE" */
	struct base_id id;
	struct kernel_symbols symbols;
	uint64_t start, len; /* its text; start is a true address */
	uint8_t *text;
	struct kdiff_routine *routines; /* ascending */
	size_t nr_routines, nr_unread;
};

enum { KALLSYMS_MAX = 256 << 20, NOTES_MAX = 64 << 10 };
/* No routine is so long: what is between two symbols so far apart is data. */
enum { ROUTINE_MAX = 256 << 10 };

/* ---- reading --------------------------------------------------------------------------------- */

static int read_symbols(struct kdiff_kernel *k, struct base_err *err)
{
	struct base_buf text = { 0 };
	int r = base_file_read(AT_FDCWD, "/proc/kallsyms", KALLSYMS_MAX, &text, err);

	if (r >= 0)
		r = kernel_symbols_parse(&k->symbols, (const char *)text.data, text.len);
	base_buf_release(&text);
	if (r < 0)
		return base_fail_errno(err, r, "cannot read the kernel's symbols");
	k->start = k->symbols.text_start;
	if (k->symbols.text_end > k->start && k->start) {
		k->len = k->symbols.text_end - k->start;
		return 0;
	}
	base_fail(err, -EPERM, "the kernel does not tell where its code is");
	base_hint(err, "as root, with kernel.kptr_restrict below 2, /proc/kallsyms has addresses");
	return -EPERM;
}

static int read_identity(struct kdiff_kernel *k, struct base_err *err)
{
	struct utsname uts = { .release = "unknown" };
	struct base_buf notes = { 0 };
	int r = base_file_read(AT_FDCWD, "/sys/kernel/notes", NOTES_MAX, &notes, err);

	uname(&uts);
	snprintf(k->name, sizeof(k->name), "vmlinux-%s", uts.release);
	if (r >= 0)
		r = base_id_of_notes(&k->id, notes.data, notes.len, 4);
	base_buf_release(&notes);
	return r < 0 ? base_fail_errno(err, r, "the running kernel has no build-id") : 0;
}

/* Any target outside the image becomes the one place behind its end. */
static uint64_t place(void *ctx, uint64_t target)
{
	const struct kdiff_kernel *k = ctx;

	(void)target;
	return k->len;
}

/*
 * Code of routine @r as it is elsewhere, where the kernel would begin at @start, as it may be
 * shown: in place.
 */
static void kdiff_show(const struct kdiff_kernel *k, const struct kdiff_routine *r, uint64_t start,
		       uint8_t *code)
{
	const struct kernel_view view = {
		.machine = kernel_machine(),
		.addr = start + r->off,
		.at = r->off,
		.own_start = start,
		.own_end = start + (k->symbols.image_end - k->start),
		.place = place,
		.ctx = (void *)(uintptr_t)k,
	};

	kernel_view_hide(&view, code, r->len);
}

static void read_routine(struct kdiff_kernel *k, struct kernel_memory *memory,
			 struct kdiff_routine *r)
{
	uint8_t *code = k->text + r->off;

	if (r->len > ROUTINE_MAX ||
	    kernel_memory_read(memory, k->start + r->off, code, r->len) < 0) {
		memset(code, 0, r->len);
		k->nr_unread++;
		return;
	}
	kdiff_show(k, r, k->start, code);
	r->code = code;
}

/* From symbol to symbol, as the daemon keeps them. */
static int read_routines(struct kdiff_kernel *k, struct kernel_memory *memory)
{
	const struct kernel_symbols *s = &k->symbols;
	uint64_t end = k->start + k->len;

	k->text = calloc(1, k->len);
	k->routines = calloc(s->nr + 1, sizeof(*k->routines));
	if (!k->text || !k->routines)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr; i++) {
		struct kdiff_routine *r = &k->routines[k->nr_routines];
		uint64_t next = i + 1 < s->nr && s->v[i + 1].addr < end ? s->v[i + 1].addr : end;

		if (s->v[i].module || s->v[i].addr < k->start || s->v[i].addr >= end)
			continue;
		*r = (struct kdiff_routine){ .name = s->v[i].name,
					     .off = s->v[i].addr - k->start,
					     .len = next - s->v[i].addr };
		read_routine(k, memory, r);
		k->nr_routines++;
	}
	return 0;
}

static int kdiff_read(struct kdiff_kernel *k, struct base_err *err)
{
	struct kernel_memory *memory = NULL;
	int r = read_symbols(k, err);

	if (r >= 0)
		r = read_identity(k, err);
	if (r >= 0 && (r = kernel_memory_open(&memory, err)) < 0)
		base_hint(err,
			  "it takes CAP_BPF and CAP_PERFMON, or a /proc/kcore that can be read");
	if (r >= 0)
		r = read_routines(k, memory);
	kernel_memory_close(memory);
	return r < 0 ? base_fail_errno(err, r, "cannot read the kernel's code") : 0;
}

/* The kernel that runs here. -EPERM: its addresses or its memory are hidden from this user. */
static void kdiff_release(struct kdiff_kernel *k)
{
	kernel_symbols_release(&k->symbols);
	free(k->routines);
	free(k->text);
	*k = (struct kdiff_kernel){ 0 };
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Its pseudo-image (docs/format/pseudoimg.md) into @fd. 0 or negative with @err. */
static int kdiff_write(const struct kdiff_kernel *k, int fd, struct base_err *err)
{
	struct pseudoimg_result result;
	struct base_buf job = { 0 };
	char id[BASE_ID_TEXT_LEN];
	int r = kernel_job_head(&job, NULL, base_id_text(&k->id, id), 0, k->len);

	for (size_t i = 0; r >= 0 && i < k->nr_routines; i++) {
		const struct kernel_job_routine routine = { .name = k->routines[i].name,
							    .addr = k->routines[i].off,
							    .code = k->routines[i].code,
							    .len = k->routines[i].len };

		if (routine.code)
			r = kernel_job_routine(&job, &routine);
	}
	if (r >= 0)
		r = pseudoimg_write(job.data, job.len, fd, &result, err);
	base_buf_release(&job);
	return r < 0 ? base_fail_errno(err, r, "cannot write the kernel's image") : 0;
}

/* Its symbols alone, as the daemon keeps them. */
static int kdiff_write_symbols(const struct kdiff_kernel *k, int fd, struct base_err *err)
{
	struct pseudoimg_symbol *syms = calloc(k->nr_routines + 1, sizeof(*syms));
	int r;

	if (!syms)
		return base_fail_errno(err, -ENOMEM, "cannot write the kernel's symbols");
	for (size_t i = 0; i < k->nr_routines; i++)
		syms[i] = (struct pseudoimg_symbol){ .name = k->routines[i].name,
						     .off = k->routines[i].off };
	r = pseudoimg_write_symbols(syms, k->nr_routines, k->len, kernel_machine(), &k->id, fd,
				    err);
	free(syms);
	return r;
}

static struct select sel;
static const char *kernel_file;
static bool dry_run;

static const struct base_opt options[] = {
	{ "db", BASE_OPT_STRING, &sel.db, "DIR", "The database (default: $DCPIDB).", 0, 0 },
	{ "k", BASE_OPT_STRING, &kernel_file, "FILE",
	  "Compare with the kernel's file, a vmlinux of that very build (default: what the "
	  "database "
	  "has of its code).",
	  0, 0 },
	{ "n", BASE_OPT_FLAG, &dry_run, NULL, "Write nothing, only compare.", 0, 0 },
	{ "json", BASE_OPT_FLAG, &sel.json, NULL, "Print JSON with the same rows (dcpijson(5)).", 0,
	  0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpikdiff",
	.summary = "keep the running kernel's code, and list where it was patched",
	.operands = "",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpikdiff", "Keep all of the kernel's code as it is now; list what has "
				       "changed since it was kept." },
			{ "dcpikdiff -n -k /usr/lib/debug/boot/vmlinux-$(uname -r)",
			  "What the kernel has patched since it was built." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = 0,
};

struct row {
	const struct kdiff_routine *routine;
	size_t bytes, places[KDIFF_NR_CAUSES];
};

struct kdiff {
	struct kdiff_kernel kernel;
	struct profdb *db;		     /* NULL: none is needed */
	char elf[256], text[256], code[256]; /* files in <db>/kernel */
	const char *against;		     /* NULL: nothing to compare with */
	struct image *img;		     /* the image of it */
	uint64_t base;			     /* address in @img of the kernel's begin */
	struct row *rows;
	size_t nr, cap, nr_compared;
	struct row sum;
};

/* ---- what it is compared with ---------------------------------------------------------------- */

/* The address of the kernel's begin in its file: by a name that is there once. */
static int find_base(struct kdiff *d, struct base_err *err)
{
	const char *const names[] = { "_text", "_stext", d->kernel.routines[0].name };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && names[i]; i++) {
		size_t pos = 0;
		const struct image_symbol *s = image_symbol_find(d->img, names[i], &pos);

		if (!s || image_symbol_find(d->img, names[i], &pos))
			continue;
		d->base = s->vaddr - (i == 2 ? d->kernel.routines[0].off : 0);
		return 0;
	}
	return base_fail(err, -DCPI_ENOSYMBOL, "'%s' does not tell where its code begins",
			 kernel_file);
}

static int open_file(struct kdiff *d, struct base_err *err)
{
	int r = image_open_path(kernel_file, IMAGE_KERNEL, &d->img, err);

	if (r < 0)
		return r;
	d->against = kernel_file;
	if (!base_id_equal(image_id(d->img), &d->kernel.id))
		return base_fail(err, -ESTALE,
				 "'%s' is not the running kernel's file: its build-id is another",
				 kernel_file);
	return find_base(d, err);
}

/*
 * The kept kernel is found by its file of symbols, beside which its code is. It is no failure if
 * there is none.
 */
static int open_kept(struct kdiff *d, struct base_err *err)
{
	const char *const paths[] = { d->elf, NULL };
	const struct image_query q = { .kind = IMAGE_KERNEL, .id = d->kernel.id, .paths = paths };
	struct image_store *store;
	int r = image_store_open(-1, profdb_kernel_fd(d->db), &store);

	if (r < 0)
		return base_fail_errno(err, r, "cannot read the database's kernels");
	if (image_open(store, &q, &d->img, NULL) >= 0)
		d->against = faccessat(profdb_kernel_fd(d->db), d->text, F_OK, 0) < 0 ? d->code
										      : d->text;
	image_store_close(store);
	return 0;
}

static int open_other(struct kdiff *d, struct base_err *err)
{
	kernel_file_name(d->elf, sizeof(d->elf), d->kernel.name, &d->kernel.id, "elf");
	kernel_file_name(d->text, sizeof(d->text), d->kernel.name, &d->kernel.id, "text");
	kernel_file_name(d->code, sizeof(d->code), d->kernel.name, &d->kernel.id, "code");
	return kernel_file ? open_file(d, err) : d->db ? open_kept(d, err) : 0;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static int compare_routine(struct kdiff *d, const struct kdiff_routine *r, const uint8_t *was)
{
	struct row row = { .routine = r };
	struct kdiff_place p;

	for (size_t at = 0; kdiff_next(kernel_machine(), was, r->code, r->len, at, &p);
	     at = p.at + p.len) {
		row.bytes += p.bytes;
		row.places[p.cause]++;
	}
	d->nr_compared++;
	if (!row.bytes)
		return 0;
	if (base_grow(&d->rows, &d->cap, d->nr + 1, sizeof(*d->rows)) < 0)
		return -ENOMEM;
	d->rows[d->nr++] = row;
	d->sum.bytes += row.bytes;
	for (size_t c = 0; c < KDIFF_NR_CAUSES; c++)
		d->sum.places[c] += row.places[c];
	return 0;
}

static int compare(struct kdiff *d)
{
	uint8_t *was = NULL;
	size_t cap = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && d->img && i < d->kernel.nr_routines; i++) {
		const struct kdiff_routine *routine = &d->kernel.routines[i];

		if (!routine->code)
			continue;
		r = base_grow(&was, &cap, routine->len, 1);
		if (r < 0 ||
		    image_bytes(d->img, d->base + routine->off, was, routine->len) != routine->len)
			continue;
		if (kernel_file)
			kdiff_show(&d->kernel, routine, d->base, was);
		r = compare_routine(d, routine, was);
	}
	free(was);
	return r;
}

/* ---- keeping --------------------------------------------------------------------------------- */

static int write_one(struct kdiff *d, const char *file, mode_t mode,
		     int (*write)(const struct kdiff_kernel *k, int fd, struct base_err *err),
		     struct base_err *err)
{
	struct base_file f = { .fd = -1 };
	int r = base_file_create(&f, profdb_kernel_fd(d->db), file, mode, err);

	if (r >= 0)
		r = write(&d->kernel, f.fd, err);
	if (r >= 0)
		r = base_file_commit(&f, err);
	base_file_abort(&f);
	return r;
}

/* The code is found beside the symbols, which are the same for every boot. */
static int keep(struct kdiff *d, struct base_err *err)
{
	int r = 0;

	if (faccessat(profdb_kernel_fd(d->db), d->elf, F_OK, 0) < 0)
		r = write_one(d, d->elf, 0644, kdiff_write_symbols, err);
	return r < 0 ? r : write_one(d, d->text, 0640, kdiff_write, err);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_row(struct table *t, const struct row *row, const char *name)
{
	char causes[200] = "";
	size_t at = 0;

	for (size_t c = 0; c < KDIFF_NR_CAUSES; c++)
		if (row->places[c])
			at += (size_t)snprintf(causes + at, sizeof(causes) - at, "%s%s %zu",
					       at ? ", " : "", kdiff_causes[c], row->places[c]);
	table_cell(t, "%zu", row->bytes);
	table_cell(t, "%s", name);
	table_cell(t, "%s", causes);
}

static int print_text(const struct kdiff *d)
{
	struct table t = { 0 };
	char id[BASE_ID_TEXT_LEN];
	int r;

	printf("kernel     %s, build-id %s\n", d->kernel.name, base_id_text(&d->kernel.id, id));
	printf("code       %zu routines, %" PRIu64 " bytes; %zu cannot be read\n",
	       d->kernel.nr_routines, d->kernel.len, d->kernel.nr_unread);
	if (d->against) {
		printf("compared   %zu routines with '", d->nr_compared);
		report_print_clean(stdout, d->against);
		puts("'");
	}
	if (d->db && !dry_run) {
		fputs("kept       '", stdout);
		report_print_clean(stdout, profdb_path(d->db));
		printf("/kernel/%s'\n", d->text);
	}
	if (!d->against) {
		puts("compared   with nothing: there is no earlier code");
		return 0;
	}
	putchar('\n');
	table_column(&t, false, "bytes");
	table_column(&t, true, "procedure");
	table_column(&t, true, "places by cause");
	for (size_t i = 0; i < d->nr; i++)
		put_row(&t, &d->rows[i], d->rows[i].routine->name);
	put_row(&t, &d->sum, "total");
	r = table_print(&t, true, stdout);
	table_release(&t);
	return r;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_row(const struct row *row)
{
	struct json_object *o = json_object_new_object(), *causes = json_object_new_object();

	if (row->routine) {
		report_json_procedure(o, row->routine->name);
		json_object_object_add(o, "offset", json_object_new_uint64(row->routine->off));
	}
	json_object_object_add(o, "bytes", json_object_new_uint64(row->bytes));
	for (size_t c = 0; c < KDIFF_NR_CAUSES; c++)
		json_object_object_add(causes, kdiff_causes[c],
				       json_object_new_uint64(row->places[c]));
	json_object_object_add(o, "places", causes);
	return o;
}

static int print_json(const struct kdiff *d)
{
	struct json_object *root = json_object_new_object(), *rows = json_object_new_array();
	char id[BASE_ID_TEXT_LEN];

	for (size_t i = 0; i < d->nr; i++)
		json_object_array_add(rows, json_row(&d->rows[i]));
	json_object_object_add(root, "schema", json_object_new_string("dcpikdiff/1"));
	json_object_object_add(root, "kernel", report_json_text(d->kernel.name));
	json_object_object_add(root, "build_id",
			       json_object_new_string(base_id_text(&d->kernel.id, id)));
	json_object_object_add(root, "routines", json_object_new_uint64(d->kernel.nr_routines));
	json_object_object_add(root, "unread", json_object_new_uint64(d->kernel.nr_unread));
	json_object_object_add(root, "compared", json_object_new_uint64(d->nr_compared));
	json_object_object_add(root, "against", report_json_text(d->against));
	json_object_object_add(root, "kept", report_json_text(d->db && !dry_run ? d->text : NULL));
	json_object_object_add(root, "rows", rows);
	json_object_object_add(root, "total", json_row(&d->sum));
	return report_json_put(root, stdout);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run_all(struct kdiff *d, struct base_err *err)
{
	int r = 0;

	if (sel.db)
		r = profdb_open(sel.db, false, &d->db, err);
	if (r >= 0)
		r = kdiff_read(&d->kernel, err);
	if (r >= 0)
		r = open_other(d, err);
	if (r >= 0)
		r = compare(d);
	/* Symbols may be all that the database has. */
	if (!kernel_file && !d->nr_compared)
		d->against = NULL;
	if (r >= 0 && d->db && !dry_run)
		r = keep(d, err);
	if (r >= 0)
		r = sel.json ? print_json(d) : print_text(d);
	return r < 0 ? base_fail_errno(err, r, "cannot compare the kernel's code") : 0;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct kdiff d = { 0 };
	int r = run_all(&d, err);

	(void)nr;
	(void)what;
	image_close(d.img);
	free(d.rows);
	kdiff_release(&d.kernel);
	profdb_close(d.db);
	return r;
}

static int dcpikdiff_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	/* Comparing alone needs no database. */
	if (r >= 0 && !(dry_run && kernel_file))
		r = select_check(&sel, &err);
	if (r >= 0)
		r = fleet_refuse(&sel, &err);
	if (r >= 0)
		r = run(argc, argv, &err);
	return report_end(&cmd, r, &err);
}

const struct tool dcpikdiff_tool = { .cmd = &cmd, .main = dcpikdiff_main };
