/* SPDX-License-Identifier: BSD-2-Clause */
package work;

import java.util.function.LongUnaryOperator;

/* Work puts a number in place of the zeros, so that each is another class. */
public class Unit0000 implements LongUnaryOperator {
	public Unit0000() {
	}

	public long applyAsLong(long x) {
		for (int i = 0; i < 10000; i++)
			x = x * 7 + (x >>> 5) - i;
		return x;
	}
}
