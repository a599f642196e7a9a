/* SPDX-License-Identifier: BSD-2-Clause */
/* Procedures that only tables name; and labels in one, which are none. */
static int add(int x)
{
	return x + 1;
}

static int twice(int x)
{
	return 2 * x;
}

static int square(int x)
{
	return x * x;
}

static int negate(int x)
{
	return -x;
}

static int (*const volatile operations[])(int) = { add, twice, square, negate };

int apply(unsigned int which, int x)
{
	return operations[which % 4](x);
}

int run(const unsigned char *program, int x)
{
	static const void *const volatile labels[] = { &&plus, &&minus, &&shift, &&flip, &&end };

	goto *labels[*program++];
plus:
	x += 3;
	goto *labels[*program++];
minus:
	x -= 5;
	goto *labels[*program++];
shift:
	x <<= 7;
	goto *labels[*program++];
flip:
	x ^= 0x55;
	goto *labels[*program++];
end:
	return x;
}
