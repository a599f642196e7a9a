/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpifetch: a part of a fleet's store becomes a database that every tool reads. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "store.h"
#include "when.h"

static const char *from, *into, *credentials, *epoch, *platform, *event, *detail = "offset";
static const char *since, *until;
static struct base_opt_list labels;
static bool hosts, epochs, replicates, symbols, quiet;

static const struct base_opt options[] = {
	{ "from", BASE_OPT_STRING, &from, "STORE",
	  "clickhouse://[USER@]HOST[:PORT]/DATABASE, or clickhouses:// for TLS (default: $DCPIDB).",
	  0, 0 },
	{ "o", BASE_OPT_STRING, &into, "DIR", "The database to make: an empty or missing folder.",
	  0, 0 },
	{ "credentials", BASE_OPT_STRING, &credentials, "FILE",
	  "A file whose first line is the password, or USER:PASSWORD; only its owner and group may "
	  "read it "
	  "(default: $DCPI_STORE_CREDENTIALS).",
	  0, 0 },
	{ "epoch", BASE_OPT_STRING, &epoch, "EPOCH",
	  "Which epochs: NAME, 'all', or FROM..TO (default: the last day).", 0, 0 },
	{ "platform", BASE_OPT_STRING, &platform, "GLOB", "Only these platforms (default: all).", 0,
	  0 },
	{ "since", BASE_OPT_STRING, &since, "TIME",
	  "Only epochs that began from this time on: " WHEN_FORMS ".", 0, 0 },
	{ "until", BASE_OPT_STRING, &until, "TIME", "Only epochs that began before this time.", 0,
	  0 },
	{ "event", BASE_OPT_STRING, &event, "EVENT", "Only samples of this event.", 0, 0 },
	{ "label", BASE_OPT_LIST, &labels, "LABEL", "Only samples with this label. Repeatable.", 0,
	  0 },
	{ "detail", BASE_OPT_STRING, &detail, "WHAT",
	  "offset (everything that profiles have), routine, workload, platform, files (those "
	  "of call paths and workloads too), paths (routine with call paths), or symbols (of "
	  "images that are given by whole build-ids, without samples).",
	  0, 0 },
	{ "hosts", BASE_OPT_FLAG, &hosts, NULL,
	  "Platforms stay apart (default: they are added up as platform 'fleet-of-N').", 0, 0 },
	{ "epochs", BASE_OPT_FLAG, &epochs, NULL,
	  "Epochs stay apart (default: they are added up as the first one).", 0, 0 },
	{ "replicates", BASE_OPT_FLAG, &replicates, NULL,
	  "With '-detail routine' or 'offset': samples are divided among up to 64 workloads "
	  "'replicate N', by platform and epoch.",
	  0, 0 },
	{ "symbols", BASE_OPT_FLAG, &symbols, NULL,
	  "With '-detail routine': all symbols of the images, not of routines with samples alone.",
	  0, 0 },
	{ "quiet", BASE_OPT_FLAG, &quiet, NULL, "Say nothing where nothing is wrong.", 0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpifetch",
	.summary = "copy a part of a fleet's store into a database",
	.operands = "[IMAGE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpifetch -from clickhouse://db.example/dcpi -o day libc.so.6",
			  "The samples of a library on all machines, on the last day." },
			{ "dcpifetch -from clickhouse://db.example/dcpi -o web7 -platform web7 "
			  "-detail files",
			  "What a single machine has recorded, with call paths." },
			{ NULL, NULL } },
	.max_operands = -1,
};

static int find_detail(enum store_detail *out, struct base_err *err)
{
	static const char *const names[] = {
		[STORE_BY_OFFSET] = "offset",	  [STORE_BY_ROUTINE] = "routine",
		[STORE_BY_WORKLOAD] = "workload", [STORE_BY_PLATFORM] = "platform",
		[STORE_FILES] = "files",	  [STORE_PATHS] = "paths",
		[STORE_SYMBOLS] = "symbols",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(detail, names[i]) == 0) {
			*out = (enum store_detail)i;
			return 0;
		}
	return base_fail(err, -DCPI_EUSAGE,
			 "unknown -detail '%s': offset, routine, workload, platform, files, paths, "
			 "or symbols",
			 detail);
}

static int find_times(struct store_want *w, struct base_err *err)
{
	struct when_window window;
	int r = when_window(since, until, (int64_t)time(NULL), &window, err);

	if (r >= 0) {
		w->since = window.since;
		w->until = window.until;
	}
	return r;
}

static int fetch(const struct store_want *w, struct base_err *err)
{
	struct store_fetched got;
	struct store_server *s;
	int r = store_open(from, credentials, &s, err);

	if (r < 0)
		return r;
	store_set_timeout(s, 600000);
	r = store_fetch(s, w, into, &got, err);
	store_close(s);
	if (r >= 0 && got.skipped)
		fprintf(stderr,
			"%s: warning: %" PRIu64 " malformed rows of the store are left out\n",
			cmd.name, got.skipped);
	if (r >= 0 && got.have_paths > got.with_paths)
		fprintf(stderr,
			"%s: warning: call paths are of %" PRIu64 " of %" PRIu64
			" epochs of machines, chosen by chance\n",
			cmd.name, got.with_paths, got.have_paths);
	if (r >= 0 && !quiet)
		printf("%" PRIu64 " profiles of %" PRIu64 " platforms and %" PRIu64
		       " epochs in '%s'\n",
		       got.profiles, got.platforms, got.epochs, into);
	return r;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct store_want w = { .epoch = epoch,
				.since = INT64_MIN,
				.until = INT64_MAX,
				.event = event,
				.platform = platform,
				.labels = labels.items,
				.nr_labels = labels.nr,
				.images = (const char *const *)what,
				.nr_images = (size_t)nr,
				.by_platform = hosts,
				.by_epoch = epochs,
				.replicates = replicates,
				.symbols = symbols };
	int r;

	if (!from)
		from = getenv("DCPIDB");
	if (!from || !into)
		return base_fail(err, -DCPI_EUSAGE, "%s: use %s",
				 from ? "no database to make" : "no store given",
				 from ? "-o DIR" : "-from STORE");
	r = find_detail(&w.detail, err);
	if (r >= 0 && replicates &&
	    (hosts || epochs || (w.detail != STORE_BY_ROUTINE && w.detail != STORE_BY_OFFSET)))
		r = base_fail(err, -DCPI_EUSAGE,
			      "-replicates is for '-detail routine' and 'offset', without -hosts "
			      "and -epochs");
	if (r >= 0)
		r = find_times(&w, err);
	/* The store may know the user, and not others here. */
	umask(077);
	signal(SIGPIPE, SIG_IGN);
	return r < 0 ? r : fetch(&w, err);
}

int main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r, end;

	base_standard_fill(O_RDONLY);
	r = base_opt_parse(&cmd, &argc, &argv, &err);
	if (r >= 0 && r != BASE_OPT_DONE)
		r = run(argc, argv, &err);
	else if (r == BASE_OPT_DONE)
		r = BASE_EXIT_OK;
	end = base_output_end(&err);
	if (r >= 0 && end < 0)
		r = end;
	if (r >= 0)
		return r;
	base_err_print(&err, cmd.name, stderr);
	return r == -DCPI_EUSAGE ? BASE_EXIT_USAGE : BASE_EXIT_FAILED;
}
