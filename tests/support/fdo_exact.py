# SPDX-License-Identifier: BSD-2-Clause
"""fdo_exact.py EDGES XCT: do the conditional branches of a routine made at run time go the ways that dcpix counted?

EDGES has lines FROM TO COUNT, by offsets in the routine. Where the routine stood in the other run is not written in
XCT: it is where all of its usual branches have an edge. Each branch executed more than 1,000 times, of which one way is
taken by 60 % or more, must have that way in both.
"""
import sys


def read_edges(name):
    ways = {}
    for line in open(name):
        start, end, count = map(int, line.split())
        ways.setdefault(start, {})[end] = count
    return ways


def read_exact(name):
    runs, taken, inside = {}, {}, False
    for words in map(str.split, open(name)):
        if words[0] == "image":
            inside = words[1] in ("process", "dynamic")
        elif inside and words[0] == "n":
            at = 0
            for distance in [words[1]] + words[3:]:
                at += int(distance, 16)
                runs[at] = int(words[2])
        elif inside and words[0] == "e" and words[2] != "-":
            taken[int(words[1], 16), int(words[2], 16)] = int(words[3])
    return runs, taken


def find_base(ways, taken):
    """Jumps to elsewhere than the next instruction, of which an edge tells in both."""
    usual = [(start, end) for start in ways for end, n in ways[start].items() if n >= 100 and abs(end - start) > 6]
    start, end = usual[0]
    bases = [a - start for a, b in taken if b - a == end - start]
    return [b for b in bases if all((b + s, b + e) in taken for s, e in usual)]


def main():
    ways = read_edges(sys.argv[1])
    runs, taken = read_exact(sys.argv[2])
    bases = find_base(ways, taken)
    if len(bases) != 1:
        sys.exit(f"the routine stands at {len(bases)} places")
    compared = 0
    for start in sorted(ways):
        total = runs.get(bases[0] + start, 0)
        to = {end: taken.get((bases[0] + start, bases[0] + end), 0) for end in ways[start]}
        going = sum(to.values())
        for end in to:  # the way without an edge is the next instruction's
            if to[end] == 0:
                to[end] = total - going
        best = max(to, key=to.get)
        if total <= 1000 or to[best] < 0.6 * total:
            continue
        compared += 1
        print(start, "exact", to, "traces", ways[start])
        if max(ways[start], key=ways[start].get) != best:
            sys.exit(f"the branch at {start} goes another way")
    print(compared, "branches go the same way")
    if compared < 3:
        sys.exit("too few branches")


main()
