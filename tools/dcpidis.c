/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpidis: the instructions of an image, or of parts of it. Needs no database. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bound.h"
#include "demangle.h"
#include "dis.h"
#include "report.h"
#include "table.h"
#include "tools.h"

static bool want_source, want_bytes, json, no_header;

static const struct base_opt options[] = {
	{ "source", BASE_OPT_FLAG, &want_source, NULL,
	  "Name the source line above each run of its instructions.", 0, 0 },
	{ "bytes", BASE_OPT_FLAG, &want_bytes, NULL, "Show the instructions' bytes too.", 0, 0 },
	{ "json", BASE_OPT_FLAG, &json, NULL, "Print JSON with the same rows (dcpijson(5)).", 0,
	  0 },
	{ "no_header", BASE_OPT_FLAG, &no_header, NULL, "Leave out the lines above the code.", 0,
	  0 },
	SELECT_OPTION_MANGLED,
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpidis",
	.summary = "disassemble an image or some of its procedures",
	.operands = "IMAGE [PROCEDURE|ADDRESS|FROM..TO …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpidis /usr/bin/perl Perl_hv_common", "One procedure of a program." },
			{ "dcpidis -source -bytes $DCPIDB/dyn/hello-box-4711-1f2e3d4c5b6a7988.dyn",
			  "All routines that a JIT made." },
			{ "dcpidis a.out 0x401136..0x401150",
			  "What stands between two addresses." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = -1,
};

/* ---- a walk over code finds where decoding has to begin anew --------------------------------- */

struct walk {
	struct image *img;
	const struct dis_range *range;
	const struct dis_sink *sink;
	size_t next;	  /* symbol */
	uint64_t covered; /* symbols cover the code up to here */
	bool unnamed;	  /* code without a name follows, and that was reported */
};

/* Index of the first symbol at or behind @vaddr. */
static size_t first_symbol(struct image *img, uint64_t vaddr)
{
	return BASE_BOUND(i, image_nr_symbols(img), image_symbol(img, i)->vaddr < vaddr);
}

static void cover(struct walk *w, const struct image_symbol *s)
{
	if (s->vaddr + s->len > w->covered)
		w->covered = s->vaddr + s->len;
	w->unnamed = false;
}

/* The label of what begins at @at; returns the next place where decoding has to begin anew. */
static uint64_t begin(struct walk *w, uint64_t at)
{
	const struct image_symbol *s = image_symbol(w->img, w->next);

	if (s && s->vaddr == at)
		w->next++;
	else
		s = at == w->range->vaddr ? image_symbol_at(w->img, at) : NULL;
	if (s) {
		w->sink->label(w->sink->ctx, w->range, s, at);
		cover(w, s);
	}
	s = image_symbol(w->img, w->next);
	return s && s->vaddr < w->range->end ? s->vaddr : w->range->end;
}

/* Padding that compilers and linkers put between procedures. */
static bool is_filling(const struct insn_text *t, const uint8_t *code)
{
	uint32_t zeros = 0;

	while (zeros < t->len && !code[zeros])
		zeros++;
	return zeros == t->len || strstr(t->mnemonic, "nop") || strcmp(t->mnemonic, "int3") == 0 ||
	       strcmp(t->operands, "%ax, %ax") == 0;
}

/* Behind the last procedure, where an outer one may go on. */
static void leave(struct walk *w, uint64_t at, const uint8_t *code, const struct insn_text *t)
{
	const struct image_symbol *s = image_symbol_at(w->img, at);

	if (s) {
		cover(w, s);
	} else if (!is_filling(t, code)) {
		w->sink->label(w->sink->ctx, w->range, NULL, at);
		w->unnamed = true;
	}
}

/* Nothing but zeros up to @stop, and many: room that was kept, no code. */
static bool is_empty(const uint8_t *code, uint64_t len)
{
	for (uint64_t i = 0; i < len; i++)
		if (code[i])
			return false;
	return len >= 8;
}

