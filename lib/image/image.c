/* SPDX-License-Identifier: BSD-2-Clause */
/* An image is opened and closed here: which file it is, by path, by build-id, in the database; and
 * what the note of a pseudo-image says. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "image_internal.h"

/* ---- the note of a pseudo-image -------------------------------------------------------------- */

static int add_run(struct image_note *note, const struct wire_run *run)
{
	uint64_t end;
	int r;

	if (base_add_overflow(run->vaddr, run->len, &end) ||
	    base_add_overflow(run->img_off, run->len, &end))
		return -DCPI_EFORMAT;
	r = base_grow(&note->runs, &note->cap_runs, note->nr_runs + 1, sizeof(*note->runs));
	if (r < 0)
		return r;
	note->runs[note->nr_runs++] =
		(struct image_run){ .img_off = run->img_off, .vaddr = run->vaddr, .len = run->len };
	return 0;
}

static int add_place(struct image_note *note, const struct wire_place *place)
{
	int r = base_grow(&note->places, &note->cap_places, note->nr_places + 1,
			  sizeof(*note->places));

	if (r >= 0)
		note->places[note->nr_places++] =
			(struct image_run){ .vaddr = place->vaddr, .len = place->len };
	return r;
}

static int add_replaces(struct image_note *note, const struct wire_replaces *rec)
{
	int r = base_grow(&note->replaces, &note->cap_replaces, note->nr_replaces + 1,
			  sizeof(*note->replaces));
	struct wire_replaces *copy;

	if (r < 0)
		return r;
	copy = malloc(rec->head.len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, rec, rec->head.len);
	note->replaces[note->nr_replaces++] = copy;
	return 0;
}

/* Three strings of given lengths become three terminated ones in one allocation. */
static int set_process(struct image_note *note, const struct wire_image *rec)
{
	const char *from = (const char *)(rec + 1);
	const size_t lens[] = { rec->facility_len, rec->host_len, rec->exe_len };
	const char **to[] = { &note->process.facility, &note->process.host, &note->process.exe };
	char *at;

	if (note->strings)
		return 0;
	at = note->strings = calloc(1, lens[0] + lens[1] + lens[2] + 3);
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < 3; i++) {
		memcpy(at, from, lens[i]);
		*to[i] = at;
		at += lens[i] + 1;
		from += lens[i];
	}
	note->process.pid = rec->pid;
	note->process.uid = rec->uid;
	note->process.start_time_ns = rec->start_time_ns;
	note->process.created_s = rec->created_s;
	note->process.nr_processes++;
	return 0;
}

static uint32_t nr_instances(const struct wire_instance *rec)
{
	return rec->head.flags & WIRE_INSTANCE_MORE ? rec->pid : 1;
}

static int add_record(struct image_note *note, const struct wire_head *rec)
{
	if (wire_check(rec) < 0)
		return -DCPI_EFORMAT;
	switch (rec->type) {
	case WIRE_IMAGE:
		return set_process(note, (const struct wire_image *)rec);
	case WIRE_RUN:
		return add_run(note, (const struct wire_run *)rec);
	case WIRE_PLACE:
		return add_place(note, (const struct wire_place *)rec);
	case WIRE_INSTANCE:
		note->process.nr_processes += nr_instances((const struct wire_instance *)rec);
		return 0;
	case WIRE_REPLACES:
		return add_replaces(note, (const struct wire_replaces *)rec);
	default:
		return 0;
	}
}

static int read_stream(struct image_note *note, const void *data, size_t len)
{
	const struct wire_head *rec;
	size_t pos = 0;
	uint64_t *aligned = malloc(len + 8);
	int r = 0;

	if (!aligned)
		return -ENOMEM;
	memcpy(aligned, data, len);
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		wire_turn(aligned, len);
	while (r >= 0 && (rec = wire_next(aligned, len, &pos)))
		r = add_record(note, rec);
	if (r >= 0 && pos != len)
		r = -DCPI_EFORMAT;
	free(aligned);
	return r;
}

static int by_img_off(const void *a, const void *b)
{
	const struct image_run *x = a, *y = b;

	return (x->img_off > y->img_off) - (x->img_off < y->img_off);
}

