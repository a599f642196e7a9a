/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that go through stubs of the linker. */
extern int first(int), second(int);
int use(int i)
{
	return first(i) + second(i);
}
