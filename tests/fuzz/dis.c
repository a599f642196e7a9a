/* SPDX-License-Identifier: BSD-2-Clause */
/* Any file's code goes through dcpidis and dcpicoverage; instructions ascend and stay inside. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coverage.h"
#include "dis.h"

enum { CODE_MAX = 1 << 14, RANGES_MAX = 8, SYMBOLS_MAX = 32 };

struct check {
	const struct dis_range *range;
	uint64_t next;
	struct dis_text text;
};

static void on_label(void *ctx, const struct dis_range *range, const struct image_symbol *symbol,
		     uint64_t vaddr)
{
	struct check *c = ctx;

	if (vaddr < c->next || vaddr >= range->end)
		abort();
	dis_text_label(&c->text, range, symbol, vaddr);
}

static void on_insn(void *ctx, uint64_t vaddr, const uint8_t *code, const struct insn_text *t)
{
	struct check *c = ctx;

	if (vaddr < c->next || !t->len || t->len > c->range->end - vaddr)
		abort();
	if (code != c->range->code + (vaddr - c->range->vaddr))
		abort();
	c->next = vaddr + t->len;
	dis_text_insn(&c->text, vaddr, code, t);
}

static void walk(struct image *img, struct insn_disasm *d, const struct image_code *code)
{
	static uint8_t bytes[CODE_MAX];
	size_t len = code->len < CODE_MAX ? (size_t)code->len : CODE_MAX;
	struct dis_range range = { bytes, code->vaddr, 0, code->name };
	struct check c = { .range = &range, .text = { .img = img, .bytes = true } };
	struct dis_sink sink = { on_label, on_insn, &c };

	range.end = code->vaddr + image_bytes(img, code->vaddr, bytes, len);
	dis_walk(img, d, &range, &sink);
	dis_text_release(&c.text);
}

static void cover(struct image *img, const struct image_symbol *s)
{
	uint64_t sampled[] = { s->vaddr, s->vaddr + s->len / 2 };
	struct coverage c = { 0 };

	coverage_make(img, s, sampled, 2, &c, NULL);
	for (size_t i = 0; i < c.nr; i++)
		if (c.v[i].file >= c.nr_files || !(c.v[i].ran || c.v[i].missed))
			abort();
	coverage_release(&c);
}

static void ask(struct image *img)
{
	struct insn_disasm *d = NULL;
	struct image_code code;

	if (image_symbols_load(img, NULL) < 0 || insn_disasm_open(image_machine(img), &d, NULL) < 0)
		return;
	for (size_t i = 0; i < RANGES_MAX && image_code_at(img, i, &code); i++)
		walk(img, d, &code);
	for (size_t i = 0; i < SYMBOLS_MAX && i < image_nr_symbols(img); i++)
		if (image_symbol(img, i)->len < CODE_MAX)
			cover(img, image_symbol(img, i));
	insn_disasm_close(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct image *img = NULL;
	char path[64];

	if (fd < 0 || base_write_all(fd, data, len) < 0)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (image_open_path(path, IMAGE_FILE, &img, NULL) >= 0)
		ask(img);
	image_close(img);
	close(fd);
	return 0;
}
