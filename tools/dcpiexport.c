/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpiexport: samples, with their call paths, in the formats of other programs. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "estimate.h"
#include "export.h"
#include "fleet.h"
#include "report.h"
#include "tools.h"
#include "workloads.h"

static struct select sel;
static const char *output;
static bool flat, untagged;

static const struct base_opt options[] = {
	SELECT_OPTIONS_DB(sel),
	SELECT_OPTION_LABEL(sel),
	SELECT_OPTIONS_WORKLOAD(sel),
	SELECT_OPTION_UNCHECKED(sel),
	SELECT_OPTIONS_FILES(sel.files, sel.maps),
	{ "event", BASE_OPT_STRING, &sel.event, "EVENT", "Only samples of this event.", 0, 0 },
	SELECT_OPTION_MANGLED,
	{ "flat", BASE_OPT_FLAG, &flat, NULL,
	  "Leave out who called the sampled code, also where call paths tell.", 0, 0 },
	{ "untagged", BASE_OPT_FLAG, &untagged, NULL,
	  "Leave out whose the samples are, which makes the file smaller.", 0, 0 },
	{ "o", BASE_OPT_STRING, &output, "FILE",
	  "Write this file (default: standard output); compressed where its name ends with '.gz'.",
	  0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpiexport",
	.summary = "write samples in the formats of other programs",
	.operands = "FORMAT",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiexport pprof -o all.pb.gz; go tool pprof -http :8080 all.pb.gz",
			  "Graphs, flame graphs and source lines in a browser." },
			{ "dcpiexport pprof -o all.pb.gz; go tool pprof -top -tagfocus comm=nginx "
			  "all.pb.gz",
			  "Of one program's processes, kernel included; -tags lists others." },
			{ "dcpiexport firefox -o all.json.gz",
			  "A file that https://profiler.firefox.com opens." },
			{ "dcpiexport callgrind -o all.callgrind; kcachegrind all.callgrind",
			  "Source lines and instructions, callers and callees." },
			{ "dcpiexport folded | flamegraph.pl >all.svg", "A flame graph." },
			{ NULL, NULL } },
	.min_operands = 1,
	.max_operands = 1,
};

static const struct export_format *const formats[] = {
	&export_pprof,	   &export_folded, &export_speedscope, &export_firefox,
	&export_callgrind, &export_perf,   &export_otlp,
};

static int find_format(const char *name, const struct export_format **out, struct base_err *err)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		*out = formats[i];
		if (strcmp(formats[i]->name, name) == 0)
			return 0;
	}
	base_fail(err, -DCPI_EUSAGE, "no format '%s'", name);
	base_hint(err, "formats are pprof, folded, speedscope, firefox, callgrind, perf, otlp");
	return -DCPI_EUSAGE;
}

/* ---- which samples --------------------------------------------------------------------------- */

/* The event that programs show first stands first. */
static int choose_events(struct export *x, const struct export_format *f, struct base_err *err)
{
	const struct analysis *a = x->a;
	size_t first = analysis_event_default(a);

	x->events = calloc(a->nr_events, sizeof(*x->events));
	if (!x->events)
		return base_fail_errno(err, -ENOMEM, "cannot choose events");
	x->events[x->nr_events++] = (uint32_t)first;
	for (size_t i = 0; i < a->nr_events; i++) {
		if (i == first)
			continue;
		if (f->single && a->events[i].sum)
			fprintf(stderr,
				"%s: warning: %" PRIu64 " %s of '%s' are not written: this "
				"format holds one event, which -event chooses\n",
				cmd.name, a->events[i].sum,
				estimate_is_measured(a->events[i].name) ? "ns" : "samples",
				a->events[i].name);
		if (!f->single)
			x->events[x->nr_events++] = (uint32_t)i;
	}
	return 0;
}

static int check_samples(const struct analysis *a, struct base_err *err)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < a->nr_events; i++)
		sum |= a->events[i].sum;
	if (sum)
		return 0;
	base_fail(err, -ENOENT, "no samples are chosen in '%s'", analysis_database(a));
	base_hint(err, "'dcpiflush' puts on disk what the daemon has; -epoch all takes earlier "
		       "epochs too");
	return -ENOENT;
}

