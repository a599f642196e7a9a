/* SPDX-License-Identifier: BSD-2-Clause */
/* Where this process stands in the machine: a container may lack what the kernel has. */
#include <sys/stat.h>
#include <unistd.h>

#include "source.h"

/* Inode of the user namespace that the machine's own root is in (include/linux/proc_ns.h). */
#define INITIAL_USER_NAMESPACE 0xeffffffdu

bool driver_in_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) == 0 && st.st_ino != INITIAL_USER_NAMESPACE;
}

const char *driver_run_as_root(void)
{
	return driver_in_user_namespace() ? "run outside of this user namespace, as root"
					  : "run as root";
}

const char *driver_no_types(const char **hint)
{
	bool mounted = access("/sys/kernel", F_OK) == 0;

	*hint = mounted ? "CONFIG_DEBUG_INFO_BTF is needed" : "mount -t sysfs sysfs /sys";
	return mounted ? "this kernel has no BTF"
		       : "/sys is not mounted, which has the kernel's BTF";
}
