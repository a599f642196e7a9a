/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tests/system/jvm.sh runs. work.Work shares SECONDS: three methods of known parts of the CPU time;
 * parts SECONDS: one with two inlined into each other; units COUNT MS: classes one after the other, each run so long and
 * dropped, so that the room of their code is used again; wait: shares, when a line comes in. Seconds are of CPU time.
 * Prints "METHOD CPU-SECONDS" by the clock of its own thread.
 */
package work;

import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.util.function.LongUnaryOperator;

public class Work {
	static final ThreadMXBean clock = ManagementFactory.getThreadMXBean();
	static long result;

	static long sixty(int n) {
		long x = n;

		for (int i = 0; i < n; i++)
			x = x * 3 + (x >>> 7);
		return x;
	}

	static long thirty(int n) {
		long x = n;

		for (int i = 0; i < n; i++)
			x = x * 5 ^ (x >>> 9);
		return x;
	}

	static long ten(int n) {
		long x = n;

		for (int i = 0; i < n; i++)
			x = (x ^ x << 3) - i;
		return x;
	}

	/* Their lines are known to the test. */
	static long outer(int n) {
		long x = n;

		for (int i = 1; i <= n; i++)
			x += middle(x, i); // called: middle
		return x;
	}

	static long middle(long x, int i) {
		return inner(x, i) ^ i; // called: inner
	}

	static long inner(long x, int i) {
		for (int k = 1; k < 100; k++)
			x = x / k + i; // hot
		return x;
	}

	static final String[] names = { "sixty", "thirty", "ten" };
	static final int[] turns = { 60, 30, 10 };

	static void call(int which) {
		for (int i = 0; i < turns[which]; i++)
			result += which == 0 ? sixty(50000) : which == 1 ? thirty(50000) : ten(50000);
	}

	static void shares(double seconds) {
		long[] time = new long[3];
		long end = clock.getCurrentThreadCpuTime() + (long)(seconds * 1e9);

		while (clock.getCurrentThreadCpuTime() < end) {
			for (int which = 0; which < 3; which++) {
				long start = clock.getCurrentThreadCpuTime();

				call(which);
				time[which] += clock.getCurrentThreadCpuTime() - start;
			}
		}
		for (int which = 0; which < 3; which++)
			System.out.println(names[which] + " " + time[which] / 1e9);
	}

	static void parts(double seconds) {
		long end = clock.getCurrentThreadCpuTime() + (long)(seconds * 1e9);

		while (clock.getCurrentThreadCpuTime() < end)
			result += outer(1000);
	}

	/* Knows one class, under a name of its own. */
	static class Loader extends ClassLoader {
		Class<?> define(byte[] bytes) {
			return defineClass(null, bytes, 0, bytes.length);
		}
	}

	/* Unit0000's bytes with another number. */
	static byte[] unit(byte[] bytes, String number) {
		String text = new String(bytes, StandardCharsets.ISO_8859_1);

		return text.replace("Unit0000", "Unit" + number).getBytes(StandardCharsets.ISO_8859_1);
	}

	static long run(LongUnaryOperator unit, long ms) {
		long start = clock.getCurrentThreadCpuTime(), now;

		do {
			result = unit.applyAsLong(result);
			now = clock.getCurrentThreadCpuTime();
		} while (now - start < ms * 1000000);
		return now - start;
	}

	static void units(int count, long ms) throws Exception {
		byte[] bytes;

		try (InputStream in = Work.class.getResourceAsStream("Unit0000.class")) {
			bytes = in.readAllBytes();
		}
		System.out.println("began " + ManagementFactory.getRuntimeMXBean().getStartTime());
		for (int i = 1; i <= count; i++) {
			byte[] mine = unit(bytes, String.format("%04d", i));
			Class<?> c = new Loader().define(mine);
			Object o = c.getDeclaredConstructor().newInstance();

			System.out.println(c.getName() + " " + run((LongUnaryOperator)o, ms) / 1e9);
			if (i % 5 == 0)
				System.gc();
		}
	}

	public static void main(String[] args) throws Exception {
		switch (args[0]) {
		case "wait":
			System.out.println("ready");
			shares(1);
			System.in.read();
			System.out.println("attached");
			shares(Double.parseDouble(args[1]));
			break;
		case "shares":
			shares(Double.parseDouble(args[1]));
			break;
		case "parts":
			parts(Double.parseDouble(args[1]));
			break;
		default:
			units(Integer.parseInt(args[1]), Long.parseLong(args[2]));
		}
	}
}
