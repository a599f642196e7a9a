/* SPDX-License-Identifier: BSD-2-Clause */
/* The sets of a comparison are taken from the arguments, and gathered. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"
#include "fleet.h"
#include "progress.h"
#include "report.h"
#include "sets.h"

static bool is_set(const char *word)
{
	return strcmp(word, "-set") == 0 || strcmp(word, "--set") == 0;
}

/* Words from @from up to the next -set; returns its index. */
static int part_end(int argc, char **argv, int from)
{
	while (from < argc && !is_set(argv[from]))
		from++;
	return from;
}

static int own(struct base_opt_list *list, struct base_err *err)
{
	const char **items = calloc(list->nr + 1, sizeof(*items));

	if (!items)
		return base_fail_errno(err, -ENOMEM, "cannot read the command line");
	if (list->nr)
		memcpy(items, list->items, list->nr * sizeof(*items));
	list->items = items;
	return 0;
}

static void release_lists(struct set *s)
{
	free(s->sel.labels.items);
	for (size_t i = 0; i < WORKLOAD_NR_KEYS; i++)
		free(s->sel.globs[i].items);
}

int sets_own_lists(struct set *s, struct base_err *err)
{
	struct base_opt_list *common = s->sel.globs;
	int r = own(&s->sel.labels, err);

	for (size_t i = 0; i < WORKLOAD_NR_KEYS && r >= 0; i++)
		r = own(&common[i], err);
	return r;
}

/* argv[from] is a "-set", which the parser takes for the name of the program. */
static int parse_set(const struct base_cmd *cmd, struct set *into, char **argv, int from, int to,
		     struct sets *out, struct base_err *err)
{
	int nr = to - from, r = sets_own_lists(into, err);
	char **words = argv + from;

	if (r < 0)
		return r;
	r = base_opt_parse(cmd, &nr, &words, err);
	into->nr_what = nr;
	into->what = words;
	if (r == BASE_OPT_RUN)
		r = select_check(&into->sel, err);
	if (r == BASE_OPT_RUN)
		out->v[out->nr++] = *into;
	else
		release_lists(into);
	return r;
}

int sets_parse(const struct base_cmd *cmd, struct set *into, int argc, char **argv,
	       struct sets *out, struct base_err *err)
{
	int at = part_end(argc, argv, 1), r;
	struct set common;

	out->v = calloc((size_t)argc + 1, sizeof(*out->v));
	if (!out->v)
		return base_fail_errno(err, -ENOMEM, "cannot read the command line");
	out->nr_words = at;
	out->words = argv;
	r = base_opt_parse(cmd, &out->nr_words, &out->words, err);
	common = *into;
	while (r == BASE_OPT_RUN && at < argc) {
		int end = part_end(argc, argv, at + 1);

		*into = common;
		r = parse_set(cmd, into, argv, at, end, out, err);
		at = end;
	}
	if (r == BASE_OPT_RUN)
		*into = common;
	return r;
}

static bool has_samples(const struct analysis *a, const struct analysis_image *ai)
{
	for (size_t i = 0; i < a->nr_events; i++)
		if (ai->count[i])
			return true;
	return false;
}

static int add_images(struct set *s, bool by_image, bool *used, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < s->a->nr_images && r >= 0; i++) {
		struct analysis_image *ai = s->a->images[i];

		progress_show("naming procedures", i, s->a->nr_images);
		if (!has_samples(s->a, ai) || !choose_names(s->a, ai, s->nr_what, s->what, used))
			continue;
		r = by_image ? analysis_rows_add_image(&s->rows, s->a, ai)
			     : analysis_rows_add_procedures(&s->rows, s->a, ai);
	}
	progress_show("naming procedures", 1, 1);
	if (r < 0)
		return base_fail_errno(err, r, "cannot sum samples");
	for (int i = 0; i < s->nr_what; i++)
		if (!used[i])
			return analysis_image_unknown(s->a, s->what[i], err);
	return 0;
}

int sets_open(struct set *s, struct base_err *err)
{
	int r = fleet_use(&s->sel, FLEET_OFFSET, s->nr_what, s->what, err);

	return r < 0 ? r : report_open(&s->sel, &s->a, err);
}

int sets_gather(struct set *s, bool by_image, bool code, struct base_err *err)
{
	bool *used = calloc((size_t)s->nr_what + 1, sizeof(*used));
	int r = used ? sets_open(s, err) : base_fail_errno(err, -ENOMEM, "cannot gather samples");

	s->rows.code = code;
	if (r >= 0)
		r = add_images(s, by_image, used, err);
	free(used);
	return r;
}

int sets_event_find(const struct analysis *a, const char *event, const char *set,
		    struct base_err *err)
{
	struct base_err why = { 0 };
	int at = analysis_event_find(a, event, &why);

	if (at >= 0)
		return at;
	base_fail(err, at, "%s in %s", why.text, set);
	base_hint(err, "%s; -event behind each -set compares one with another", why.hint);
	return at;
}

struct json_object *sets_json_counts(const uint64_t count[2])
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "a", json_object_new_uint64(count[0]));
	json_object_object_add(o, "b", json_object_new_uint64(count[1]));
	return o;
}

int sets_problems(const char *prog, const struct sets *s)
{
	int code = BASE_EXIT_OK;

	for (size_t i = 0; i < s->nr; i++)
		if (s->v[i].a && report_problems(prog, s->v[i].a, stderr) != BASE_EXIT_OK)
			code = BASE_EXIT_FAILED;
	return code;
}

void sets_release(struct sets *s)
{
	for (size_t i = 0; i < s->nr; i++) {
		analysis_rows_release(&s->v[i].rows);
		analysis_close(s->v[i].a);
		release_lists(&s->v[i]);
	}
	free(s->v);
	memset(s, 0, sizeof(*s));
}
