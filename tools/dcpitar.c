/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpitar: epochs of a database as one file, with all that it takes to read them elsewhere. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "fleet.h"
#include "image.h"
#include "profdb.h"
#include "report.h"
#include "select.h"
#include "tarball.h"
#include "tools.h"

/* Totals of the files in each part of a database. */
struct tar_sum {
	uint64_t nr[PROFDB_NR_PARTS], bytes[PROFDB_NR_PARTS];
};

/* 0 or -EINVAL: something is in it that is no part of a database, told in @err. */
static int tar_sum(const struct tarball_list *list, struct tar_sum *out, struct base_err *err)
{
	struct profdb_place place;

	*out = (struct tar_sum){ 0 };
	for (size_t i = 0; i < list->nr; i++) {
		if (profdb_place_parse(list->v[i].path, &place) < 0)
			return base_fail(err, -EINVAL,
					 "the archive has '%s', which is no part of a database",
					 list->v[i].path);
		out->nr[place.part]++;
		out->bytes[place.part] += list->v[i].len;
	}
	return 0;
}

/* ---- an archive is checked and unpacked into a database -------------------------------------- */

/* The most that a file takes on disk beside its bytes. */
enum { BLOCK = 4096 };

static int check_space(struct profdb *db, const struct tarball_list *list, struct base_err *err)
{
	uint64_t need = list->bytes + list->nr * BLOCK, have;
	struct statvfs fs;

	if (fstatvfs(profdb_dir_fd(db), &fs) < 0)
		return 0;
	have = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (need <= have)
		return 0;
	return base_fail(err, -ENOSPC,
			 "the archive's files take %llu MiB, and '%s' has room for %llu",
			 (unsigned long long)((need + (1 << 20) - 1) >> 20), profdb_path(db),
			 (unsigned long long)(have >> 20));
}

struct target {
	struct profdb *db;
	int fd;
};

static int put(void *ctx, const void *data, size_t len)
{
	const struct target *t = ctx;

	profdb_lock_heartbeat(t->db);
	return base_write_all(t->fd, data, len);
}

/* 1: the database has it; it is read all the same, so that its sum is checked. */
static int unpack_file(struct tarball_reader *a, struct profdb *db, struct profdb_import *i,
		       const struct tarball_member *m, struct base_err *err)
{
	struct base_file f = { .fd = -1 };
	int r = profdb_import_file(i, m->path, m->sum, m->mode, &f, err);

	if (r == 1)
		return tarball_read(a, NULL, NULL, err) < 0 ? err->code : 1;
	if (r < 0)
		return r;
	r = tarball_read(a, put, &(struct target){ db, f.fd }, err);
	if (r >= 0)
		r = base_file_commit(&f, err);
	base_file_abort(&f);
	return r < 0 ? base_fail_errno(err, r, "cannot write '%s'", m->path) : 0;
}

static int unpack_files(struct tarball_reader *a, struct profdb *db, struct profdb_import *i,
			uint64_t *kept, struct base_err *err)
{
	const struct tarball_list *list = tarball_members(a);
	int r = 0;

	*kept = 0;
	for (size_t m = 0; r >= 0 && m < list->nr; m++) {
		r = unpack_file(a, db, i, &list->v[m], err);
		*kept += r == 1;
	}
	if (r >= 0)
		r = tarball_end(a, err);
	return r < 0 ? r : profdb_import_commit(i, err);
}

static int begin(struct profdb *db, const struct tarball_list *list, struct profdb_import **out,
		 struct base_err *err)
{
	const char **paths = calloc(list->nr + 1, sizeof(*paths));
	int r;

	if (!paths)
		return base_fail_errno(err, -ENOMEM, "cannot extract");
	for (size_t i = 0; i < list->nr; i++)
		paths[i] = list->v[i].path;
	r = profdb_import_begin(db, paths, list->nr, out, err);
	free(paths);
	return r;
}

static int unpack_into(struct tarball_reader *a, struct profdb *db, uint64_t *kept,
		       struct base_err *err)
{
	struct profdb_import *i = NULL;
	int lock, r = check_space(db, tarball_members(a), err);