/* The ELF notes of the section; ours are read. */
static int read_notes(struct image_note *note, Elf_Data *data)
{
	size_t off = 0, name_off, desc_off;
	GElf_Nhdr nh;
	bool found = false;
	int r = 0;

	while (r >= 0 && (off = gelf_getnote(data, off, &nh, &name_off, &desc_off)) > 0) {
		const char *bytes = data->d_buf;

		if (nh.n_namesz != 5 || memcmp(bytes + name_off, "DCPI", 5) != 0)
			continue;
		found = true;
		r = read_stream(note, bytes + desc_off, nh.n_descsz);
	}
	return r < 0 ? r : found ? 0 : -DCPI_EFORMAT;
}

static Elf_Data *expanded(Elf_Scn *scn)
{
	Elf_Data *data = elf_compress(scn, 0, 0) < 0 ? NULL : elf_getdata(scn, NULL);

	if (data)
		data->d_type = ELF_T_NHDR;
	return data;
}

/* No note at all is no error. */
static int note_read(struct image_note *note, const struct image_elf *f, struct base_err *err)
{
	GElf_Shdr sh;
	Elf_Scn *scn = image_elf_section(f, IMAGE_NOTE_SECTION, &sh);
	Elf_Data *data;
	int r;

	if (!scn)
		return 0;
	/* PROGBITS with the bytes of a note: libelf must see it as one to find its parts. */
	data = sh.sh_flags & SHF_COMPRESSED ? expanded(scn)
					    : elf_getdata_rawchunk(f->elf, (int64_t)sh.sh_offset,
								   sh.sh_size, ELF_T_NHDR);
	r = data ? read_notes(note, data) : -DCPI_EFORMAT;
	if (r < 0)
		return base_fail_errno(err, r, "cannot read the note of pseudo-image '%s'",
				       f->path);
	if (note->nr_runs)
		qsort(note->runs, note->nr_runs, sizeof(*note->runs), by_img_off);
	return 0;
}

/* No note at all is no error. */
static void note_release(struct image_note *note)
{
	free(note->strings);
	free(note->runs);
	free(note->places);
	for (size_t i = 0; i < note->nr_replaces; i++)
		free(note->replaces[i]);
	free(note->replaces);
	memset(note, 0, sizeof(*note));
}

/* The note's entry for that earlier build-id, or NULL. */
static const struct wire_replaces *note_replaces(const struct image_note *note,
						 const struct base_id *id)
{
	for (size_t i = 0; i < note->nr_replaces; i++)
		if (id->len == sizeof(note->replaces[i]->id) &&
		    !memcmp(id->bytes, note->replaces[i]->id, id->len))
			return note->replaces[i];
	return NULL;
}

/* ---- image ----------------------------------------------------------------------------------- */

static int read_segments(struct image *img)
{
	size_t nr = 0;
	GElf_Phdr ph;
	int r;

	if (elf_getphdrnum(img->main.elf, &nr) < 0)
		return -DCPI_EFORMAT;
	for (size_t i = 0; i < nr; i++) {
		if (!gelf_getphdr(img->main.elf, (int)i, &ph))
			return -DCPI_EFORMAT;
		if (ph.p_type != PT_LOAD)
			continue;
		r = base_grow(&img->segments.v, &img->segments.cap, img->segments.nr + 1,
			      sizeof(*img->segments.v));
		if (r < 0)
			return r;
		img->segments.v[img->segments.nr++] = (struct image_segment){
			.file_off = ph.p_offset,
			.vaddr = ph.p_vaddr,
			.len = ph.p_filesz,
			.exec = ph.p_flags & PF_X,
		};
	}
	return 0;
}

/* Takes over @f, also on failure. */
static int image_new(struct image_elf *f, enum image_kind kind, struct image **out,
		     struct base_err *err)
{
	struct image *img = calloc(1, sizeof(*img));
	int r;

	if (!img) {
		image_elf_close(f);
		return base_fail_errno(err, -ENOMEM, "cannot open image");
	}
	img->kind = kind;
	img->main = *f;
	img->debug.fd = img->mini.fd = img->dwarf.alt_file.fd = -1;
	img->lookup.index_fds[0] = img->lookup.index_fds[1] = -1;
	r = read_segments(img);
	if (r < 0)
		base_fail_errno(err, r, "cannot read image '%s'", img->main.path);
	else if (kind == IMAGE_DYNAMIC)
		r = note_read(&img->note, &img->main, err);
	if (r < 0) {
		image_close(img);
		return r;
	}
	*out = img;
	return 0;
}

