/* SPDX-License-Identifier: BSD-2-Clause */
/* The database is taken from the option, or from DCPIDB. */
#include <stdlib.h>

#include "select.h"

int select_check(struct select *s, struct base_err *err)
{
	if (!s->db)
		s->db = getenv("DCPIDB");
	if (!s->db || !*s->db) {
		base_fail(err, -DCPI_EUSAGE, "no database given");
		base_hint(err, "use '-db DIR' or set DCPIDB");
		return -DCPI_EUSAGE;
	}
	return 0;
}
