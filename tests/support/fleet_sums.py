#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""fleet_sums.py DCPICAT [-apart] [-as NAME] [-keep DIR] DB…: all counts of databases, added up by image and offset,
sorted, a line each; -apart: by epoch and platform, too, which -as gives another name. -keep: databases that nothing
changes; what each has is kept in DIR, and read there the next time. What is equal here is equal bit for bit."""
import concurrent.futures
import os
import pickle
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


def counts_of(cat, db):
    """((epoch, platform, image…, offset, event), count) of all profiles, read as many at a time as there are CPUs."""
    found = list(profiles(db))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        all_read = list(pool.map(lambda p: read(cat, p[2]), found))
    result = []
    for (epoch, platform, _), (words, counts) in zip(found, all_read):
        kind, image = words.get("kind", "file"), words.get("image", "-")
        if kind in ("dynamic", "named") or image == "-":
            image = words["path"]
        head = (epoch, platform, kind, image, words.get("text", "-"), words.get("label", "-"))
        result += [(head + (f"{off:#x}", event), n) for off, event, n in counts]
    return result


def kept(cat, db, folder):
    path = os.path.join(folder, os.path.basename(db))
    if not os.path.exists(path):
        with open(path, "wb") as file:
            pickle.dump(counts_of(cat, db), file)
    with open(path, "rb") as file:
        return pickle.load(file)


def main():
    cat, args, apart, name, keep = sys.argv[1], sys.argv[2:], False, None, None
    if args[0] == "-apart":
        apart, args = True, args[1:]
    if args[0] == "-as":
        name, args = args[1], args[2:]
    if args[0] == "-keep":
        keep, args = args[1], args[2:]
    sums = {}
    for db in args:
        for key, n in kept(cat, db, keep) if keep else counts_of(cat, db):
            key = (key[0], name or key[1], *key[2:]) if apart else key[2:]
            sums[key] = sums.get(key, 0) + n
    for key in sorted(sums):
        sys.stdout.buffer.write((" ".join(key) + f" {sums[key]}\n").encode("utf-8", "surrogateescape"))


main()
