#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How much of a program's calling-context tree a profiler found (bench/contexts).

  contexts.py costs PROGRAM CALLGRIND SAMPLES    samples and instructions of each function, from one input
  contexts.py overlap PROGRAM COSTS CALLGRIND SAMPLES
      "OVERLAP PATHS CONTEXTS COMPLETE": the degree of overlap in percent, the sampled paths, the contexts of callgrind's
      tree, and the percentage of paths that reach main

A context is the functions from main on, where a function that calls itself stands once. A function whose last act is a
jump to another one is no longer on the stack: callgrind counts it as a caller, and is corrected by the program's code.
CALLGRIND is written with
--separate-callers, SAMPLES is the text of "dcpiexport folded" or a perf.data with call chains, whose addresses are
the program's own: it is linked statically. A sample weighs as many instructions as one of its function did on the other
input.
"""
import bisect
import collections
import re
import struct
import subprocess
import sys


def read_names(program):
    """Each name of a function, to the first name of its address."""
    first, names = {}, {}
    for line in subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines():
        address, _, kind_name = line.partition(" ")
        kind, _, name = kind_name.partition(" ")
        if kind in "tTwWiI" and address:
            plain = name.split("@")[0]
            names.setdefault(plain, first.setdefault(address, plain))
    return names


def plain_name(name, names):
    name = name.split("@")[0].removesuffix(".cold")
    return names.get(name, name)


def context_of(frames, names):
    """The frames, outermost first, as a context."""
    context = []
    for frame in frames:
        name = plain_name(frame, names)
        if name == "main":
            context = []
        if name != "(below main)" and (not context or context[-1] != name):
            context.append(name)
    return tuple(context)


LABEL = re.compile(r"^[0-9a-f]+ <(.*)>:$")
BRANCH = re.compile(r"\t(?:bnd |notrack )*(call|jmp|j[a-z]+) +(?:[0-9a-f]+ <([^>]*)>|\*)")


def read_branches(program, names):
    """Of each function: those that it calls, and those that it jumps to; None is one that only registers or memory know."""
    calls, jumps, here = collections.defaultdict(set), collections.defaultdict(set), ""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        label, branch = LABEL.match(line), BRANCH.search(line)
        if label:
            here = plain_name(label[1], names)
        elif branch and branch[2] is None:
            (calls if branch[1] == "call" else jumps)[here].add(None)
        elif branch and (branch[1] == "call" or "+0x" not in branch[2]):
            (calls if branch[1] == "call" else jumps)[here].add(plain_name(branch[2].split("+0x")[0], names))
    return calls, jumps


def without_jumps(context, branches):
    """The context without functions that left by a jump to the next one."""
    calls, jumps = branches
    kept = []
    for i, name in enumerate(context):
        to = context[i + 1] if i + 1 < len(context) else None
        called = to is None or to in calls[name]
        left = not called and (to in jumps[name] or (None in jumps[name] and None not in calls[name]))
        if not left and (not kept or kept[-1] != name):
            kept.append(name)
    return tuple(kept)


def read_callgrind(path, names, branches):
    """Instructions of each context."""
    tree, known, context, inclusive = collections.Counter(), {}, (), False
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith(("fn=", "cfn=")):
                number, _, text = line.partition("=")[2].rstrip("\n").partition(" ")
                if text:
                    # A number tells how often a function called itself.
                    functions = [f for f in text.split("'") if not f.isdigit()]
                    known[number] = without_jumps(context_of(reversed(functions), names), branches)
                if line[0] == "f":
                    context = known[number]
            elif line.startswith("calls="):
                inclusive = True
            elif line[0] in "0123456789+-*":
                if not inclusive:
                    tree[context] += int(line.split()[1])
                inclusive = False
    return tree


def read_folded(path, names):
    """Samples of each context that were taken in the program's own code, so in a function with one of its names."""
    samples = collections.Counter()
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            stack, _, n = line.rstrip("\n").rpartition(" ")
            frames = stack.split(";")
            if frames[-1] in names and all(f in names or f.startswith("(") for f in frames):
                samples[context_of(frames, names)] += int(n)
    return samples


