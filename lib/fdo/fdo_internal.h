/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef DCPI_FDO_INTERNAL_H
#define DCPI_FDO_INTERNAL_H

#include "fdo.h"
#include "insn.h"

struct fdo_making {
	struct fdo *f;
	struct image *img;
	struct insn_decoder *d;
};

/* Decodes what stands at @vaddr. False: no instruction of the image does. */
bool fdo_decode(const struct fdo_making *m, uint64_t vaddr, struct insn *out);
/* Does @vaddr lie in a section of stubs? */
bool fdo_in_stub(const struct fdo_making *m, uint64_t vaddr);
/* The edges of @p, each once, with its kind. 0 or -ENOMEM. */
int fdo_make_edges(struct fdo_making *m, const struct profdb_profile *p);
/* The ranges between them. 0 or -ENOMEM. */
int fdo_make_ranges(struct fdo_making *m);

#endif
