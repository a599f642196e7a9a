// SPDX-License-Identifier: BSD-2-Clause
// A fixed amount of work for a JVM (60 rounds, or as many as its argument says): collections, strings,
// numbers, in some hundred methods that get compiled.

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

public class JvmWork {
	static long numbers(int n, int seed) {
		long x = seed, s = 0;
		for (int k = 0; k < n; k++) {
			x = (x * 48271 + k) % 2147483647;
			s += x & 7;
		}
		return s;
	}

	static int words(int n) {
		Map<String, Integer> m = new HashMap<>();
		for (int i = 0; i < n; i++)
			m.merge("w" + i * 31 % 997, 1, Integer::sum);
		return m.size();
	}

	static int sort(int n) {
		List<Integer> a = new ArrayList<>();
		for (int i = 0; i < n; i++)
			a.add(i * 7919 % 10007);
		Collections.sort(a);
		return a.get(n / 2);
	}

	static String text(int n) {
		StringBuilder b = new StringBuilder();
		for (int i = 0; i < n; i++)
			b.append(String.format("%d-%x;", i, i * 31));
		return b.reverse().toString();
	}

	static long tree(int n) {
		TreeMap<Integer, Long> t = new TreeMap<>();
		for (int i = 0; i < n; i++)
			t.put(i * 7919 % 100003, (long) i);
		return t.values().stream().mapToLong(v -> v * 3).filter(v -> v % 2 == 0).sum();
	}

	public static void main(String[] args) {
		int rounds = args.length > 0 ? Integer.parseInt(args[0]) : 60;
		long sink = 0;
		for (int round = 0; round < rounds; round++) {
			sink += numbers(3000000, round + 1) + words(60000) + sort(30000);
			sink += text(1500).length() + tree(30000);
		}
		if (sink == 5)
			System.out.println("never");
	}
}
