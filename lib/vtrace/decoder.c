/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoding of single instructions by capstone, for the translators. */
#include <errno.h>
#include <stdlib.h>

#include "base.h"
#include "decoder.h"

int vtrace_decoder_open(enum vtrace_arch arch, struct vtrace_decoder **out)
{
	struct vtrace_decoder *d = calloc(1, sizeof(*d));
	bool x86 = arch == VTRACE_X86_64;

	if (!d)
		return -ENOMEM;
	if (cs_open(x86 ? CS_ARCH_X86 : CS_ARCH_ARM64, x86 ? CS_MODE_64 : CS_MODE_ARM,
		    &d->handle) != CS_ERR_OK) {
		free(d);
		return -DCPI_EUNSUPPORTED;
	}
	cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->insn = cs_malloc(d->handle);
	if (!d->insn) {
		vtrace_decoder_close(d);
		return -ENOMEM;
	}
	*out = d;
	return 0;
}

void vtrace_decoder_close(struct vtrace_decoder *d)
{
	if (!d)
		return;
	if (d->insn)
		cs_free(d->insn, 1);
	cs_close(&d->handle);
	free(d);
}

bool vtrace_decode(struct vtrace_decoder *d, const uint8_t *code, size_t len, uint64_t pc)
{
	return cs_disasm_iter(d->handle, &code, &len, &pc, d->insn);
}
