/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests/system/overload.sh: calls bpf() without end, during which its CPU is not sampled. */
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
	union bpf_attr map = {
		.map_type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = 8, .max_entries = 16
	};
	uint32_t key = 1;
	uint64_t value = 1;
	long fd = syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof(map));
	union bpf_attr update = { .map_fd = (uint32_t)fd,
				  .key = (uintptr_t)&key,
				  .value = (uintptr_t)&value };

	while (syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &update, sizeof(update)) == 0)
		;
	perror("bpf_loop");
	return 1;
}
