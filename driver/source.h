/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that sources share, beside what driver.h says of each. driver_open calls a source's
 * function NAME_open (bpf_open, perf_open, …).
 */
#ifndef DCPI_DRIVER_SOURCE_H
#define DCPI_DRIVER_SOURCE_H

#include "driver.h"

/* ---- where we are (host_linux.c) ------------------------------------------------------------- */

/* In one of a container's: what capabilities it has there are none for sampling or for BPF. */
bool driver_in_user_namespace(void);
/* "run as root", or what that means in a user namespace; a hint begins with it. */
const char *driver_run_as_root(void);
/* Why /sys/kernel/btf/vmlinux is not there, and what to do. */
const char *driver_no_types(const char **hint);

#endif
