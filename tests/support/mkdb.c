/* SPDX-License-Identifier: BSD-2-Clause */
/* clang-format off */
/*
 * mkdb DATABASE < DESCRIPTION: make a database from a text, for tests of what reads databases.
 *
 *	platform NAME                 own it; first
 *	epoch UTC-SECONDS             start an epoch (the one before is finished)
 *	profile KIND PATH [FILE]      file, kernel, dynamic, vdso, named; its build-id is read from
 *	                              FILE, or for kernel, vdso and dynamic from
 *	                              DATABASE/{kernel,dyn}/PATH
 *	id HEX                        another build-id for the profile
 *	path PATH                     a further path of it
 *	word NAME VALUE               a header word
 *	event NAME PERIOD [FRACTION]  events get their numbers in this order, from 0; FRACTION of
 *	                              the time in which it was counted
 *	at WHERE COUNT …              samples by event; WHERE: an offset, or PROCEDURE or
 *	                              PROCEDURE+OFFSET of the image
 *	move START FROM TO EVEN ODD   so many traces went that way (profdb.h); '-': elsewhere
 *	values PROFILER [UID]         a value profile of the same image; UID may read it
 *	context PATH HEX              an image that its callers lie in; numbered from 1
 *	value WHERE COUNT VALUE [NUMBER OFFSET]
 *	                              VALUE so many times, with a return address
 *	symbol NAME OFFSET LENGTH     } a kernel's image in DATABASE/kernel: its symbols, then
 *	kernel FILE BUILD-ID LENGTH   } what it is
 *	callpath EVENT END COUNT FRAME …
 *	                              call paths, of samples of the event by its name; END: complete,
 *	                              cut, unreadable, no_rows, contradicted; FRAME: WHERE@PATH, in an
 *	                              image of a profile since the last flush, by the base name of its
 *	                              path; the sampled one first
 *	owner NAME                    call paths from here on are of that workload
 *	workload NAME [KEY=VALUE …]   a workload, which lines below call NAME; keys: comm, exe, cgroup,
 *	                              label, thread, uid, pid, processes; \s in a value is a blank
 *	w NAME EVENT MINUTE COUNT WHERE@PATH
 *	                              samples of that workload, in the epoch's minute of that number,
 *	                              from 0; they are not added to the profile
 *	note KIND SECOND [N [OF]]     a note beside workloads (start, suspend, clock, idle), in the
 *	                              epoch's second of that number
 *	flush                         put the profiles since the last one on disk
 *	finish                        flush, and finish the epoch; else it stays open
 */
/* clang-format on */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "pseudoimg.h"
#include "profdb.h"

enum { WORDS_MAX = 40, PROFILES_MAX = 4096, VALUES_MAX = 64, SYMBOLS_MAX = 256, NAMES_MAX = 256 };

/* A line "workload". */
struct workload {
	char *name;
	struct profdb_workload k;
	bool put; /* in the workloads since the last flush */
};

