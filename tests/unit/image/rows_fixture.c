/* SPDX-License-Identifier: BSD-2-Clause */
/* A program, and a library with handlers of exceptions. */
static void end_of(int *p)
{
	*p = 0;
}

int rows_cleanup(void (*fn)(void));

int rows_cleanup(void (*fn)(void))
{
	__attribute__((cleanup(end_of))) int value = 1;

	fn();
	return value;
}

int main(int argc, char **argv)
{
	(void)argv;
	return argc - 1;
}
