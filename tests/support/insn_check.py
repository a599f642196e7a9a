#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
insn_check.py facts FACTS.json ROWS.json…: the rows of "dcpiprofileme -json -insns" have what FACTS.json
(insn_files.py) tells of each offset, to the sample. insn_check.py names NAMES: the metrics, 32 in a line, for all
bits and counters that "dcpiprofileme -names" lists.
insn_check.py perf FACTS.json SCRIPT: perf's own decoding of the same file comes to the same totals.
insn_check.py listed FACTS.json LIST.json…: so has "dcpilist -json -pm" of the instructions that it lists, "dcpiprof -json
-pm" of their sum, and "dcpicat -json -insns" of all.
insn_check.py ran RAN.json LIST.json: "dcpilist -json" has each instruction's executions and CPI as RAN.json tells them.
"""
import collections
import json
import re
import sys


def say_names(path):
    words, kind = {"bits": [], "counters": []}, None
    for line in open(path, encoding="utf-8"):
        if not line.startswith(" "):
            kind = "bits" if line.startswith("bits") else "counters"
        else:
            words[kind].append(line.split()[0])
    metrics = words["bits"] + ["!" + w for w in words["bits"]] + [":" + w for w in words["counters"]]
    for i in range(0, len(metrics), 32):
        print(",".join(metrics[i:i + 32]))


def expected(facts, metric):
    """Samples that tell it, and its value."""
    if metric.startswith(":"):
        values = [f["counters"][metric[1:]] for f in facts if metric[1:] in f["counters"]]
        return len(values), sum(values)
    bit, want = metric.lstrip("!"), not metric.startswith("!")
    told = [f["bits"][bit] for f in facts if bit in f["bits"]]
    return len(told), sum(bool(t) == want for t in told)


def check(facts, what, row):
    if row["samples"] != len(facts):
        sys.exit(f"{what}: {row['samples']} samples, not {len(facts)}")
    for m in row["metrics"]:
        told, value = expected(facts, m["metric"])
        if (m["told"], m["value"]) != (told, value if told else None):
            sys.exit(f"{what}: {m}, not {value} of {told}")
    return len(row["metrics"])


def check_facts(path, rows):
    by_offset, nr = collections.defaultdict(list), 0
    for f in json.load(open(path, encoding="utf-8")):
        by_offset[f["offset"]].append(f)
    for name in rows:
        answer = json.load(open(name, encoding="utf-8"))
        if {r["offset"] for r in answer["rows"]} != set(by_offset):
            sys.exit(f"{name}: other offsets")
        for row in answer["rows"]:
            nr += check(by_offset[row["offset"]], f"{name}, offset {row['offset']:#x}", row)
        nr += check(sum(by_offset.values(), []), f"{name}, total", answer["total"])
    print(f"{nr} values")


def check_listed(path, listings):
    by_offset, nr = collections.defaultdict(list), 0
    for f in json.load(open(path, encoding="utf-8")):
        by_offset[f["offset"]].append(f)
    for name in listings:
        answer = json.load(open(name, encoding="utf-8"))
        if answer["schema"].startswith("dcpicat"):
            nr += check_cat(by_offset, name, answer["profiles"][0])
        elif answer["schema"].startswith("dcpiprof"):
            for row in answer["rows"]:
                first = int(row["address"], 16) - 0x400000
                last = first + {"hot": 0x24, "warm": 0x1f}[row["procedure"]]
                mine = sum((v for k, v in by_offset.items() if first <= k < last), [])
                nr += check(mine, f"{name}, {row['procedure']}", row["instruction_samples"])
        else:
            for unit in answer["instructions"]:
                off = int(unit["address"], 16) - 0x400000
                nr += check(by_offset[off], f"{name}, offset {off:#x}", unit["instruction_samples"])
    print(f"{nr} values")


def check_cat(by_offset, name, profile):
    """Each bit that is told, set and not set, and each counter at each offset."""
    told = collections.Counter()
    for e in profile["insns"]:
        for bit, is_set in e["bits"].items():
            told[e["offset"], bit if is_set else "!" + bit] += e["samples"]
        for counter, total in e["sums"].items():
            told[e["offset"], ":" + counter] += total
    for (off, metric), value in told.items():
        if value != expected(by_offset[off], metric)[1]:
            sys.exit(f"{name}, offset {off:#x}: {metric} {value}")
    told = sum(e["samples"] for e in profile["insns"])
    if told != sum(len(v) for v in by_offset.values()):
        sys.exit(f"{name}: {told} samples")
    return told


# What perf's decoder prints: a pattern, of which the first group is a number, or none; and what it is in the facts.
PRINTED = {
    "ibs": [
        (r"^ibs_op_data:.*? CompToRetCtr +(\d+)", ":completed"), (r"^ibs_op_data:.*? TagToRetCtr +(\d+)", ":inflight"),
        (r"^ibs_op_data:.*? OpBrnTaken 1", "taken"), (r"^ibs_op_data:.*? OpBrnMisp 1", "mispredict"),
        (r"^ibs_op_data:.*? OpReturn 1", "return"), (r"^ibs_op_data:.*? BrnRet 1", "branch"),
        (r"^ibs_op_data:.*? Microcode 1", "microcode"),
        (r"^ibs_op_data3:.*? LdOp 1", "load"), (r"^ibs_op_data3:.*? StOp 1", "store"),
        (r"^ibs_op_data3:.*? DcMiss 1", "dcmiss"), (r"^ibs_op_data3:.*? DcL1TlbMiss 1", "dtbmiss"),
        (r"^ibs_op_data3:.*? DcL2TlbMiss 1", "dtb2miss"), (r"^ibs_op_data3:.*? DcMisAcc 1", "unaligned"),
        (r"^ibs_op_data3:.*? DcLockedOp 1", "locked"), (r"^ibs_op_data3:.*? SwPf 1", "prefetch"),
        (r"^ibs_op_data3:.*? TlbRefillLat +(\d+)", ":xlat"), (r"^ibs_op_data3:.*? DcMissLat +(\d+)", ":latency"),
        (r"^ibs_op_data2:.*? DataSrc 3", "memory"),
        (r"^ibs_fetch_ctl:.*? Comp 1", "fetched"), (r"^ibs_fetch_ctl:.*? IcMiss 1", "icmiss"),
        (r"^ibs_fetch_ctl:.*? L1TlbMiss 1", "itbmiss"), (r"^ibs_fetch_ctl:.*? Lat +(\d+)", ":fetchlat"),
    ],
    "spe": [
        (r" LAT (\d+) TOT", ":inflight"), (r" LAT (\d+) ISSUE", ":issue"), (r" LAT (\d+) XLAT", ":xlat"),
        (r" EV .*?\bRETIRED", "retired"), (r"\bEXCEPTION-GEN", "trap"),
        (r"\bMISPRED", "mispredict"), (r"\bL1D-REFILL", "dcmiss"), (r"\bTLB-REFILL", "dtb2miss"),
        (r"\bLLC-REFILL", "llcmiss"), (r"\bREMOTE-ACCESS", "remote"), (r"\bALIGNMENT", "unaligned"),
        (r" LD\b", "load"), (r" ST\b", "store"), (r" B(?: |$)", "branch"), (r" B COND", "cond"),
        (r" B .*\bIND\b", "indirect"),
    ],
}


def printed_pebs(lines):
    """perf prints the word of the source with its meaning, the weight's first part, and its second. The last
    sample's address is not exact."""
    sums = collections.Counter()
    for line in lines[:-1]:
        fields = line.split()
        sums[":latency"] += int(fields[-2])
        sums[":inflight"] += int(fields[-1])
        for text, bit in (("|OP LOAD|", "load"), ("|OP STORE|", "store"),
                          ("|SNP HitM|", "modified"), ("|TLB L2 miss", "dtb2miss"),
                          ("|LVL L1 or L1 hit", "!dcmiss"), ("Remote", "remote")):
            sums[bit] += text in line
    return sums