int image_open_path(const char *path, enum image_kind kind, struct image **out,
		    struct base_err *err)
{
	struct image_elf f;
	int r = image_elf_open(&f, AT_FDCWD, path, err);

	return r < 0 ? r : image_new(&f, kind, out, err);
}

static void release_splits(struct image *img)
{
	void *split;

	for (size_t i = 0; base_map_next(&img->splits.by_off, &i, &split);)
		free(split);
	base_map_release(&img->splits.by_off);
	base_map_release(&img->splits.by_rest);
}

static void free_unpacked(struct image *img)
{
	for (size_t i = 0; i < img->unpacked.nr; i++)
		free(img->unpacked.v[i]);
	free(img->unpacked.v);
}

void image_close(struct image *img)
{
	if (!img)
		return;
	image_close(img->code);
	release_splits(img);
	image_lines_release(img);
	dwarf_end(img->dwarf.own);
	dwarf_end(img->dwarf.alt);
	free(img->code_ranges.v);
	image_pointers_free(img->pointers);
	image_symbols_release(&img->lookup.symbols);
	image_symbols_release(&img->lookup.given_up);
	note_release(&img->note);
	free(img->segments.v);
	image_elf_close(&img->mini);
	image_elf_close(&img->debug);
	image_elf_close(&img->dwarf.alt_file);
	image_elf_close(&img->main);
	free_unpacked(img);
	free(img);
}

/* ---- the place of a file --------------------------------------------------------------------- */

/* The place of our own mapping at @at. */
static int listed(const void *at, uint64_t where[3])
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uint64_t start = 0;
	char *line = NULL;
	size_t cap = 0;
	int r = -ENOENT;

	while (maps && r < 0 && getline(&line, &cap, maps) > 0)
		if (sscanf(line, "%" SCNx64 "-%*x %*s %*x %" SCNx64 ":%" SCNx64 " %" SCNu64, &start,
			   &where[0], &where[1], &where[2]) == 4 &&
		    start == (uintptr_t)at)
			r = 0;
	free(line);
	if (maps)
		fclose(maps);
	return r;
}

/*
 * Device (major, minor) and inode of an open file, as the kernel tells them of its mappings . 0 or
 * -errno. On file systems with several devices, and on stacked ones, stat gives other numbers.
 */
static int image_place(int fd, uint64_t where[3])
{
	void *at = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, fd, 0);
	int r = at == MAP_FAILED ? -errno : listed(at, where);
	struct stat st;

	if (at != MAP_FAILED)
		munmap(at, 1);
	if (r == 0 || fstat(fd, &st) < 0)
		return r;
	where[0] = major(st.st_dev);
	where[1] = minor(st.st_dev);
	where[2] = st.st_ino;
	return 0;
}

/* ---- the database's own images --------------------------------------------------------------- */

struct store_entry {
	struct base_id id;
	char *name;
};

struct store_dir {
	int fd;
	bool indexed;
	bool young;	      /* the folder changed so shortly before that it may change unseen */
	struct timespec seen; /* its time of change before it was indexed */
	struct store_entry *v;
	size_t nr, cap;
};

struct image_store {
	struct store_dir dyn, kernel;
	int index_fds[2]; /* the database's, which is not ours; the user's */
	char *images;	  /* a folder with .build-id/xx/yyy in it, or NULL */
};

int image_store_open(int dyn_fd, int kernel_fd, struct image_store **out)
{
	struct image_store *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->dyn.fd = dyn_fd;
	s->kernel.fd = kernel_fd;
	s->index_fds[0] = s->index_fds[1] = -1;
	*out = s;
	return 0;
}

static void dir_forget(struct store_dir *d)
{
	while (d->nr)
		free(d->v[--d->nr].name);
	d->indexed = false;
}

static void dir_release(struct store_dir *d)
{
	dir_forget(d);
	free(d->v);
}

void image_store_close(struct image_store *store)
{
	if (!store)
		return;
	dir_release(&store->dyn);
	dir_release(&store->kernel);
	if (store->index_fds[1] >= 0)
		close(store->index_fds[1]);
	free(store->images);
	free(store);
}

