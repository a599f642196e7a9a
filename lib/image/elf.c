/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One ELF file is opened, within a time where its file system may not answer, checked, and read by
 * sections here.
 */
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "image_internal.h"

/* ---- opening with a timeout ------------------------------------------------------------------ */

/*
 * Opening files where other machines and processes may serve them (NFS, FUSE): who does not answer
 * holds the caller, and nothing but the end of the process frees it. So a thread of its own opens;
 * where that takes too long it is left behind.
 */

/* For the first that does not answer; whoever comes after one may be on the same file system. */
enum { PATIENCE_MS = 5000, PATIENCE_AFTER_MS = 300 };

struct job {
	pthread_mutex_t lock;
	pthread_cond_t done_cond;
	char *path;
	uint64_t len;
	int result;
	bool done, left; /* set by the thread; set by the waiting caller */
};

static pthread_mutex_t patience_lock = PTHREAD_MUTEX_INITIALIZER;
static long patience_ms = PATIENCE_MS;

static void job_free(struct job *job)
{
	pthread_cond_destroy(&job->done_cond);
	pthread_mutex_destroy(&job->lock);
	free(job->path);
	free(job);
}

/* A descriptor, and the file's length; -EINVAL: not a regular file. */
static int image_regular_open(int dir_fd, const char *path, uint64_t *len)
{
	struct stat st;
	int fd = base_regular_open(dir_fd, path, &st);

	if (fd < 0)
		return fd == -EISDIR ? -EINVAL : fd;
	*len = (uint64_t)st.st_size;
	return fd;
}

/* Whether it can be read shows only where it is read: at its start, and where its tables end. */
static int open_and_try(const char *path, uint64_t *len)
{
	int fd = image_regular_open(AT_FDCWD, path, len);
	char byte;

	if (fd >= 0 && *len &&
	    (pread(fd, &byte, 1, 0) < 0 || pread(fd, &byte, 1, (off_t)*len - 1) < 0)) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static void *run(void *arg)
{
	struct job *job = arg;
	int r = open_and_try(job->path, &job->len);
	bool left;

	pthread_mutex_lock(&job->lock);
	job->result = r;
	job->done = true;
	left = job->left;
	pthread_cond_signal(&job->done_cond);
	pthread_mutex_unlock(&job->lock);
	if (left) {
		if (r >= 0)
			close(r);
		job_free(job);
	}
	return NULL;
}

static struct job *job_new(const char *path)
{
	struct job *job = calloc(1, sizeof(*job));
	pthread_condattr_t attr;

	if (!job)
		return NULL;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&job->lock, NULL);
	pthread_cond_init(&job->done_cond, &attr);
	pthread_condattr_destroy(&attr);
	job->path = strdup(path);
	if (job->path)
		return job;
	job_free(job);
	return NULL;
}

static struct timespec deadline(void)
{
	struct timespec at;
	long ms;

	pthread_mutex_lock(&patience_lock);
	ms = patience_ms;
	pthread_mutex_unlock(&patience_lock);
	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += ms % 1000 * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

/* Frees the job, or leaves it to its thread. */
static int wait_for(struct job *job, uint64_t *len)
{
	struct timespec until = deadline();
	int r = 0;

	pthread_mutex_lock(&job->lock);
	while (!job->done && r == 0)
		r = pthread_cond_timedwait(&job->done_cond, &job->lock, &until);
	if (!job->done) {
		job->left = true;
		pthread_mutex_unlock(&job->lock);
		pthread_mutex_lock(&patience_lock);
		patience_ms = PATIENCE_AFTER_MS;
		pthread_mutex_unlock(&patience_lock);
		return -ETIMEDOUT;
	}
	pthread_mutex_unlock(&job->lock);
	*len = job->len;
	r = job->result;
	job_free(job);
	return r;
}

int image_open_timeout(const char *path, uint64_t *len)
{
	struct job *job = job_new(path);
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (!job)
		return -ENOMEM;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, run, job);
	pthread_attr_destroy(&attr);
	if (r == 0)
		return wait_for(job, len);
	job_free(job);
	return image_regular_open(AT_FDCWD, path, len);
}

/* ---- the file -------------------------------------------------------------------------------- */

#define MAPPED_MIN (256ull << 20)

static bool inside(uint64_t off, uint64_t len, uint64_t file_len)
{
	uint64_t end;

	return !base_add_overflow(off, len, &end) && end <= file_len;
}

/* libelf takes a file that ends early as one with fewer sections; a cut image must be told apart.
 */
static int check_tables(const struct image_elf *f)
{
	const GElf_Ehdr *h = &f->header;

	if (h->e_shoff && !inside(h->e_shoff, (uint64_t)h->e_shnum * h->e_shentsize, f->len))
		return -DCPI_ETRUNCATED;
	if (h->e_phoff && !inside(h->e_phoff, (uint64_t)h->e_phnum * h->e_phentsize, f->len))
		return -DCPI_ETRUNCATED;
	return 0;
}

