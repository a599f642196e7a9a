/* SPDX-License-Identifier: BSD-2-Clause */
#include "base.h"

const char *base_release(void)
{
	return DCPI_VERSION;
}

const char *base_revision(void)
{
	return DCPI_REVISION;
}
