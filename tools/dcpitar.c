/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpitar: epochs of a database as one file, with all that it takes to read them elsewhere. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "fleet.h"
#include "report.h"
#include "tar.h"
#include "tools.h"

static struct select sel;
static bool extract, list;
static struct tar_also also;

static const struct base_opt options[] = {
	{ "x", BASE_OPT_FLAG, &extract, NULL,
	  "Extract the archive FILE into DATABASE (default: -db, $DCPIDB), which is made where it "
	  "is not there.",
	  0, 0 },
	{ "t", BASE_OPT_FLAG, &list, NULL, "Check the archive FILE and tell what it has.", 0, 0 },
	{ "images", BASE_OPT_FLAG, &also.images, NULL,
	  "Pack the programs and libraries too, as far as they are here.", 0, 0 },
	{ "values", BASE_OPT_FLAG, &also.values, NULL,
	  "Pack value profiles too, which hold what programs computed with: secrets perhaps.", 0,
	  0 },
	SELECT_OPTIONS_DB_ALONE(sel),
	{ "json", BASE_OPT_FLAG, &sel.json, NULL, "Print JSON with the same numbers (dcpijson(5)).",
	  0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpitar",
	.summary = "pack epochs with all that is needed to read them elsewhere",
	.operands = "FILE [DATABASE]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpitar -images monday.tar.zst",
			  "The newest epoch, with the programs and libraries that were sampled." },
			{ "dcpitar -epoch 202611..202612 november.tar.gz",
			  "Two months of epochs, compressed by gzip." },
			{ "dcpitar -x monday.tar.zst here",
			  "On another machine: into the database 'here'." },
			{ "dcpitar -t monday.tar.zst", "What it has, and whether it is whole." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = 2,
};

static const struct {
	const char *one, *many, *json;
} parts[PROFDB_NR_PARTS] = {
	[PROFDB_PART_PROFILE] = { "profile", "profiles", "profiles" },
	[PROFDB_PART_DYN] = { "pseudo-image", "pseudo-images", "pseudo_images" },
	[PROFDB_PART_KERNEL] = { "file of kernels", "files of kernels", "kernel_files" },
	[PROFDB_PART_COSTS] = { "file of costs", "files of costs", "cost_files" },
	[PROFDB_PART_VALUES] = { "value profile", "value profiles", "values" },
	[PROFDB_PART_CALLPATHS] = { "file of call paths", "files of call paths", "callpaths" },
	[PROFDB_PART_WORKLOADS] = { "file of workloads", "files of workloads", "workloads" },
	[PROFDB_PART_IMAGE] = { "program or library", "programs and libraries", "images" },
};

/* ---- text ------------------------------------------------------------------------------------ */

static int print_text(const char *verb, const char *file, const struct tar_sum *sum, uint64_t kept)
{
	printf("%s ", verb);
	report_print_clean(stdout, file);
	puts(":");
	for (size_t i = 0; i < PROFDB_NR_PARTS; i++)
		if (sum->nr[i])
			printf("%8" PRIu64 " %s, %" PRIu64 " bytes\n", sum->nr[i],
			       sum->nr[i] == 1 ? parts[i].one : parts[i].many, sum->bytes[i]);
	if (kept)
		printf("%8" PRIu64 " of these the database had already\n", kept);
	return 0;
}

/* The profiles of one platform in one epoch stand together. */
static void print_epochs(const struct tarball_list *l)
{
	struct profdb_place at, last = { 0 };
	size_t nr = 0;

	for (size_t i = 0; i <= l->nr; i++) {
		bool profile = i < l->nr && profdb_place_parse(l->v[i].path, &at) == 0 &&
			       at.part == PROFDB_PART_PROFILE;

		if (nr && (!profile || strcmp(at.epoch, last.epoch) != 0 ||
			   strcmp(at.platform, last.platform) != 0)) {
			printf("epoch %s, platform %s: %zu profile%s\n", last.epoch, last.platform,
			       nr, nr == 1 ? "" : "s");
			nr = 0;
		}
		nr += profile;
		if (profile)
			last = at;
	}
}

static void print_members(const struct tarball_list *l)
{
	for (size_t i = 0; i < l->nr; i++) {
		printf("%03" PRIo32 " %10" PRIu64 " ", l->v[i].mode, l->v[i].len);
		report_print_clean(stdout, l->v[i].path);
		putchar('\n');
	}
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *json_sum(const struct tar_sum *sum)
{
	struct json_object *o = json_object_new_object();

	for (size_t i = 0; i < PROFDB_NR_PARTS; i++) {
		struct json_object *part = json_object_new_object();

		json_object_object_add(part, "files", json_object_new_uint64(sum->nr[i]));
		json_object_object_add(part, "bytes", json_object_new_uint64(sum->bytes[i]));
		json_object_object_add(o, parts[i].json, part);
	}
	return o;
}

static struct json_object *json_members(const struct tarball_list *l)
{
	struct json_object *all = json_object_new_array();

	for (size_t i = 0; i < l->nr; i++) {
		const struct tarball_member *m = &l->v[i];
		struct json_object *o = json_object_new_object();
		struct base_id sum = { .len = sizeof(m->sum) };
		char text[BASE_ID_TEXT_LEN];

		memcpy(sum.bytes, m->sum, sizeof(m->sum));
		json_object_object_add(o, "path", report_json_text(m->path));
		json_object_object_add(o, "mode", json_object_new_int64(m->mode));
		json_object_object_add(o, "bytes", json_object_new_uint64(m->len));
		json_object_object_add(o, "sha256",
				       json_object_new_string(base_id_text(&sum, text)));
		json_object_array_add(all, o);
	}
	return all;
}

static int print_json(const char *verb, const char *file, const struct tar_sum *sum, uint64_t kept,
		      const struct tarball_list *members)
{
	struct json_object *root = json_object_new_object();

	json_object_object_add(root, "schema", json_object_new_string("dcpitar/1"));
	json_object_object_add(root, verb, report_json_text(file));
	json_object_object_add(root, "parts", json_sum(sum));
	json_object_object_add(root, "kept", json_object_new_uint64(kept));
	if (members)
		json_object_object_add(root, "members", json_members(members));
	return report_json_put(root, stdout);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int run_list(const char *file, struct base_err *err)
{
	struct tarball_reader *a;
	struct tar_sum sum;
	int r = tarball_open(file, &a, err);

	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < tarball_members(a)->nr; i++)
		r = tarball_read(a, NULL, NULL, err);
	if (r >= 0)
		r = tarball_end(a, err);
	if (r >= 0)
		r = tar_sum(tarball_members(a), &sum, err);
	if (r >= 0 && sel.json) {
		r = print_json("checked", file, &sum, 0, tarball_members(a));
	} else if (r >= 0) {
		print_members(tarball_members(a));
		print_epochs(tarball_members(a));
		r = print_text("checked", file, &sum, 0);
	}
	tarball_close(a);
	return r;
}

static int run_extract(const char *file, struct base_err *err)
{
	struct tar_sum sum;
	uint64_t kept;
	int r = tar_unpack(file, sel.db, &sum, &kept, err);

	if (r < 0)
		return r;
	return sel.json ? print_json("extracted", file, &sum, kept, NULL)
			: print_text("extracted", file, &sum, kept);
}

static int run_pack(const char *file, struct base_err *err)
{
	struct tar_sum sum;
	int s, r = tar_pack(cmd.name, &sel, &also, file, &sum, err);

	if (r < 0)
		return r;
	s = sel.json ? print_json("packed", file, &sum, 0, NULL)
		     : print_text("packed", file, &sum, 0);
	return s < 0 ? s : r ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}

static int check(int nr, char **operands, struct base_err *err)
{
	int r;

	if (extract && list)
		return base_fail(err, -DCPI_EUSAGE, "-x and -t exclude each other");
	if ((extract || list) && (also.images || also.values || sel.epoch || sel.platform))
		return base_fail(err, -DCPI_EUSAGE,
				 "-images, -values, -epoch and -platform say what is packed");
	if (nr == 2 && !extract) {
		base_fail(err, -DCPI_EUSAGE, "unexpected operand '%s' without -x", operands[1]);
		if (!list)
			base_hint(err, "name the database by -db");
		return -DCPI_EUSAGE;
	}
	if (list && sel.db)
		return base_fail(err, -DCPI_EUSAGE, "-t reads FILE alone: leave out -db");
	if (nr == 2 && sel.db && strcmp(sel.db, operands[1]) != 0)
		return base_fail(err, -DCPI_EUSAGE, "two databases are named, '%s' and '%s'",
				 sel.db, operands[1]);
	if (nr == 2)
		sel.db = operands[1];
	r = list ? 0 : select_check(&sel, err);
	return r < 0 ? r : fleet_refuse(&sel, err);
}

static int dcpitar_main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_opt_parse(&cmd, &argc, &argv, &err);

	if (r == BASE_OPT_DONE)
		return BASE_EXIT_OK;
	if (r >= 0)
		r = check(argc, argv, &err);
	if (r >= 0)
		r = list      ? run_list(argv[0], &err)
		    : extract ? run_extract(argv[0], &err)
			      : run_pack(argv[0], &err);
	return report_end(&cmd, r, &err);
}

const struct tool dcpitar_tool = { .cmd = &cmd, .main = dcpitar_main };