static int check_sections(const struct image_elf *f)
{
	GElf_Shdr sh;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));) {
		if (!gelf_getshdr(scn, &sh))
			return -DCPI_EFORMAT;
		if (sh.sh_type != SHT_NOBITS && sh.sh_type != SHT_NULL &&
		    !inside(sh.sh_offset, sh.sh_size, f->len))
			return -DCPI_ETRUNCATED;
	}
	return 0;
}

/* A git hash of 12 digits, say: linkers do not pad it, and libdw (0.188) then sees no note. */
static void read_odd_build_id(struct image_elf *f)
{
	uint8_t notes[4096];
	GElf_Shdr sh;

	for (Elf_Scn *scn = NULL; !f->id.len && (scn = elf_nextscn(f->elf, scn));) {
		size_t len = sizeof(notes);

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_NOTE)
			continue;
		len = image_elf_read(f, sh.sh_offset, notes, sh.sh_size < len ? sh.sh_size : len);
		base_id_of_notes(&f->id, notes, len, sh.sh_addralign);
	}
}

/* One that is longer than a struct base_id holds is none, as to base_id_of_notes. */
static void read_build_id(struct image_elf *f)
{
	const void *bytes;
	ssize_t len = dwelf_elf_gnu_build_id(f->elf, &bytes);

	if (len <= 0 || len > (ssize_t)sizeof(f->id.bytes)) {
		read_odd_build_id(f);
		return;
	}
	f->id.len = (uint8_t)len;
	memcpy(f->id.bytes, bytes, f->id.len);
}

static int begin(struct image_elf *f)
{
	int r;

	/* Not mapped, because a file cut short while we read it would end us by SIGBUS; but of what
	 * is larger than one wants to read as a whole, little is looked at. */
	Elf_Cmd how = f->len < MAPPED_MIN ? ELF_C_READ : ELF_C_READ_MMAP;

	elf_version(EV_CURRENT);
	f->elf = elf_begin(f->fd, how, NULL);
	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &f->header))
		return -DCPI_EFORMAT;
	if ((r = check_tables(f)) < 0 || (r = check_sections(f)) < 0)
		return r;
	read_build_id(f);
	return 0;
}

int image_elf_take(struct image_elf *f, int fd, uint64_t len, const char *path,
		   struct base_err *err)
{
	int r;

	memset(f, 0, sizeof(*f));
	f->fd = fd;
	f->len = len;
	f->path = strdup(path);
	r = f->path ? begin(f) : -ENOMEM;
	if (r == -DCPI_EFORMAT)
		base_fail(err, r, "cannot read image '%s': not an ELF file, or damaged", path);
	else if (r < 0)
		base_fail_errno(err, r, "cannot read image '%s'", path);
	if (r < 0)
		image_elf_close(f);
	return r;
}

static int take_opened(struct image_elf *f, int fd, uint64_t len, const char *path,
		       struct base_err *err)
{
	if (fd == -EINVAL)
		return base_fail(err, fd, "cannot read image '%s': not a regular file", path);
	if (fd == -ETIMEDOUT)
		return base_fail(err, fd, "cannot open image '%s': its file system does not answer",
				 path);
	if (fd < 0)
		return base_fail_errno(err, fd, "cannot open image '%s'", path);
	return image_elf_take(f, fd, len, path, err);
}

int image_elf_open(struct image_elf *f, int dir_fd, const char *path, struct base_err *err)
{
	uint64_t len = 0;
	int fd = image_regular_open(dir_fd, path, &len);

	return take_opened(f, fd, len, path, err);
}

int image_elf_open_timeout(struct image_elf *f, const char *path, struct base_err *err)
{
	uint64_t len = 0;
	int fd = image_open_timeout(path, &len);

	return take_opened(f, fd, len, path, err);
}

void image_elf_close(struct image_elf *f)
{
	if (f->elf)
		elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	memset(f, 0, sizeof(*f));
	f->fd = -1;
}

const char *image_elf_section_name(const struct image_elf *f, const GElf_Shdr *header)
{
	const char *name = NULL;
	size_t strings;

	if (elf_getshdrstrndx(f->elf, &strings) == 0)
		name = elf_strptr(f->elf, strings, header->sh_name);
	return name ? name : "";
}

Elf_Scn *image_elf_section(const struct image_elf *f, const char *name, GElf_Shdr *header)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));) {
		if (!gelf_getshdr(scn, header) || header->sh_type == SHT_NOBITS ||
		    (header->sh_flags & SHF_GROUP))
			continue;
		if (strcmp(image_elf_section_name(f, header), name) == 0)
			return scn;
	}
	return NULL;
}

size_t image_elf_read(const struct image_elf *f, uint64_t file_off, void *out, size_t len)
{
	return file_off < f->len ? base_read_part(f->fd, file_off, out, len) : 0;
}
