/* SPDX-License-Identifier: BSD-2-Clause */
/* Capstone, which stays in the translators. */
#ifndef DCPI_VTRACE_DECODER_H
#define DCPI_VTRACE_DECODER_H

#include <capstone/capstone.h>

#include "vtrace.h"

struct vtrace_decoder {
	csh handle;
	cs_insn *insn; /* the last one */
};

/* -ENOMEM, -DCPI_EUNSUPPORTED (capstone was built without it). */
int vtrace_decoder_open(enum vtrace_arch arch, struct vtrace_decoder **out);
void vtrace_decoder_close(struct vtrace_decoder *d);
/* Decode into d->insn, details included. */
bool vtrace_decode(struct vtrace_decoder *d, const uint8_t *code, size_t len, uint64_t pc);

#endif
