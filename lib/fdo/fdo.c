/* SPDX-License-Identifier: BSD-2-Clause */
/* The branches and ranges of an image are made here from its traces, and released. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fdo_internal.h"

static const char *const names[FDO_NR_KINDS] = {
	[FDO_TAKEN] = "taken",	     [FDO_FELL] = "not taken",
	[FDO_JUMP] = "jump",	     [FDO_INDIRECT_JUMP] = "indirect jump",
	[FDO_CALL] = "call",	     [FDO_INDIRECT_CALL] = "indirect call",
	[FDO_RETURN] = "return",     [FDO_RESUMED] = "call outside",
	[FDO_STUB] = "jump outside", [FDO_BEGUN] = "begun",
	[FDO_ENTERED] = "entered",   [FDO_ENDED] = "ended",
	[FDO_UNKNOWN] = "unknown",
};

const char *fdo_kind_name(enum fdo_kind kind)
{
	return names[kind];
}

bool fdo_decode(const struct fdo_making *m, uint64_t vaddr, struct insn *out)
{
	uint8_t code[16];
	size_t len = image_bytes(m->img, vaddr, code, sizeof(code));

	if (!len)
		return false;
	insn_decode_flow(m->d, code, len, vaddr, out);
	return out->flow != INSN_DATA;
}

bool fdo_in_stub(const struct fdo_making *m, uint64_t vaddr)
{
	struct image_code code;

	for (size_t i = 0; image_code_at(m->img, i, &code); i++)
		if (vaddr - code.vaddr < code.len)
			return strncmp(code.name, ".plt", 4) == 0;
	return false;
}

int fdo_make(const struct profdb_profile *p, struct image *img, struct fdo **out,
	     struct base_err *err)
{
	struct fdo_making m = { .img = img };
	int r;

	if (!profdb_profile_nr_edges(p)) {
		base_fail(err, -ENOENT, "there are no instruction traces of '%s'", image_path(img));
		base_hint(err, "dcpid -vwindows 10 makes traces, of one sample in ten");
		return -ENOENT;
	}
	r = insn_decoder_open(image_machine(img), &m.d, err);
	if (r < 0)
		return r;
	m.f = calloc(1, sizeof(*m.f));
	r = m.f ? fdo_make_edges(&m, p) : -ENOMEM;
	if (r >= 0)
		r = fdo_make_ranges(&m);
	insn_decoder_close(m.d);
	if (r < 0) {
		fdo_free(m.f);
		return base_fail_errno(err, r, "cannot place the traces of '%s'", image_path(img));
	}
	*out = m.f;
	return 0;
}

void fdo_free(struct fdo *f)
{
	if (!f)
		return;
	free(f->edges);
	free(f->ranges);
	free(f);
}
