/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Firefox Profiler's processed format, version 60 (docs-developer/processed-profile-format.md
 * and CHANGELOG-formats.md there): its importer brings older versions up to date, so that one that
 * is documented lasts, and from this one on threads share their tables. Each process and thread is
 * one there, for each event; samples have weights, and times only for an order.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export_internal.h"

enum { FORMAT = 60, GECKO = 27 };
enum { OTHER, USER, KERNEL, DYNAMIC };
static const char categories[] =
	"[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"User\",\"color\":\"yellow\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"Kernel\",\"color\":\"orange\",\"subcategories\":[\"Other\"]},"
	"{\"name\":\"Dynamic code\",\"color\":\"green\",\"subcategories\":[\"Other\"]}]";

/* Numbers up to it are exact in JavaScript. */
#define SAFE ((UINT64_C(1) << 53) - 1)

struct firefox {
	const struct export *x;
	FILE *to;
	uint32_t *library; /* indexed by image */
	uint32_t *top; /* indexed by caller: the entry of the stack table of its innermost frame */
	uint32_t *place;  /* indexed by frame */
	uint32_t *source; /* indexed by text: its number among the files of sources + 1 */
	uint32_t *entry;  /* indexed by stack: the entry of its sampled instruction */
	const char *sep;
};

/* ---- columns --------------------------------------------------------------------------------- */

static void begin(struct firefox *f, const char *name)
{
	fprintf(f->to, "\"%s\":[", name);
	f->sep = "";
}

static void put(struct firefox *f, uint64_t v)
{
	fprintf(f->to, "%s%" PRIu64, f->sep, v);
	f->sep = ",";
}

static void put_word(struct firefox *f, const char *word)
{
	fprintf(f->to, "%s%s", f->sep, word);
	f->sep = ",";
}

static void end(struct firefox *f)
{
	fputs("],\n", f->to);
}

/* A column of @nr equal words. */
static void fill(struct firefox *f, const char *name, size_t nr, const char *word)
{
	begin(f, name);
	while (nr--)
		put_word(f, word);
	end(f);
}

static void length(struct firefox *f, size_t nr)
{
	fprintf(f->to, "\"length\":%zu}", nr);
}

/* ---- libraries ------------------------------------------------------------------------------- */

/* Breakpad's form of a build-id: 16 bytes, of which the first 4, 2 and 2 are turned around, and
 * "0". */
static void put_breakpad(struct firefox *f, const char *id)
{
	static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	struct base_id bytes = { 0 };
	size_t len = 0;

	while (id[len])
		len++;
	fputc('"', f->to);
	if (len && base_id_parse(&bytes, id, len) >= 0) {
		for (size_t i = 0; i < sizeof(order); i++)
			fprintf(f->to, "%02X", bytes.bytes[order[i]]);
		fputc('0', f->to);
	}
	fputc('"', f->to);
}

static void put_library(struct firefox *f, const struct export_image *i)
{
	const char *path = f->x->texts[i->name],
		   *keys[] = { "name", "path", "debugName", "debugPath" };

	fputs(f->sep, f->to);
	f->sep = ",\n";
	fputs("{\"arch\":\"\",", f->to);
	for (size_t k = 0; k < 4; k++) {
		fprintf(f->to, "\"%s\":", keys[k]);
		json_text(f->to, k % 2 ? path : base_path_name(path));
		fputc(',', f->to);
	}
	fputs("\"breakpadId\":", f->to);
	put_breakpad(f, i->id);
	fprintf(f->to, ",\"codeId\":%s%s%s}", *i->id ? "\"" : "", *i->id ? i->id : "null",
		*i->id ? "\"" : "");
}

static void put_libraries(struct firefox *f)
{
	uint32_t nr = 0;

	begin(f, "libs");
	for (uint32_t i = 0; i < f->x->nr_images; i++) {
		if (!export_has_image(f->x, i))
			continue;
		f->library[i] = nr++;
		put_library(f, &f->x->images[i]);
	}
	end(f);
}

/* ---- tables that threads share --------------------------------------------------------------- */