struct mkdb {
	struct profdb *db;
	const char *path;
	struct profdb_profile *profiles[PROFILES_MAX];
	char *stems[PROFILES_MAX];
	size_t nr_profiles;
	struct {
		struct profdb_values *v;
		char *stem;
		uint32_t uid;
	} values[VALUES_MAX];
	size_t nr_values;
	struct pseudoimg_symbol symbols[SYMBOLS_MAX];
	size_t nr_symbols;
	struct image *images[PROFILES_MAX]; /* of profiles, where they could be opened */
	struct image *img;		    /* of the last profile */
	struct profdb_callpaths *paths;	    /* NULL: none since the last flush */
	const char *owner;		    /* name of the workload that they are of; NULL: none */
	struct profdb_workloads *workloads; /* as paths */
	struct workload names[NAMES_MAX];
	char *words[NAMES_MAX * WORDS_MAX]; /* their texts lie in these */
	size_t nr_words;
	size_t nr_names;
	int64_t epoch; /* UTC seconds */
	struct base_err err;
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static struct profdb_profile *current(struct mkdb *m)
{
	return m->nr_profiles ? m->profiles[m->nr_profiles - 1] : NULL;
}

static int put_values(struct mkdb *m)
{
	int r = 0;

	for (size_t i = 0; i < m->nr_values; i++) {
		if (r >= 0)
			r = profdb_flush_put_values(m->db, m->values[i].stem, m->values[i].v,
						    m->values[i].uid, &m->err);
		profdb_values_free(m->values[i].v);
		free(m->values[i].stem);
	}
	m->nr_values = 0;
	return r;
}

static int do_flush(struct mkdb *m)
{
	int r = m->nr_profiles ? profdb_flush_begin(m->db, &m->err) : 0;

	for (size_t i = 0; i < m->nr_profiles; i++) {
		if (r >= 0)
			r = profdb_flush_put(m->db, m->stems[i], m->profiles[i], &m->err);
		profdb_profile_free(m->profiles[i]);
		free(m->stems[i]);
		image_close(m->images[i]);
	}
	m->img = NULL;
	if (r >= 0)
		r = put_values(m);
	if (r >= 0 && m->paths)
		r = profdb_flush_put_callpaths(m->db, m->paths, &m->err);
	profdb_callpaths_free(m->paths);
	m->paths = NULL;
	if (r >= 0 && m->workloads)
		r = profdb_flush_put_workloads(m->db, m->workloads, &m->err);
	profdb_workloads_free(m->workloads);
	m->workloads = NULL;
	for (size_t i = 0; i < m->nr_names; i++)
		m->names[i].put = false;
	if (r >= 0 && m->nr_profiles)
		r = profdb_flush_commit(m->db, &m->err);
	m->nr_profiles = 0;
	return r;
}

static int do_epoch(struct mkdb *m, const char *seconds)
{
	char name[PROFDB_EPOCH_LEN + 1];
	int r = do_flush(m);

	m->epoch = strtoll(seconds, NULL, 10);
	return r < 0 ? r : profdb_epoch_start(m->db, m->epoch, name, &m->err);
}

static int kind_of(const char *word, enum profdb_kind *kind, enum image_kind *image)
{
	static const struct {
		const char *name;
		enum profdb_kind kind;
		enum image_kind image;
	} kinds[] = {
		{ "file", PROFDB_FILE, IMAGE_FILE },
		{ "kernel", PROFDB_KERNEL, IMAGE_KERNEL },
		{ "dynamic", PROFDB_DYNAMIC, IMAGE_DYNAMIC },
		{ "vdso", PROFDB_VDSO, IMAGE_VDSO },
		{ "named", PROFDB_NAMED, IMAGE_FILE },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].name, word) == 0) {
			*kind = kinds[i].kind;
			*image = kinds[i].image;
			return 0;
		}
	}
	return -EINVAL;
}

static int do_profile(struct mkdb *m, char **w, size_t nr)
{
	struct base_id id = { 0 };
	enum profdb_kind kind;
	enum image_kind image;
	char file[4096] = "";

	if (nr < 3 || kind_of(w[1], &kind, &image) < 0 || m->nr_profiles == PROFILES_MAX)
		return base_fail(&m->err, -EINVAL, "profile: KIND PATH [FILE] wanted");
	if (nr > 3)
		snprintf(file, sizeof(file), "%s", w[3]);
	else if (kind == PROFDB_KERNEL || kind == PROFDB_VDSO || kind == PROFDB_DYNAMIC)
		snprintf(file, sizeof(file), "%s/%s/%s", m->path,
			 kind == PROFDB_DYNAMIC ? "dyn" : "kernel", w[2]);
	m->img = NULL;
	if (*file && image_open_path(file, image, &m->img, &m->err) < 0)
		return m->err.code;
	if (m->img)
		id = *image_id(m->img);
	m->profiles[m->nr_profiles] = profdb_profile_new(kind, &id, w[2]);
	m->stems[m->nr_profiles] = strdup(base_name(w[2]));
	m->images[m->nr_profiles] = m->img;
	if (!m->profiles[m->nr_profiles] || !m->stems[m->nr_profiles++])
		return -ENOMEM;
	return 0;
}

