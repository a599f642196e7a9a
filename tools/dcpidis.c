/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpidis: the instructions of an image, or of parts of it. Needs no database. */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dis.h"
#include "report.h"
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

struct dis {
	struct image *img;
	struct insn_disasm *disasm;	       /* JSON's */
	struct json_object *procedure, *insns; /* being filled */
	struct dis_text text;
	bool any_procedure;
};

/* ---- JSON ---------------------------------------------------------------------------------- */

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

/* ---- ranges -------------------------------------------------------------------------------- */

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

/* ---- what is asked for ---------------------------------------------------------------------- */

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

/* ---- the command --------------------------------------------------------------------------- */

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
