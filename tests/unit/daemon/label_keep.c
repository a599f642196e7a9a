/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "follow_internal.h"
#include "stand_ins.h"

#define BOOT  "0a-b"
#define HEAD  "dcpi-labels 1 " BOOT "\n"
#define TICK  UINT64_C(10000000)
#define BEGAN (5 * TICK)

static struct trial t;

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	t.follow.live = t.attribute.live = true;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	trial_close(&t);
	return 0;
}

static struct process *process_of(int32_t pid, uint64_t start_ns, const char *label)
{
	struct process *p = processes_add(t.follow.processes, pid);

	assert_non_null(p);
	p->start_time_ns = start_ns;
	p->label = label ? labels_get(&t.follow.labels, label) : NULL;
	return p;
}

static int parse(struct labels *l, const char *text)
{
	return labels_keep_parse(l, text, strlen(text), BOOT);
}

/* What a daemon before us had, at a restart of which the processes went on. */
static void gives_labels_back(void **state)
{
	struct labels after = { 0 };
	struct base_buf text = { 0 };
	struct process p = { .pid = 7, .start_time_ns = BEGAN };
	struct process forked = { .pid = 8, .start_time_ns = 2 * BEGAN - TICK };
	struct process other = { .pid = 9, .start_time_ns = BEGAN + 2 * TICK };
	struct process named = { .pid = 10, .start_time_ns = BEGAN };
	struct process none = { .pid = 11, .start_time_ns = BEGAN };

	(void)state;
	process_of(7, BEGAN, "first")->next_label = labels_get(&t.follow.labels, "next/1");
	/* Seen to begin, when a further step of the clock was over. */
	process_of(8, 0, "seen")->began_ns = 2 * BEGAN;
	process_of(9, BEGAN, "reused");
	process_of(10, BEGAN, "old");
	process_of(11, BEGAN, NULL);
	assert_int_equal(labels_keep_format(&t.follow.labels, t.follow.processes, BOOT, &text), 4);
	assert_int_equal(labels_keep_parse(&after, (const char *)text.data, text.len, BOOT), 0);
	assert_int_equal(after.nr_kept, 4);

	labels_keep_restore(&after, &p);
	assert_string_equal(p.label, "next/1");
	labels_keep_restore(&after, &forked);
	assert_string_equal(forked.label, "seen");
	/* Another process has the pid by now. */
	labels_keep_restore(&after, &other);
	assert_null(other.label);
	/* It has got another one since. */
	named.next_label = "new";
	labels_keep_restore(&after, &named);
	assert_null(named.label);
	labels_keep_restore(&after, &none);
	assert_null(none.label);
	/* Each is given back once. */
	assert_int_equal(after.nr_kept, 0);
	p.label = NULL;
	labels_keep_restore(&after, &p);
	assert_null(p.label);
	labels_release(&after);
	base_buf_release(&text);
}

/* Whom it has not met yet it hands on to the next one. */
static void hands_on(void **state)
{
	struct base_buf text = { 0 };

	(void)state;
	assert_int_equal(parse(&t.follow.labels, HEAD "3 50000000 a\n4 60000000 b\n"), 0);
	process_of(5, 70000000, "c");
	assert_int_equal(labels_keep_format(&t.follow.labels, t.follow.processes, BOOT, &text), 3);
	assert_int_equal(base_buf_append(&text, "", 1), 0);
	assert_string_equal((const char *)text.data,
			    HEAD "3 50000000 a\n4 60000000 b\n5 70000000 c\n");
	base_buf_release(&text);
}

static void refuses(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		HEAD "1 2 a",
		HEAD "\n",
		HEAD "0 2 a\n",
		HEAD "1 0 a\n",
		HEAD "-1 2 a\n",
		HEAD "2147483648 2 a\n",
		HEAD "1 18446744073709551616 a\n",
		HEAD "1 18446744073709551616\n",
		HEAD "1 2\n",
		HEAD "1 2 \n",
		HEAD "1 2 a b\n",
		HEAD "1 2 a\n1 2 \001\n",
		HEAD "1  2 a\n",
		HEAD " 1 2 a\n",
	};
	struct labels l = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_true(parse(&l, bad[i]) < 0);
		assert_int_equal(l.nr_kept, 0);
	}
	assert_int_equal(parse(&l, "dcpi-labels 2 " BOOT "\n1 2 a\n"), -DCPI_EVERSION);
	assert_int_equal(labels_keep_parse(&l, HEAD "1 2 a\0\n", strlen(HEAD) + 7, BOOT),
			 -DCPI_EFORMAT);
	/* Of another boot: nobody is there any more. */
	assert_int_equal(parse(&l, "dcpi-labels 1 other\n1 2 a\n"), 0);
	assert_int_equal(l.nr_kept, 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(parse(&l, HEAD "2147483647 2 a\n"), 0);
		assert_int_equal(l.nr_kept, 1);
	}
	labels_release(&l);
}

