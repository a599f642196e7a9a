/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a call path can be true: does the call in a frame lead to the procedure of the frame
 * below? */
#ifndef DCPI_ANALYSIS_CALLED_H
#define DCPI_ANALYSIS_CALLED_H

#include "image.h"
#include "insn.h"

enum called {
	CALLED_AGREES,	  /* a call stands there, and leads there if it says where it leads */
	CALLED_UNCHECKED, /* nothing can be said: no bytes, a stub, an indirect jump on the way */
	CALLED_CONTRADICTED, /* no call stands there, or it leads elsewhere */
};

/*
 * Does the call in @caller whose last byte stands at @last lead to the procedure @to, or to one
 * that jumps on to it? @here: @to is of @caller too; else only its name is compared, with stubs'.
 * NULL: it is not known. @d decodes @caller's code. Code that is changed while it runs, as that of
 * JITs, is asked for with @patched: only a missing call contradicts then.
 */
enum called analysis_called(struct insn_decoder *d, struct image *caller, uint64_t last,
			    const struct image_symbol *to, bool here, bool patched);
/* Does the code at @vaddr end a signal's handler? The caller of its frame was interrupted, and has
 * called nothing. */
bool analysis_is_sigreturn(const struct image *img, uint64_t vaddr);

#endif