/* Images have no way back from an address to an offset, as nothing but this needs one. */
static int find_offset(struct mkdb *m, const char *where, uint64_t *off)
{
	char name[256];
	size_t len = strcspn(where, "+"), pos = 0;
	const struct image_symbol *s;
	uint64_t want, vaddr;
	char *end;

	*off = strtoull(where, &end, 0);
	if (end != where && !*end)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)len, where);
	s = m->img ? image_symbol_find(m->img, name, &pos) : NULL;
	if (!s)
		return base_fail(&m->err, -ENOENT, "at: no procedure '%s'", name);
	want = s->vaddr + (where[len] ? strtoull(where + len + 1, NULL, 0) : 0);
	for (*off = 0; *off < 64 << 20; ++*off)
		if (image_vaddr(m->img, *off, &vaddr) >= 0 && vaddr == want)
			return 0;
	return base_fail(&m->err, -ENOENT, "at: no offset of '%s'", where);
}

static int do_at(struct mkdb *m, char **w, size_t nr)
{
	uint64_t off;
	int r;

	if (nr < 3 || !current(m))
		return base_fail(&m->err, -EINVAL, "at: WHERE COUNT … wanted");
	r = find_offset(m, w[1], &off);
	for (size_t i = 2; i < nr && r >= 0; i++)
		r = profdb_profile_add(current(m), off, i - 2, strtoull(w[i], NULL, 0));
	return r;
}

static int do_move(struct mkdb *m, char **w)
{
	struct profdb_edge move = { .count = { strtoull(w[4], NULL, 0), strtoull(w[5], NULL, 0) } };
	uint64_t *const at[] = { &move.start, &move.from, &move.to };
	int r = 0;

	for (size_t i = 0; i < 3 && r >= 0; i++) {
		*at[i] = PROFDB_OUTSIDE;
		if (strcmp(w[1 + i], "-") != 0)
			r = find_offset(m, w[1 + i], at[i]);
	}
	return r < 0 ? r : profdb_profile_edge_add(current(m), &move);
}

static int do_values(struct mkdb *m, char **w, size_t nr)
{
	struct profdb_profile *p = current(m);
	struct profdb_values *v;

	if (nr < 2 || !p || m->nr_values == VALUES_MAX)
		return base_fail(&m->err, -EINVAL, "values: PROFILER [UID] wanted");
	v = profdb_values_new(profdb_profile_kind(p), profdb_profile_image(p),
			      profdb_profile_path(p, 0), w[1]);
	if (!v)
		return -ENOMEM;
	profdb_values_seed(v, 1);
	m->values[m->nr_values].v = v;
	m->values[m->nr_values].uid = nr > 2 ? (uint32_t)strtoul(w[2], NULL, 0) : UINT32_MAX;
	m->values[m->nr_values].stem = strdup(m->stems[m->nr_profiles - 1]);
	return m->values[m->nr_values++].stem ? 0 : -ENOMEM;
}

static int do_value(struct mkdb *m, char **w, size_t nr)
{
	struct profdb_context context[2] = { { 0, 0 }, { 0, 0 } };
	uint64_t off;
	int r;

	if (nr < 4 || !m->nr_values)
		return base_fail(&m->err, -EINVAL, "value: WHERE COUNT VALUE wanted");
	if (nr > 5) {
		context[0].image = (uint32_t)strtoul(w[4], NULL, 0);
		context[0].off = strtoull(w[5], NULL, 0);
	}
	r = find_offset(m, w[1], &off);
	for (uint64_t i = strtoull(w[2], NULL, 0); i && r >= 0; i--)
		r = profdb_values_add(m->values[m->nr_values - 1].v, off, context,
				      strtoull(w[3], NULL, 0));
	return r;
}

/* ---- call paths ------------------------------------------------------------------------------ */

static int end_of(const char *word)
{
	static const char *const ends[PROFDB_NR_CALLPATH_ENDS] = { "complete", "cut", "unreadable",
								   "no_rows", "contradicted" };

	for (int i = 0; i < PROFDB_NR_CALLPATH_ENDS; i++)
		if (strcmp(ends[i], word) == 0)
			return i;
	return -EINVAL;
}

static struct profdb_image_ref ref_of(const struct profdb_profile *p)
{
	bool dynamic = profdb_profile_kind(p) == PROFDB_DYNAMIC;
	const char *path = profdb_profile_path(p, 0);