	if (r >= 0)
		r = begin(db, tarball_members(a), &i, err);
	if (r < 0)
		return r;
	/* Pseudo-images come before the profiles that refer to them: none may be removed until
	 * then. */
	r = lock = profdb_dyn_lock(db, false, 10000, err);
	if (r >= 0)
		r = unpack_files(a, db, i, kept, err);
	profdb_import_end(i);
	if (lock >= 0)
		close(lock);
	return r;
}

static void say_watching(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "dcpitar: %s\n", text);
}

/* @sum: what the archive has; @kept: how many files the database had already. */
static int tar_unpack(const char *file, const char *path, struct tar_sum *sum, uint64_t *kept,
		      struct base_err *err)
{
	struct tarball_reader *a;
	struct profdb *db = NULL;
	int r = tarball_open(file, &a, err);

	if (r < 0)
		return r;
	r = tar_sum(tarball_members(a), sum, err);
	if (r >= 0)
		r = profdb_open(path, true, &db, err);
	if (r >= 0)
		profdb_set_watching(db, say_watching, NULL);
	if (r >= 0)
		r = unpack_into(a, db, kept, err);
	profdb_close(db);
	tarball_close(a);
	return r;
}

/* ---- the parts of a database that an archive needs are chosen and packed --------------------- */

/* Files that are packed on request only. */
struct tar_also {
	bool images, values;
};

/* An image that some profile is of. */
struct wanted {
	enum profdb_kind kind;
	struct base_id id;
	enum image_known known;
	char text[BASE_ID_TEXT_LEN]; /* the profile's word; "" for none */
	char **paths;		     /* NULL-terminated, one allocation */
};

struct pack {
	const char *prog;
	struct profdb *db;
	struct image_store *store;
	struct tarball_writer *w;
	struct base_map known; /* kind, identity, first path -> wanted */
	struct wanted *wanted;
	size_t nr_wanted, cap_wanted;
	const char *epoch, *platform; /* being packed */
	bool values;
	bool lacks; /* something that the database should have */
	bool met;   /* a platform that is meant */
};

static void warn(const struct pack *p, const struct base_err *err)
{
	fprintf(stderr, "%s: warning: ", p->prog);
	report_print_clean(stderr, err->text);
	fputc('\n', stderr);
}

static void on_bad(void *ctx, const char *file, const struct base_err *err)
{
	struct pack *p = ctx;

	(void)file;
	warn(p, err);
	p->lacks = true;
}

/* ---- profiles -------------------------------------------------------------------------------- */

static char **copy_paths(const struct profdb_profile *profile)
{
	size_t nr = 0, len = 0;
	char **list, *text;

	for (; profdb_profile_path(profile, nr); nr++)
		len += strlen(profdb_profile_path(profile, nr)) + 1;
	list = malloc((nr + 1) * sizeof(*list) + len);
	if (!list)
		return NULL;
	text = (char *)(list + nr + 1);
	for (size_t i = 0; i < nr; i++) {
		list[i] = strcpy(text, profdb_profile_path(profile, i));
		text += strlen(text) + 1;
	}
	list[nr] = NULL;
	return list;
}

/* Each image once, of however many profiles. */
static int want(struct pack *p, const struct profdb_profile *profile)
{
	const char *first = profdb_profile_path(profile, 0);
	const char *text = profdb_profile_word(profile, "text");
	struct wanted new = { .kind = profdb_profile_kind(profile),
			      .id = *profdb_profile_image(profile),
			      .known = image_known_by(profdb_profile_word(profile, "identity")) };
	char key[BASE_ID_TEXT_LEN + 300], id[BASE_ID_TEXT_LEN];
	int r;

	if (new.kind == PROFDB_NAMED)
		return 0;
	snprintf(new.text, sizeof(new.text), "%s", text ? text : "");
	snprintf(key, sizeof(key), "%d %s %.280s", (int)new.kind, base_id_text(&new.id, id),
		 first ? first : "");
	if (base_map_get(&p->known, key, strlen(key)))
		return 0;
	r = base_grow(&p->wanted, &p->cap_wanted, p->nr_wanted + 1, sizeof(*p->wanted));
	if (r < 0 || !(new.paths = copy_paths(profile)))
		return -ENOMEM;
	p->wanted[p->nr_wanted++] = new;
	return base_map_set(&p->known, key, strlen(key), p);
}

