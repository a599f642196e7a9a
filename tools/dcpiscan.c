/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpiscan: where programs and libraries are, by identity. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fts.h>

#include "report.h"
#include "tools.h"

static const char *output;
static struct base_opt_list maps;
static bool progress, want_json;

static const struct base_opt options[] = {
	{ "o", BASE_OPT_STRING, &output, "MAP", "Write the map here (default: print it).", 0, 0 },
	{ "m", BASE_OPT_LIST, &maps, "MAP",
	  "Begin with what this map has, as far as the files are still there. Repeatable.", 0, 0 },
	{ "pr", BASE_OPT_FLAG, &progress, NULL,
	  "Say once a second how far it is (on a terminal it does anyway).", 0, 0 },
	{ "json", BASE_OPT_FLAG, &want_json, NULL, "Print JSON with the same rows (dcpijson(5)).",
	  0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpiscan",
	.summary = "map identities of programs and libraries to where they are",
	.operands = "[DIR|FILE …]",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiscan -o box.map /mnt/box",
			  "Another machine's file system, mounted here." },
			{ "dcpiprof -m box.map", "Its samples, with the names of its procedures." },
			{ "dcpiscan -o box.map -m box.map /mnt/box/opt",
			  "Bring a map up to date with what was installed since." },
			{ NULL, NULL } },
	.min_operands = 0,
	.max_operands = -1,
};

struct scan {
	struct image_map map;
	uint64_t nr_files, nr_unread;
	uint64_t next_ns; /* when to say how far it is */
};

static size_t nr_images(const struct scan *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->map.nr; i++)
		nr += !s->map.v[i].second;
	return nr;
}

static void tell(struct scan *s, const char *path)
{
	uint64_t now = progress ? base_now_ns() : 0;

	if (now < s->next_ns || !progress)
		return;
	s->next_ns = now + 1000000000;
	fprintf(stderr, "%s: %llu files, %zu with code; at ", cmd.name,
		(unsigned long long)s->nr_files, nr_images(s));
	report_print_clean(stderr, path);
	fputc('\n', stderr);
}

/* Most files are no ELF, and libelf need not be asked. */
static bool is_elf(int dir_fd, const char *path)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char magic[4];
	bool it_is;

	if (fd < 0)
		return errno != ENOENT; /* the next open of it reports the error */
	it_is = read(fd, magic, sizeof(magic)) == sizeof(magic) && !memcmp(magic, "\177ELF", 4);
	close(fd);
	return it_is;
}

static void warn(struct scan *s, const char *text)
{
	s->nr_unread++;
	fprintf(stderr, "%s: warning: %s\n", cmd.name, text);
}

/* Add the image under each identity that profiles may have of it. */
static int add(struct scan *s, const struct base_id *id, const char *path, const char *at)
{
	struct base_id second;
	int r = image_map_add(&s->map, id, path);

	if (r < 0 || image_identify_second(at, &second) < 0)
		return r;
	r = image_map_add(&s->map, &second, path);
	if (r >= 0)
		s->map.v[s->map.nr - 1].second = true;
	return r;
}

/* @path: as it is stored; @at: how it is opened from here. */
static int scan_file(struct scan *s, const char *path, const char *at)
{
	struct base_err err = { 0 };
	struct base_id id;
	int r;

	s->nr_files++;
	tell(s, path);
	if (!is_elf(AT_FDCWD, at))
		return 0;
	r = image_identify(AT_FDCWD, at, &id, &err);
	if (r == -ENOMEM)
		return r;
	if (r < 0) {
		/* Object files and the like are none, and no news. */
		if (r != -ENOEXEC)
			warn(s, err.text);
		return 0;
	}
	r = add(s, &id, path, at);
	if (r != -EINVAL)
		return r;
	base_fail(&err, r, "'%s' is left out: a map cannot hold such a name", path);
	warn(s, err.text);
	return 0;
}

static void unread(struct scan *s, const FTSENT *e)
{
	struct base_err err = { 0 };

	base_fail_errno(&err, -e->fts_errno, "cannot read '%s'", e->fts_path);
	warn(s, err.text);
}

/* The kernel's file systems have no images, but files without end. */
static bool is_pseudo(const FTSENT *e)
{
	return !strcmp(e->fts_path, "/proc") || !strcmp(e->fts_path, "/sys") ||
	       !strcmp(e->fts_path, "/dev");
}