	return (struct profdb_image_ref){ profdb_profile_kind(p), *profdb_profile_image(p), path,
					  dynamic ? base_name(path) : NULL };
}

/* WHERE@PATH */
static int find_place(struct mkdb *m, char *word, struct profdb_image_ref *image, uint64_t *off)
{
	char *at = strchr(word, '@');

	for (size_t i = 0; at && i < m->nr_profiles; i++) {
		struct image *img = m->img;
		int r;

		if (strcmp(m->stems[i], at + 1) != 0)
			continue;
		*at = '\0';
		m->img = m->images[i];
		*image = ref_of(m->profiles[i]);
		r = find_offset(m, word, off);
		m->img = img;
		return r;
	}
	return base_fail(&m->err, -EINVAL, "no such image: '%s'", word);
}

static int do_frame(struct mkdb *m, char *word, struct profdb_frame *out)
{
	struct profdb_image_ref image;
	int r = find_place(m, word, &image, &out->off);

	if (r >= 0)
		r = profdb_callpaths_image_add(m->paths, &image);
	out->image = (uint32_t)r;
	return r;
}

static int owner_of(struct mkdb *m)
{
	for (size_t i = 0; i < m->nr_names; i++)
		if (strcmp(m->names[i].name, m->owner) == 0)
			return profdb_callpaths_workload_add(m->paths, &m->names[i].k);
	return base_fail(&m->err, -ENOENT, "owner: no workload '%s'", m->owner);
}

static int do_callpath(struct mkdb *m, char **w, size_t nr)
{
	struct profdb_frame frames[WORDS_MAX];
	int end = nr > 4 ? end_of(w[2]) : -EINVAL, event, owner, r = 0;

	if (end < 0)
		return base_fail(&m->err, end, "callpath: EVENT END COUNT FRAME … wanted");
	if (!m->paths)
		m->paths = profdb_callpaths_new();
	event = m->paths ? profdb_callpaths_event_add(m->paths, w[1], 1000000) : -ENOMEM;
	for (size_t i = 4; i < nr && r >= 0; i++)
		r = do_frame(m, w[i], &frames[i - 4]);
	if (r < 0 || event < 0)
		return r < 0 ? r : event;
	owner = m->owner ? owner_of(m) : (int)PROFDB_CALLPATH_NOBODY;
	if (m->owner && owner < 0)
		return owner;
	return profdb_callpaths_add_of(m->paths, (uint32_t)owner, (size_t)event,
				       (enum profdb_callpath_end)end, frames, nr - 4,
				       strtoull(w[3], NULL, 0));
}

/* ---- workloads ------------------------------------------------------------------------------- */

/* "\s" becomes a blank, in place. */
static char *with_blanks(char *text)
{
	char *to = text;

	for (char *from = text; *from; from++) {
		bool blank = from[0] == '\\' && from[1] == 's';

		*to++ = blank ? ' ' : *from;
		from += blank;
	}
	*to = '\0';
	return text;
}

/* KEY=VALUE */
static int set_key(struct profdb_workload *k, char *word)
{
	const struct {
		const char *key;
		const char **text;
	} texts[] = { { "comm", &k->comm },
		      { "exe", &k->exe },
		      { "cgroup", &k->cgroup },
		      { "label", &k->label },
		      { "thread", &k->thread } };
	char *value = strchr(word, '=');

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(texts[i].key, word) == 0) {
			*texts[i].text = with_blanks(value);
			return 0;
		}
	if (strcmp(word, "uid") == 0)
		k->uid = (uint32_t)strtoul(value, NULL, 0);
	else if (strcmp(word, "pid") == 0)
		k->pid = (int32_t)strtol(value, NULL, 0);
	else if (strcmp(word, "processes") == 0)
		k->processes = strtoull(value, NULL, 0);
	else
		return -EINVAL;
	return 0;
}