int image_store_images(struct image_store *store, const char *dir)
{
	char *copy = strdup(dir);

	if (!copy)
		return -ENOMEM;
	free(store->images);
	store->images = copy;
	return 0;
}

/* Made where it is missing; negative: it cannot be. */
static int user_cache(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char path[PATH_MAX];
	int n = -1;

	if (cache && *cache == '/')
		n = snprintf(path, sizeof(path), "%s", cache);
	else if (home && *home == '/')
		n = snprintf(path, sizeof(path), "%s/.cache", home);
	if (n < 0 || (size_t)n + sizeof("/dcpi") > sizeof(path))
		return -1;
	mkdir(path, 0700);
	strcpy(path + n, "/dcpi");
	mkdir(path, 0700);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

void image_store_index(struct image_store *store, int dir_fd)
{
	store->index_fds[0] = dir_fd;
	if (store->index_fds[1] < 0 && (dir_fd < 0 || faccessat(dir_fd, ".", W_OK, 0) < 0))
		store->index_fds[1] = user_cache();
}

static int dir_add(struct store_dir *d, const struct base_id *id, const char *name)
{
	int r;

	if (!id->len)
		return 0;
	r = base_grow(&d->v, &d->cap, d->nr + 1, sizeof(*d->v));
	if (r < 0)
		return r;
	d->v[d->nr].id = *id;
	d->v[d->nr].name = strdup(name);
	if (!d->v[d->nr].name)
		return -ENOMEM;
	d->nr++;
	return 0;
}

/* A file that cannot be read is not in the index: whoever asks for it by name hears why. */
static int dir_add_file(struct store_dir *d, const char *name)
{
	struct image_note note = { 0 };
	struct image_elf f;
	int r;

	if (image_elf_open(&f, d->fd, name, NULL) < 0)
		return 0;
	r = dir_add(d, &f.id, name);
	if (note_read(&note, &f, NULL) >= 0)
		for (size_t i = 0; i < note.nr_replaces && r >= 0; i++) {
			struct base_id id;

			image_replaces_id(note.replaces[i], &id);
			r = dir_add(d, &id, name);
		}
	note_release(&note);
	image_elf_close(&f);
	return r;
}

static int64_t ns_since(const struct timespec *from, const struct timespec *to)
{
	return (int64_t)(to->tv_sec - from->tv_sec) * 1000000000 + to->tv_nsec - from->tv_nsec;
}

/* Before its entries are read: a file system's time has steps of up to 10 ms. */
static void dir_look(struct store_dir *d)
{
	enum { STEP_NS = 20000000 };
	struct timespec now = { 0 };
	struct stat st;

	if (fstat(d->fd, &st) < 0)
		return;
	clock_gettime(CLOCK_REALTIME, &now);
	d->seen = st.st_ctim;
	d->young = ns_since(&d->seen, &now) < STEP_NS;
}

/* Forgets what a folder had that has changed since; false: it has not. */
static bool dir_changed(struct store_dir *d)
{
	struct stat st;

	if (d->fd < 0 || fstat(d->fd, &st) < 0 ||
	    (!d->young && ns_since(&d->seen, &st.st_ctim) == 0))
		return false;
	dir_forget(d);
	return true;
}

static int dir_index(struct store_dir *d)
{
	struct dirent *entry;
	struct base_id id;
	DIR *dir;
	int r;

	if (d->indexed || d->fd < 0)
		return 0;
	d->indexed = true;
	dir_look(d);
	r = base_dir_open(d->fd, ".", &dir);
	if (r < 0)
		return r;
	/* Copies of files may have any build-id: their names tell what they are. */
	while (r >= 0 && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && base_copy_id(entry->d_name, &id) < 0)
			r = dir_add_file(d, entry->d_name);
	closedir(dir);
	return r;
}

static bool has_head_id(const struct image *img, const struct base_id *id)
{
	void *head = malloc(BASE_ID_HEAD_LEN);
	struct base_id mine = { 0 };

	if (head)
		base_id_of_head(&mine, img->main.len, head,
				image_elf_read(&img->main, 0, head, BASE_ID_HEAD_LEN));
	free(head);
	return mine.len && base_id_equal(&mine, id);
}

/* The path may lead to another file by now, or, for a path of a container, to one of the host. */
static bool has_place_id(const struct image *img, const struct base_id *id)
{
	struct base_id mine = { 0 };
	uint64_t where[3];

	if (image_place(img->main.fd, where) == 0)
		base_id_of_place(&mine, where, img->main.path);
	return mine.len && base_id_equal(&mine, id);
}

enum image_known image_known_by(const char *word)
{
	return word && strcmp(word, "path") == 0    ? IMAGE_BY_PATH
	       : word && strcmp(word, "place") == 0 ? IMAGE_BY_PLACE
						    : IMAGE_BY_ID;
}

/* Every user may write a build-id into a file. Shorter words than a hash tell nothing of the code.
 */
static bool has_text(const struct image *img, const struct image_query *q)
{
	char text[BASE_ID_TEXT_LEN];
	struct base_id mine;

	if (!q->text || strlen(q->text) != IMAGE_TEXT_LEN)
		return true;
	return base_id_of_text(&mine, img->main.fd) == 0 &&
	       strcmp(base_id_text(&mine, text), q->text) == 0;
}

static bool is_it(struct image *img, const struct image_query *q)
{
	if (q->kind == IMAGE_FILE && q->known == IMAGE_BY_PLACE)
		return has_place_id(img, &q->id);
	if (!q->id.len || (q->kind == IMAGE_FILE && q->known == IMAGE_BY_PATH))
		return true;
	if (base_id_equal(&img->main.id, &q->id))
		return has_text(img, q);
	img->asked = note_replaces(&img->note, &q->id);
	if (img->asked)
		return true;
	/* It may have one all the same: the kernel looks only where program headers say. */
	return q->kind == IMAGE_FILE && has_head_id(img, &q->id) && has_text(img, q);
}

/* "X@end" beside the kernel's "X.elf", if it belongs to it: its note names the kernel by build-id.
 */
static int try_code(struct image *img, int dir_fd, const char *end)
{
	static const char from[] = ".elf";
	size_t len = strlen(img->main.path);
	char path[PATH_MAX], id[BASE_ID_TEXT_LEN];
	const struct image_process *p;
	struct image_elf f;

	if (len < sizeof(from) || strcmp(img->main.path + len - (sizeof(from) - 1), from) != 0 ||
	    (size_t)snprintf(path, sizeof(path), "%.*s%s", (int)(len - (sizeof(from) - 1)),
			     img->main.path, end) >= sizeof(path))
		return -ENOENT;
	if (image_elf_open(&f, dir_fd, path, NULL) < 0 ||
	    image_new(&f, IMAGE_DYNAMIC, &img->code, NULL) < 0)
		return -ENOENT;
	p = image_process(img->code);
	if (p && f.header.e_machine == img->main.header.e_machine &&
	    strcmp(p->facility, base_id_text(&img->main.id, id)) == 0)
		return 0;
	image_close(img->code);
	img->code = NULL;
	return -ESTALE;
}

/* All of it, as dcpikdiff keeps it, or the routines that had samples, as dcpid does. The code
 * differs from boot to boot, its offsets do not. */
static void find_code(struct image *img, int dir_fd)
{
	if (try_code(img, dir_fd, ".text") < 0)
		try_code(img, dir_fd, ".code");
}

/* Open and compare: 0, -ESTALE where it is another one, or what image_elf_open says. */
static int try_file(int dir_fd, const char *path, const struct image_query *q, struct image **out,
		    struct base_err *err)
{
	struct image_elf f;
	struct image *img;
	int r = dir_fd == AT_FDCWD ? image_elf_open_timeout(&f, path, err)
				   : image_elf_open(&f, dir_fd, path, err);

	if (r >= 0)
		r = image_new(&f, q->kind, &img, err);
	if (r < 0)
		return r;
	if (is_it(img, q)) {
		if (q->kind == IMAGE_KERNEL)
			find_code(img, dir_fd);
		*out = img;
		return 0;
	}
	image_close(img);
	return -ESTALE;
}

static int not_in_store(const struct store_dir *d, const struct image_query *q,
			struct base_err *err)
{
	const char *path = q->paths && q->paths[0] ? q->paths[0] : "";
	const char *folder = q->kind == IMAGE_DYNAMIC ? "dyn/" : "kernel/";
	char id[BASE_ID_TEXT_LEN];

	if (d->fd < -1 && d->fd != -ENOENT)
		return base_fail_errno(err, d->fd, "cannot open image '%s' in the database's %s",
				       path, folder);
	base_fail(err, -DCPI_ENOIMAGE, "image '%s' with build-id %s is not in the database's %s",
		  path, base_id_text(&q->id, id), folder);
	base_hint(err, "copy the whole database, its dyn/ and kernel/ folders included%s",
		  q->kind == IMAGE_DYNAMIC
			  ? ""
			  : "; what was replayed (dcpid -replay) has the kernel's "
			    "names once a daemon of that machine wrote into the same database");
	return -DCPI_ENOIMAGE;
}

/* -ENOENT: the index has none of that build-id, or what it has is gone. */
static int try_index(struct store_dir *d, const struct image_query *q, struct image **out,
		     struct base_err *err)
{
	int r = dir_index(d);

	if (r < 0)
		return base_fail_errno(err, r, "cannot read the database's images");
	for (size_t i = 0; i < d->nr; i++)
		if (base_id_equal(&d->v[i].id, &q->id))
			return try_file(d->fd, d->v[i].name, q, out, err);
	return -ENOENT;
}

/*
 * A daemon may merge images beside us: the one that took the others is in place before these are
 * removed, so an index that was begun behind the removal has it.
 */
static int open_indexed(struct store_dir *d, const struct image_query *q, struct image **out,
			struct base_err *err)
{
	enum { ATTEMPTS = 5 };
	struct base_err why = { 0 };
	int r = -ENOENT;

	for (int i = 0; i < ATTEMPTS; i++) {
		why = (struct base_err){ 0 };
		r = try_index(d, q, out, &why);
		if ((r != -ENOENT && r != -ESTALE) || !dir_changed(d))
			break;
	}
	if (r == -ENOENT)
		return not_in_store(d, q, err);
	if (r < 0 && err && !err->code)
		*err = why;
	return r;
}

/* The name is a hint that spares the index; a damaged file of that name is the answer. */
static int open_stored(struct store_dir *d, const struct image_query *q, struct image **out,
		       struct base_err *err)
{
	const char *name = q->paths && q->paths[0] ? base_path_name(q->paths[0]) : "";
	int r = -ENOENT;

	if (d->fd < 0)
		return not_in_store(d, q, err);
	if (*name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
		struct base_err first = { 0 };

		r = try_file(d->fd, name, q, out, &first);
		if (r < 0 && r != -ENOENT && r != -ESTALE) {
			if (err && !err->code)
				*err = first;
			return r;
		}
	}
	if (r >= 0)
		return 0;
	return q->id.len ? open_indexed(d, q, out, err) : not_in_store(d, q, err);
}

/* ---- ordinary files -------------------------------------------------------------------------- */

struct file_search {
	const struct image_query *query;
	struct image **out;
};

/* Copies of other machines' files: only an agreeing identity makes one of them the image. */
static int try_copy(const char *path, const struct file_search *s)
{
	if (s->query->known != IMAGE_BY_ID || !s->query->id.len ||
	    try_file(AT_FDCWD, path, s->query, s->out, NULL) < 0)
		return -ENOENT;
	return 0;
}

/* The daemon's copy of a file that was removed. By its whole path, beside which debug files may be.
 */
static int try_removed(const struct image_store *store, const struct file_search *s,
		       struct base_err *err)
{
	const struct image_query *q = s->query;
	const char *word = q->text && !q->text_of_other ? q->text : "";
	char name[BASE_COPY_NAME_LEN], path[BASE_COPY_NAME_LEN + 32];
	struct base_id text = { 0 };

	if (!store || store->dyn.fd < 0 || q->known != IMAGE_BY_ID || !q->id.len ||
	    (*word && base_id_parse(&text, word, strlen(word)) < 0))
		return -ENOENT;
	base_copy_name(&q->id, &text, name);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", store->dyn.fd, name);
	return try_file(AT_FDCWD, path, q, s->out, err);
}

static int try_debug_dir(const char *dir, void *ctx)
{
	const struct file_search *s = ctx;
	char path[PATH_MAX];
	int r = -ENOENT;

	if (s->query->id.len > 1) {
		image_id_path(path, sizeof(path), dir, &s->query->id, "");
		r = try_copy(path, s);
	}
	for (size_t i = 0; r == -ENOENT && s->query->paths && s->query->paths[i]; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, s->query->paths[i]);
		r = try_copy(path, s);
	}
	return r;
}

