/* SPDX-License-Identifier: BSD-2-Clause */
/* The skeleton of driver/bpf/sample.bpf.c, for the few files that reach into it. */
#ifndef DCPI_BPF_PROGRAM_H
#define DCPI_BPF_PROGRAM_H

#include "bpf_internal.h"
#include "bpf/sample.h"

#include <sample.skel.h>

_Static_assert((int)SAMPLE_USER == (int)DRIVER_USER && (int)SAMPLE_KERNEL == (int)DRIVER_KERNEL,
	       "modes");
_Static_assert((int)SAMPLE_NR_RANGES == (int)DRIVER_NR_RANGES, "ranges of a process");

#endif