static int category(const struct firefox *f, uint32_t image)
{
	if (image == EXPORT_NONE)
		return OTHER;
	switch (f->x->images[image].kind) {
	case PROFDB_KERNEL:
		return KERNEL;
	case PROFDB_DYNAMIC:
		return DYNAMIC;
	default:
		return USER;
	}
}

static int category_of(const struct firefox *f, uint32_t frame)
{
	return category(f, f->x->places[f->place[frame]].image);
}

static void put_address(struct firefox *f, uint32_t frame)
{
	const struct export_place *p = &f->x->places[f->place[frame]];

	if (p->image == EXPORT_NONE || p->vaddr > SAFE)
		put_word(f, "-1");
	else
		put(f, p->vaddr);
}

static void put_frames(struct firefox *f)
{
	const struct export *x = f->x;
	uint32_t nr = (uint32_t)x->nr_frames;

	fputs("\"frameTable\":{", f->to);
	begin(f, "address");
	for (uint32_t i = 0; i < nr; i++)
		put_address(f, i);
	end(f);
	begin(f, "inlineDepth");
	for (uint32_t i = 0; i < nr; i++) {
		const struct export_place *p = &x->places[f->place[i]];

		put(f, p->first + p->nr - 1 - i);
	}
	end(f);
	begin(f, "category");
	for (uint32_t i = 0; i < nr; i++)
		put(f, (uint64_t)category_of(f, i));
	end(f);
	begin(f, "func");
	for (uint32_t i = 0; i < nr; i++)
		put(f, x->frames[i].function);
	end(f);
	begin(f, "line");
	for (uint32_t i = 0; i < nr; i++)
		if (x->frames[i].line)
			put(f, x->frames[i].line);
		else
			put_word(f, "null");
	end(f);
	fill(f, "subcategory", nr, "0");
	fill(f, "nativeSymbol", nr, "null");
	fill(f, "innerWindowID", nr, "null");
	fill(f, "column", nr, "null");
	length(f, nr);
	fputs(",\n", f->to);
}

/* The files in which functions are. */
static void put_sources(struct firefox *f)
{
	uint32_t nr = 0;

	fputs("\"sources\":{", f->to);
	begin(f, "filename");
	for (size_t i = 0; i < f->x->nr_functions; i++) {
		uint32_t file = f->x->functions[i].file;

		if (!file || f->source[file])
			continue;
		f->source[file] = ++nr;
		put(f, file);
	}
	end(f);
	fill(f, "id", nr, "null");
	length(f, nr);
	fputs(",\n", f->to);
}

static void put_functions(struct firefox *f)
{
	const struct export *x = f->x;

	fputs("\"funcTable\":{", f->to);
	begin(f, "name");
	for (size_t i = 0; i < x->nr_functions; i++)
		put(f, x->functions[i].name);
	end(f);
	begin(f, "resource");
	for (size_t i = 0; i < x->nr_functions; i++)
		if (x->functions[i].image == EXPORT_NONE)
			put_word(f, "-1");
		else
			put(f, f->library[x->functions[i].image]);
	end(f);
	begin(f, "source");
	for (size_t i = 0; i < x->nr_functions; i++)
		if (x->functions[i].file)
			put(f, f->source[x->functions[i].file] - 1);
		else
			put_word(f, "null");
	end(f);
	begin(f, "lineNumber");
	for (size_t i = 0; i < x->nr_functions; i++)
		if (x->functions[i].line)
			put(f, x->functions[i].line);
		else
			put_word(f, "null");
	end(f);
	fill(f, "columnNumber", x->nr_functions, "null");
	fill(f, "isJS", x->nr_functions, "false");
	fill(f, "relevantForJS", x->nr_functions, "false");
	length(f, x->nr_functions);
	fputs(",\n", f->to);
}

static void put_resources(struct firefox *f)
{
	size_t nr = 0;

	fputs("\"resourceTable\":{", f->to);
	begin(f, "lib");
	for (uint32_t i = 0; i < f->x->nr_images; i++)
		if (export_has_image(f->x, i))
			put(f, nr++);
	end(f);
	begin(f, "name");
	for (uint32_t i = 0; i < f->x->nr_images; i++)
		if (export_has_image(f->x, i))
			put(f, f->x->images[i].name);
	end(f);
	fill(f, "host", nr, "null");
	fill(f, "type", nr, "1"); /* a library */
	length(f, nr);
	fputs(",\n", f->to);
}

