#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The most stack that each BPF program of object files may take, with the functions that it calls.

  bpf_stack.py OBJECT...     a line for each program: bytes, and the functions with their own bytes

Linux before 6.13 (on other machines than x86-64 also later ones) adds them up along each chain of calls, each
rounded up to 32 bytes (from 6.9 on to 16 where it compiles programs), and refuses a program whose sum is over 512.
A function's stack is here what it addresses below r10; the kernel may see less, where it finds that code is never
reached.
"""
import struct
import sys

CALL, LOAD_64, MOVE, ADD = 0x85, 0x18, 0xBF, 0x07
FUNCTION = 2
ROUND = 32


def elf(path):
    """Names, headers and bytes of the sections."""
    data = open(path, "rb").read()
    (at,) = struct.unpack_from("<Q", data, 40)
    size, nr, names = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQIIQQ", data, at + i * size) for i in range(nr)]
    strings = data[heads[names][4]:]
    return [(strings[h[0]:strings.index(0, h[0])].decode(), h, data[h[4]:h[4] + h[5]]) for h in heads]


def functions(sections):
    """The symbols by number, and {(section, byte): (name, length)} of the functions."""
    _, head, table = next(s for s in sections if s[1][1] == FUNCTION)
    strings = sections[head[6]][2]
    symbols, found = [], {}
    for name, info, _, section, value, size in struct.iter_unpack("<IBBHQQ", table):
        text = strings[name:strings.index(0, name)].decode()
        symbols.append((section, value))
        if info & 15 == FUNCTION:
            found[section, value] = text, size
    return symbols, found


def read(sections, symbols, section, at, size, moved):
    """A function's own bytes of stack, and the places of those that it calls or hands on."""
    code, deep, calls, based = sections[section][2], 0, set(), set()
    for i in range(at, at + size, 8):
        op, regs, off, imm = struct.unpack_from("<BBhi", code, i)
        dst, src = regs & 15, regs >> 4
        if op == MOVE and src == 10:
            based.add(dst)
            continue
        if op == ADD and dst in based:
            deep = max(deep, -imm)
        based.discard(dst)
        if 10 in (dst, src) and op & 7 in (1, 2, 3):
            deep = max(deep, -off)
        target = moved.get((section, i))
        if target is not None and op in (CALL, LOAD_64):
            where, value = symbols[target]
            calls.add((where, value + ((imm + 1) * 8 if op == CALL else imm)))
        elif op == CALL and src == 1:
            calls.add((section, i + 8 + imm * 8))
    return deep, calls


def deepest(all_of, place, name_of):
    deep, calls = all_of[place]
    best = max((deepest(all_of, c, name_of) for c in calls if c in all_of), default=(0, []))
    return best[0] + max(ROUND, -(-deep // ROUND) * ROUND), [f"{name_of[place][0]} {deep}"] + best[1]


def main():
    for path in sys.argv[1:]:
        sections = elf(path)
        symbols, found = functions(sections)
        moved = {}
        for _, head, data in sections:
            if head[1] == 9:
                for off, info in struct.iter_unpack("<QQ", data):
                    moved[head[7], off] = info >> 32
        all_of = {p: read(sections, symbols, *p, found[p][1], moved) for p in found}
        called = {c for _, calls in all_of.values() for c in calls}
        for place in sorted(all_of):
            if place not in called:
                # Programs stand in sections of their own.
                if sections[place[0]][0] == ".text":
                    sys.exit(f"{path}: no call of '{found[place][0]}' was found")
                total, chain = deepest(all_of, place, found)
                print(total, " > ".join(chain))


main()
