/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_registry.h"
#include "tracker.h"

void tracker_open_dyn(struct tracker *t, const char *helper_dir)
{
	struct dyn_config config = { .run_dir = t->dir,
				     .helper_dir = helper_dir,
				     .host = "here",
				     .db = t->db,
				     .images = t->images,
				     .reader = t->reader };
	struct base_err err = { 0 };

	if (dyn_open(&config, &t->dyn, &err) < 0)
		fail_msg("%s", err.text);
}

int tracker_setup(void **state)
{
	struct base_err err = { 0 };
	struct tracker *t;

	*state = NULL;
	if (!fake_can_exec("dcpid-reader"))
		return 0;
	t = calloc(1, sizeof(*t));
	assert_non_null(t);
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	strcpy(t->dir, "/tmp/dcpi-unit-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	snprintf(t->db_path, sizeof(t->db_path), "%s/db", t->dir);
	if (profdb_open(t->db_path, true, &t->db, &err) < 0 ||
	    reader_open(fake_helper_dir(), &t->reader, &err) < 0)
		fail_msg("%s", err.text);
	t->images = images_new();
	t->p = (struct process){ .pid = getpid(), .uid = getuid(), .comm = "unit" };
	tracker_open_dyn(t, fake_helper_dir());
	*state = t;
	return 0;
}

int tracker_teardown(void **state)
{
	struct tracker *t = *state;
	char command[128];

	if (!t)
		return 0;
	if (t->p.dyn)
		dyn_end(t->dyn, &t->p);
	dyn_close(t->dyn);
	images_free(t->images);
	reader_close(t->reader);
	profdb_close(t->db);
	snprintf(command, sizeof(command), "rm -rf '%s'", t->dir);
	assert_int_equal(system(command), 0);
	free(t);
	return 0;
}