void dis_walk(struct image *img, struct insn_disasm *d, const struct dis_range *range,
	      const struct dis_sink *sink)
{
	struct walk w = { .img = img, .range = range, .sink = sink };
	uint64_t at = range->vaddr, stop = at;
	struct insn_text t;

	w.next = first_symbol(img, at);
	while (at < range->end) {
		const uint8_t *code = range->code + (at - range->vaddr);

		if (at == stop)
			stop = begin(&w, at);
		if (at >= w.covered && !*code && is_empty(code, stop - at)) {
			at = stop;
			continue;
		}
		insn_disasm_text(d, code, stop - at, at, &t);
		if (at >= w.covered && !w.unnamed)
			leave(&w, at, code, &t);
		sink->insn(sink->ctx, at, code, &t);
		at += t.len;
	}
}

/* ---- an instruction, a label or a byte row becomes text -------------------------------------- */

enum { NAME_LEN_MAX = 4096 };

static void put(struct dis_text *x, const char *text, size_t len)
{
	if (len > x->cap - x->len && base_grow(&x->data, &x->cap, x->len + len, 1) < 0) {
		x->failed = true;
		return;
	}
	memcpy(x->data + x->len, text, len);
	x->len += len;
}

static void put_string(struct dis_text *x, const char *text)
{
	put(x, text, strlen(text));
}

