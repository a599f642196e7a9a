/* SPDX-License-Identifier: BSD-2-Clause */
/* The build had no ncurses: the live view has no screen. */
#include "live.h"

int live_screen_run(struct live_view *v, struct live_feed *f, const char *run_dir,
		    struct base_err *err)
{
	(void)v;
	(void)f;
	(void)run_dir;
	base_fail(err, -DCPI_EUNSUPPORTED, "this dcpitop was built without ncurses");
	base_hint(err, "'dcpitop -batch SECONDS' prints a table");
	return -DCPI_EUNSUPPORTED;
}
