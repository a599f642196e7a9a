/* SPDX-License-Identifier: BSD-2-Clause */
/* Labels of processes over a restart of the daemon: a file of its run folder, a line for each. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "line.h"
#include "track.h"

#define FILE_NAME  "labels"
#define FIRST_LINE "dcpi-labels 1 "
/* Start times are told in these steps, and of who was seen to begin it may be one more. */
#define STEP_NS UINT64_C(10000000)

enum { KEPT_MAX = 1 << 16, FILE_MAX = KEPT_MAX * (LABEL_MAX + 40) };

/* ---- the text -------------------------------------------------------------------------------- */

/* A decimal number at *@text, and the blank behind it. */
static bool take_number(const char **text, uint64_t max, uint64_t *out)
{
	const char *c = *text;
	uint64_t v = 0;

	for (; *c >= '0' && *c <= '9'; c++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    base_add_overflow(v, (uint64_t)(*c - '0'), &v))
			return false;
	}
	if (c == *text || *c != ' ' || !v || v > max)
		return false;
	*text = c + 1;
	*out = v;
	return true;
}

static int take_line(struct labels *t, const char *line)
{
	struct label_kept k = { 0 };
	uint64_t pid;
	int r;

	if (!take_number(&line, INT32_MAX, &pid) || !take_number(&line, UINT64_MAX, &k.start_ns) ||
	    label_check(line, strlen(line), NULL) < 0)
		return -DCPI_EFORMAT;
	k.pid = (int32_t)pid;
	k.text = labels_get(t, line);
	r = t->nr_kept == KEPT_MAX ? -DCPI_ELIMIT : k.text ? 0 : -ENOMEM;
	if (r == 0)
		r = base_grow(&t->kept, &t->cap_kept, t->nr_kept + 1, sizeof(k));
	if (r == 0)
		t->kept[t->nr_kept++] = k;
	return r;
}

static void forget(struct labels *t)
{
	free(t->kept);
	t->kept = NULL;
	t->nr_kept = t->cap_kept = 0;
}

static int take_lines(struct labels *t, struct base_lines *lines, const char *boot)
{
	char *line = base_lines_next(lines);
	int r = 0;

	if (!line || strncmp(line, FIRST_LINE, strlen(FIRST_LINE)))
		return -DCPI_EVERSION;
	/* The file is from another boot: these processes have ended. */
	if (strcmp(line + strlen(FIRST_LINE), boot))
		return 0;
	while (r == 0 && (line = base_lines_next(lines)))
		r = lines->cut ? -DCPI_EFORMAT : take_line(t, line);
	return r;
}

int labels_keep_parse(struct labels *t, const char *text, size_t len, const char *boot)
{
	struct base_lines lines;
	int r = base_lines_open(&lines, text, len);

	forget(t);
	if (r >= 0)
		r = take_lines(t, &lines, boot);
	base_lines_close(&lines);
	if (r < 0)
		forget(t);
	return r;
}

static int put(struct base_buf *to, int32_t pid, uint64_t start_ns, const char *text)
{
	return base_buf_printf(to, "%d %" PRIu64 " %s\n", pid, start_ns, text);
}

int labels_keep_format(const struct labels *t, const struct processes *processes, const char *boot,
		       struct base_buf *out)
{
	int r = base_buf_printf(out, FIRST_LINE "%s\n", boot);
	struct process *p;
	size_t nr = t->nr_kept;