/* ---- the file -------------------------------------------------------------------------------- */

static bool is_gz(const char *name)
{
	size_t len = name ? strlen(name) : 0;

	return len > 3 && strcmp(name + len - 3, ".gz") == 0;
}

/* @to has refused something: its error flag says so, and errno where that is set. */
static int write_failed(FILE *to, struct base_err *err)
{
	errno = 0;
	if (fflush(to) == 0 && !ferror(to))
		return 0;
	return base_fail_errno(err, errno ? -errno : -EIO, "cannot write %s",
			       output ? output : "the output");
}

static int write_stream(const struct export *x, const struct export_format *f, FILE *to,
			struct base_err *err)
{
	bool gzip = f->gzip || is_gz(output);
	FILE *in = gzip ? export_gzip(to) : to;
	int r = in ? f->write(x, in) : -ENOMEM;

	if (r < 0)
		base_fail_errno(err, r, "cannot write the samples as '%s'", f->name);
	if (r >= 0)
		r = write_failed(in, err);
	if (in && gzip && fclose(in) != 0 && r >= 0)
		r = base_fail_errno(err, -errno, "cannot write %s", output ? output : "the output");
	return r < 0 ? r : write_failed(to, err);
}

static int write_file(const struct export *x, const struct export_format *f, struct base_err *err)
{
	struct base_file file = { 0 };
	int fd, r = base_output_create(&file, output, 0666, err);
	FILE *to;

	if (r < 0)
		return r;
	fd = dup(file.fd);
	to = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!to) {
		r = base_fail_errno(err, -errno, "cannot write '%s'", output);
		if (fd >= 0)
			close(fd);
	} else {
		r = write_stream(x, f, to, err);
		fclose(to);
	}
	if (r >= 0)
		r = base_file_commit(&file, err);
	base_file_abort(&file);
	return r;
}

static int write_export(const struct export *x, const struct export_format *f, struct base_err *err)
{
	if (output)
		return write_file(x, f, err);
	return write_stream(x, f, stdout, err);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int make(struct analysis *a, const struct workloads *w, const struct export_format *f,
		struct base_err *err)
{
	const struct export_how how = { .flat = flat,
					.unchecked = sel.unchecked,
					.owners = f->tags && w->w };
	struct export *x = NULL;
	int r = check_samples(a, err);

	if (r >= 0)
		r = export_make(a, &how, &x, err);
	if (r >= 0 && f->tags)
		r = export_whose(x, a, w->w, &w->filter, err);
	if (r >= 0)
		r = choose_events(x, f, err);
	if (r >= 0)
		r = write_export(x, f, err);
	export_free(x);
	return r;
}

static int run(int nr, char **what, struct base_err *err)
{
	const struct export_format *f;
	struct analysis *a = NULL;
	struct workloads w = { 0 };
	int code = BASE_EXIT_OK, r = find_format(what[0], &f, err);

	(void)nr;
	if (r >= 0 && f->gzip && !output && isatty(STDOUT_FILENO)) {
		r = base_fail(err, -DCPI_EUSAGE, "this format is no text for a terminal");
		base_hint(err, "-o FILE writes a file");
	}
	sel.elsewhere = output != NULL;
	if (r >= 0)
		r = fleet_use(&sel, flat ? FLEET_OFFSET : FLEET_PATHS, 0, NULL, err);
	if (r >= 0)
		r = report_open_workloads(&sel, &a, f->tags && !untagged ? &w : NULL, err);
	if (r >= 0)
		r = make(a, &w, f, err);
	if (a)
		code = r < 0 ? report_bad(cmd.name, a, stderr)
			     : report_problems(cmd.name, a, stderr);
	workloads_release(&w);
	analysis_close(a);
	return r < 0 ? r : code;
}

static int dcpiexport_main(int argc, char **argv)
{
	return report_main(&cmd, &sel, run, argc, argv);
}

const struct tool dcpiexport_tool = { .cmd = &cmd, .main = dcpiexport_main };
