/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose samples they were, by the JVM's own log: Truth STREAM LOG CLOCKS PID. STREAM is what "dcpid -record"
 * wrote, LOG what -XX:+LogCompilation did, CLOCKS a log whose lines begin with timenanos and uptimenanos. Prints "METHOD
 * LEAST MOST" for each method that has samples: of LEAST samples it alone can be the owner, of MOST it may
 * be. And "swaps N": so often code stood where other code had been sampled before.
 */
package work;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

public class Truth {
	/* Stamps have three decimals. */
	static final long SLACK_NS = 1_000_000;

	static class Code {
		String name;
		long start, end; // addresses
		long born, gone = Long.MAX_VALUE / 2; // CLOCK_MONOTONIC
		boolean sampled;

		boolean mayOwn(long addr, long first, long last) {
			return addr >= start && addr < end && born - SLACK_NS <= last && gone + SLACK_NS >= first;
		}
	}

	static final List<Code> all = new ArrayList<>();
	static final Map<String, Code> byId = new HashMap<>();
	static long began; // the JVM, by CLOCK_MONOTONIC
	static final Map<String, long[]> samples = new TreeMap<>();

	/* The value of a word NAME='VALUE' or NAME=VALUE, or null. */
	static String word(String line, String name) {
		Matcher m = Pattern.compile("[ ]" + name + "=(?:'([^']*)'|(\\S+))").matcher(line);

		return !m.find() ? null : m.group(1) != null ? m.group(1) : m.group(2);
	}

	static long number(String line, String name) {
		return Long.decode(word(line, name));
	}

	static long stamp(String line) {
		return began + (long)(Double.parseDouble(word(line, "stamp")) * 1e9);
	}

	/* Parts that are empty are not in the log. */
	static long afterCode(String line) {
		for (String part : new String[] { "oops", "metadata", "scopes_data", "scopes_pcs", "dependencies" })
			if (word(line, part + "_offset") != null)
				return number(line, part + "_offset");
		return number(line, "size");
	}

	static void made(String line) {
		Code c = new Code();
		long address = number(line, "address");
		String[] method = word(line, "method").split(" ");

		c.name = method[0] + "." + method[1];
		c.start = address + number(line, "insts_offset");
		c.end = address + afterCode(line);
		c.born = stamp(line);
		all.add(c);
		byId.put(word(line, "compile_id"), c);
	}

	static void logLine(String line) {
		if (line.startsWith("<nmethod "))
			made(line);
		else if (line.startsWith("<make_not_entrant") && line.contains("zombie='1'") ||
			 line.startsWith("<make_unloaded"))
			byId.get(word(line, "compile_id")).gone = stamp(line);
	}

	static void add(Code c, long n, boolean alone) {
		long[] sum = samples.computeIfAbsent(c.name, k -> new long[2]);

		sum[0] += alone ? n : 0;
		sum[1] += n;
		c.sampled = true;
	}

	static void count(String line) {
		long addr = number(line, "addr"), last = number(line, "t");
		long first = word(line, "first") != null ? number(line, "first") : last;
		long n = word(line, "n") != null ? number(line, "n") : 1;
		List<Code> owners = new ArrayList<>();

		for (Code c : all)
			if (c.mayOwn(addr, first, last))
				owners.add(c);
		boolean alone = owners.stream().map(c -> c.name).distinct().count() == 1;
		owners.stream().filter(c -> !alone || c == owners.get(0)).forEach(c -> add(c, n, alone));
	}

	static boolean overlap(Code a, Code b) {
		return a != b && a.sampled && b.sampled && a.start < b.end && b.start < a.end &&
			a.gone <= b.born + SLACK_NS && !a.name.equals(b.name);
	}

	static long began(String path) throws IOException {
		String line = Files.readAllLines(Path.of(path)).get(0);
		Matcher m = Pattern.compile("\\[(\\d+)ns\\]\\[(\\d+)ns\\]").matcher(line);

		if (!m.find())
			throw new IOException("no clocks in '" + line + "'");
		return Long.parseLong(m.group(1)) - Long.parseLong(m.group(2));
	}

	public static void main(String[] args) throws IOException {
		began = began(args[2]);
		try (Stream<String> lines = Files.lines(Path.of(args[1]))) {
			lines.forEach(Truth::logLine);
		}
		try (Stream<String> lines = Files.lines(Path.of(args[0]))) {
			lines.filter(l -> l.startsWith("count ") && args[3].equals(word(l, "pid")) &&
				     word(l, "mode") == null).forEach(Truth::count);
		}
		samples.forEach((name, sum) -> System.out.println(name + " " + sum[0] + " " + sum[1]));
		System.out.println("swaps " + all.stream().mapToLong(b ->
			all.stream().filter(a -> overlap(a, b)).count()).sum());
	}
}
