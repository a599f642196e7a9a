/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel's symbols, and the file beside them that has the code of some of its routines. */
#include <elf.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "image.h"
#include "pseudoimg.h"

static const struct base_id id = { .len = 20, .bytes = { 0xab, 0xcd } };
static char dir[] = "/tmp/dcpi-image-XXXXXX";
static int dir_fd = -1;

static int create(const char *name)
{
	int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	return fd;
}

static int make_symbols(void **state)
{
	const struct pseudoimg_symbol syms[] = { { "hot", 0x1000, 0x10 },
						 { "cold", 0x1010, 0x10 },
						 { "far", 0x90000, 0x10 } };
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = create("vmlinux-1-abcd.elf");
	assert_int_equal(pseudoimg_write_symbols(syms, 3, 0x100000, EM_X86_64, &id, fd, NULL), 0);
	close(fd);
	return 0;
}

static int remove_all(void **state)
{
	char command[64];

	(void)state;
	close(dir_fd);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void add_routine(struct base_buf *job, const char *name, uint64_t addr, uint8_t byte)
{
	size_t len = wire_routine_len(strlen(name), 0x10, true, 0, 0, 0);
	struct wire_routine *r;
	void *p;

	assert_int_equal(base_buf_extend(job, len, &p), 0);
	r = p;
	*r = (struct wire_routine){ .head = { (uint32_t)len, WIRE_ROUTINE, WIRE_ROUTINE_CODE },
				    .seq = 1,
				    .addr = addr,
				    .code_len = 0x10,
				    .name_len = (uint32_t)strlen(name) };
	memcpy(r + 1, name, strlen(name));
	memset((char *)(r + 1) + strlen(name), byte, 0x10);
}

/* With "hot" and "far", but not what lies between. */
static void make_file(const char *name, const struct base_id *of, uint32_t machine, uint8_t hot)
{
	struct wire_image head = { .head = { .type = WIRE_IMAGE }, .machine = machine };
	struct wire_run run = { .head = { sizeof(run), WIRE_RUN, 0 }, .len = 0x100000 };
	char text[BASE_ID_TEXT_LEN + 8] = { 0 };
	struct pseudoimg_result result;
	struct base_buf job = { 0 };
	int fd = create(name);

	base_id_text(of, text);
	head.facility_len = (uint16_t)strlen(text);
	head.head.len = (uint32_t)base_align_up(sizeof(head) + strlen(text), 8);
	base_buf_append(&job, &head, sizeof(head));
	base_buf_append(&job, text, head.head.len - sizeof(head));
	base_buf_append(&job, &run, sizeof(run));
	add_routine(&job, "hot", 0x1000, hot);
	add_routine(&job, "far", 0x90000, 0xc3);
	assert_int_equal(pseudoimg_write(job.data, job.len, fd, &result, NULL), 0);
	assert_int_equal(result.nr_routines, 2);
	base_buf_release(&job);
	close(fd);
}

static void make_code(const struct base_id *of, uint32_t machine)
{
	make_file("vmlinux-1-abcd.code", of, machine, 0x90);
}

/* How many bytes there are at @vaddr, the first into *@byte. */
static size_t bytes_at(uint64_t vaddr, uint8_t *byte)
{
	const char *const paths[] = { "vmlinux-1", NULL };
	const struct image_query query = { .kind = IMAGE_KERNEL, .id = id, .paths = paths };
	struct base_err err = { 0 };
	struct image_store *store;
	struct image *img = NULL;
	uint8_t bytes[0x100];
	size_t n;

	assert_int_equal(image_store_open(-1, dir_fd, &store), 0);
	if (image_open(store, &query, &img, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(base_id_equal(image_id(img), &id));
	assert_int_equal(image_nr_symbols(img), 3);
	n = image_bytes(img, vaddr, bytes, sizeof(bytes));
	*byte = n ? bytes[0] : 0;
	image_close(img);
	image_store_close(store);
	return n;
}

static void test_kept_routines(void **state)
{
	uint8_t byte;

	(void)state;
	assert_int_equal(bytes_at(0x1000, &byte), 0);
	make_code(&id, EM_X86_64);
	assert_int_equal(bytes_at(0x1000, &byte), 0x10);
	assert_int_equal(byte, 0x90);
	assert_int_equal(bytes_at(0x1008, &byte), 8);
	assert_int_equal(bytes_at(0x90000, &byte), 0x10);
	assert_int_equal(byte, 0xc3);
	/* What was not kept is no code, though the file may have room for it. */
	assert_int_equal(bytes_at(0x1010, &byte), 0);
	assert_int_equal(bytes_at(0x8fff0, &byte), 0);
	assert_int_equal(bytes_at(0x200000, &byte), 0);
}

static void test_others_code(void **state)
{
	struct base_id other = id;
	uint8_t byte;

	(void)state;
	other.bytes[19] = 1;
	make_code(&other, EM_X86_64);
	assert_int_equal(bytes_at(0x1000, &byte), 0);
	make_code(&id, EM_AARCH64);
	assert_int_equal(bytes_at(0x1000, &byte), 0);
	assert_int_equal(write(create("vmlinux-1-abcd.code"),
			       "\x7f"
			       "ELF",
			       4),
			 4);
	assert_int_equal(bytes_at(0x1000, &byte), 0);
}

/* All of the kernel's code, where somebody kept that, comes first; another kernel's does not. */
static void test_whole_text(void **state)
{
	struct base_id other = id;
	uint8_t byte;

	(void)state;
	other.bytes[19] = 1;
	make_code(&id, EM_X86_64);
	make_file("vmlinux-1-abcd.text", &id, EM_X86_64, 0xcc);
	assert_int_equal(bytes_at(0x1000, &byte), 0x10);
	assert_int_equal(byte, 0xcc);
	make_file("vmlinux-1-abcd.text", &other, EM_X86_64, 0xcc);
	assert_int_equal(bytes_at(0x1000, &byte), 0x10);
	assert_int_equal(byte, 0x90);
	unlinkat(dir_fd, "vmlinux-1-abcd.text", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_routines),
		cmocka_unit_test(test_whole_text),
		cmocka_unit_test(test_others_code),
	};

	return cmocka_run_group_tests(tests, make_symbols, remove_all);
}
