/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dumps and the log that callgrind writes: parsed, and the dumps added up to exact counts of
 * images.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "callgrind.h"
#include "insn.h"

/* A line of a dump or of the log that is being parsed. */
struct callgrind_text {
	const char *at, *end;
};

#define UNKNOWN_OBJECT "???"

struct names {
	struct base_map by_id;
	char **owned;
	size_t nr, cap;
};

struct dump {
	const struct callgrind_sink *sink;
	struct names objects;
	const char *object, *to_object; /* object of the following lines; object of the next call's
					   target, or NULL */
	uint64_t last;			/* base address of "+3" */
	bool has_last, has_instr, has_events, has_total;
	bool far;      /* the next jump leaves its function */
	bool call;     /* the next line has the source of the call */
	bool has_edge; /* the next line has the source of an edge */
	uint64_t edge_count, edge_to;
	uint64_t sum, total;
};

/* Does the text begin with @word? Then @word is skipped. */
static bool callgrind_starts(struct callgrind_text *t, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(t->end - t->at) < len || memcmp(t->at, word, len) != 0)
		return false;
	t->at += len;
	return true;
}

/* Reads a number of at least one digit. 0 or -DCPI_EFORMAT. */
static int callgrind_number(struct callgrind_text *t, unsigned int base, uint64_t *out)
{
	const char *from = t->at;
	uint64_t v = 0;

	for (; t->at < t->end; t->at++) {
		char c = *t->at;
		unsigned int d = c >= '0' && c <= '9'	? (unsigned int)(c - '0')
				 : c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10
							: 99;

		if (d >= base)
			break;
		if (base_mul_overflow(v, base, &v) || base_add_overflow(v, d, &v))
			return -DCPI_EFORMAT;
	}
	*out = v;
	return t->at > from ? 0 : -DCPI_EFORMAT;
}

/* Reads a decimal number of 31 bits. */
static int callgrind_pid(struct callgrind_text *t, uint32_t *out)
{
	uint64_t v;

	if (callgrind_number(t, 10, &v) < 0 || v > INT32_MAX)
		return -DCPI_EFORMAT;
	*out = (uint32_t)v;
	return 0;
}

/* ---- a dump ---------------------------------------------------------------------------------- */

static void skip_blanks(struct callgrind_text *l)
{
	while (l->at < l->end && *l->at == ' ')
		l->at++;
}

/* Reads a decimal number, or a hexadecimal one behind 0x. */
static int number(struct callgrind_text *l, uint64_t *out)
{
	return callgrind_number(l, callgrind_starts(l, "0x") ? 16 : 10, out);
}