/* As many as are written, and no more. */
static void refuses_too_many(void **state)
{
	static const char line[] = "1 2 a\n";
	struct base_buf text = { 0 };
	struct labels l = { 0 };

	(void)state;
	assert_true(base_buf_append(&text, HEAD, strlen(HEAD)) >= 0);
	for (int i = 0; i < 1 << 16; i++)
		assert_true(base_buf_append(&text, line, strlen(line)) >= 0);
	assert_int_equal(labels_keep_parse(&l, (char *)text.data, text.len, BOOT), 0);
	assert_int_equal(l.nr_kept, 1 << 16);
	assert_true(base_buf_append(&text, line, strlen(line)) >= 0);
	assert_int_equal(labels_keep_parse(&l, (char *)text.data, text.len, BOOT), -DCPI_ELIMIT);
	assert_int_equal(l.nr_kept, 0);
	base_buf_release(&text);
	labels_release(&l);
}

/* Of a live process, by its own start time, through the file. */
static void keeps_in_a_file(void **state)
{
	char dir[] = "/tmp/dcpi-label-XXXXXX", path[64], other[64];
	struct labels after = { 0 };
	struct process p = { .pid = getpid() };
	struct stat st, again;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/labels", dir);
	labels_keep_read(&t.follow.labels, dir);
	assert_int_equal(t.follow.labels.nr_kept, 0);
	assert_int_equal(follow_scan(&t.follow, process_of(getpid(), 0, "me")), 0);
	labels_keep_write(&t.follow.labels, t.follow.processes, dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* What stands there already is not written again. */
	labels_keep_write(&t.follow.labels, t.follow.processes, dir);
	assert_int_equal(stat(path, &again), 0);
	assert_int_equal(again.st_ino, st.st_ino);

	labels_keep_read(&after, dir);
	assert_int_equal(proc_describe(&p), 0);
	labels_keep_restore(&after, &p);
	assert_string_equal(p.label, "me");
	/* A link may lead to anybody's. */
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink("other", path), 0);
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	labels_keep_read(&after, dir);
	assert_int_equal(after.nr_kept, 0);
	assert_int_equal(unlink(other), 0);
	labels_release(&after);
	/* Nobody has a label any more. */
	processes_end(t.follow.processes, processes_find(t.follow.processes, getpid()));
	errno = EIO;
	labels_keep_write(&t.follow.labels, t.follow.processes, dir);
	assert_false(t.follow.labels.failed);
	assert_int_equal(rmdir(dir), 0);
}

static int32_t dead_pid(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return child;
}

/* Nobody met them yet: those that live keep theirs, what is gone makes room. */
static void keeps_for_those_not_met(void **state)
{
	char dir[] = "/tmp/dcpi-label-XXXXXX", text[128], path[64];
	struct labels after = { 0 };

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(text, sizeof(text), HEAD "%d 2 dead\n%d 2 live\n", dead_pid(), getpid());
	assert_int_equal(parse(&t.follow.labels, text), 0);
	t.follow.labels.changed = true;
	errno = ENOENT;
	labels_keep_write(&t.follow.labels, t.follow.processes, dir);
	assert_false(t.follow.labels.changed);
	labels_keep_read(&after, dir);
	assert_int_equal(after.nr_kept, 1);
	assert_int_equal(after.kept[0].pid, getpid());
	assert_string_equal(after.kept[0].text, "live");
	labels_release(&after);
	snprintf(path, sizeof(path), "%s/labels", dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void says_once_what_fails(void **state)
{
	char dir[] = "/tmp/dcpi-label-XXXXXX", path[64];
	FILE *log = tmpfile(), *file;

	(void)state;
	assert_non_null(log);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/labels", dir);
	base_log_init(log, BASE_LOG_WARN, BASE_LOG_BARE);
	process_of(getpid(), BEGAN, "me");
	/* None yet is no failure. */
	labels_keep_read(&t.follow.labels, dir);
	labels_keep_write(&t.follow.labels, t.follow.processes, dir);
	labels_keep_read(&t.follow.labels, dir);
	assert_int_equal(trial_said(log, ""), 0);
	assert_int_equal(t.follow.labels.nr_kept, 1);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fclose(file), 0);
	labels_keep_read(&t.follow.labels, dir);
	assert_int_equal(trial_said(log, "what runs already has no labels: cannot read"), 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	/* The text is not what was written last, or it would not be written again. */
	process_of(1, BEGAN, "other");
	for (int i = 0; i < 2; i++)
		labels_keep_write(&t.follow.labels, t.follow.processes, dir);
	assert_int_equal(trial_said(log, "labels would not outlive this daemon"), 1);
	assert_int_equal(mkdir(dir, 0700), 0);
	labels_keep_write(&t.follow.labels, t.follow.processes, dir);
	assert_int_equal(trial_said(log, ""), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(dir), 0);
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	fclose(log);
}

/* Reading /proc gives it back; who had none gets none. */
static void restores_when_met(void **state)
{
	struct process *p = process_of(getpid(), 0, NULL);
	char text[128];

	(void)state;
	assert_int_equal(follow_scan(&t.follow, p), 0);
	assert_null(p->label);
	snprintf(text, sizeof(text), HEAD "%d %llu back\n", getpid(),
		 (unsigned long long)p->start_time_ns);
	assert_int_equal(parse(&t.follow.labels, text), 0);
	assert_int_equal(follow_scan(&t.follow, p), 0);
	assert_string_equal(p->label, "back");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(gives_labels_back, setup, teardown),
		cmocka_unit_test_setup_teardown(hands_on, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_in_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(keeps_for_those_not_met, setup, teardown),
		cmocka_unit_test_setup_teardown(says_once_what_fails, setup, teardown),
		cmocka_unit_test_setup_teardown(restores_when_met, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
