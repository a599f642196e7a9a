/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "bpf": it counts in the kernel, by a BPF program. */
#ifndef DCPI_BPF_SOURCE_H
#define DCPI_BPF_SOURCE_H

#include "driver.h"

/* As driver_open. -DCPI_EUNSUPPORTED also where this was built without BPF programs (none.c). */
int bpf_open(const struct driver_config *config, struct driver **out, struct base_err *err);

#endif