static int take_file(struct pack *p, const char *file, mode_t mode, const struct base_buf *bytes,
		     const struct profdb_profile *header)
{
	struct base_err err = { 0 };
	char path[TARBALL_PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/%s/%s", p->epoch, p->platform, file);
	r = tarball_add_data(p->w, path, mode, time(NULL), bytes->data, bytes->len, &err);
	if (r == -EINVAL) {
		on_bad(p, file, &err);
		return 0;
	}
	return r < 0 ? r : want(p, header);
}

static int take_profile(void *ctx, const char *file, const struct base_buf *bytes,
			const struct profdb_profile *profile)
{
	return take_file(ctx, file, 0644, bytes, profile);
}

static int take_values(void *ctx, const char *file, const struct base_buf *bytes,
		       const struct profdb_profile *header)
{
	return take_file(ctx, file, 0600, bytes, header);
}

/* ---- files about all images ------------------------------------------------------------------ */

static int want_image(struct pack *p, const struct profdb_image_ref *i)
{
	struct profdb_profile *profile = profdb_profile_new(i->kind, &i->id, i->path);
	int r = profile ? want(p, profile) : -ENOMEM;

	profdb_profile_free(profile);
	return r;
}

/* Images that are on call paths alone have no profile in the pack. */
static int want_callpaths(struct pack *p, const struct base_buf *bytes, struct base_err *err)
{
	const struct profdb_image_ref *i;
	struct profdb_callpaths *c;
	int r = profdb_callpaths_parse(bytes->data, bytes->len, &c, err);

	for (size_t n = 0; r >= 0 && (i = profdb_callpaths_image(c, n)); n++)
		r = want_image(p, i);
	profdb_callpaths_free(c);
	return r;
}

static int want_workloads(struct pack *p, const struct base_buf *bytes, struct base_err *err)
{
	const struct profdb_image_ref *i;
	struct profdb_workloads *w;
	int r = profdb_workloads_parse(bytes->data, bytes->len, &w, err);

	for (size_t n = 0; r >= 0 && (i = profdb_workloads_image(w, n)); n++)
		r = want_image(p, i);
	profdb_workloads_free(w);
	return r;
}

/* The kinds of files of which an epoch and platform has one. */
static const struct whole {
	const char *name, *what;
	int (*bytes)(struct profdb *db, const char *epoch, const char *platform,
		     struct base_buf *out, struct base_err *err);
	int (*want)(struct pack *p, const struct base_buf *bytes, struct base_err *err);
} wholes[] = {
	{ "callpaths", "call paths", profdb_callpaths_bytes, want_callpaths },
	{ "workloads", "workloads", profdb_workloads_bytes, want_workloads },
};

static int add_whole(struct pack *p, const struct whole *kind, const struct base_buf *bytes,
		     struct base_err *err)
{
	struct base_err why = { 0 };
	char path[TARBALL_PATH_MAX];
	int r = kind->want(p, bytes, &why);

	snprintf(path, sizeof(path), "%s/%s/%s", p->epoch, p->platform, kind->name);
	if (r < 0)
		return base_fail(err, r, "cannot read %s '%s': %s", kind->what, path,
				 why.code ? why.text : base_strerror(r));
	return tarball_add_data(p->w, path, 0644, time(NULL), bytes->data, bytes->len, err);
}

static int pack_whole(struct pack *p, const struct whole *kind, struct base_err *err)
{
	struct base_buf bytes = { 0 };
	struct base_err why = { 0 };
	int r = kind->bytes(p->db, p->epoch, p->platform, &bytes, &why);

	if (r >= 0)
		r = add_whole(p, kind, &bytes, &why);
	base_buf_release(&bytes);
	if (r >= 0 || r == -ENOENT)
		return 0;
	if (r == -ENOMEM || r == -ENOSPC || r == -EIO)
		return base_fail(err, r, "%s", why.text[0] ? why.text : base_strerror(r));
	on_bad(p, NULL, &why);
	return 0;
}

static int pack_platform(struct pack *p, const char *epoch, const char *platform,
			 struct base_err *err)
{
	struct base_err why = { 0 };
	int r;

	if (profdb_epoch_open(p->db, epoch, platform)) {
		base_fail(&why, -EBUSY, "'%s/%s' is not finished: packed as of its last flush",
			  epoch, platform);
		warn(p, &why);
	}
	p->epoch = epoch;
	p->platform = platform;
	p->met = true;
	r = profdb_walk_files(p->db, epoch, platform, false, take_profile, on_bad, p, err);
	if (r >= 0 && p->values)
		r = profdb_walk_files(p->db, epoch, platform, true, take_values, on_bad, p, err);
	for (size_t i = 0; r >= 0 && i < sizeof(wholes) / sizeof(wholes[0]); i++)
		r = pack_whole(p, &wholes[i], err);
	return r;
}

/* *@seen collects the platforms' names for the hint of an error. */
static int pack_epoch(struct pack *p, const char *epoch, const char *only, struct base_buf *seen,
		      struct base_err *err)
{
	char **platforms = profdb_platforms(p->db, epoch, err);
	int r = platforms ? 0 : -EIO;

	for (size_t i = 0; r >= 0 && platforms[i]; i++) {
		r = analysis_platform_seen(seen, platforms[i]);
		if (r >= 0 && (!only || profdb_platform_has(only, platforms[i])))
			r = pack_platform(p, epoch, platforms[i], err);
	}
	free(platforms);
	return r;
}

static int pack_epochs(struct pack *p, const struct select *sel, struct base_err *err)
{
	struct base_buf seen = { 0 };
	char **epochs;
	int r = report_epochs(sel, p->db, &epochs, err);

	for (size_t i = 0; r >= 0 && epochs[i]; i++)
		r = pack_epoch(p, epochs[i], sel->platform, &seen, err);
	free(epochs);
	if (r >= 0 && sel->platform && !p->met)
		r = analysis_no_platform(sel->platform, &seen, err);
	base_buf_release(&seen);
	if (r >= 0 && !tarball_added(p->w)->nr)
		r = base_fail(err, -ENOENT, "there are no profiles to pack");
	return r < 0 ? r : 0;
}

/* ---- images ---------------------------------------------------------------------------------- */

static int add_once(struct pack *p, const char *path, int dir_fd, const char *file,
		    struct base_err *err)
{
	return tarball_has(p->w, path) ? 0 : tarball_add_file(p->w, path, dir_fd, file, err);
}

/* A kernel's bytes stand beside its symbols. */
static int add_beside(struct pack *p, const char *elf, const char *end, struct base_err *err)
{
	size_t len = strlen(elf);
	char name[256], path[300];

	if (len < 5 || strcmp(elf + len - 4, ".elf") != 0)
		return 0;
	snprintf(name, sizeof(name), "%.*s%s", (int)(len - 4), elf, end);
	snprintf(path, sizeof(path), "kernel/%s", name);
	if (faccessat(profdb_kernel_fd(p->db), name, F_OK, 0) < 0)
		return 0;
	return add_once(p, path, profdb_kernel_fd(p->db), name, err);
}

static int add_stored(struct pack *p, const struct wanted *w, const char *name,
		      struct base_err *err)
{
	bool dyn = w->kind == PROFDB_DYNAMIC;
	int r, fd = dyn ? profdb_dyn_fd(p->db) : profdb_kernel_fd(p->db);
	char path[300];

	snprintf(path, sizeof(path), "%s/%s", dyn ? "dyn" : "kernel", name);
	r = add_once(p, path, fd, name, err);
	if (r >= 0 && !dyn)
		r = add_beside(p, name, ".code", err);
	if (r >= 0 && !dyn)
		r = add_beside(p, name, ".text", err);
	return r;
}

static int add_ordinary(struct pack *p, const struct wanted *w, const char *file,
			struct base_err *err)
{
	char path[128];

	profdb_image_path(&w->id, path);
	return add_once(p, path, AT_FDCWD, file, err);
}

static enum image_kind image_kind_of(enum profdb_kind kind)
{
	return kind == PROFDB_KERNEL	? IMAGE_KERNEL
	       : kind == PROFDB_DYNAMIC ? IMAGE_DYNAMIC
	       : kind == PROFDB_VDSO	? IMAGE_VDSO
					: IMAGE_FILE;
}

/* A file that cannot be read is reported: the rest is worth packing. */
static int pack_image(struct pack *p, const struct wanted *w, struct base_err *err)
{
	const struct image_query q = { .kind = image_kind_of(w->kind),
				       .id = w->id,
				       .known = w->known,
				       .text = w->text,
				       .paths = (const char *const *)w->paths };
	struct base_err why = { 0 };
	struct image *img;
	int r;

	if (image_open(p->store, &q, &img, &why) < 0) {
		warn(p, &why);
		p->lacks |= w->kind != PROFDB_FILE;
		return 0;
	}
	r = w->kind == PROFDB_FILE ? add_ordinary(p, w, image_path(img), &why)
				   : add_stored(p, w, image_path(img), &why);
	image_close(img);
	if (r == -ENOMEM || r == -ENOSPC || r == -EIO)
		return base_fail(err, r, "%s", why.text);
	if (r < 0)
		on_bad(p, NULL, &why);
	return 0;
}

static int pack_costs(struct pack *p, const struct wanted *w, struct base_err *err)
{
	char **files = profdb_costs_files(p->db, &w->id), path[300];
	int r = files ? 0 : base_fail_errno(err, -ENOMEM, "cannot pack costs");

	for (size_t i = 0; r >= 0 && files[i]; i++) {
		snprintf(path, sizeof(path), "costs/%s", files[i]);
		r = add_once(p, path, profdb_dir_fd(p->db), path, err);
	}
	free(files);
	return r;
}

static int pack_images(struct pack *p, bool images, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < p->nr_wanted; i++) {
		const struct wanted *w = &p->wanted[i];

		/* Without an identity nothing tells that a copy is the image. */
		if (w->kind != PROFDB_FILE || (images && w->id.len > 1 && w->known == IMAGE_BY_ID))
			r = pack_image(p, w, err);
		if (r >= 0)
			r = pack_costs(p, w, err);
	}
	return r;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int pack_all(struct pack *p, const struct select *sel, bool images, struct base_err *err)
{
	char *dir;
	int r = pack_epochs(p, sel, err);

	if (r >= 0)
		r = image_store_open(profdb_dyn_fd(p->db), profdb_kernel_fd(p->db), &p->store);
	if (r >= 0 && asprintf(&dir, "%s/" PROFDB_IMAGES, profdb_path(p->db)) >= 0) {
		r = image_store_images(p->store, dir);
		free(dir);
	}
	return r < 0 ? r : pack_images(p, images, err);
}

static void release(struct pack *p)
{
	for (size_t i = 0; i < p->nr_wanted; i++)
		free(p->wanted[i].paths);
	free(p->wanted);
	base_map_release(&p->known);
	image_store_close(p->store);
	tarball_discard(p->w);
	profdb_close(p->db);
}

/*
 * Pack the files that @sel selects into the archive @file. Missing or unreadable ones are reported
 * on stderr; if one is a part of the database itself, 0 becomes 1. @sum: totals of the packed
 * files.
 */
static int tar_pack(const char *prog, const struct select *sel, const struct tar_also *also,
		    const char *file, struct tar_sum *sum, struct base_err *err)
{
	struct pack p = { .prog = prog, .values = also->values };
	int r = profdb_open(sel->db, false, &p.db, err), lock = -1;

	if (r >= 0)
		r = tarball_create(file, &p.w, err);
	/* No pseudo-image goes meanwhile; who may not write the database cannot see to that. */
	if (r >= 0)
		lock = profdb_dyn_lock(p.db, false, 10000, NULL);
	if (r >= 0)
		r = pack_all(&p, sel, also->images, err);
	if (lock >= 0)
		close(lock);
	if (r >= 0)
		r = tarball_finish(p.w, err);
	if (r >= 0)
		r = tar_sum(tarball_added(p.w), sum, err);
	release(&p);
	return r < 0 ? base_fail_errno(err, r, "cannot pack '%s'", sel->db) : p.lacks;
}

/* ---- what is asked for ----------------------------------------------------------------------- */

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