/* Reads a position: "0x12", or "+3", "-3" and "*" relative to the line before. */
static int position(const struct dump *d, struct callgrind_text *l, uint64_t *out)
{
	uint64_t v = 0;
	char sign = l->at < l->end ? *l->at : 0;
	int r;

	if (sign == '*' || sign == '+' || sign == '-') {
		l->at++;
		if (!d->has_last || (sign != '*' && number(l, &v) < 0))
			return -DCPI_EFORMAT;
		*out = sign == '-' ? d->last - v : d->last + v;
		return 0;
	}
	r = number(l, &v);
	*out = v;
	return r;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int name_keep(struct names *n, const struct callgrind_text *l, char **out)
{
	int r = base_grow(&n->owned, &n->cap, n->nr + 1, sizeof(*n->owned));

	if (r < 0)
		return r;
	*out = strndup(l->at, (size_t)(l->end - l->at));
	n->owned[n->nr] = *out;
	if (!*out)
		return -ENOMEM;
	n->nr++;
	return 0;
}

/* Reads a name: "(3) name" defines 3, "(3)" refers to it; other text is the name itself. */
static int name(struct names *n, struct callgrind_text *l, const char **out)
{
	uint64_t id;
	char *kept;
	int r;

	if (l->at == l->end)
		return -DCPI_EFORMAT;
	if (!callgrind_starts(l, "(")) {
		r = name_keep(n, l, &kept);
		*out = r < 0 ? NULL : kept;
		return r;
	}
	if (number(l, &id) < 0 || !callgrind_starts(l, ")"))
		return -DCPI_EFORMAT;
	skip_blanks(l);
	if (l->at < l->end) {
		r = name_keep(n, l, &kept);
		if (r >= 0)
			r = base_map_set(&n->by_id, &id, sizeof(id), kept);
		if (r < 0)
			return r;
	}
	*out = base_map_get(&n->by_id, &id, sizeof(id));
	return *out ? 0 : -DCPI_EFORMAT;
}

static void names_release(struct names *n)
{
	for (size_t i = 0; i < n->nr; i++)
		free(n->owned[i]);
	free(n->owned);
	base_map_release(&n->by_id);
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Reads "calls=COUNT TARGET", "jump=COUNT TARGET" or "jcnd=COUNT/EXECUTED TARGET"; the source is
 * in the next line. */
static int edge(struct dump *d, struct callgrind_text *l, bool call)
{
	uint64_t executed;

	if (d->has_edge || number(l, &d->edge_count) < 0)
		return -DCPI_EFORMAT;
	if (callgrind_starts(l, "/") && number(l, &executed) < 0)
		return -DCPI_EFORMAT;
	skip_blanks(l);
	if (position(d, l, &d->edge_to) < 0)
		return -DCPI_EFORMAT;
	d->has_edge = true;
	d->call = call;
	return 0;
}

static int put_edge(struct dump *d, uint64_t from)
{
	const char *to = d->call && d->to_object ? d->to_object : d->object;
	int r;

	if (!d->call && d->far)
		to = NULL;
	r = d->sink->edge(d->sink->ctx, d->object, from, to, d->edge_to, d->edge_count);
	if (d->call)
		d->to_object = NULL;
	d->far = d->has_edge = false;
	return r;
}

/* Reads "POSITION COST …". Only the first event, instructions, is used. */
static int cost(struct dump *d, struct callgrind_text *l)
{
	uint64_t at, n = 0;

	if (!d->has_instr || !d->has_events || !d->object || position(d, l, &at) < 0)
		return -DCPI_EFORMAT;
	d->last = at;
	d->has_last = true;
	skip_blanks(l);
	if (l->at < l->end && number(l, &n) < 0)
		return -DCPI_EFORMAT;
	if (d->has_edge)
		return put_edge(d, at);
	if (base_add_overflow(d->sum, n, &d->sum))
		return -DCPI_EOVERFLOW;
	return n ? d->sink->count(d->sink->ctx, d->object, at, n) : 0;
}

static int total(struct dump *d, struct callgrind_text *l)
{
	skip_blanks(l);
	if (d->has_total || number(l, &d->total) < 0)
		return -DCPI_EFORMAT;
	d->has_total = true;
	return 0;
}

static bool blank(const struct callgrind_text *l)
{
	return l->at == l->end || *l->at == '#';
}

static bool is_position(const struct callgrind_text *l)
{
	return strchr("0123456789+-*", *l->at) != NULL;
}

static int parse_creator(struct callgrind_text *l, struct callgrind_head *head)
{
	size_t len;

	skip_blanks(l);
	len = (size_t)(l->end - l->at);
	if (!len || len > 63 || memchr(l->at, ' ', len))
		return -DCPI_EFORMAT;
	memcpy(head->creator, l->at, len);
	head->creator[len] = '\0';
	return 0;
}

static int parse_line(struct dump *d, struct callgrind_text *l, struct callgrind_head *head)
{
	if (blank(l))
		return 0;
	if (memchr(l->at, '\0', (size_t)(l->end - l->at)))
		return -DCPI_EFORMAT;
	if (is_position(l))
		return cost(d, l);
	if (d->has_edge)
		return -DCPI_EFORMAT;
	if (callgrind_starts(l, "calls="))
		return edge(d, l, true);
	if (callgrind_starts(l, "jump=") || callgrind_starts(l, "jcnd="))
		return edge(d, l, false);
	if (callgrind_starts(l, "ob="))
		return name(&d->objects, l, &d->object);
	if (callgrind_starts(l, "cob="))
		return name(&d->objects, l, &d->to_object);
	if (callgrind_starts(l, "jfn="))
		d->far = true;
	else if (callgrind_starts(l, "positions:")) /* the only position is the instruction's */
		d->has_instr = l->end - l->at == 6 && callgrind_starts(l, " instr");
	else if (callgrind_starts(l, "events:"))
		d->has_events = callgrind_starts(l, " Ir") && (l->at == l->end || *l->at == ' ');
	else if (callgrind_starts(l, "totals:"))
		return total(d, l);
	else if (callgrind_starts(l, "creator:"))
		return parse_creator(l, head);
	else if (callgrind_starts(l, "pid:")) {
		skip_blanks(l);
		return callgrind_pid(l, &head->pid);
	}
	return 0;
}

static int parse_lines(struct dump *d, const char *at, const char *end, struct callgrind_head *head,
		       size_t *nr)
{
	int r = 0;

	for (*nr = 0; at < end && r >= 0; ++*nr) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct callgrind_text l = { at, newline ? newline : end };

		if (!newline)
			return -DCPI_ETRUNCATED;
		r = parse_line(d, &l, head);
		at = newline + 1;
	}
	return r;
}

int callgrind_parse(const void *data, size_t len, const char *name_shown,
		    const struct callgrind_sink *sink, struct callgrind_head *head,
		    struct base_err *err)
{
	struct dump d = { .sink = sink, .object = UNKNOWN_OBJECT };
	size_t nr;
	int r = parse_lines(&d, data, (const char *)data + len, head, &nr);

	names_release(&d.objects);
	if (r == -DCPI_EFORMAT)
		return base_fail_errno(err, r, "cannot read dump '%s': line %zu", name_shown, nr);
	if (r >= 0 && (!d.has_total || d.has_edge))
		r = -DCPI_ETRUNCATED;
	if (r < 0)
		return base_fail_errno(err, r, "cannot read dump '%s'", name_shown);
	if (d.sum != d.total)
		return base_fail(err, -DCPI_EFORMAT,
				 "cannot read dump '%s': its counts do not add up to its total",
				 name_shown);
	return 0;
}

/* ---- the log --------------------------------------------------------------------------------- */

/*
 * Lines are "--PID-- text" (from -v) and "==PID== text". The wording is that of valgrind 3.19 to
 * 3.24; lines with other wording are irrelevant.
 */

static void rest(struct callgrind_line *out, enum callgrind_line_kind kind,
		 const struct callgrind_text *t)
{
	out->kind = kind;
	out->path = t->at;
	out->path_len = (size_t)(t->end - t->at);
}

/* Reads "svma 0x00000022d0, avma 0x000010a2d0"; later versions may append text. */
static void log_place(struct callgrind_line *out, struct callgrind_text *t)
{
	if (callgrind_number(t, 16, &out->svma) < 0 || !callgrind_starts(t, ", avma 0x") ||
	    callgrind_number(t, 16, &out->avma) < 0)
		return;
	out->kind = CALLGRIND_PLACE;
}

static void verbose(struct callgrind_line *out, struct callgrind_text *t)
{
	uint64_t nr;

	if (callgrind_starts(t, "Reading syms from "))
		rest(out, CALLGRIND_IMAGE, t);
	else if (callgrind_starts(t, "   svma 0x"))
		log_place(out, t);
	else if (callgrind_starts(t, "Start dumping at BB ") && callgrind_number(t, 10, &nr) == 0 &&
		 callgrind_starts(t, " (Prg.Term.)"))
		out->kind = CALLGRIND_LAST;
	else if (callgrind_starts(t, "Dump to "))
		rest(out, CALLGRIND_DUMP, t);
	else if (callgrind_starts(t, "Dumping done."))
		out->kind = CALLGRIND_DUMPED;
}

static void message(struct callgrind_line *out, struct callgrind_text *t)
{
	struct callgrind_text whole = *t;

	if (callgrind_starts(t, "Parent PID: ")) {
		if (callgrind_pid(t, &out->parent) == 0)
			out->kind = CALLGRIND_BEGIN;
	} else if (callgrind_starts(t, "Process terminating with ") ||
		   callgrind_starts(t, "valgrind: ")) {
		rest(out, CALLGRIND_ALARM, &whole);
	}
}

void callgrind_log_line(const char *line, size_t len, struct callgrind_line *out)
{
	struct callgrind_text t = { line, line + len };
	bool dashes;

	*out = (struct callgrind_line){ 0 };
	if (callgrind_starts(&t, "vex ")) { /* "vex amd64->IR: unhandled instruction bytes: …" */
		t.at = line;
		rest(out, CALLGRIND_ALARM, &t);
		return;
	}
	dashes = callgrind_starts(&t, "--");
	if ((!dashes && !callgrind_starts(&t, "==")) || callgrind_pid(&t, &out->pid) < 0 ||
	    !callgrind_starts(&t, dashes ? "-- " : "== "))
		return;
	if (dashes)
		verbose(out, &t);
	else
		message(out, &t);
}

/* An object of a dump: a file that callgrind names, or a pseudo-image. */
struct callgrind_object {
	char *path;
	struct image *img;     /* NULL: it cannot be read */
	struct exact_image *x; /* NULL until something in it runs */
	bool foreign;	       /* a part of valgrind, whose counts are dropped */
	uint32_t pid;	       /* pid of a pseudo-image */
};

struct callgrind_sum {
	struct exact *e;
	struct base_map by_path;
	struct callgrind_object **objects;
	size_t nr_objects, cap_objects;
	struct callgrind_object **dynamic; /* pseudo-images, owned by these */
	size_t nr_dynamic, cap_dynamic;
	/* State of the dump that is being read: */
	struct callgrind_head head;
	const struct callgrind_maps *maps;
	struct exact_image *process;	      /* code outside of all images */
	const char *last_name;		      /* the parser's last name, cached as names repeat */
	struct callgrind_object *last_object; /* NULL: "???" */
};

#define DUMP_MAX     ((size_t)1 << 31)
#define DYNAMIC_PATH "[dynamic]"

/* ---- objects --------------------------------------------------------------------------------- */

static void object_free(struct callgrind_object *o)
{
	if (!o)
		return;
	image_close(o->img);
	free(o->path);
	free(o);
}

static bool is_foreign(const char *path)
{
	return strstr(path, "/valgrind/vgpreload_") || strstr(path, "/valgrind/callgrind-");
}

static int object_new(const char *path, enum image_kind kind, struct callgrind_object **out)
{
	struct callgrind_object *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->path = strdup(path);
	o->foreign = is_foreign(path);
	r = o->path ? image_open_path(path, kind, &o->img, NULL) : -ENOMEM;
	if (r == -ENOMEM) {
		object_free(o);
		return r;
	}
	*out = o;
	return 0;
}

static int object_keep(struct callgrind_sum *s, struct callgrind_object *o)
{
	int r = base_grow(&s->objects, &s->cap_objects, s->nr_objects + 1,
			  sizeof(struct callgrind_object *));

	if (r >= 0)
		r = base_map_set(&s->by_path, o->path, strlen(o->path), o);
	if (r < 0) {
		object_free(o);
		return r;
	}
	s->objects[s->nr_objects++] = o;
	return 0;
}

static int object_at_path(struct callgrind_sum *s, const char *path, struct callgrind_object **out)
{
	int r = 0;

	*out = base_map_get(&s->by_path, path, strlen(path));
	if (!*out && (r = object_new(path, IMAGE_FILE, out)) >= 0)
		r = object_keep(s, *out);
	return r;
}

/* The identity as in profiles: the build-id, or its substitute. */
static int file_identity(const struct callgrind_object *o, struct base_id *id)
{
	struct base_buf head = { 0 };
	struct stat st;
	int fd = -1, r;

	*id = *image_id(o->img);
	if (id->len)
		return 0;

	r = base_buf_extend(&head, BASE_ID_HEAD_LEN, NULL);
	if (r >= 0)
		fd = base_regular_open(AT_FDCWD, o->path, &st);
	if (fd >= 0) {
		ssize_t n = pread(fd, head.data, head.len, 0);

		if (n >= 0)
			base_id_of_head(id, (uint64_t)st.st_size, head.data, (size_t)n);
	}
	if (fd >= 0)
		close(fd);
	base_buf_release(&head);
	return r;
}

static int object_exact(struct callgrind_sum *s, struct callgrind_object *o)
{
	const struct image_process *process = image_process(o->img);
	struct base_id id;
	int r;

	if (o->x)
		return 0;
	if (process)
		return exact_image_add(s->e, EXACT_DYNAMIC, image_id(o->img), 0, process->facility,
				       &o->x);
	r = file_identity(o, &id);
	return r < 0 ? r : exact_image_add(s->e, EXACT_FILE, &id, 0, o->path, &o->x);
}

/* ---- pseudo-images --------------------------------------------------------------------------- */

static bool is_ours(const struct callgrind_object *o, uint64_t since, const char *host)
{
	const struct image_process *p = o->img ? image_process(o->img) : NULL;

	return p && p->pid && (!since || (p->created_s >= since && strcmp(p->host, host) == 0));
}

static int dynamic_add(struct callgrind_sum *s, const char *path, uint64_t since, const char *host)
{
	struct callgrind_object *o;
	int r = object_new(path, IMAGE_DYNAMIC, &o);

	if (r < 0)
		return r;
	if (!is_ours(o, since, host)) {
		object_free(o);
		return 0;
	}
	o->pid = image_process(o->img)->pid;
	r = base_grow(&s->dynamic, &s->cap_dynamic, s->nr_dynamic + 1,
		      sizeof(struct callgrind_object *));
	if (r < 0)
		object_free(o);
	else
		s->dynamic[s->nr_dynamic++] = o;
	return r;
}

static int dynamic_scan(struct callgrind_sum *s, const char *folder, uint64_t since)
{
	DIR *dir = opendir(folder);
	char host[256] = "";
	struct dirent *e;
	int r = dir ? 0 : -errno;

	gethostname(host, sizeof(host) - 1);
	while (r >= 0 && (e = readdir(dir))) {
		size_t len = strlen(e->d_name);
		char *path;

		if (len < 4 || strcmp(e->d_name + len - 4, ".dyn") != 0)
			continue;
		if (asprintf(&path, "%s/%s", folder, e->d_name) < 0)
			r = -ENOMEM;
		else {
			r = dynamic_add(s, path, since, host);
			free(path);
		}
	}
	if (dir)
		closedir(dir);
	return r;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* The place of an instruction: in an image, or at an address of a process; neither: it is not
 * counted. */
struct place {
	struct exact_image *x;
	uint64_t off;
};

static int place_in_process(struct callgrind_sum *s, uint64_t addr, struct place *out)
{
	const struct base_id none = { 0 };
	int r = 0;

	if (!s->process)
		r = exact_image_add(s->e, EXACT_PROCESS, &none, s->head.pid, DYNAMIC_PATH,
				    &s->process);
	*out = (struct place){ s->process, addr };
	return r;
}

static int place_in_object(struct callgrind_sum *s, struct callgrind_object *o, uint64_t off,
			   struct place *out)
{
	int r = o->foreign ? 0 : object_exact(s, o);

	*out = (struct place){ o->foreign ? NULL : o->x, off };
	return r;
}

/* Pseudo-images that held the address at different times cannot be distinguished. */
static struct callgrind_object *jit_at(struct callgrind_sum *s, uint64_t addr, uint64_t *off)
{
	for (size_t i = 0; i < s->nr_dynamic; i++) {
		const struct image *img = s->dynamic[i]->img;

		if (s->dynamic[i]->pid == s->head.pid && image_off(img, addr, off) == 0)
			return image_reused(img, addr) ? NULL : s->dynamic[i];
	}
	return NULL;
}

/* The only image over @addr. If there are several, the right one is not known, and the result is
 * NULL. */
static struct callgrind_object *mapped_at(struct callgrind_sum *s, uint64_t addr, uint64_t *off,
					  int *r)
{
	struct callgrind_object *found = NULL, *o;
	uint64_t at;

	for (size_t i = 0; i < s->maps->nr && *r >= 0; i++) {
		*r = object_at_path(s, s->maps->v[i].path, &o);
		if (*r < 0 || !o->img || o == found ||
		    image_off(o->img, addr - s->maps->v[i].bias, &at) < 0)
			continue;
		if (found)
			return NULL;
		found = o;
		*off = at;
	}
	return found ? found : jit_at(s, addr, off);
}

static int place_at_address(struct callgrind_sum *s, uint64_t addr, struct place *out)
{
	uint64_t off = 0;
	int r = 0;
	struct callgrind_object *o = mapped_at(s, addr, &off, &r);

	if (r < 0)
		return r;
	return o ? place_in_object(s, o, off, out) : place_in_process(s, addr, out);
}

static const struct callgrind_map *map_of(const struct callgrind_sum *s, const char *path)
{
	for (size_t i = 0; i < s->maps->nr; i++)
		if (strcmp(s->maps->v[i].path, path) == 0)
			return &s->maps->v[i];
	return NULL;
}

/* Counts of an image without a file are kept by address; its load address may not be known
 * either. */
static int place_of_gone(struct callgrind_sum *s, const char *path, uint64_t addr,
			 struct place *out)
{
	const struct callgrind_map *map = map_of(s, path);

	return place_in_process(s, map ? addr + map->bias : addr, out);
}

static int place(struct callgrind_sum *s, const char *object, uint64_t addr, struct place *out)
{
	uint64_t off;
	int r = 0;

	if (object != s->last_name) {
		s->last_object = NULL;
		if (strcmp(object, "???") != 0)
			r = object_at_path(s, object, &s->last_object);
		s->last_name = r < 0 ? NULL : object;
	}
	if (r < 0)
		return r;
	if (!s->last_object)
		return place_at_address(s, addr, out);
	if (!s->last_object->img || image_off(s->last_object->img, addr, &off) < 0)
		return place_of_gone(s, s->last_object->path, addr, out);
	return place_in_object(s, s->last_object, off, out);
}

/* ---- dumps ----------------------------------------------------------------------------------- */

static int add_count(void *ctx, const char *object, uint64_t addr, uint64_t count)
{
	struct place at;
	int r = place(ctx, object, addr, &at);

	return r < 0 || !at.x ? r : exact_count_add(at.x, at.off, count);
}

/* Is the last image without a file and without a known load address? */
static bool is_lost(const struct callgrind_sum *s)
{
	const struct callgrind_object *o = s->last_object;

	return o && !o->img && !map_of(s, o->path);
}

static int add_edge(void *ctx, const char *object, uint64_t from, const char *to_object,
		    uint64_t to, uint64_t count)
{
	struct place a, b = { 0 };
	int r = place(ctx, object, from, &a);

	if (r >= 0 && a.x && to_object)
		r = place(ctx, to_object, to, &b);
	if (object != to_object && is_lost(ctx))
		b.x = NULL;
	if (r < 0 || !a.x)
		return r;
	return exact_edge_add(a.x, a.off, a.x == b.x ? b.off : EXACT_OUTSIDE, count);
}

static int add_dump(struct callgrind_sum *s, const struct callgrind_dump *d, struct base_err *err)
{
	const struct callgrind_sink sink = { s, add_count, add_edge };
	struct base_buf dump = { 0 };
	int r = base_file_read(AT_FDCWD, d->path, DUMP_MAX, &dump, err);

	s->maps = &d->maps;
	s->process = NULL;
	s->last_name = NULL;
	if (r >= 0)
		r = callgrind_parse(dump.data, dump.len, d->path, &sink, &s->head, err);
	base_buf_release(&dump);
	return r;
}

/* ---- after the last dump --------------------------------------------------------------------- */

/* Does the instruction branch to itself, as written? */
static bool branches_to_itself(struct insn_disasm *d, const struct image *img, uint64_t off)
{
	struct insn_line insn;
	uint8_t code[16];
	uint64_t vaddr;
	size_t len;

	if (!d || image_vaddr(img, off, &vaddr) < 0)
		return false;
	len = image_bytes(img, vaddr, code, sizeof(code));
	if (!len)
		return false;
	insn_disasm_one(d, code, len, vaddr, &insn);
	return insn.has_target && insn.target == vaddr;
}

static struct exact_count *count_at(struct exact_image *x, uint64_t off)
{
	size_t lo = 0, hi = x->nr_counts;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (x->counts[mid].off < off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->nr_counts && x->counts[lo].off == off ? &x->counts[lo] : NULL;
}

/* Joins the rounds of "rep movs" and similar instructions, and of locked instructions that were
 * retried. */
static void join_rounds(struct exact_image *x, struct insn_disasm *d, const struct image *img)
{
	size_t nr = 0;

	for (size_t i = 0; i < x->nr_edges; i++) {
		const struct exact_edge edge = x->edges[i];
		struct exact_count *c = edge.from == edge.to ? count_at(x, edge.from) : NULL;

		if (c && c->count > edge.count && !branches_to_itself(d, img, edge.from))
			c->count -= edge.count;
		else
			x->edges[nr++] = edge;
	}
	x->nr_edges = nr;
}

static int add_procedure(struct exact_image *x, struct image *img,
			 const struct image_symbol *symbol)
{
	struct exact_procedure p = { .len = symbol->len, .name = (char *)symbol->name };

	if (!*symbol->name || image_off(img, symbol->vaddr, &p.off) < 0)
		return 0;
	p.hashed = image_symbol_hashes(img, symbol, &p.hashes) == 0;
	return exact_procedure_add(x, &p);
}

/* Adds the procedures that ran. */
static int add_procedures(struct exact_image *x, struct image *img)
{
	const struct image_symbol *last = NULL, *symbol;
	uint64_t vaddr;
	int r = 0;

	for (size_t i = 0; i < x->nr_counts && r >= 0; i++) {
		if (image_vaddr(img, x->counts[i].off, &vaddr) < 0)
			continue;
		symbol = image_symbol_at(img, vaddr);
		if (symbol && symbol != last)
			r = add_procedure(x, img, symbol);
		last = symbol;
	}
	return r;
}

static int end_object(const struct callgrind_object *o)
{
	struct insn_disasm *d = NULL;
	int r;

	if (!o->x)
		return 0;
	r = insn_disasm_open(image_machine(o->img), &d, NULL);
	if (r == -ENOMEM)
		return r;
	join_rounds(o->x, d, o->img);
	insn_disasm_close(d);
	return add_procedures(o->x, o->img);
}

/*
 * The rounds of a repeated string instruction, which callgrind counts one by one, become one
 * execution, and each image gets the procedures that ran.
 */
static int finish(struct callgrind_sum *s, struct base_err *err)
{
	int r = exact_sort(s->e);

	for (size_t i = 0; i < s->nr_objects && r >= 0; i++)
		r = end_object(s->objects[i]);
	for (size_t i = 0; i < s->nr_dynamic && r >= 0; i++)
		r = end_object(s->dynamic[i]);
	for (size_t i = 0; i < s->e->nr_images && r >= 0; i++)
		if (s->e->images[i]->kind == EXACT_PROCESS)
			join_rounds(s->e->images[i], NULL, NULL);
	if (r >= 0)
		r = exact_sort(s->e);
	return r < 0 ? base_fail_errno(err, r, "cannot sum counts") : 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int add_dumps(struct callgrind_sum *s, const struct callgrind_dump *dumps, size_t nr,
		     struct base_err *err)
{
	int r = nr ? 0 : base_fail(err, -ENOENT, "nothing was counted");

	for (size_t i = 0; i < nr && r >= 0; i++)
		r = add_dump(s, &dumps[i], err);
	return r < 0 ? r : finish(s, err);
}

static void release(struct callgrind_sum *s)
{
	for (size_t i = 0; i < s->nr_objects; i++)
		object_free(s->objects[i]);
	for (size_t i = 0; i < s->nr_dynamic; i++)
		object_free(s->dynamic[i]);
	free(s->objects);
	free(s->dynamic);
	base_map_release(&s->by_path);
}

int callgrind_sum(struct exact *e, const char *dyn, uint64_t since,
		  const struct callgrind_dump *dumps, size_t nr, struct callgrind_head *head,
		  struct base_err *err)
{
	struct callgrind_sum s = { .e = e };
	int r = dyn ? dynamic_scan(&s, dyn, since) : 0;

	if (r < 0)
		base_fail_errno(err, r, "cannot read pseudo-images in '%s'", dyn);
	else
		r = add_dumps(&s, dumps, nr, err);
	*head = s.head;
	if (!*head->creator)
		snprintf(head->creator, sizeof(head->creator), "callgrind");
	release(&s);
	return r;
}
