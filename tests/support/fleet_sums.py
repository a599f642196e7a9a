#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""fleet_sums.py DCPICAT [-apart] [-as NAME] DB…: all counts of databases, added up by image and offset, sorted, a line
each; -apart: by epoch and platform, too, which -as gives another name. What is equal here is equal bit for bit."""
import os
import subprocess
import sys


def profiles(db):
    for epoch in sorted(os.listdir(db)):
        if not epoch.isdigit():
            continue
        for platform in sorted(os.listdir(os.path.join(db, epoch))):
            folder = os.path.join(db, epoch, platform)
            if platform.startswith(".") or not os.path.isdir(folder):
                continue
            for name in sorted(os.listdir(folder)):
                if name[0] != "." and name not in ("workloads", "callpaths"):
                    yield epoch, platform, os.path.join(folder, name)


def read(cat, path):
    words, events, counts = {}, [], []
    out = subprocess.run([cat, path], stdout=subprocess.PIPE, check=True).stdout.decode("utf-8", "surrogateescape")
    for line in out.split("\n"):
        if line.startswith("0x"):
            fields = line.split()
            counts += [(int(fields[0], 16), e, int(n)) for e, n in zip(events, fields[1:]) if int(n)]
        elif line.startswith("event "):
            events.append(line.split()[2].split(":")[0])
        elif " " in line:
            word, value = line.split(None, 1)
            words.setdefault(word, value)
    return words, counts


def main():
    cat, args, apart, name = sys.argv[1], sys.argv[2:], False, None
    if args[0] == "-apart":
        apart, args = True, args[1:]
    if args[0] == "-as":
        name, args = args[1], args[2:]
    sums = {}
    for db in args:
        for epoch, platform, path in profiles(db):
            words, counts = read(cat, path)
            kind, image = words.get("kind", "file"), words.get("image", "-")
            if kind in ("dynamic", "named") or image == "-":
                image = words["path"]
            head = (epoch, name or platform) if apart else ()
            head += (kind, image, words.get("text", "-"), words.get("label", "-"))
            for off, event, n in counts:
                key = head + (f"{off:#x}", event)
                sums[key] = sums.get(key, 0) + n
    for key in sorted(sums):
        sys.stdout.buffer.write((" ".join(key) + f" {sums[key]}\n").encode("utf-8", "surrogateescape"))


main()
