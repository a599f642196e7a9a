/* SPDX-License-Identifier: BSD-2-Clause */
/* Units, containers and pods are found in the paths of cgroups. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "workload.h"

#define ID   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2  "f00d456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD  "12345678-9abc-def0-1234-56789abcdef0"
#define POD_ "12345678_9abc_def0_1234_56789abcdef0"

static void check(int (*of)(const char *cgroup, struct base_buf *out), const char *path,
		  const char *expected)
{
	struct base_buf out = { 0 };

	assert_int_equal(of(path, &out), 0);
	assert_int_equal(base_buf_printf(&out, "%s", ""), 0);
	assert_string_equal((const char *)out.data, expected);
	base_buf_release(&out);
}

static void test_unit(void **state)
{
	(void)state;
	check(workload_unit, "", "");
	check(workload_unit, "/", "");
	check(workload_unit, "/init.scope", "init.scope");
	check(workload_unit, "/system.slice/cron.service", "cron.service");
	check(workload_unit, "/system.slice/cron.service/", "cron.service");
	check(workload_unit, "/system.slice/cron.service/below/it", "cron.service");
	check(workload_unit, "/user.slice/user-1000.slice/session-3.scope", "session-3.scope");
	check(workload_unit, "/user.slice/user-1000.slice/user@1000.service/init.scope",
	      "init.scope");
	check(workload_unit,
	      "/user.slice/user-1000.slice/user@1000.service/app.slice/app-a\\x2db-7.scope",
	      "app-a\\x2db-7.scope");
	check(workload_unit, "/user.slice/user-1000.slice/user@1000.service", "user@1000.service");
	check(workload_unit, "/system.slice/docker-" ID ".scope/system.slice/web.service",
	      "web.service");
	check(workload_unit, "/system.slice/_cpu.service", "cpu.service");
	check(workload_unit, "/system.slice/var-lib.mount", "var-lib.mount");
	check(workload_unit, "/a.slice/a-b.slice", "a-b.slice");
	check(workload_unit, "/docker/" ID, "");
	check(workload_unit, "/.service/.scope", "");
	check(workload_unit, "/x.service.old", "");
}

static void test_container(void **state)
{
	(void)state;
	check(workload_container, "", "");
	check(workload_container, "///", "");
	check(workload_container, "/system.slice/cron.service", "");
	check(workload_container, "/system.slice/docker-" ID ".scope", ID);
	check(workload_container, "/system.slice/docker-0123456789ab.scope/init.scope",
	      "0123456789ab");
	check(workload_container, "/docker/" ID, ID);
	check(workload_container, "/docker/" ID "/docker/" ID2, ID2);
	check(workload_container, "/machine.slice/libpod-" ID ".scope/container", ID);
	check(workload_container, "/user.slice/libpod_pod_1/libpod-payload-" ID, ID);
	check(workload_container, "/machine.slice/libpod-conmon-" ID ".scope", "");
	check(workload_container, "/kubepods.slice/crio-conmon-" ID ".scope", "");
	check(workload_container, "/kubepods.slice/crio-" ID ".scope", ID);
	check(workload_container, "/kubepods.slice/x/cri-containerd-" ID ".scope", ID);
	check(workload_container, "/kubepods/burstable/pod" POD "/" ID, ID);
	check(workload_container,
	      "/system.slice/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" ID, ID);
	check(workload_container, "/system.slice/other-" ID ".scope", ID);
	check(workload_container, "/lxc.payload.web/system.slice/cron.service", "web");
	check(workload_container, "/lxc/web/ns", "web");
	check(workload_container, "/lxc.monitor.web", "");
	check(workload_container, "/machine.slice/machine-a\\x2db.scope", "a-b");
	check(workload_container, "/machine.slice/machine-a\\x00\\x2.scope", "a\\x2");
	check(workload_container, "/machine.slice/systemd-nspawn@deb.service/payload", "deb");
	/* An id is of 64 digits unless an engine's name says that it is one. */
	check(workload_container, "/docker/0123456789ab", "");
	check(workload_container, "/docker/0" ID, "");
	check(workload_container, "/docker-dead.scope", "");
	check(workload_container, "/lxc.payload.", "");
	check(workload_container, "/machine-.scope", "");
}

static void test_pod(void **state)
{
	(void)state;
	check(workload_pod, "/docker/" ID, "");
	check(workload_pod, "/kubepods/burstable/pod" POD "/" ID, POD);
	check(workload_pod, "/kubepods/pod0123456789abcdef0123456789abcdef/" ID,
	      "0123456789abcdef0123456789abcdef");
	check(workload_pod,
	      "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_
	      ".slice/cri-containerd-" ID ".scope",
	      POD);
	check(workload_pod, "/system.slice/kubepods-pod" POD_ ".slice:cri-containerd:" ID, POD);
	check(workload_pod, "/kubepods/podium", "");
	check(workload_pod, "/kubepods/pod", "");
	check(workload_pod, "/kubepods/pod" POD "0", "");
	check(workload_pod, "/kubepods-pod", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unit),
		cmocka_unit_test(test_container),
		cmocka_unit_test(test_pod),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
