/* SPDX-License-Identifier: BSD-2-Clause */
/* The version and revision of the build are told here. */
#include "base.h"

const char *base_release(void)
{
	return DCPI_VERSION;
}

const char *base_revision(void)
{
	return DCPI_REVISION;
}
