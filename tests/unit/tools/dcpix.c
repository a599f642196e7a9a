/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "dcpix.h"

/* As many others run that the list has to move for the second process of that number. */
static void test_a_pid_is_given_again(void **state)
{
	struct dcpix_run run = { .log_fd = -1 };
	char path[4200];

	(void)state;
	assert_int_equal(dcpix_run_open(&run, NULL), 0);
	snprintf(path, sizeof(path), "%s/out", run.folder);
	close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	for (int pid = 1; !run.cap_processes || run.nr_processes < run.cap_processes; pid++) {
		dprintf(run.log_fd, "==%d== Parent PID: 7777\n", pid);
		assert_int_equal(dcpix_log_read(&run, 0, NULL), 0);
	}
	dprintf(run.log_fd, "--1-- Start dumping at BB 9 (Prg.Term.)\n");
	dprintf(run.log_fd, "--1-- Dump to %s\n--1-- Dumping done.\n", path);
	dprintf(run.log_fd, "==1== Parent PID: 7777\n");
	assert_int_equal(dcpix_log_read(&run, 0, NULL), 0);
	assert_int_equal(run.nr_dumps, 1);
	assert_int_equal(run.processes[0].pid, 0);
	assert_true(run.processes[0].ended);
	assert_int_equal(run.processes[run.nr_processes - 1].pid, 1);
	assert_int_equal(dcpix_nr_open(&run), run.nr_processes - 1);
	dcpix_run_close(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_pid_is_given_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
