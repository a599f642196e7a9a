/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration file. */
#include <json.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct base_opt_list events = { 0 }, bypid = { 0 };
	const char *database = NULL;
	bool quiet = false;
	int64_t rate = 1;
	double share = 0;
	const struct base_opt options[] = {
		{ "database", BASE_OPT_STRING, &database, "DIR", "", 0, 0 },
		{ "event", BASE_OPT_LIST, &events, "EVENT", "", 0, 0 },
		{ "bypid", BASE_OPT_LIST, &bypid, "IMAGE", "", 0, 0 },
		{ "rate", BASE_OPT_INT, &rate, "HZ", "", 1, 1000 },
		{ "share", BASE_OPT_DOUBLE, &share, "X", "", 0, 1 },
		{ "quiet", BASE_OPT_FLAG, &quiet, NULL, "", 0, 0 },
		{ 0 },
	};
	const struct base_cmd cmd = { .name = "dcpid", .opts = options };
	struct json_object *root;
	struct base_err err = { 0 };
	int r = config_parse((const char *)data, len, "fuzz", &cmd, 1 << 2, &root, &err);

	/* What is taken fits; what the command line has set stays; a failure is told. */
	if (rate < 1 || rate > 1000 || !(share >= 0 && share <= 1) || bypid.nr ||
	    (r < 0) != (err.text[0] != '\0') || r > 0)
		abort();
	if (database && strlen(database) > len)
		abort();
	for (size_t i = 0; i < events.nr; i++)
		if (strlen(events.items[i]) > len)
			abort();
	free(events.items);
	json_object_put(root);
	return 0;
}
