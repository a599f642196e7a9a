/* SPDX-License-Identifier: BSD-2-Clause */
/* An image that somebody has put into a process: what the daemon is to be told of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "control.h"
#include "image.h"

enum { WORDS = 3, WORDS_ALL = 6 };

/* Decimal, or hexadecimal behind 0x. */
static int parse_number(const char *text, const char *what, int64_t max, int64_t *out,
			struct base_err *err)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
	if (errno || !*text || *end || *out < 0 || *out > max)
		return base_fail(err, -DCPI_EUSAGE, "'%s' is no %s", text, what);
	return 0;
}

/* Where the file's code begins and ends, by its own addresses; and the first one's offset. */
static int read_code(const char *path, uint64_t *start, uint64_t *len, uint64_t *off,
		     struct base_err *err)
{
	uint64_t end = 0;
	struct image_code code;
	struct image *img = NULL;
	int r = image_open_path(path, IMAGE_FILE, &img, err);

	if (r < 0)
		return r;
	*start = UINT64_MAX;
	for (size_t i = 0; image_code_at(img, i, &code); i++) {
		*start = code.vaddr < *start ? code.vaddr : *start;
		end = code.vaddr + code.len > end ? code.vaddr + code.len : end;
	}
	*len = end - *start;
	if (end <= *start || image_off(img, *start, off) < 0)
		r = base_fail(err, -DCPI_EFORMAT, "image '%s' has no code", path);
	image_close(img);
	return r;
}

static void add_number(struct json_object *o, const char *key, uint64_t n)
{
	json_object_object_add(o, key, json_object_new_uint64(n));
}

/* The daemon reads what we may read, and opens nothing itself. */
static int add_file(const char *image, struct json_object *request, int *file, struct base_err *err)
{
	char *path = realpath(image, NULL);
	int r = 0;

	*file = path ? open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	if (*file < 0)
		r = base_fail_errno(err, -errno, "cannot open image '%s'", image);
	else
		json_object_object_add(request, "image", json_object_new_string(path));
	free(path);
	return r;
}

/* START SIZE IMAGEID */
static int add_announced(char **words, struct json_object *request, struct base_err *err)
{
	int64_t start = 0, len = 0;
	int r = parse_number(words[0], "address", INT64_MAX, &start, err);

	if (r >= 0)
		r = parse_number(words[1], "size", INT64_MAX, &len, err);
	add_number(request, "start", (uint64_t)start);
	add_number(request, "size", (uint64_t)len);
	json_object_object_add(request, "id", json_object_new_string(words[2]));
	return r;
}

int registration_read(int nr, char **words, struct json_object *request, int *file,
		      struct base_err *err)
{
	const char *image = nr >= WORDS ? words[nr - 2] : NULL;
	uint64_t start = 0, len = 0, off = 0;
	int64_t pid = 0;
	int r;

	if (nr != WORDS && nr != WORDS_ALL) {
		base_fail(err, -DCPI_EUSAGE, "wrong number of operands for 'register'");
		base_hint(err, "usage: dcpictl register PID [START SIZE IMAGEID] IMAGE NAME");
		return -DCPI_EUSAGE;
	}
	r = parse_number(words[0], "pid", INT32_MAX, &pid, err);
	if (r >= 0)
		r = read_code(image, &start, &len, &off, err);
	if (r >= 0)
		r = add_file(image, request, file, err);
	if (r < 0)
		return r;
	add_number(request, "pid", (uint64_t)pid);
	add_number(request, "offset", off);
	json_object_object_add(request, "name", json_object_new_string(words[nr - 1]));
	if (nr == WORDS_ALL)
		return add_announced(words + 1, request, err);
	add_number(request, "start", start);
	add_number(request, "size", len);
	return 0;
}
