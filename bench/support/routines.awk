# SPDX-License-Identifier: BSD-2-Clause
# Assembly of very much code: awk -v from=N -v to=N -f routines.awk. Routines of some 250 bytes with names
# as C++ has them, which take time; x86-64.
BEGIN {
	print "\t.text"
	for (i = from; i < to; i++) {
		name = sprintf("_ZN5bench6module%03dC2Ev_routine_%06d", i / 1000, i)
		printf "\t.globl %s\n\t.type %s, @function\n\t.balign 16\n%s:\n\t.cfi_startproc\n", name, name, name
		printf "\tmovl $%d, %%ecx\n1:\taddl %%ecx, %%eax\n", 1000 + i % 7
		for (k = 0; k < 40; k++)
			printf "\timull $%d, %%eax, %%eax\n", 70001 + 3 * k
		printf "\tdecl %%ecx\n\tjnz 1b\n\tret\n\t.cfi_endproc\n\t.size %s, .-%s\n", name, name
	}
	print "\t.section .note.GNU-stack, \"\", @progbits"
}
