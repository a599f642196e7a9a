/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_kernel.h"
#include "fake_registry.h"

void fake_kernel_file(struct fake_kernel *f, const char *name, const void *data, size_t len)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", f->root, name);
	for (char *p = path + strlen(f->root) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
	}
	assert_int_equal(base_file_write(AT_FDCWD, path, 0644, data, len, NULL), 0);
}

void fake_kernel_text(struct fake_kernel *f, const char *name, const char *text)
{
	fake_kernel_file(f, name, text, strlen(text));
}

void fake_kernel_note(struct fake_kernel *f, const char *name, uint8_t first_byte)
{
	struct {
		Elf64_Nhdr head;
		char owner[4];
		uint8_t id[20];
	} note = { .head = { .n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID },
		   .owner = "GNU",
		   .id = { first_byte } };

	fake_kernel_file(f, name, &note, sizeof(note));
}

void fake_kernel_init(struct fake_kernel *f)
{
	snprintf(f->root, sizeof(f->root), "/tmp/dcpi-kernel-XXXXXX");
	assert_non_null(mkdtemp(f->root));
	f->images = images_new();
	assert_non_null(f->images);
}

void fake_kernel_database(struct fake_kernel *f)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/db", f->root);
	assert_int_equal(profdb_open(path, true, &f->db, NULL), 0);
}

static int read_memory(void *ctx, uint64_t addr, void *to, size_t len)
{
	struct fake_kernel *f = ctx;

	f->nr_reads++;
	if (addr < f->memory_at || addr - f->memory_at + len > f->memory_len)
		return -EFAULT;
	memcpy(to, f->memory + (addr - f->memory_at), len);
	return 0;
}

static long no_bpf(void *ctx, int cmd, void *attr, size_t attr_len)
{
	(void)ctx;
	(void)cmd;
	(void)attr;
	(void)attr_len;
	return -ENOENT;
}

void fake_kernel_open(struct fake_kernel *f, kernel_bpf_call *bpf)
{
	const struct kernel_config config = {
		.db = f->db,
		.images = f->images,
		.live = true,
		.root = f->root,
		.helper_dir = fake_helper_dir(),
		.host = "box",
		.bpf = bpf ? bpf : no_bpf,
		.read = read_memory,
		.ctx = f,
	};
	struct base_err err = { 0 };

	if (kernel_open(&config, &f->k, &err) < 0)
		fail_msg("%s", err.text);
}

void fake_kernel_close(struct fake_kernel *f)
{
	char command[128];

	kernel_close(f->k);
	images_free(f->images);
	if (f->db)
		profdb_close(f->db);
	snprintf(command, sizeof(command), "rm -r '%s'", f->root);
	assert_int_equal(system(command), 0);
}

const char *fake_kernel_sample(struct fake_kernel *f, uint64_t addr, uint64_t first_ns,
			       uint64_t time_ns, uint64_t *off, bool *idle)
{
	const struct driver_count c = {
		.addr = addr, .first_ns = first_ns, .time_ns = time_ns, .count = 1
	};
	struct image *img = kernel_lookup(f->k, &c, off, idle);

	return img ? img->path : NULL;
}

void fake_kernel_load(struct fake_kernel *f, enum driver_load_kind kind, uint64_t addr,
		      uint64_t len, const char *name, bool gone, uint64_t time_ns)
{
	const struct driver_load l = { .kind = kind,
				       .time_ns = time_ns,
				       .addr = addr,
				       .len = len,
				       .path = name,
				       .flags = gone ? DRIVER_LOAD_GONE : 0,
				       .id = { .len = 20, .bytes = { 1 } } };

	kernel_load(f->k, &l);
}
