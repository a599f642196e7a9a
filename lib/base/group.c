/* SPDX-License-Identifier: BSD-2-Clause */
/* Helper programs go into a control group of their own, if there is one. */
#include <stdio.h>
#include <unistd.h>

#include "base.h"

static int group_fd = -1;

void base_group_set(int fd)
{
	group_fd = fd;
}

void base_group_join(pid_t pid)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", (int)pid);

	if (group_fd >= 0)
		(void)!write(group_fd, text, (size_t)len);
}