static int do_workload(struct mkdb *m, char **w, size_t nr)
{
	struct workload *n = &m->names[m->nr_names];
	int r = 0;

	if (nr < 2 || m->nr_names == NAMES_MAX)
		return base_fail(&m->err, -EINVAL, "workload: NAME [KEY=VALUE …] wanted");
	*n = (struct workload){ .k = { .uid = UINT32_MAX, .processes = 1 } };
	for (size_t i = 1; i < nr && r >= 0; i++) {
		/* It lives as long as we. */
		char *word = strdup(w[i]);

		if (i == 1)
			n->name = word;
		else
			r = set_key(&n->k, word);
		m->words[m->nr_words++] = word;
	}
	m->nr_names++;
	return r < 0 ? base_fail(&m->err, r, "workload: a key that it has not") : 0;
}

/* Processes count once for each flush in which a workload has samples. */
static int workload_of(struct mkdb *m, const char *name)
{
	for (size_t i = 0; i < m->nr_names; i++) {
		struct profdb_workload k = m->names[i].k;

		if (strcmp(m->names[i].name, name) != 0)
			continue;
		k.processes = m->names[i].put ? 0 : k.processes;
		m->names[i].put = true;
		return profdb_workloads_workload_add(m->workloads, &k);
	}
	return base_fail(&m->err, -ENOENT, "w: no workload '%s'", name);
}

static int do_w(struct mkdb *m, char **w)
{
	struct profdb_image_ref ref;
	uint64_t off;
	int workload, image, event, r = find_place(m, w[5], &ref, &off);

	if (r < 0)
		return r;
	if (!m->workloads)
		m->workloads = profdb_workloads_new();
	workload = m->workloads ? workload_of(m, w[1]) : -ENOMEM;
	if (workload < 0)
		return workload;
	image = profdb_workloads_image_add(m->workloads, &ref);
	event = image < 0 ? image : profdb_workloads_event_add(m->workloads, w[2], 1000000);
	return event < 0 ? event
			 : profdb_workloads_add(m->workloads, (uint32_t)workload, (uint32_t)image,
						off, (size_t)event,
						m->epoch / 60 + strtoll(w[3], NULL, 0),
						strtoull(w[4], NULL, 0));
}

static int do_note(struct mkdb *m, char **w, size_t nr)
{
	static const char *const kinds[] = { "start", "suspend", "clock", "idle" };
	struct profdb_note n = { .utc = m->epoch + strtoll(w[2], NULL, 0) };

	while (n.kind < PROFDB_NR_NOTE_KINDS && strcmp(kinds[n.kind], w[1]) != 0)
		n.kind++;
	n.n = nr > 3 ? strtoll(w[3], NULL, 0) : 0;
	n.of = nr > 4 ? strtoull(w[4], NULL, 0) : 0;
	if (!m->workloads)
		m->workloads = profdb_workloads_new();
	return m->workloads ? profdb_workloads_note(m->workloads, &n) : -ENOMEM;
}

static int do_symbol(struct mkdb *m, char **w)
{
	char *name = strdup(w[1]);

	if (!name || m->nr_symbols == SYMBOLS_MAX) {
		free(name);
		return -ENOMEM;
	}
	m->symbols[m->nr_symbols++] =
		(struct pseudoimg_symbol){ name, strtoull(w[2], NULL, 0), strtoull(w[3], NULL, 0) };
	return 0;
}

static int do_kernel(struct mkdb *m, char **w)
{
	struct base_id id = { 0 };
	struct base_file f = { .fd = -1 };
	int r = base_id_parse(&id, w[2], strlen(w[2]));

	if (r >= 0)
		r = base_file_create(&f, profdb_kernel_fd(m->db), w[1], 0644, &m->err);
	if (r >= 0)
		r = pseudoimg_write_symbols(m->symbols, m->nr_symbols, strtoull(w[3], NULL, 0),
					    EM_X86_64, &id, f.fd, &m->err);
	r = r < 0 ? r : base_file_commit(&f, &m->err);
	base_file_abort(&f);
	while (m->nr_symbols)
		free((char *)(uintptr_t)m->symbols[--m->nr_symbols].name);
	return r;
}

