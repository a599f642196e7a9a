/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy_code OBJECT MILLISECONDS [shared | FILE], for tests/system/register.sh: copies the code of a
 * shared object into anonymous memory, which may be shared, or into a private mapping of FILE,
 * which is no program, prints "0xSTART SIZE" of that, waits for a line, runs it from its entry on
 * for so long, and prints the CPU time in milliseconds.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 100000 };

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int find_code(int fd, Elf64_Phdr *code, uint64_t *entry)
{
	Elf64_Ehdr head;

	if (pread(fd, &head, sizeof(head), 0) != sizeof(head))
		return -1;
	*entry = head.e_entry;
	for (int i = 0; i < head.e_phnum; i++)
		if (pread(fd, code, sizeof(*code),
			  (off_t)(head.e_phoff + (uint64_t)i * head.e_phentsize)) ==
			    sizeof(*code) &&
		    code->p_type == PT_LOAD && code->p_flags & PF_X)
			return 0;
	return -1;
}

static char *copy(int fd, const Elf64_Phdr *code, const char *where)
{
	int kind = where && strcmp(where, "shared") == 0 ? MAP_SHARED : MAP_PRIVATE;
	int file = where && kind == MAP_PRIVATE ? open(where, O_RDONLY | O_CLOEXEC) : -1;
	int prot = PROT_READ | PROT_EXEC | (file >= 0 ? PROT_WRITE : 0);
	char *to = mmap(NULL, code->p_filesz, PROT_READ | PROT_WRITE,
			file >= 0 ? kind : kind | MAP_ANONYMOUS, file, 0);

	if (to == MAP_FAILED ||
	    pread(fd, to, code->p_filesz, (off_t)code->p_offset) != (ssize_t)code->p_filesz ||
	    mprotect(to, code->p_filesz, prot) < 0)
		return NULL;
	return to;
}

int main(int argc, char **argv)
{
	int fd = argc >= 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	void (*run)(unsigned long turns);
	double start, end;
	Elf64_Phdr code;
	uint64_t entry;
	char *to;

	if (fd < 0 || find_code(fd, &code, &entry) < 0 ||
	    !(to = copy(fd, &code, argc > 3 ? argv[3] : NULL))) {
		fputs("copy_code: no such code\n", stderr);
		return 1;
	}
	printf("%p %llu\n", (void *)to, (unsigned long long)code.p_filesz);
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	run = (void (*)(unsigned long))(uintptr_t)(to + (entry - code.p_vaddr));
	start = cpu_ms();
	for (end = start + atof(argv[2]); cpu_ms() < end;)
		run(TURNS);
	printf("%.0f\n", cpu_ms() - start);
	return 0;
}