static void put_hex(struct dis_text *x, uint64_t value)
{
	char text[18];
	size_t at = sizeof(text);

	do {
		text[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	text[--at] = 'x';
	text[--at] = '0';
	put(x, text + at, sizeof(text) - at);
}

/* From outside; most names need no cleaning. */
static void put_name(struct dis_text *x, const char *name)
{
	size_t len = 0;
	char *copy;

	while (name[len] >= ' ' && name[len] < 0x7f && len < NAME_LEN_MAX)
		len++;
	if (!name[len] || len == NAME_LEN_MAX) {
		put(x, name, len);
		return;
	}
	copy = strndup(name, NAME_LEN_MAX);
	put_string(x, copy ? table_clean(copy) : "?");
	free(copy);
}

/* "name", "name+0x12", or "0x4012". */
static void put_where(struct dis_text *x, uint64_t vaddr)
{
	const struct image_symbol *s = image_symbol_at(x->img, vaddr);

	if (!s) {
		put_hex(x, vaddr);
		return;
	}
	put_name(x, demangle_shown(s->name));
	if (s->vaddr != vaddr) {
		put(x, "+", 1);
		put_hex(x, vaddr - s->vaddr);
	}
}

/* Only "callq   name+0x12". */
static void dis_text_operation(struct dis_text *x, const struct insn_text *t)
{
	size_t len = strlen(t->mnemonic);

	put(x, t->mnemonic, len);
	if (!*t->operands)
		return;
	put(x, "        ", len < 7 ? 8 - len : 1);
	if (!t->has_target) {
		put_string(x, t->operands);
		return;
	}
	put(x, t->operands, t->target_at);
	put_where(x, t->target);
}

static void dis_text_bytes(struct dis_text *x, const uint8_t *code, size_t len)
{
	for (size_t i = 0; i < len; i++)
		put(x,
		    (char[]){ "0123456789abcdef"[code[i] >> 4], "0123456789abcdef"[code[i] & 15] },
		    2);
}

void dis_text_label(void *ctx, const struct dis_range *range, const struct image_symbol *symbol,
		    uint64_t vaddr)
{
	struct dis_text *x = ctx;

	(void)range;
	put(x, "\n", 1);
	if (symbol)
		put_where(x, vaddr);
	else
		put_string(x, "(no symbol)");
	put(x, ":\n", 2);
}

/* Where it is another than that of the instruction before. */
static void put_line(struct dis_text *x, uint64_t vaddr)
{
	struct image_line line = { 0 };
	bool known = image_line_at(x->img, vaddr, &line) >= 0;
	char text[32];

	if (known ? x->line == line.line && x->line_file && !strcmp(x->line_file, line.file)
		  : !x->line_file)
		return;
	free(x->line_file);
	x->line_file = known ? strdup(line.file) : NULL;
	x->line = line.line;
	snprintf(text, sizeof(text), ":%u\n", line.line);
	put(x, "; ", 2);
	put_name(x, known ? line.file : "(no source line)");
	put_string(x, known ? text : "\n");
}

void dis_text_insn(void *ctx, uint64_t vaddr, const uint8_t *code, const struct insn_text *t)
{
	static const char blanks[] = "                        ";
	struct dis_text *x = ctx;
	size_t nr = t->len < 16 ? t->len : 16;

	if (x->source)
		put_line(x, vaddr);
	put(x, "  ", 2);
	put_hex(x, vaddr);
	put(x, "  ", 2);
	if (x->bytes) {
		dis_text_bytes(x, code, nr);
		put(x, blanks, nr < 10 ? 22 - 2 * nr : 2);
	}
	dis_text_operation(x, t);
	put(x, "\n", 1);
}

void dis_text_release(struct dis_text *x)
{
	free(x->data);
	free(x->line_file);
	memset(x, 0, sizeof(*x));
}

/* ---- pieces of code are printed by several threads, in order --------------------------------- */

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

/* Print a range as text, by several threads where it is long. 0 or negative with @err. */
static int dis_print(struct image *img, const struct dis_range *range, bool bytes, bool source,
		     FILE *to, struct base_err *err)
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

/* ---- JSON ------------------------------------------------------------------------------------ */

struct dis {
	struct image *img;
	struct insn_disasm *disasm;	       /* JSON's */
	struct json_object *procedure, *insns; /* being filled */
	struct dis_text text;
	bool any_procedure;
};

static void json_end_procedure(struct dis *x)
{
	if (!x->procedure)
		return;
	printf("%s%s", x->any_procedure ? ",\n" : "",
	       json_object_to_json_string_ext(
		       x->procedure, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
	x->any_procedure = true;
	json_object_put(x->procedure);
	x->procedure = NULL;
}

static void json_label(void *ctx, const struct dis_range *range, const struct image_symbol *symbol,
		       uint64_t vaddr)
{
	struct dis *x = ctx;

	json_end_procedure(x);
	x->procedure = json_object_new_object();
	x->insns = json_object_new_array();
	report_json_procedure(x->procedure, symbol ? symbol->name : NULL);
	json_object_object_add(x->procedure, "address", report_json_hex(vaddr));
	json_object_object_add(x->procedure, "section", report_json_text(range->section));
	json_object_object_add(x->procedure, "instructions", x->insns);
}

static struct json_object *json_taken(struct dis_text *t)
{
	struct json_object *o = json_object_new_string_len(t->len ? t->data : "", (int)t->len);

	t->len = 0;
	return o;
}

static void json_insn(void *ctx, uint64_t vaddr, const uint8_t *code, const struct insn_text *t)
{
	struct json_object *o = json_object_new_object();
	struct dis *x = ctx;
	struct image_line line;
	bool known = want_source && image_line_at(x->img, vaddr, &line) >= 0;

	if (!x->procedure) /* padding, in front of everything */
		json_label(x, &(struct dis_range){ 0 }, NULL, vaddr);
	json_object_object_add(o, "address", report_json_hex(vaddr));
	dis_text_bytes(&x->text, code, t->len);
	json_object_object_add(o, "bytes", json_taken(&x->text));
	dis_text_operation(&x->text, t);
	json_object_object_add(o, "text", json_taken(&x->text));
	if (want_source) {
		json_object_object_add(o, "file", known ? report_json_text(line.file) : NULL);
		json_object_object_add(o, "line", known ? json_object_new_int64(line.line) : NULL);
	}
	json_object_array_add(x->insns, o);
}

static void print_json(struct dis *x, const struct dis_range *range)
{
	struct dis_sink sink = { json_label, json_insn, x };

	dis_walk(x->img, x->disasm, range, &sink);
	json_end_procedure(x);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Lengths are what the image claims: memory is taken for what it has. */
static int read_code(struct dis *x, uint64_t from, uint64_t len, struct base_buf *code)
{
	int r = 0;

	while (r >= 0 && code->len < len) {
		size_t want = code->len + (1 << 20), before = code->len, n;
		void *to;

		want = want < len - before ? want : (size_t)(len - before);
		r = base_buf_extend(code, want, &to);
		if (r < 0)
			break;
		n = image_bytes(x->img, from + before, to, want);
		code->len = before + n;
		if (!n)
			break;
	}
	return r;
}

/* [@from, @to) as far as the image has it. */
static int walk_range(struct dis *x, const char *section, uint64_t from, uint64_t to,
		      struct base_err *err)
{
	struct dis_range range = { .vaddr = from, .section = section };
	struct base_buf code = { 0 };
	int r = read_code(x, from, to - from, &code);

	range.code = code.data;
	range.end = from + code.len;
	if (r < 0)
		base_fail_errno(err, r, "cannot disassemble '%s'", image_path(x->img));
	else if (!code.len)
		r = base_fail(err, -ENOENT, "no code at 0x%" PRIx64 " in image '%s'", from,
			      image_path(x->img));
	else if (json)
		print_json(x, &range);
	else
		r = dis_print(x->img, &range, want_bytes, want_source, stdout, err);
	base_buf_release(&code);
	return r;
}

static void print_name(const char *before, const char *name, const char *after)
{
	char *copy = strdup(name);

	printf("%s%s%s", before, copy ? table_clean(copy) : "?", after);
	free(copy);
}

static int walk_all(struct dis *x, struct base_err *err)
{
	struct image_code code;
	int r = 0;

	for (size_t i = 0; image_code_at(x->img, i, &code); i++) {
		if (!json && !no_header)
			print_name("\nsection    ", *code.name ? code.name : "(none)", "\n");
		if (walk_range(x, code.name, code.vaddr, code.vaddr + code.len, err) < 0)
			r = -ENOENT;
	}
	return r;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

static const char *section_of(const struct dis *x, uint64_t vaddr)
{
	struct image_code code;

	for (size_t i = 0; image_code_at(x->img, i, &code); i++)
		if (vaddr - code.vaddr < code.len)
			return code.name;
	return NULL;
}

static int unknown(struct dis *x, const char *what, struct base_err *err)
{
	unsigned int best = (unsigned int)strnlen(what, 90) / 3 + 2, d;
	const char *near = NULL;

	for (size_t i = 0; i < image_nr_symbols(x->img); i++) {
		const char *name = demangle_shown(image_symbol(x->img, i)->name);

		d = base_name_distance(what, name);
		if (d < best) {
			best = d;
			near = name;
		}
	}
	base_fail(err, -DCPI_ENOSYMBOL, "no procedure '%s' in image '%s'", what,
		  image_path(x->img));
	if (near)
		base_hint(err, "did you mean '%s'?", near);
	else if (strstr(what, ".."))
		base_hint(err, "a range is two addresses in hexadecimal: 0x1000..0x1040");
	return -DCPI_ENOSYMBOL;
}

static int walk_symbol(struct dis *x, const struct image_symbol *s, struct base_err *err)
{
	return walk_range(x, section_of(x, s->vaddr), s->vaddr, s->vaddr + s->len, err);
}

static int walk_named(struct dis *x, const char *what, struct base_err *err)
{
	const struct image_symbol *s;
	bool met = false;
	size_t pos = 0;
	int r = 0;

	while (r >= 0 && (s = image_symbol_find(x->img, what, &pos))) {
		met = true;
		r = walk_symbol(x, s, err);
	}
	for (size_t i = 0; !pos && r >= 0 && i < image_nr_symbols(x->img); i++) {
		s = image_symbol(x->img, i);
		if (demangle_is(s->name, what)) {
			met = true;
			r = walk_symbol(x, s, err);
		}
	}
	return r >= 0 && !met ? unknown(x, what, err) : r;
}

/* An address, or two. Returns how many. */
static int addresses(const char *what, uint64_t *from, uint64_t *to)
{
	char *end;

	if (strncmp(what, "0x", 2) != 0)
		return 0;
	*from = strtoull(what, &end, 16);
	if (!*end)
		return 1;
	if (strncmp(end, "..0x", 4) != 0)
		return 0;
	*to = strtoull(end + 2, &end, 16);
	return *end ? 0 : 2;
}

static int walk_asked(struct dis *x, const char *what, struct base_err *err)
{
	const struct image_symbol *s;
	uint64_t from = 0, to = 0;

	switch (addresses(what, &from, &to)) {
	case 0:
		return walk_named(x, what, err);
	case 1:
		s = image_symbol_at(x->img, from);
		return s ? walk_symbol(x, s, err) : unknown(x, what, err);
	default:
		if (to <= from)
			return base_fail(err, -DCPI_EUSAGE, "range '%s' is empty", what);
		return walk_range(x, section_of(x, from), from, to, err);
	}
}

/* ---- the command ----------------------------------------------------------------------------- */

static const char *machine_name(uint32_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return "x86-64";
	case EM_386:
		return "x86";
	case EM_AARCH64:
		return "aarch64";
	default:
		return "riscv";
	}
}

/* The beginning of an object whose last member, a list, is printed piece by piece. */
static void json_head(const struct dis *x, const char *id)
{
	struct json_object *root = json_object_new_object();
	const char *text;

	json_object_object_add(root, "schema", json_object_new_string("dcpidis/1"));
	json_object_object_add(root, "image", report_json_text(image_path(x->img)));
	json_object_object_add(root, "build_id", *id ? json_object_new_string(id) : NULL);
	json_object_object_add(root, "machine",
			       json_object_new_string(machine_name(image_machine(x->img))));
	json_object_object_add(root, "guessed", json_object_new_boolean(image_guessed(x->img)));
	text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY |
							    JSON_C_TO_STRING_NOSLASHESCAPE);
	printf("%.*s,\n  \"procedures\":[\n", (int)(strrchr(text, '\n') - text), text);
	json_object_put(root);
}

static void print_head(struct dis *x)
{
	const struct base_id *id = image_id(x->img);
	char text[BASE_ID_TEXT_LEN] = "";

	if (id->len)
		base_id_text(id, text);
	if (json) {
		json_head(x, text);
		return;
	}
	if (no_header)
		return;
	print_name("image      ", image_path(x->img), "");
	if (*text)
		printf(" (build-id %s)", text);
	printf("\nmachine    %s\n", machine_name(image_machine(x->img)));
	if (image_guessed(x->img))
		puts("procedures are guessed from the code where they are named by an address");
}

static int print(struct dis *x, int nr, char **what, struct base_err *err)
{
	int r = 0;

	print_head(x);
	for (int i = 0; i < nr && r >= 0; i++)
		r = walk_asked(x, what[i], err);
	if (!nr)
		r = walk_all(x, err);
	if (json)
		fputs("\n  ]\n}\n", stdout);
	return r;
}

/* A pseudo-image says so in its note; of other files names may carry versions. */
static int open_image(struct dis *x, const char *path, struct base_err *err)
{
	int r = image_open_path(path, IMAGE_DYNAMIC, &x->img, err);

	if (r >= 0 && !image_process(x->img)) {
		image_close(x->img);
		x->img = NULL;
		r = image_open_path(path, IMAGE_FILE, &x->img, err);
	}
	if (r >= 0)
		r = image_symbols_load(x->img, err);
	if (r >= 0)
		r = insn_disasm_open(image_machine(x->img), &x->disasm, err);
	return r;
}

static int dcpidis_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	struct dis x = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = open_image(&x, argv[0], &err);
	x.text.img = x.img;
	if (r >= 0)
		r = print(&x, argc - 1, argv + 1, &err);
	dis_text_release(&x.text);
	insn_disasm_close(x.disasm);
	image_close(x.img);
	fflush(stdout);
	return report_end(&cmd, r, &err);
}

const struct tool dcpidis_tool = { .cmd = &cmd, .main = dcpidis_main };