/* For each entry of the stack table: the frames of used callers, then those of sampled places, each
 * from the procedure inwards. @prefix: the entry of what called the procedure. */
static size_t each_entry(struct firefox *f,
			 void (*fn)(struct firefox *f, uint32_t frame, uint32_t prefix))
{
	const struct export *x = f->x;
	uint32_t nr = 0, prefix;

	for (size_t i = 0; i < x->nr_callers + x->nr_stacks; i++) {
		bool sampled = i >= x->nr_callers;
		const struct export_stack *s = &x->stacks[sampled ? i - x->nr_callers : 0];
		uint32_t caller = sampled ? s->caller : x->callers[i].caller;
		const struct export_place *p = &x->places[sampled ? s->place : x->callers[i].place];

		if (!sampled && !x->callers[i].used)
			continue;
		prefix = caller == EXPORT_NONE ? EXPORT_NONE : f->top[caller];
		for (uint32_t k = p->nr; k--; prefix = nr++)
			fn(f, p->first + k, prefix);
		if (sampled)
			f->entry[i - x->nr_callers] = nr - 1;
		else
			f->top[i] = nr - 1;
	}
	return nr;
}

static void entry_prefix(struct firefox *f, uint32_t frame, uint32_t prefix)
{
	(void)frame;
	if (prefix == EXPORT_NONE)
		put_word(f, "null");
	else
		put(f, prefix);
}

static void entry_frame(struct firefox *f, uint32_t frame, uint32_t prefix)
{
	(void)prefix;
	put(f, frame);
}

static void put_stacks(struct firefox *f)
{
	size_t nr;

	fputs("\"stackTable\":{", f->to);
	begin(f, "prefix");
	nr = each_entry(f, entry_prefix);
	end(f);
	begin(f, "frame");
	each_entry(f, entry_frame);
	end(f);
	length(f, nr);
	fputs(",\n", f->to);
}

static void put_texts(struct firefox *f)
{
	fputs("\"stringArray\":[", f->to);
	for (size_t i = 0; i < f->x->nr_texts; i++) {
		fputs(i ? ",\n" : "", f->to);
		json_text(f->to, f->x->texts[i]);
	}
	fputc(']', f->to);
}