static int try_fetched(const struct file_search *s)
{
	char *path = s->query->known != IMAGE_BY_ID ? NULL : image_fetch(&s->query->id, false);
	int r = path ? try_copy(path, s) : -ENOENT;

	free(path);
	return r;
}

/* The symbols of a file that stands on other machines (dcpifetch): offsets are its addresses. */
static int try_symbols(const struct image_store *store, const struct file_search *s)
{
	struct image_query q = *s->query;
	char id[BASE_ID_TEXT_LEN], name[BASE_ID_TEXT_LEN + sizeof(".symbols")];

	if (!store || store->kernel.fd < 0 || q.known != IMAGE_BY_ID || !q.id.len)
		return -ENOENT;
	q.kind = IMAGE_KERNEL;
	snprintf(name, sizeof(name), "%s.symbols", base_id_text(&q.id, id));
	return try_file(store->kernel.fd, name, &q, s->out, NULL);
}

static int file_failed(const struct image_query *q, int code, const char *path,
		       const struct base_err *first, struct base_err *err)
{
	char id[BASE_ID_TEXT_LEN], with_id[BASE_ID_TEXT_LEN + 16] = "";

	base_id_text(&q->id, id);
	if (q->id.len > 1 && q->known == IMAGE_BY_ID)
		snprintf(with_id, sizeof(with_id), " with build-id %s", id);
	if (code == -ESTALE) {
		base_fail(err, code, "image '%s' has changed since it was profiled%s", path,
			  with_id);
	} else if (code == -ENOENT) {
		code = -DCPI_ENOIMAGE;
		base_fail(err, code, "image '%s'%s is not here any more", path, with_id);
	} else {
		if (err && !err->code)
			*err = *first;
		return code;
	}
	if (q->id.len && q->known == IMAGE_BY_ID)
		base_hint(err,
			  "put the file with build-id %.16s… under a folder of DCPI_DEBUG_PATH",
			  id);
	return code;
}

