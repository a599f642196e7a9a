/* SPDX-License-Identifier: BSD-2-Clause */
/* Index files: ours, but disks and other versions of us write them too. Sums are set right, so that
 * what they guard is reached. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "image_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Of docs/format/index.md. */
enum { BLOCK = 4096, IDENTITY_LEN = 64, SUMS_OFF = 112, FILE_LEN = 120, SUMS_CRC = 128, CRC = 132 };

static const struct image_elf file = { .fd = -1, .id = { .len = 20 } };
static uint8_t identity[IDENTITY_LEN];

static void learn_identity(void)
{
	static char name[] = "0000000000000000000000000000000000000000.sym";
	struct image_symbol_entry symbol = { .sym = { "a", 1, 2 } };
	struct image_name one = { "a", 0 };
	struct image_symbols symbols = { .v = &symbol, .nr = 1, .names = &one, .nr_names = 1 };
	char dir[] = "/tmp/dcpi-fuzz-XXXXXX";
	int dirs[2] = { -1, -1 }, fd;

	if (!mkdtemp(dir) || (dirs[0] = open(dir, O_RDONLY | O_DIRECTORY)) < 0)
		abort();
	image_index_write(dirs, &symbols, &file, NULL, IMAGE_FILE);
	fd = openat(dirs[0], name, O_RDONLY);
	if (fd < 0 || read(fd, identity, sizeof(identity)) != sizeof(identity))
		abort();
	close(fd);
	unlinkat(dirs[0], name, 0);
	rmdir(dir);
	close(dirs[0]);
}

static void ask(struct image_index *x)
{
	size_t nr = image_index_nr_symbols(x), names = image_index_nr_names(x);
	struct image_symbol_entry e;
	struct image_name n;
	uint64_t vaddr;

	for (size_t i = 0; i < nr; i += nr / 64 + 1) {
		image_index_vaddr(x, i, &vaddr);
		if (image_index_symbol(x, i, &e) && (strlen(e.sym.name) > 1 << 20 || e.outer > i))
			abort();
	}
	for (size_t i = 0; i < names; i += names / 64 + 1)
		if (image_index_name(x, i, &n) && (strlen(n.name) > 1 << 20 || n.symbol >= nr))
			abort();
}

static void set_sums(uint8_t *p, uint64_t nr)
{
	uint64_t sums_off = nr * BLOCK, len = sums_off + nr * sizeof(uint32_t);
	uint32_t crc;

	memcpy(p, identity, IDENTITY_LEN);
	memcpy(p + SUMS_OFF, &sums_off, sizeof(sums_off));
	memcpy(p + FILE_LEN, &len, sizeof(len));
	for (uint64_t i = 0; i < nr; i++) {
		crc = base_crc32c(0, p + i * BLOCK, BLOCK);
		memcpy(p + sums_off + i * sizeof(crc), &crc, sizeof(crc));
	}
	crc = base_crc32c(0, p + sums_off, nr * sizeof(crc));
	memcpy(p + SUMS_CRC, &crc, sizeof(crc));
	crc = base_crc32c(0, p, CRC);
	memcpy(p + CRC, &crc, sizeof(crc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t nr = len / (BLOCK + sizeof(uint32_t));
	struct image_index *x;
	uint8_t *copy = malloc(len + 1);
	int fd;

	if (!copy)
		return 0;
	if (!identity[0])
		learn_identity();
	memcpy(copy, data, len);
	if (nr) {
		len = nr * (BLOCK + sizeof(uint32_t));
		set_sums(copy, nr);
	}
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || base_write_all(fd, copy, len) < 0)
		abort();
	free(copy);
	x = image_index_read(fd, &file, NULL, IMAGE_FILE);
	if (x)
		ask(x);
	image_index_close(x);
	return 0;
}