static int scan_tree(struct scan *s, FTS *tree)
{
	FTSENT *e;
	int r = 0;

	while (r >= 0 && (errno = 0, e = fts_read(tree))) {
		if (e->fts_info == FTS_F)
			r = scan_file(s, e->fts_path, e->fts_accpath);
		else if (e->fts_info == FTS_D && is_pseudo(e))
			fts_set(tree, e, FTS_SKIP);
		else if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR ||
			 (e->fts_info == FTS_NS && e->fts_level > 0))
			unread(s, e);
	}
	return r < 0 ? r : -errno;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Links inside are not followed: what they lead to is found at its own place. */
static int scan(struct scan *s, char *operand, struct base_err *err)
{
	char *path = realpath(operand, NULL), *paths[] = { path, NULL };
	FTS *tree;
	int r;

	if (!path)
		return base_fail_errno(err, -errno, "cannot scan '%s'", operand);
	tree = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	r = tree ? scan_tree(s, tree) : -errno;
	if (tree)
		fts_close(tree);
	free(path);
	return r < 0 ? base_fail_errno(err, r, "cannot scan '%s'", operand) : 0;
}

/* An entry whose file has ended, or has become another file, is not taken over. */
static int begin_with(struct scan *s, const char *file, struct base_err *err)
{
	struct image_map old = { 0 };
	struct base_id id;
	int r = image_map_read(&old, file, err);

	for (size_t i = 0; i < old.nr && r >= 0; i++) {
		const char *path = old.v[i].path;

		if (image_identify(AT_FDCWD, path, &id, NULL) >= 0)
			r = add(s, &id, path, path);
		tell(s, path);
	}
	image_map_release(&old);
	return r < 0 ? base_fail_errno(err, r, "cannot begin with map '%s'", file) : 0;
}

static int print_json(struct scan *s)
{
	struct json_object *root = json_object_new_object(), *images = json_object_new_array();
	char id[BASE_ID_TEXT_LEN];

	for (size_t i = 0; i < s->map.nr; i++) {
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "identity",
				       json_object_new_string(base_id_text(&s->map.v[i].id, id)));
		json_object_object_add(o, "path", report_json_text(s->map.v[i].path));
		json_object_array_add(images, o);
	}
	json_object_object_add(root, "schema", json_object_new_string("dcpiscan/1"));
	json_object_object_add(root, "files", json_object_new_uint64(s->nr_files));
	json_object_object_add(root, "unread", json_object_new_uint64(s->nr_unread));
	json_object_object_add(root, "images", images);
	return report_json_put(root, stdout);
}

static int put(struct scan *s, struct base_err *err)
{
	struct base_buf text = { 0 };
	int r = image_map_format(&s->map, &text);

	if (r >= 0 && output)
		r = base_output_write(output, 0644, text.data, text.len, err);
	if (r >= 0 && want_json)
		r = print_json(s);
	else if (r >= 0 && !output)
		r = fwrite(text.data, 1, text.len, stdout) == text.len ? 0 : -EIO;
	base_buf_release(&text);
	return r < 0 ? base_fail_errno(err, r, "cannot write the map") : 0;
}

static int run(int nr, char **what, struct base_err *err)
{
	struct scan s = { 0 };
	int r = 0;

	for (size_t i = 0; i < maps.nr && r >= 0; i++)
		r = begin_with(&s, maps.items[i], err);
	for (int i = 0; i < nr && r >= 0; i++)
		r = scan(&s, what[i], err);
	if (r >= 0)
		r = put(&s, err);
	if (r >= 0 && output && !want_json)
		fprintf(stderr, "%s: %llu files, %zu with code\n", cmd.name,
			(unsigned long long)s.nr_files, nr_images(&s));
	image_map_release(&s.map);
	return r;
}

static int check(int nr, struct base_err *err)
{
	progress |= isatty(STDERR_FILENO) != 0;
	if (nr || maps.nr)
		return 0;
	base_fail(err, -DCPI_EUSAGE, "nothing to scan");
	base_hint(err, "name folders, such as /usr /opt");
	return -DCPI_EUSAGE;
}

static int dcpiscan_main(int argc, char **argv)
{
	return report_command(&cmd, check, run, argc, argv);
}

const struct tool dcpiscan_tool = { .cmd = &cmd, .main = dcpiscan_main };