def check_perf(path, script):
    facts = json.load(open(path, encoding="utf-8"))
    name = re.sub(r".*/|\.json$", "", path)
    lines = [x.rstrip("\n") for x in open(script, encoding="utf-8", errors="replace")]
    if name == "pebs":
        sums = printed_pebs(lines)
    else:
        sums = collections.Counter()
        for pattern, metric in PRINTED[name]:
            found = [m for m in (re.search(pattern, x) for x in lines) if m]
            sums[metric] = sum(int(m[1]) if m.re.groups else 1 for m in found)
    for metric, value in sorted(sums.items()):
        if value != expected(facts, metric)[1]:
            sys.exit(f"{name}: perf says {metric} {value}, the facts {expected(facts, metric)[1]}")
    if not sums:
        sys.exit(f"{name}: perf says nothing")
    print(f"{name}: {len(sums)} totals of perf's")


def check_ran(path, listing):
    ran = json.load(open(path, encoding="utf-8"))
    answer = json.load(open(listing, encoding="utf-8"))
    if not answer["estimate"].get("measured"):
        sys.exit(f"{listing}: nothing was measured")
    for insn in answer["instructions"]:
        times, cpi = ran.pop(str(insn["offset"]))
        told = insn["frequency"], insn["cpi"]
        if abs(told[0] - times) > 1e-5 * times or abs((told[1] or 0) - cpi) > 1e-5 * cpi:
            sys.exit(f"{listing}: {insn['text']} at {insn['offset']:#x} ran {told}, not {(times, cpi)}")
    if ran:
        sys.exit(f"{listing}: no instructions at {list(ran)}")
    print(f"{len(answer['instructions'])} instructions as they ran")


def main():
    if sys.argv[1] == "ran":
        check_ran(*sys.argv[2:4])
    elif sys.argv[1] == "listed":
        check_listed(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "names":
        say_names(sys.argv[2])
    elif sys.argv[1] == "facts":
        check_facts(sys.argv[2], sys.argv[3:])
    else:
        check_perf(sys.argv[2], sys.argv[3])


main()
