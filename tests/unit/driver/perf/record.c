/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "perf_bytes.h"
#include "perf_internal.h"

static struct bytes b;
static struct perf_record rec;

static void samples_carry_mode_and_address(void **state)
{
	static const struct {
		uint16_t misc;
		enum driver_mode mode;
	} modes[] = {
		{ PERF_RECORD_MISC_USER, DRIVER_USER },
		{ PERF_RECORD_MISC_KERNEL, DRIVER_KERNEL },
		{ PERF_RECORD_MISC_HYPERVISOR, DRIVER_OTHER },
		{ PERF_RECORD_MISC_GUEST_USER, DRIVER_OTHER },
		{ PERF_RECORD_MISC_GUEST_KERNEL, DRIVER_OTHER },
		{ PERF_RECORD_MISC_CPUMODE_UNKNOWN, DRIVER_OTHER },
		{ PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP, DRIVER_USER },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		make_sample(&b, modes[i].misc, 42, 0x7f0012345678, 900);
		assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
		assert_int_equal(rec.what, PERF_SAMPLE);
		assert_int_equal(rec.count.mode, modes[i].mode);
		assert_int_equal(rec.count.addr, 0x7f0012345678);
		assert_int_equal(rec.count.pid, 42);
		assert_int_equal(rec.count.tid, 43);
		assert_int_equal(rec.count.time_ns, 900);
		assert_int_equal(rec.time_ns, 900);
		assert_int_equal(rec.id, EVENT_ID);
		assert_int_equal(rec.count.count, 1);
	}
	make_sample(&b, PERF_RECORD_MISC_KERNEL, UINT32_MAX, 1, 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.count.pid, -1);
}

static void mappings_carry_their_identity(void **state)
{
	uint8_t id[20] = { 0xab, 0xcd, [19] = 0xef };

	(void)state;
	make_mmap2(&b, 42, PROT_READ | PROT_EXEC, id, 20, "/usr/bin/x", 7);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.what, PERF_LOAD);
	assert_int_equal(rec.load.kind, DRIVER_LOAD_MMAP);
	assert_int_equal(rec.load.pid, 42);
	assert_int_equal(rec.load.addr, 0x400000);
	assert_int_equal(rec.load.len, 0x2000);
	assert_int_equal(rec.load.file_off, 0x1000);
	assert_int_equal(rec.load.prot, PROT_READ | PROT_EXEC);
	assert_int_equal(rec.load.id.len, 20);
	assert_memory_equal(rec.load.id.bytes, id, 20);
	assert_int_equal(rec.load.inode, 0);
	assert_string_equal(rec.load.path, "/usr/bin/x");
	assert_int_equal(rec.load.time_ns, 7);
	assert_int_equal(rec.time_ns, 7);

	make_mmap2(&b, 42, PROT_EXEC, NULL, 0, "/memfd:dbgdyn (deleted)", 7);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.load.id.len, 0);
	assert_int_equal(rec.load.dev_major, 8);
	assert_int_equal(rec.load.dev_minor, 1);
	assert_int_equal(rec.load.inode, 77);

	make_mmap2(&b, 42, PROT_READ | PROT_WRITE, NULL, 0, "/data", 7);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.what, PERF_SKIP);

	make_mmap2(&b, 42, PROT_EXEC, id, 21, "/too/long/an/id", 7);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), -DCPI_EFORMAT);
	assert_int_equal(rec.what, PERF_LOAD);
}

static void processes_come_and_go(void **state)
{
	(void)state;
	make_task(&b, PERF_RECORD_FORK, 50, 42, 50, 11);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.load.kind, DRIVER_LOAD_FORK);
	assert_int_equal(rec.load.pid, 50);
	assert_int_equal(rec.load.ppid, 42);
	assert_int_equal(rec.load.tid, 50);
	make_task(&b, PERF_RECORD_EXIT, 50, 42, 51, 12);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.load.kind, DRIVER_LOAD_EXIT);
	assert_int_equal(rec.load.tid, 51);
	assert_int_equal(rec.load.time_ns, 12);
}