def read_symbols(program):
    """Start, end and name of each function, by address."""
    rows = []
    for line in subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "tTwWiI":
            start = int(fields[0], 16)
            rows.append((start, start + int(fields[1], 16), fields[3]))
    return sorted(rows)


def fields_before_chain(sample_type):
    """How many words a sample has before its call chain: each bit of the type is one, and a read value none of ours has."""
    if sample_type & (1 << 4) or not sample_type & (1 << 5):
        sys.exit("contexts.py: samples without call chains")
    return sum(bool(sample_type & bit) for bit in (1 << 16, 1, 2, 4, 8, 1 << 6, 1 << 9, 1 << 7, 1 << 8))


def read_chains(path):
    """The call chains of a perf.data, innermost address first."""
    with open(path, "rb") as f:
        data = f.read()
    attrs, _, at, size = struct.unpack_from("<QQQQ", data, 24)
    skip = 8 + 8 * fields_before_chain(struct.unpack_from("<Q", data, attrs + 24)[0])
    end = at + size
    while at < end:
        kind, _, length = struct.unpack_from("<IHH", data, at)
        if kind == 9:  # PERF_RECORD_SAMPLE
            nr = struct.unpack_from("<Q", data, at + skip)[0]
            chain = struct.unpack_from(f"<{nr}Q", data, at + skip + 8)
            yield [address for address in chain if address < 1 << 63]
        at += length


def read_perf(path, program, names):
    """Samples of each context that were taken in the program's own code."""
    samples, symbols = collections.Counter(), read_symbols(program)
    starts = [s[0] for s in symbols]

    def name_of(address):
        i = bisect.bisect_right(starts, address) - 1
        return symbols[i][2] if i >= 0 and address < symbols[i][1] else None

    for chain in read_chains(path):
        # A return address stands behind its call.
        frames = [name_of(a - (i > 0)) for i, a in enumerate(chain)]
        if frames and frames[0]:
            samples[context_of((f or "?" for f in reversed(frames)), names)] += 1
    return samples


def read_samples(path, program, names):
    with open(path, "rb") as f:
        is_perf = f.read(8) == b"PERFILE2"
    return read_perf(path, program, names) if is_perf else read_folded(path, names)


def by_leaf(tree):
    leaves = collections.Counter()
    for context, n in tree.items():
        leaves[context[-1] if context else ""] += n
    return leaves


def costs(program, callgrind, samples_path):
    names = read_names(program)
    samples = by_leaf(read_samples(samples_path, program, names))
    for name, instructions in by_leaf(read_callgrind(callgrind, names, read_branches(program, names))).items():
        print(samples[name], instructions, name)


def read_costs(path):
    """Instructions of a sample of each function, and of one of any other. Few samples count as some of all."""
    with open(path, encoding="utf-8") as lines:
        rows = [line.rstrip("\n").split(" ", 2) for line in lines]
    mean = sum(int(r[1]) for r in rows) / max(1, sum(int(r[0]) for r in rows))
    few = 10
    return {name: (int(n) + mean * few) / (int(s) + few) for s, n, name in rows}, mean


def overlap(program, costs_path, callgrind, samples_path):
    names = read_names(program)
    truth = read_callgrind(callgrind, names, read_branches(program, names))
    samples = read_samples(samples_path, program, names)
    cost, mean = read_costs(costs_path)
    weight = {c: n * cost.get(c[-1] if c else "", mean) for c, n in samples.items()}
    of_truth, of_samples = sum(truth.values()), sum(weight.values()) or 1
    common = sum(min(n / of_truth, weight.get(c, 0) / of_samples) for c, n in truth.items())
    paths = sum(samples.values())
    complete = sum(n for c, n in samples.items() if c[:1] == ("main",))
    print(f"{100 * common:.2f} {paths} {len(truth)} {100 * complete / max(1, paths):.2f}")


if __name__ == "__main__":
    {"costs": costs, "overlap": overlap}[sys.argv[1]](*sys.argv[2:])