	for (size_t i = 0; r >= 0 && i < t->nr_kept; i++)
		r = put(out, t->kept[i].pid, t->kept[i].start_ns, t->kept[i].text);
	for (size_t pos = 0; r >= 0 && nr < KEPT_MAX && processes_next(processes, &pos, &p);) {
		const char *text = p->next_label ? p->next_label : p->label;
		uint64_t start_ns = p->start_time_ns ? p->start_time_ns : p->began_ns;

		if (!text || !start_ns)
			continue;
		r = put(out, p->pid, start_ns, text);
		nr++;
	}
	return r < 0 ? r : (int)nr;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int read_boot(struct base_buf *out)
{
	int r = base_file_read(AT_FDCWD, "/proc/sys/kernel/random/boot_id", 256, out, NULL);

	if (r < 0)
		return r;
	while (out->len && out->data[out->len - 1] == '\n')
		out->len--;
	return base_buf_append(out, "", 1);
}

/* The file must belong to this user: another user could have anything labelled. */
static int check_file(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	return S_ISREG(st.st_mode) && st.st_uid == geteuid() ? 0 : -EPERM;
}

void labels_keep_read(struct labels *t, const char *run_dir)
{
	struct base_buf boot = { 0 }, text = { 0 };
	char path[512];
	int r;

	snprintf(path, sizeof(path), "%s/" FILE_NAME, run_dir);
	r = check_file(path);
	if (r >= 0)
		r = read_boot(&boot);
	if (r >= 0)
		r = base_file_read(AT_FDCWD, path, FILE_MAX, &text, NULL);
	if (r >= 0)
		r = labels_keep_parse(t, (const char *)text.data, text.len,
				      (const char *)boot.data);
	if (r < 0 && r != -ENOENT)
		base_log(BASE_LOG_WARN, "what runs already has no labels: cannot read '%s': %s",
			 path, base_strerror(r));
	base_buf_release(&boot);
	base_buf_release(&text);
}

/* Becomes what stands in the file. */
static int write_file(struct labels *t, const char *path, struct base_buf *text,
		      struct base_err *err)
{
	int r;

	if (t->written.len == text->len && !memcmp(t->written.data, text->data, text->len))
		return 0;
	base_buf_release(&t->written);
	r = base_file_write(AT_FDCWD, path, 0600, text->data, text->len, err);
	if (r < 0)
		return r;
	t->written = *text;
	*text = (struct base_buf){ 0 };
	return 0;
}

static int remove_file(struct labels *t, const char *path)
{
	base_buf_release(&t->written);
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

static bool is_gone(int32_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return access(path, F_OK) < 0 && errno == ENOENT;
}

/* Where nobody looked through /proc, most of them are still to be met. */
static void sweep(struct labels *t)
{
	size_t nr = 0;

	for (size_t i = 0; i < t->nr_kept; i++)
		if (!is_gone(t->kept[i].pid))
			t->kept[nr++] = t->kept[i];
	t->nr_kept = nr;
}

void labels_keep_write(struct labels *t, const struct processes *processes, const char *run_dir)
{
	struct base_buf boot = { 0 }, text = { 0 };
	struct base_err err = { 0 };
	char path[512];
	int r = read_boot(&boot);

	sweep(t);
	t->changed = false;
	t->written_ns = base_now_ns();
	snprintf(path, sizeof(path), "%s/" FILE_NAME, run_dir);
	if (r >= 0)
		r = labels_keep_format(t, processes, (const char *)boot.data, &text);
	if (r >= 0)
		r = r ? write_file(t, path, &text, &err) : remove_file(t, path);
	if (r < 0 && !t->failed)
		base_log(BASE_LOG_WARN, "labels would not outlive this daemon: %s",
			 err.code ? err.text : base_strerror(r));
	t->failed = r < 0;
	base_buf_release(&boot);
	base_buf_release(&text);
}

/* ---- processes ------------------------------------------------------------------------------- */

void labels_keep_restore(struct labels *t, struct process *p)
{
	for (size_t i = 0; i < t->nr_kept; i++) {
		struct label_kept k = t->kept[i];

		if (k.pid != p->pid)
			continue;
		t->kept[i] = t->kept[--t->nr_kept];
		if (!p->label && !p->next_label &&
		    (k.start_ns == p->start_time_ns || k.start_ns == p->start_time_ns + STEP_NS))
			p->label = k.text, p->identified = false;
		return;
	}
}
