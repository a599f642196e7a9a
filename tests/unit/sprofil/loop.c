/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop.h"

#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
static const unsigned char code[LOOP_LEN] = {
	0x48, 0x83, 0xef, 0x01, /* sub rdi, 1 */
	0x75, 0xfa, 0x66, 0x90, /* jnz -6; two-byte nop */
	0xc3, 0xcc, 0xcc, 0xcc, /* ret */
};
#elif defined(__aarch64__)
static const unsigned char code[LOOP_LEN] = {
	0x00, 0x04, 0x00, 0xd1, /* sub x0, x0, #1 */
	0xe0, 0xff, 0xff, 0xb5, /* cbnz x0, -4 */
	0xc0, 0x03, 0x5f, 0xd6, /* ret */
};
#else
#error "no loop for this machine"
#endif

unsigned char *loop_room(size_t len)
{
	void *space = mmap(NULL, len, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return space == MAP_FAILED ? NULL : space;
}

void loop_room_free(unsigned char *space, size_t len)
{
	munmap(space, len);
}

void loop_write(unsigned char *at)
{
	memcpy(at, code, sizeof(code));
	__builtin___clear_cache((char *)at, (char *)at + sizeof(code));
}

void loop_run(const unsigned char *at)
{
	void (*loop)(uint64_t) = (void (*)(uint64_t))(uintptr_t)at;

	loop(200000);
}