static int open_file(const struct image_store *store, const struct image_query *q,
		     struct image **out, struct base_err *err)
{
	const char *named = q->paths && q->paths[0] ? q->paths[0] : "";
	struct file_search search = { q, out };
	struct base_err first = { 0 }, why = { 0 };
	int code = -ENOENT, removed;

	for (size_t i = 0; q->paths && q->paths[i]; i++) {
		int r = -ENOENT;

		why = (struct base_err){ 0 };
		/* "[heap]", "//anon": names of mappings that are no files */
		if (q->paths[i][0] == '/')
			r = try_file(AT_FDCWD, q->paths[i], q, out, &why);
		if (r >= 0)
			return 0;
		if (code != -ENOENT || r == -ENOENT || r == -ENOTDIR)
			continue;
		code = r;
		first = why;
		named = q->paths[i];
	}
	why = (struct base_err){ 0 };
	removed = try_removed(store, &search, &why);
	if (removed >= 0)
		return 0;
	if (removed == -EACCES) {
		code = removed;
		first = why;
	}
	if ((store && store->images && try_debug_dir(store->images, &search) >= 0) ||
	    image_debug_dirs(try_debug_dir, &search) >= 0 || try_fetched(&search) >= 0 ||
	    try_symbols(store, &search) >= 0)
		return 0;
	return file_failed(q, code, named, &first, err);
}

int image_open(struct image_store *store, const struct image_query *query, struct image **out,
	       struct base_err *err)
{
	int r = query->kind == IMAGE_FILE      ? open_file(store, query, out, err)
		: query->kind == IMAGE_DYNAMIC ? open_stored(&store->dyn, query, out, err)
					       : open_stored(&store->kernel, query, out, err);

	if (r >= 0)
		memcpy((*out)->lookup.index_fds, store->index_fds, sizeof(store->index_fds));
	return r;
}
