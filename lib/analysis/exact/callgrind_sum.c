/* SPDX-License-Identifier: BSD-2-Clause */
/* Dumps of callgrind added up to exact counts of images. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "callgrind.h"
#include "insn.h"

/* A file that callgrind names, or a pseudo-image. */
struct callgrind_object {
	char *path;
	struct image *img;     /* NULL: it cannot be read */
	struct exact_image *x; /* once something in it ran */
	bool foreign;	       /* a part of valgrind, no counts of it are kept */
	uint32_t pid;	       /* of a pseudo-image */
};

struct callgrind_sum {
	struct exact *e;
	struct base_map by_path;
	struct callgrind_object **objects;
	size_t nr_objects, cap_objects;
	struct callgrind_object **dynamic; /* pseudo-images, owned by these */
	size_t nr_dynamic, cap_dynamic;
	/* Of the dump being read: */
	struct callgrind_head head;
	const struct callgrind_maps *maps;
	struct exact_image *process; /* what is in no image */
	const char *last_name;	     /* as the parser has it: it is asked for again and again */
	struct callgrind_object *last_object; /* NULL: "???" */
};

#define DUMP_MAX     ((size_t)1 << 31)
#define DYNAMIC_PATH "[dynamic]"

/* ---- images mapped --------------------------------------------------------------------------- */

int callgrind_maps_add(struct callgrind_maps *m, const char *path, uint64_t bias)
{
	int r = base_grow(&m->v, &m->cap, m->nr + 1, sizeof(*m->v));

	if (r < 0)
		return r;
	m->v[m->nr] = (struct callgrind_map){ strdup(path), bias };
	return m->v[m->nr++].path ? 0 : -ENOMEM;
}

int callgrind_maps_copy(struct callgrind_maps *to, const struct callgrind_maps *from)
{
	int r = 0;

	for (size_t i = 0; i < from->nr && r >= 0; i++)
		r = callgrind_maps_add(to, from->v[i].path, from->v[i].bias);
	return r;
}

void callgrind_maps_release(struct callgrind_maps *m)
{
	for (size_t i = 0; i < m->nr; i++)
		free(m->v[i].path);
	free(m->v);
	*m = (struct callgrind_maps){ 0 };
}

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

/* As profiles have it: the build-id, or what stands for it. */
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

/* An instruction: in an image, or (of a process) at an address; neither: not to be counted. */
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

/* What stood there at different times cannot be told apart. */
static struct callgrind_object *jit_at(struct callgrind_sum *s, uint64_t addr, uint64_t *off)
{
	for (size_t i = 0; i < s->nr_dynamic; i++) {
		const struct image *img = s->dynamic[i]->img;

		if (s->dynamic[i]->pid == s->head.pid && image_off(img, addr, off) == 0)
			return image_reused(img, addr) ? NULL : s->dynamic[i];
	}
	return NULL;
}

/* The one image over @addr; of several nobody knows which it was, so it is none. */
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

/* Of an image that is gone the addresses are kept; where it lay may not be known either. */
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

/* The image asked for last is gone, and nobody knows where it lay. */
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

int callgrind_sum_add(struct callgrind_sum *s, const char *path, const struct callgrind_maps *maps,
		      struct base_err *err)
{
	const struct callgrind_sink sink = { s, add_count, add_edge };
	struct base_buf dump = { 0 };
	int r = base_file_read(AT_FDCWD, path, DUMP_MAX, &dump, err);

	s->maps = maps;
	s->process = NULL;
	s->last_name = NULL;
	if (r >= 0)
		r = callgrind_parse(dump.data, dump.len, path, &sink, &s->head, err);
	base_buf_release(&dump);
	return r;
}

/* ---- the whole --------------------------------------------------------------------------------
 */

int callgrind_sum_open(struct exact *e, const char *dyn, uint64_t since, struct callgrind_sum **out,
		       struct base_err *err)
{
	struct callgrind_sum *s = calloc(1, sizeof(*s));
	int r = s ? 0 : -ENOMEM;

	if (r >= 0)
		s->e = e;
	if (r >= 0 && dyn)
		r = dynamic_scan(s, dyn, since);
	if (r < 0) {
		callgrind_sum_close(s);
		return base_fail_errno(err, r, "cannot read pseudo-images in '%s'", dyn ? dyn : "");
	}
	*out = s;
	return 0;
}

const char *callgrind_sum_creator(const struct callgrind_sum *s)
{
	return *s->head.creator ? s->head.creator : "callgrind";
}

void callgrind_sum_close(struct callgrind_sum *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_objects; i++)
		object_free(s->objects[i]);
	for (size_t i = 0; i < s->nr_dynamic; i++)
		object_free(s->dynamic[i]);
	free(s->objects);
	free(s->dynamic);
	base_map_release(&s->by_path);
	free(s);
}

/* ---- after the last dump ------------------------------------------------------------------- */

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

/* Rounds of "rep movs" and the like, and of locked instructions that were tried again. */
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

/* Those in which something ran. */
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

int callgrind_sum_end(struct callgrind_sum *s, struct base_err *err)
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
