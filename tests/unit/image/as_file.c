/* SPDX-License-Identifier: BSD-2-Clause */
#include "as_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

void as_file(struct image_elf *elf, const void *bytes, size_t len)
{
	char path[] = "/tmp/dcpi-unit-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, bytes, len), len);
	assert_int_equal(image_elf_take(elf, fd, len, path, NULL), 0);
}