static int do_line(struct mkdb *m, char **w, size_t nr)
{
	struct profdb_profile *p = current(m);
	struct base_id id;
	int r;

	if (strcmp(w[0], "platform") == 0 && nr == 2)
		return profdb_lock(m->db, w[1], &m->err);
	if (strcmp(w[0], "epoch") == 0 && nr == 2)
		return do_epoch(m, w[1]);
	if (strcmp(w[0], "profile") == 0)
		return do_profile(m, w, nr);
	if (strcmp(w[0], "at") == 0)
		return do_at(m, w, nr);
	if (strcmp(w[0], "move") == 0 && nr == 6 && p)
		return do_move(m, w);
	if (strcmp(w[0], "values") == 0)
		return do_values(m, w, nr);
	if (strcmp(w[0], "value") == 0)
		return do_value(m, w, nr);
	if (strcmp(w[0], "callpath") == 0)
		return do_callpath(m, w, nr);
	if (strcmp(w[0], "owner") == 0 && nr == 2) {
		m->owner = m->words[m->nr_words++] = strdup(w[1]);
		return m->owner ? 0 : -ENOMEM;
	}
	if (strcmp(w[0], "workload") == 0)
		return do_workload(m, w, nr);
	if (strcmp(w[0], "w") == 0 && nr == 6)
		return do_w(m, w);
	if (strcmp(w[0], "note") == 0 && nr >= 3 && nr <= 5)
		return do_note(m, w, nr);
	if (strcmp(w[0], "context") == 0 && nr == 3 && m->nr_values) {
		r = base_id_parse(&id, w[2], strlen(w[2]));
		return r < 0 ? r
			     : profdb_values_image_add(m->values[m->nr_values - 1].v, &id, w[1]);
	}
	if (strcmp(w[0], "path") == 0 && nr == 2 && p)
		return profdb_profile_add_path(p, w[1]);
	if (strcmp(w[0], "word") == 0 && nr == 3 && p)
		return profdb_profile_set_word(p, w[1], w[2]);
	if (strcmp(w[0], "event") == 0 && (nr == 3 || nr == 4) && p) {
		r = profdb_profile_event_add(p, w[1], strtoull(w[2], NULL, 0));
		return r < 0 || nr == 3
			       ? r
			       : profdb_profile_event_set_enabled(p, (size_t)r, strtod(w[3], NULL));
	}
	if (strcmp(w[0], "id") == 0 && nr == 2 && p) {
		r = base_id_parse(&id, w[1], strlen(w[1]));
		if (r >= 0)
			profdb_profile_set_image(p, &id);
		return r;
	}
	if (strcmp(w[0], "symbol") == 0 && nr == 4)
		return do_symbol(m, w);
	if (strcmp(w[0], "kernel") == 0 && nr == 4)
		return do_kernel(m, w);
	if (strcmp(w[0], "flush") == 0)
		return do_flush(m);
	if (strcmp(w[0], "finish") == 0)
		return (r = do_flush(m)) < 0 ? r : profdb_epoch_finish(m->db, &m->err);
	return base_fail(&m->err, -EINVAL, "unknown or incomplete: '%s'", w[0]);
}

static size_t split(char *line, char **w)
{
	size_t nr = 0;

	for (char *word = strtok(line, " \t\n"); word && nr < WORDS_MAX;
	     word = strtok(NULL, " \t\n")) {
		if (*word == '#')
			break;
		w[nr++] = word;
	}
	return nr;
}

static int read_all(struct mkdb *m)
{
	char line[8192], *w[WORDS_MAX];
	int r = 0, number = 0;

	while (r >= 0 && fgets(line, sizeof(line), stdin)) {
		size_t nr = split(line, w);

		number++;
		if (nr)
			r = do_line(m, w, nr);
	}
	if (r < 0)
		fprintf(stderr, "mkdb: line %d: %s\n", number,
			m->err.code ? m->err.text : base_strerror(r));
	return r < 0 ? r : do_flush(m);
}

int main(int argc, char **argv)
{
	static struct mkdb m;
	int r;

	if (argc != 2) {
		fprintf(stderr, "usage: mkdb DATABASE < DESCRIPTION\n");
		return BASE_EXIT_USAGE;
	}
	m.path = argv[1];
	r = profdb_open(argv[1], true, &m.db, &m.err);
	if (r >= 0)
		r = read_all(&m);
	if (r < 0 && m.err.code)
		base_err_print(&m.err, "mkdb", stderr);
	profdb_close(m.db);
	return r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}
