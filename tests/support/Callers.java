// SPDX-License-Identifier: BSD-2-Clause
// Three methods that spend their time in one routine of the JVM's, which copies arrays: about 60, 30 and 10 parts of it.
// "Callers SECONDS" prints the CPU time of each, by the thread's own clock.

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

public class Callers {
	static final ThreadMXBean clock = ManagementFactory.getThreadMXBean();
	static final byte[] from = new byte[40000], to = new byte[40000];

	static void sixty(int n) {
		for (int i = 0; i < n; i++)
			System.arraycopy(from, i & 63, to, 0, 30000);
	}

	static void thirty(int n) {
		for (int i = 0; i < n; i++)
			System.arraycopy(from, i & 31, to, 0, 30000);
	}

	static void ten(int n) {
		for (int i = 0; i < n; i++)
			System.arraycopy(from, i & 15, to, 0, 30000);
	}

	static long took(int which, int n) {
		long begin = clock.getCurrentThreadCpuTime();
		if (which == 0)
			sixty(6 * n);
		else if (which == 1)
			thirty(3 * n);
		else
			ten(n);
		return clock.getCurrentThreadCpuTime() - begin;
	}

	public static void main(String[] args) {
		long[] ns = new long[3];
		// Until all are compiled.
		for (int i = 0; i < 300; i++)
			took(i % 3, 100);
		long end = clock.getCurrentThreadCpuTime() + Long.parseLong(args[0]) * 1000000000L;
		for (int i = 0; clock.getCurrentThreadCpuTime() < end; i = (i + 1) % 3)
			ns[i] += took(i, 500 + (i * 37 + (int) (ns[0] >> 12)) % 400);
		System.out.println("sixty " + ns[0] / 1e9);
		System.out.println("thirty " + ns[1] / 1e9);
		System.out.println("ten " + ns[2] / 1e9);
	}
}