static void unseen_processes_are_nobodys(void **state)
{
	(void)state;
	/* Of another PID namespace: not the idle task, which is never in user mode. */
	make_sample(&b, PERF_RECORD_MISC_USER, 0, 0x1000, 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.count.pid, -1);
	assert_int_equal(rec.count.tid, -1);
	make_sample(&b, PERF_RECORD_MISC_KERNEL, 0, 0x1000, 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.count.pid, 0);
	make_mmap2(&b, 0, PROT_EXEC, NULL, 0, "/bin/x", 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.what, PERF_SKIP);
	make_task(&b, PERF_RECORD_EXIT, UINT32_MAX, 0, UINT32_MAX, 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.what, PERF_SKIP);
}

static void names_and_programs_differ(void **state)
{
	(void)state;
	make_comm(&b, 0, 50, 51, "worker", 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.load.kind, DRIVER_LOAD_COMM);
	assert_int_equal(rec.load.tid, 51);
	assert_string_equal(rec.load.path, "worker");
	make_comm(&b, PERF_RECORD_MISC_COMM_EXEC, 50, 50, "exactly15chars_", 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.load.kind, DRIVER_LOAD_EXEC);
	assert_string_equal(rec.load.path, "exactly15chars_");
}

static void kernel_code_comes_and_goes(void **state)
{
	(void)state;
	make_ksymbol(&b, 0, "bpf_prog_1", 5);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.load.kind, DRIVER_LOAD_KSYMBOL);
	assert_true(rec.load.addr == 0xffffffffc0001000ull);
	assert_int_equal(rec.load.len, 0x80);
	assert_int_equal(rec.load.flags, 0);
	assert_int_equal(rec.load.pid, 0);
	assert_string_equal(rec.load.path, "bpf_prog_1");
	make_ksymbol(&b, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER, "bpf_prog_1", 6);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.load.flags, DRIVER_LOAD_GONE);
}

static void losses_are_told(void **state)
{
	(void)state;
	make_numbers(&b, PERF_RECORD_LOST, 5, 1234, 2, 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.what, PERF_LOST);
	assert_int_equal(rec.nr, 1234);
	make_numbers(&b, PERF_RECORD_LOST_SAMPLES, 17, 0, 1, 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.what, PERF_UNSENT);
	assert_int_equal(rec.nr, 17);
	make_numbers(&b, PERF_RECORD_THROTTLE, 1, 2, 2, 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.what, PERF_THROTTLED);
	make_numbers(&b, PERF_RECORD_UNTHROTTLE, 1, 2, 2, 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.what, PERF_SKIP);
	assert_int_equal(rec.id, EVENT_ID);
	make_numbers(&b, PERF_RECORD_NAMESPACES, 1, 2, 2, 1);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.what, PERF_SKIP);
}

static void kernel_code_is_changed(void **state)
{
	static const uint8_t bytes[] = { 0xcc, 0xcc, 0xcc };

	(void)state;
	make_poke(&b, 5, 3, 6);
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), 0);
	assert_int_equal(rec.what, PERF_LOAD);
	assert_int_equal(rec.load.kind, DRIVER_LOAD_POKE);
	assert_true(rec.load.addr == 0xffffffff81000001ull);
	assert_int_equal(rec.load.len, 3);
	assert_int_equal(rec.load.data_len, 3);
	assert_memory_equal(rec.load.data, bytes, 3);
	assert_int_equal(rec.time_ns, 6);
	/* Lengths that lie. */
	b.data[8 + 8 + 2] = 0xff;
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), -DCPI_EFORMAT);
	b.data[8 + 8 + 2] = b.data[8 + 8 + 3] = b.data[8 + 8] = b.data[8 + 8 + 1] = 0xff;
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), -DCPI_EFORMAT);
	assert_int_equal(rec.what, PERF_LOAD);
}

/* Every cut of @b either fails as what it was, or (a name's padding) is still whole. */
static void check_cuts(enum perf_what what, size_t least)
{
	for (size_t len = 8; len < b.len; len++) {
		uint8_t *exact = malloc(len);
		int r;

		assert_non_null(exact);
		memcpy(exact, b.data, len);
		r = perf_record_parse(exact, len, &rec);
		if (len < least) {
			assert_int_equal(r, -DCPI_EFORMAT);
			assert_int_equal(rec.what, what);
		}
		free(exact);
	}
	for (size_t len = 0; len < 8; len++)
		assert_int_equal(perf_record_parse(b.data, len, &rec), -DCPI_EFORMAT);
}

