/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of the source "bpf" where no BPF programs could be built. */
#include "bpf_source.h"

int bpf_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	(void)config;
	*out = NULL;
	base_fail(err, -DCPI_EUNSUPPORTED, "cannot count in the kernel: built without clang");
	base_hint(err, "build with clang and bpftool installed");
	return -DCPI_EUNSUPPORTED;
}
