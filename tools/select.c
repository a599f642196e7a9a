/* SPDX-License-Identifier: BSD-2-Clause */
/* The database is taken from the option, from DCPIDB, or from the current folder. */
#include <stdlib.h>
#include <unistd.h>

#include "select.h"

static const char here[] = "dcpi.db"; /* where dcpirun puts it */
static const char service[] = "/var/lib/dcpi";

int select_check(struct select *s, struct base_err *err)
{
	if (!s->db)
		s->db = getenv("DCPIDB");
	if ((!s->db || !*s->db) && access(here, F_OK) == 0)
		s->db = here;
	if (!s->db || !*s->db) {
		base_fail(err, -DCPI_EUSAGE, "no database given");
		if (access(service, R_OK | X_OK) == 0)
			base_hint(err, "use '-db DIR' or set DCPIDB; the service's is '%s'",
				  service);
		else
			base_hint(err,
				  "use '-db DIR' or set DCPIDB; 'dcpirun PROGRAM' samples a "
				  "program into '%s' here",
				  here);
		return -DCPI_EUSAGE;
	}
	return 0;
}

const char *select_workload(const struct select *s)
{
	for (size_t i = 0; i < WORKLOAD_NR_KEYS; i++)
		if (s->globs[i].nr)
			return workload_key_name((enum workload_key)i);
	return NULL;
}

int select_refuse_workloads(const struct select *s, const char *what, struct base_err *err)
{
	const char *option = select_workload(s);

	return option ? base_fail(err, -DCPI_EUSAGE, "%s are not kept by workload: leave out -%s",
				  what, option)
		      : 0;
}
