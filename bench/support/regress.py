#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Judges dcpiregress on databases of simulated builds, for bench/regress.

usage: regress.py BIN MKDB WORK RUNS ROUTINES

Two builds of a program are assembled: in the second one all routines stand at other places, some
have other names, some are new and some are gone. Databases are written by MKDB (lib/profdb), and
BIN/dcpiregress is run as users run it. Sizes of routines are distributed as Zipf has it. Seeds are
fixed.
"""
import json
import math
import os
import random
import subprocess
import sys

BIN, MKDB, WORK = sys.argv[1:4]
RUNS, NR = int(sys.argv[4]), int(sys.argv[5])
RENAMED, GONE, SLOWED = range(100, 110), range(200, 210), 20
HOSTS = [("one", 1.0), ("two", 3.0), ("three", 0.5)]
EPOCHS = [1700000000, 1700003600]


def names_of(build):
    v = []
    for i in range(NR):
        if i in GONE:
            if build == "b":
                continue
        v.append((i, f"new_{i}" if build == "b" and i in RENAMED else f"routine_{i}"))
    if build == "b":
        v += [(NR + i, f"added_{i}") for i in range(10)]
        random.Random(7).shuffle(v)
    return v


def assemble(build):
    """Returns the file and the offset of each routine in it."""
    v, path = names_of(build), f"{WORK}/{build}/prog"
    os.makedirs(f"{WORK}/{build}", exist_ok=True)
    with open(path + ".s", "w") as f:
        for i, name in v:
            f.write(f".globl {name}\n.type {name},@function\n{name}:\n")
            f.write(f"movl ${i + 1},%eax\nimull $3,%eax,%eax\nret\n.balign 16,0x90\n"
                    f".size {name},.-{name}\n")
    subprocess.run(["cc", "-shared", "-nostdlib", "-Wl,--build-id=sha1", "-o", path, path + ".s"],
                   check=True)
    out = subprocess.run(["readelf", "-SW", path], check=True, capture_output=True, text=True)
    text = next(x for x in out.stdout.splitlines() if " .text " in x).split(".text")[1].split()
    return path, {i: int(text[2], 16) + 16 * k for k, (i, _) in enumerate(v)}


def poisson(rng, mean):
    if mean > 400:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    n, p, bound = 0, 1.0, math.exp(-mean)
    while True:
        p *= rng.random()
        if p <= bound:
            return n
        n += 1


def write(build, path, where, rng, sizes, slower, replicates, deviations):
    """A database of one build; @replicates: (host, load, epoch); @deviations: by routine, or empty."""
    db = f"{WORK}/{build}.db"
    subprocess.run(["rm", "-rf", db], check=True)
    for host, load, epochs in replicates:
        text = [f"platform {host}"]
        for epoch in epochs:
            text += [f"epoch {epoch}", f"profile file {path} {path}", "event cpu-clock 1000000"]
            for i, offset in where.items():
                mean = sizes[i % NR] * load * (1 + slower.get(i, 0))
                if deviations:
                    square = deviations[i % NR] ** 2
                    mean *= rng.gammavariate(1 / square, square)
                n = poisson(rng, mean)
                if n:
                    text.append(f"at {offset:#x} {n}")
            text.append("finish")
        subprocess.run([MKDB, db], input="\n".join(text) + "\n", text=True, check=True)


def compare():
    p = subprocess.run([f"{BIN}/dcpiregress", "-json", "-every", "-set", "-db", f"{WORK}/a.db",
                        "-epoch", "all", "-set", "-db", f"{WORK}/b.db", "-epoch", "all"],
                       capture_output=True, text=True)
    if p.returncode not in (0, 1):
        sys.exit(f"dcpiregress: exit {p.returncode}: {p.stderr}")
    return p.returncode, json.loads(p.stdout)


def main():
    images = {b: assemble(b) for b in "ab"}
    weight = sum(1 / (k + 1) for k in range(NR))
    order = list(range(NR))
    random.Random(11).shuffle(order)
    sizes = {i: 1e9 / weight / (k + 1) for k, i in enumerate(order)}
    single = [("one", 1.0, EPOCHS[:1])]
    several = [(h, load / 6, EPOCHS) for h, load in HOSTS]
    shapes = {"single": (single, 0), "hosts": (several, 0.003), "uneven": (several, 0.02)}
    figures = {}

    for shape, (replicates, deviation) in shapes.items():
        # The biggest routines of both builds, and slow-downs from 0.1 to 5 %, or to far more than
        # they vary. Routines are not alike in how much they vary.
        most = max(0.05, 50 * deviation)
        fixed = [i for i in order if i not in RENAMED and i not in GONE][:4 * SLOWED:4]
        quiet = above = found = below = found_below = false = 0
        for run in range(RUNS):
            for slow in (False, True) if run < max(1, RUNS // 10) else (False,):
                rng = random.Random(f"{shape} {run} {slow}")
                slower = {}
                if slow:
                    slower = {i: 0.001 * (1000 * most) ** (k / (SLOWED - 1))
                              for k, i in enumerate(rng.sample(fixed, SLOWED))}
                unlike = [deviation * math.exp(rng.gauss(0, 0.5)) for _ in range(NR)] if deviation else []
                write("a", *images["a"], rng, sizes, {}, replicates, unlike)
                write("b", *images["b"], rng, sizes, slower, replicates, unlike)
                code, out = compare()
                rows = {r["procedure"]: r for r in out["rows"]}
                hit = {n for n, r in rows.items() if r["verdict"] == "slower"}
                if not slow:
                    quiet += code == 0
                    renamed = sum(r["renamed"] is not None for r in rows.values())
                    new = sum(r["verdict"] == "new" for r in rows.values())
                    gone = sum(r["verdict"] == "vanished" for r in rows.values())
                    continue
                for i, by in slower.items():
                    name = f"routine_{i}"
                    if by >= rows[name]["limit"]:
                        above += 1
                        found += name in hit
                    else:
                        below += 1
                        found_below += name in hit
                false += len(hit - {f"routine_{i}" for i in slower})
        limit = {x["samples"]: x["limit"] for x in out["limits"]}[10000]
        figures.update({f"{shape}_runs": RUNS, f"{shape}_quiet": quiet, f"{shape}_above": above,
                        f"{shape}_found": found, f"{shape}_below": below,
                        f"{shape}_found_below": found_below, f"{shape}_false": false,
                        f"{shape}_renamed": renamed, f"{shape}_new": new,
                        f"{shape}_vanished": gone, f"{shape}_limit_10000_pct": 100 * limit})
    for name, value in figures.items():
        print(f"{name} {value:g}")


main()
