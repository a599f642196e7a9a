/* SPDX-License-Identifier: BSD-2-Clause */
/* What clients tell of processes: whose they are, what is taken, and what becomes of it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "budget.h"
#include "stand_ins.h"

static struct trial t;
static struct daemon *d;
static struct base_buf reply;

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	d = calloc(1, sizeof(*d));
	d->workloads = t.store.workloads;
	d->images = t.store.images;
	d->processes = t.follow.processes;
	d->identity = t.follow.identity;
	d->dyn = t.follow.dyn;
	d->kernel = t.follow.kernel;
	d->store = t.store;
	daemon_connect(d);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	counts_release(&d->counts);
	follow_release(&d->follow);
	identity_free(d->identity);
	images_free(d->images);
	workloads_free(d->workloads);
	budgets_free(d->budgets);
	free(d);
	base_buf_release(&reply);
	return 0;
}

/* Somebody who is not root, whoever runs this. */
static uint32_t other_uid(void)
{
	return geteuid() + 1;
}

static const char *ask(const struct control_request *q, uint32_t uid)
{
	const struct control_peer peer = { .pid = getpid(), .uid = uid };

	base_buf_clear(&reply);
	assert_int_equal(daemon_command(d, q, &peer, &reply), 0);
	assert_int_equal(base_buf_append(&reply, "", 1), 0);
	return (const char *)reply.data;
}

static bool is_ok(const char *answer)
{
	return strncmp(answer, "{\"ok\":true,", 11) == 0;
}

static void label_of_the_client(void **state)
{
	struct control_request q = { .command = CONTROL_LABEL, .label = "run" };
	const struct follow_queued *announced;
	uint64_t before = base_now_ns();

	(void)state;
	/* A status that was made before is none of after the answer. */
	d->status_ns = 1;
	assert_true(is_ok(ask(&q, geteuid())));
	assert_int_equal(d->status_ns, 0);
	assert_int_equal(d->follow.queue.nr, 1);
	announced = &d->follow.queue.items[0];
	assert_int_equal(announced->load.kind, DRIVER_LOAD_LABEL);
	assert_int_equal(announced->load.pid, getpid());
	assert_string_equal(announced->load.path, "run");
	assert_true(announced->load.time_ns >= before && announced->load.time_ns <= base_now_ns());
	/* By its pid it is the same. */
	q.pid = getpid();
	assert_true(is_ok(ask(&q, geteuid())));
}

/* To see that a range is wrong costs as much as one that is right: it is counted before. */
static void wrong_ranges(void **state)
{
	struct control_request q = { .command = CONTROL_REGISTER,
				     .pid = getpid(),
				     .start = 4096,
				     .len = 1,
				     .path = "/bin/x" };
	const char *last = geteuid() ? "too many registrations" : "no executable memory";

	(void)state;
	d->budgets = budgets_new();
	for (int i = 0; i < 4096; i++)
		assert_non_null(strstr(ask(&q, geteuid()), "no executable memory"));
	assert_non_null(strstr(ask(&q, geteuid()), last));
	budget_clear(d->budgets, BUDGET_REGISTRATIONS);
	budget_waited(d->budgets, geteuid(), 10000000000ull, 0, 0);
	assert_non_null(strstr(ask(&q, geteuid()), "try again later"));
}

/* One step of a flush a turn, however many ask. */
static void one_step_a_turn(void **state)
{
	struct control_request q = { .command = CONTROL_FLUSH };
	const struct control_peer peer = { .privileged = true };

	(void)state;
	d->stepped = true;
	base_buf_clear(&reply);
	assert_int_equal(daemon_command(d, &q, &peer, &reply), CONTROL_LATER);
	q.command = CONTROL_EPOCH;
	assert_int_equal(daemon_command(d, &q, &peer, &reply), CONTROL_LATER);
	q.command = CONTROL_QUIT;
	assert_int_equal(daemon_command(d, &q, &peer, &reply), CONTROL_LATER);
	assert_int_equal(reply.len, 0);
}

static void processes_of_others(void **state)
{
	struct control_request label = { .command = CONTROL_LABEL,
					 .label = "run",
					 .pid = getpid() };
	struct control_request image = { .command = CONTROL_REGISTER,
					 .pid = getpid(),
					 .start = (uintptr_t)processes_of_others,
					 .len = 1,
					 .path = "/bin/x" };

	(void)state;
	assert_non_null(strstr(ask(&label, other_uid()), "is not yours"));
	assert_non_null(strstr(ask(&image, other_uid()), "is not yours"));
	label.pid = image.pid = INT32_MAX;
	assert_non_null(strstr(ask(&label, geteuid()), "no process"));
	assert_non_null(strstr(ask(&image, 0), "no process"));
	assert_int_equal(d->follow.queue.nr, 0);
	assert_int_equal(stand_ins.nr_asked, 0);
}

static void registered_image(void **state)
{
	struct control_request q = { .command = CONTROL_REGISTER,
				     .pid = getpid(),
				     .start = (uintptr_t)registered_image,
				     .len = 1,
				     .file_off = 0x1000,
				     .path = "/opt/x",
				     .name = "a name" };
	const struct base_id id = trial_id(7);
	const struct driver_load *l;
	struct image *img;

	(void)state;
	/* The reader finds no such file. */
	assert_non_null(strstr(ask(&q, geteuid()), "no image came"));
	stand_ins.reader_result = 0;
	stand_ins.reader_id = id;
	q.start = 0x1000;
	assert_non_null(strstr(ask(&q, geteuid()), "no executable memory"));
	q.start = (uintptr_t)registered_image;
	q.id = trial_id(8);
	assert_non_null(strstr(ask(&q, geteuid()), "another identity"));
	assert_int_equal(d->follow.queue.nr, 0);
	q.id = id;
	assert_true(is_ok(ask(&q, geteuid())));
	l = &d->follow.queue.items[0].load;
	assert_int_equal(l->kind, DRIVER_LOAD_MMAP);
	assert_int_equal(l->addr, q.start);
	assert_int_equal(l->file_off, 0x1000);
	assert_true(base_id_equal(&l->id, &id));
	img = images_get(d->images, PROFDB_FILE, &id, "/opt/x", "x");
	assert_string_equal(profdb_profile_path(img->counts, 0), "/opt/x");
	assert_string_equal(profdb_profile_path(img->counts, 1), "a name");
	/* Of names that anybody can give only a few are kept. */
	for (int c = 'a'; c <= 'z'; c++) {
		q.name[0] = c;
		assert_true(is_ok(ask(&q, geteuid())));
	}
	assert_null(profdb_profile_path(img->counts, 4));
}

static void log_lines(void **state)
{
	struct control_request q = { .command = CONTROL_LOG, .lines = 2 };

	(void)state;
	base_log_keep();
	base_log(BASE_LOG_WARN, "one");
	base_log(BASE_LOG_WARN, "\"two\"");
	base_log(BASE_LOG_WARN, "three");
	assert_null(strstr(ask(&q, 0), "one"));
	assert_non_null(strstr(ask(&q, 0), "warning: \\\"two\\\"\","));
	assert_non_null(strstr(ask(&q, 0), "warning: three\"]}\n"));
	q.lines = BASE_LOG_KEPT;
	assert_non_null(strstr(ask(&q, 0), "warning: one\","));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(label_of_the_client), TEST(processes_of_others), TEST(wrong_ranges),
		TEST(registered_image),	   TEST(log_lines),	      TEST(one_step_a_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