static void put_shared(struct firefox *f)
{
	fputs("\"shared\":{\n", f->to);
	put_frames(f);
	put_sources(f);
	put_functions(f);
	put_resources(f);
	put_stacks(f);
	fputs("\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],"
	      "\"length\":0},\n",
	      f->to);
	put_texts(f);
	fputs("},\n", f->to);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void put_samples(struct firefox *f, const struct export_thread *t, const size_t *parts,
			size_t event)
{
	const struct export *x = f->x;
	size_t nr = 0;

	fputs("\"samples\":{", f->to);
	begin(f, "stack");
	for (size_t i = 0; i < t->nr; i++)
		if (export_part_count(x, parts[i], event)) {
			put(f, f->entry[x->parts[parts[i]].stack]);
			nr++;
		}
	end(f);
	begin(f, "time");
	for (size_t i = 0; i < nr; i++)
		put(f, i);
	end(f);
	begin(f, "weight");
	for (size_t i = 0; i < t->nr; i++)
		if (export_part_count(x, parts[i], event))
			put(f, export_part_count(x, parts[i], event));
	end(f);
	fputs("\"weightType\":\"samples\",\n", f->to);
	length(f, nr);
}

/* A process's samples of several events are threads of their own, which its name tells. */
static void put_names(struct firefox *f, const struct export_thread *t, size_t event)
{
	const char *const *texts = (const char *const *)f->x->texts;
	const char *process = t->process ? texts[t->process] : "unknown";
	struct base_buf name = { 0 };
	int r = base_buf_printf(&name, "%s", t->name ? texts[t->name] : process);

	if (r >= 0 && t->estimated)
		r = base_buf_printf(&name, " (estimated)");
	if (r >= 0 && f->x->nr_events > 1)
		r = base_buf_printf(&name, ", %s", f->x->a->events[event].name);
	fputs("{\"name\":", f->to);
	json_text(f->to, r >= 0 ? (const char *)name.data : process);
	fputs(",\"processName\":", f->to);
	json_text(f->to, process);
	base_buf_release(&name);
}

static bool has_samples(const struct export *x, const struct export_thread *t, const size_t *parts,
			size_t event)
{
	for (size_t i = 0; i < t->nr; i++)
		if (export_part_count(x, parts[i], event))
			return true;
	return false;
}

static void put_thread(struct firefox *f, const struct export_thread *t, const size_t *parts,
		       size_t event)
{
	put_names(f, t, event);
	fprintf(f->to,
		",\"processType\":\"default\",\"processStartupTime\":0,"
		"\"processShutdownTime\":null,\"registerTime\":0,\"unregisterTime\":null,"
		"\"pausedRanges\":[],\"isMainThread\":%s,\"pid\":\"%" PRIu64 "\",\"tid\":%" PRIu64
		",\n",
		t->main && event == f->x->events[0] ? "true" : "false", t->pid, t->tid);
	put_samples(f, t, parts, event);
	fputs(",\n\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[]"
	      ","
	      "\"category\":[],\"length\":0}}",
	      f->to);
}

static void put_threads(struct firefox *f, const struct export_threads *t)
{
	const char *sep = "";

	fputs("\"threads\":[", f->to);
	for (size_t i = 0; i < t->nr; i++)
		for (size_t e = 0; e < f->x->nr_events; e++) {
			const size_t *parts = t->parts + t->v[i].first;

			if (!has_samples(f->x, &t->v[i], parts, f->x->events[e]))
				continue;
			fputs(sep, f->to);
			put_thread(f, &t->v[i], parts, f->x->events[e]);
			sep = ",\n";
		}
	fputs("]}\n", f->to);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void put_meta(struct firefox *f)
{
	fprintf(f->to,
		"{\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"product\":\"DCPI\","
		"\"importedFrom\":\"dcpiexport %s\",\"interval\":1,\"startTime\":%" PRIu64
		",\"processType\":0,\"stackwalk\":1,\"debug\":false,\"symbolicated\":true,"
		"\"usesOnlyOneStackType\":true,"
		"\"sourceCodeIsNotOnSearchfox\":true,\"markerSchema\":[],"
		"\"extensions\":{\"id\":[],\"name\":[],\"baseURL\":[],\"length\":0},\n"
		"\"categories\":%s},\n",
		GECKO, FORMAT, base_release(), export_begin(f->x) * 1000, categories);
}

static void write_all(struct firefox *f, const struct export_threads *t)
{
	for (uint32_t i = 0; i < f->x->nr_places; i++)
		for (uint32_t k = 0; k < f->x->places[i].nr; k++)
			f->place[f->x->places[i].first + k] = i;
	put_meta(f);
	put_libraries(f);
	fputs("\"pages\":[],\n", f->to);
	put_shared(f);
	put_threads(f, t);
}

static int write_firefox(const struct export *x, FILE *to)
{
	struct firefox f = { .x = x, .to = to };
	struct export_threads t = { 0 };
	int r = export_threads(x, &t);

	f.library = calloc(x->nr_images + 1, sizeof(*f.library));
	f.top = calloc(x->nr_callers + 1, sizeof(*f.top));
	f.place = calloc(x->nr_frames + 1, sizeof(*f.place));
	f.entry = calloc(x->nr_stacks + 1, sizeof(*f.entry));
	f.source = calloc(x->nr_texts + 1, sizeof(*f.source));
	if (!f.library || !f.top || !f.place || !f.entry || !f.source)
		r = -ENOMEM;
	if (r >= 0)
		write_all(&f, &t);
	free(f.library);
	free(f.top);
	free(f.place);
	free(f.entry);
	free(f.source);
	export_threads_release(&t);
	return r;
}

const struct export_format export_firefox = { .name = "firefox",
					      .write = write_firefox,
					      .tags = true };