static void short_records_are_refused(void **state)
{
	uint8_t id[20] = { 0 };

	(void)state;
	make_sample(&b, 0, 1, 2, 3);
	check_cuts(PERF_SAMPLE, b.len);
	make_task(&b, PERF_RECORD_FORK, 50, 42, 50, 11);
	check_cuts(PERF_LOAD, b.len);
	make_numbers(&b, PERF_RECORD_LOST, 5, 6, 2, 1);
	check_cuts(PERF_LOST, b.len);
	make_ksymbol(&b, 0, "", 6);
	check_cuts(PERF_LOAD, b.len - 8);
	make_poke(&b, 2, 2, 6);
	check_cuts(PERF_LOAD, b.len);
	make_mmap2(&b, 1, PROT_EXEC, id, 20, "", 6);
	check_cuts(PERF_LOAD, b.len - 8);
	make_comm(&b, 0, 1, 1, "", 6);
	check_cuts(PERF_LOAD, b.len - 8);
}

static void names_without_end_are_refused(void **state)
{
	(void)state;
	make_comm(&b, 0, 1, 1, "seven77", 6);
	b.data[8 + 8 + 7] = 'x';
	/* The trailer has NULs, but the name must end before it. */
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), -DCPI_EFORMAT);
	make_ksymbol(&b, 0, "seven77", 6);
	b.data[8 + 16 + 7] = 'x';
	assert_int_equal(perf_record_parse(b.data, b.len, &rec), -DCPI_EFORMAT);
}

/* ---- rings ----------------------------------------------------------------------------------- */

enum { RING = 128 };
static uint8_t ring_data[RING], scratch[PERF_RECORD_LEN_MAX];

/* Put @b at @at of a ring whose reader stands there. */
static struct perf_ring ring_at(uint64_t at)
{
	for (size_t i = 0; i < b.len; i++)
		ring_data[(at + i) % RING] = b.data[i];
	return (struct perf_ring){ ring_data, RING, at + b.len, at };
}

static void records_wrap_at_any_place(void **state)
{
	const uint8_t *bytes;

	(void)state;
	make_sample(&b, PERF_RECORD_MISC_USER, 42, 0x1234, 900);
	for (uint64_t at = 0; at < 2 * RING; at++) {
		struct perf_ring ring = ring_at(at);

		assert_int_equal(perf_ring_peek(&ring, scratch, &bytes), (int)b.len);
		assert_memory_equal(bytes, b.data, b.len);
		ring.tail += b.len;
		assert_int_equal(perf_ring_peek(&ring, scratch, &bytes), 0);
	}
	/* Positions themselves may wrap, too. */
	struct perf_ring ring = ring_at(UINT64_MAX - 7);

	assert_int_equal(perf_ring_peek(&ring, scratch, &bytes), (int)b.len);
	assert_memory_equal(bytes, b.data, b.len);
}

static void lying_sizes_are_refused(void **state)
{
	static const uint16_t sizes[] = { 0, 1, 7, 41, 128, 0xffff };
	const uint8_t *bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		make_sample(&b, 0, 42, 0x1234, 900);
		memcpy(b.data + 6, &sizes[i], 2);
		struct perf_ring ring = ring_at(0);

		assert_int_equal(perf_ring_peek(&ring, scratch, &bytes), -DCPI_EFORMAT);
	}
	make_sample(&b, 0, 42, 0x1234, 900);
	struct perf_ring ring = ring_at(0);

	ring.head = 7;
	assert_int_equal(perf_ring_peek(&ring, scratch, &bytes), -DCPI_EFORMAT);
	ring.head = RING + 1;
	assert_int_equal(perf_ring_peek(&ring, scratch, &bytes), -DCPI_EFORMAT);
	ring.head = b.len - 1;
	assert_int_equal(perf_ring_peek(&ring, scratch, &bytes), -DCPI_EFORMAT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_carry_mode_and_address),
		cmocka_unit_test(mappings_carry_their_identity),
		cmocka_unit_test(processes_come_and_go),
		cmocka_unit_test(unseen_processes_are_nobodys),
		cmocka_unit_test(names_and_programs_differ),
		cmocka_unit_test(kernel_code_comes_and_goes),
		cmocka_unit_test(losses_are_told),
		cmocka_unit_test(kernel_code_is_changed),
		cmocka_unit_test(short_records_are_refused),
		cmocka_unit_test(names_without_end_are_refused),
		cmocka_unit_test(records_wrap_at_any_place),
		cmocka_unit_test(lying_sizes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
