#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Files of perf's with instruction samples, made from known facts: insn_files.py FOLDER ELF [good] writes ibs.data,
pebs.data and spe.data, whose samples lie in two procedures of the file ELF, and beside each FACTS.json: for each sample
its offset, the bits that its hardware tells, and its counters. insn_files.py FOLDER ELF measured writes ops.data,
cycles.data, trace.data and filtered.data: how often each instruction of a procedure ran is known, and how many cycles
that took. The formats are those of AMD's and Arm's manuals and of <linux/perf_event.h>; nothing here knows how they are
read. With "good" no record is cut, and none lies.
"""
import json
import random
import struct
import sys

BASE = 0x400000
PID = 4711
IP, TID, TIME, ADDR, CPU, PERIOD, RAW = 1, 2, 4, 8, 1 << 7, 1 << 8, 1 << 10
WEIGHT_STRUCT, DATA_SRC, IDENTIFIER = 1 << 24, 1 << 15, 1 << 16
USER, EXACT, BUILD_ID = 2, 1 << 14, 1 << 14
IBS_FETCH, IBS_OP, SPE = 9, 10, 11
GOOD = sys.argv[3:] == ["good"]


def attr(kind, sample_type, config=0, period=1000):
    flags = 1 << 8 | 1 << 9 | 1 << 13 | 2 << 15 | 1 << 18 | 1 << 23
    words = struct.pack("<IIQQQQQ", kind, 128, config, period, sample_type, 0, flags)
    return words + bytes(128 - len(words))


def text(s):
    data = s.encode() + b"\0"
    data += bytes(-len(data) % 64)
    return struct.pack("<I", len(data)) + data


def record(kind, misc, body):
    body += bytes(-len(body) % 8)
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


class File:
    """A perf.data file: events, records, features."""

    def __init__(self, cpuid, arch):
        self.events, self.records, self.time = [], b"", 1000000
        self.cpuid, self.arch = cpuid, arch
        self.more = b""  # of attributes, behind those of Linux 6.1

    def event(self, name, kind, sample_type, config=0):
        self.events.append((name, attr(kind, sample_type | IP | TID | TIME | CPU | PERIOD | IDENTIFIER, config),
                            len(self.events) + 100))
        return self.events[-1][2]

    def add(self, kind, misc, body):
        self.records += record(kind, misc, body)

    def trail(self, event):
        self.time += 1000
        return struct.pack("<IIQQQ", PID, PID, self.time, 0, event)

    def begin(self, path, length, build_id):
        name = path.encode() + b"\0"
        name += bytes(-len(name) % 8)
        self.add(3, 1 << 13, struct.pack("<II8s", PID, PID, b"app") + self.trail(100))
        body = struct.pack("<IIQQQBBH20s", PID, PID, BASE, length, 0, 20, 0, 0, build_id)
        self.add(10, USER | BUILD_ID, body + struct.pack("<II", 5, 2) + name + self.trail(100))

    def sample(self, event, off, more, misc=USER | EXACT):
        self.time += 1000
        body = struct.pack("<QQIIQQQ", event, BASE + off, PID, PID, self.time, 0, 1000)
        self.add(9, misc, body + more)

    def features(self):
        desc = struct.pack("<II", len(self.events), 128 + len(self.more))
        for name, a, number in self.events:
            desc += a + self.more + struct.pack("<I", 1) + text(name) + struct.pack("<Q", number)
        pmus = struct.pack("<I", 3) + b"".join(
            struct.pack("<I", n) + text(s)
            for n, s in ((IBS_FETCH, "ibs_fetch"), (IBS_OP, "ibs_op"), (SPE, "arm_spe_0")))
        return {3: text("box"), 4: text("6.1.0"), 5: text("6.1"), 6: text(self.arch),
                7: struct.pack("<II", 1, 1), 9: text(self.cpuid), 12: desc, 16: pmus}

    def write(self, path):
        ids = b"".join(struct.pack("<Q", e[2]) for e in self.events)
        attrs = b"".join(a + self.more + struct.pack("<QQ", 104 + 8 * i, 8) for i, (_, a, _) in enumerate(self.events))
        features, start = self.features(), 104 + len(ids) + len(attrs)
        bits = sum(1 << f for f in features)
        head = b"PERFILE2" + struct.pack("<QQQQQQQQ", 104, 144 + len(self.more), 104 + len(ids), len(attrs), start,
                                         len(self.records), 0, 0)
        head += struct.pack("<QQQQ", bits, 0, 0, 0)
        at, table, data = start + len(self.records) + 16 * len(features), b"", b""
        for f in sorted(features):
            table += struct.pack("<QQ", at + len(data), len(features[f]))
            data += features[f]
        with open(path, "wb") as out:
            out.write(head + ids + attrs + self.records + table + data)


class Facts:
    """What is told of each sample."""

    def __init__(self):
        self.samples = []

    def add(self, off, bits, counters):
        self.samples.append({"offset": off, "bits": bits, "counters": counters})

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            json.dump(self.samples, out)


def chance(p=0.5):
    return random.random() < p


# ---- AMD -------------------------------------------------------------------------------------------------------------

def access_of_ibs(bits, counters):
    """The words data2 and data3 of an operation that loads, stores or does neither."""
    load, store = bits["load"], bits["store"]
    data2, data3 = 0, load | store << 1
    if not load and not store:
        return 0, 0
    for name, at in (("dcmiss", 7), ("dtbmiss", 2), ("unaligned", 8), ("uncached", 14), ("locked", 15), ("prefetch", 21)):
        bits[name] = chance(0.3)
        data3 |= bits[name] << at
    bits["dtb2miss"] = bits["dtbmiss"] and chance()
    data3 |= bits["dtb2miss"] << 3
    counters["xlat"] = random.randrange(1 << 16)
    data3 |= counters["xlat"] << 48
    if not load:
        return 0, data3
    miss, l2miss = bits["dcmiss"], chance()
    bits["l2miss"] = miss and l2miss
    data3 |= l2miss << 20
    if miss:
        counters["latency"] = random.randrange(1 << 16)
        data3 |= counters["latency"] << 32
    source = random.choice((0, 1, 2, 3)) if miss and l2miss else 0
    remote = chance()
    data2 = source | remote << 4
    if not (miss and l2miss):
        bits.update(othercache=False, memory=False, remote=False, llcmiss=False)
    elif source == 1:
        bits.update(othercache=False, memory=False, remote=False, llcmiss=False)
    elif source == 2:
        bits.update(othercache=True, memory=False, remote=remote, llcmiss=True, modified=chance())
        data2 |= (not bits["modified"]) << 5
    elif source == 3:
        bits.update(othercache=False, memory=True, remote=remote, llcmiss=True)
    return data2, data3


def op_of_ibs():
    bits = {"retired": True, "valid": True, "fetch": False, "bycount": False}
    counters = {"completed": random.randrange(1 << 16), "inflight": random.randrange(1 << 16)}
    kind = random.choice(("branch", "load", "store", "both", "none"))
    bits["branch"] = kind == "branch"
    bits["load"] = kind in ("load", "both")
    bits["store"] = kind in ("store", "both")
    bits["microcode"] = chance(0.1)
    for name in ("taken", "mispredict", "return"):
        bits[name] = bits["branch"] and chance()
    data = counters["completed"] | counters["inflight"] << 16
    data |= bits["return"] << 34 | bits["taken"] << 35 | bits["mispredict"] << 36 | bits["branch"] << 37
    data |= bits["microcode"] << 40
    data2, data3 = access_of_ibs(bits, counters)
    return data, data2, data3, bits, counters


def raw(data):
    body = struct.pack("<I", len(data)) + data
    return body + bytes(-len(body) % 8)


def make_ibs(offsets, begin):
    f, facts = File("AuthenticAMD,23,49,0", "x86_64"), Facts()
    op = f.event("ibs_op//", IBS_OP, RAW)
    fetch = f.event("ibs_fetch//", IBS_FETCH, RAW)
    begin(f)
    for _ in range(400):
        off = random.choice(offsets)
        data, data2, data3, bits, counters = op_of_ibs()
        regs = (3 << 17, BASE + off, data, data2, data3, 0x1000, 0x2000)
        f.sample(op, off, raw(struct.pack("<I7Q", 0x1bf, *regs)))
        facts.add(off, bits, counters)
    for _ in range(100):
        off = random.choice(offsets)
        bits = {"fetch": True, "fetched": chance(), "icmiss": chance(), "itbmiss": chance()}
        l2, tlb2 = chance(), chance()
        bits["ic2miss"] = bits["icmiss"] and l2
        bits["itb2miss"] = bits["itbmiss"] and tlb2
        counters = {"fetchlat": random.randrange(1 << 16), "itblat": random.randrange(1 << 16)}
        ctl = 3 << 48 | counters["fetchlat"] << 32 | bits["fetched"] << 50 | bits["icmiss"] << 51
        ctl |= bits["itbmiss"] << 55 | tlb2 << 56 | l2 << 58
        f.sample(fetch, off, raw(struct.pack("<I4Q", 0x3ff, ctl, BASE + off, 0x2000, counters["itblat"])))
        facts.add(off, bits, counters)
    # An address that is none of the instruction's; a record that is cut; one whose length lies.
    off = offsets[0]
    f.sample(op, off, raw(struct.pack("<I7Q", 0x1bf, 0, 0, 1 << 38, 0, 0, 0, 0)))
    facts.add(off, {"inexact": True}, {})
    if GOOD:
        return f, facts
    f.sample(op, off, raw(struct.pack("<I3Q", 0x1bf, 0, 0, 0)))
    facts.add(off, {"unreadable": True}, {})
    f.sample(fetch, off, struct.pack("<IIQ", 4096, 0x1bf, 0))
    facts.add(off, {"unreadable": True}, {})
    return f, facts


# ---- data sources ----------------------------------------------------------------------------------------------------

LEVELS = {  # what the hardware says: mem_lvl, mem_lvl_num, and what is told by it
    "L1": (2 | 8, 1, {"dcmiss": False, "l2miss": False, "llcmiss": False, "memory": False}),
    "LFB": (2 | 0x10, 0xc, None),
    "L2": (2 | 0x20, 2, {"dcmiss": True, "l2miss": False, "llcmiss": False, "memory": False}),
    "L3": (2 | 0x40, 3, {"dcmiss": True, "l2miss": True, "llcmiss": False, "memory": False}),
    "RAM": (2 | 0x80, 0xd, {"dcmiss": True, "l2miss": True, "llcmiss": True, "memory": True}),
    "remote RAM": (2 | 0x100, 0xd, {"dcmiss": True, "l2miss": True, "llcmiss": True, "memory": True}),
    "remote cache": (2 | 0x400, 0xf, {"dcmiss": True, "l2miss": True, "llcmiss": True, "memory": False}),
    "uncached": (2 | 0x2000, 8, None),
}


def source_of(bits):
    op = random.choice((2, 4))
    bits.update(load=op == 2, store=op == 4, prefetch=False)
    level = random.choice(list(LEVELS))
    lvl, num, tells = LEVELS[level]
    remote = level.startswith("remote")
    snoop = random.choice((2, 0x10)) if level in ("L3", "remote cache") else 1
    dtlb = random.choice((2 | 8, 2 | 0x10, 2 | 8 | 0x10, 4 | 0x10, 1))
    block = random.choice((1, 2))
    lock = random.choice((1, 2))
    if tells:
        bits.update(tells, uncached=False, remote=remote)
        bits["othercache"] = not tells["memory"] and (remote or snoop == 0x10)
    elif level == "LFB":
        bits["dcmiss"] = True
    else:
        bits.update(dcmiss=True, uncached=True)
    if snoop != 1:
        bits["modified"] = snoop == 0x10
    if dtlb != 1:
        bits["dtb2miss"] = dtlb == 4 | 0x10
        if dtlb != 2 | 8 | 0x10:
            bits["dtbmiss"] = dtlb != 2 | 8
    if block != 1:
        bits["blocked"] = True
    if lock != 1:
        bits["locked"] = True
    return op | lvl << 5 | snoop << 19 | lock << 24 | dtlb << 26 | num << 33 | remote << 37 | block << 40


def make_pebs(offsets, begin):
    f, facts = File("GenuineIntel-6-8F-8", "x86_64"), Facts()
    loads = f.event("mem-loads:P", 4, WEIGHT_STRUCT | DATA_SRC, 0x1cd)
    begin(f)
    for _ in range(500):
        off = random.choice(offsets)
        bits = {"retired": True, "valid": True, "fetch": False}
        source = source_of(bits)
        values = {"latency": random.randrange(1 << 20), "inflight": random.randrange(1 << 16),
                  "retdelay": random.randrange(1 << 16)}
        counters = {k: v for k, v in values.items() if v}
        f.sample(loads, off, struct.pack("<IHHQ", values["latency"], values["inflight"], values["retdelay"], source))
        facts.add(off, bits, counters)
    f.sample(loads, offsets[0], struct.pack("<QQ", 7, 2 | 10 << 5), USER)
    facts.add(offsets[0], {"inexact": True}, {})
    return f, facts


# ---- Arm -------------------------------------------------------------------------------------------------------------

def spe_record(off, time, bits, counters):
    """The packets of a sample, in the order of the manual's figures."""
    kind = random.choice(("load", "store", "branch", "other"))
    bits.update(load=kind == "load", store=kind == "store", branch=kind == "branch", fetch=False)
    bits.update(trap=chance(0.1), cond=False, indirect=False, locked=False, taken=False, mispredict=False)
    bits["retired"] = not bits["trap"]
    bits["valid"] = bits["retired"]
    bits["bycount"] = True
    events, op = bits["trap"] | bits["retired"] << 1, (0x48, 0)
    if kind == "branch":
        bits.update(cond=chance(), indirect=chance(), taken=chance(), mispredict=chance())
        events |= (not bits["taken"]) << 6 | bits["mispredict"] << 7
        op = (0x4a, bits["cond"] | bits["indirect"] << 1)
    bits["cbrmispredict"] = bits["cond"] and bits["mispredict"]
    bits.update(remote=False, unaligned=False)
    if kind in ("load", "store"):
        bits.update(dcmiss=chance(), dtb2miss=chance(), remote=chance(), unaligned=chance(), locked=chance(0.2))
        events |= 1 << 2 | bits["dcmiss"] << 3 | 1 << 4 | bits["dtb2miss"] << 5
        events |= bits["remote"] << 10 | bits["unaligned"] << 11
        if bits["dcmiss"]:
            bits["llcmiss"] = chance()
            events |= 1 << 8 | bits["llcmiss"] << 9
        op = (0x49, (kind == "store") | (6 if bits["locked"] else 0))
    data = b"\xb0" + struct.pack("<Q", BASE + off)
    for at, name in enumerate(("inflight", "issue", "xlat")):
        if name == "xlat" and kind not in ("load", "store"):
            continue
        counters[name] = random.randrange(1 << 12)
        data += bytes((0x98 + at,)) + struct.pack("<H", counters[name])
    data += b"\x65" + struct.pack("<I", PID) + bytes(op) + b"\x52" + struct.pack("<H", events)
    if kind in ("load", "store"):
        data += b"\xb2" + struct.pack("<Q", 0x7fff1000)
    data += b"\x71" + struct.pack("<Q", time)
    return data + bytes(-len(data) % 64)


def make_spe(offsets, begin):
    f, facts = File("0x00000000410fd0c0", "aarch64"), Facts()
    f.event("arm_spe_0//", SPE, 0)
    f.add(70, 0, struct.pack("<IIQQ", 4, 0, SPE, 0))
    f.add(79, 0, struct.pack("<QQQQQBB6x", 0, 1, 0, 0, 2 ** 64 - 1, 1, 0))
    begin(f)
    data = b""
    for _ in range(500):
        off, bits, counters = random.choice(offsets), {}, {}
        f.time += 1000
        data += spe_record(off, f.time, bits, counters)
        facts.add(off, bits, counters)
    f.records += record(71, 0, struct.pack("<QQQIiiI", len(data), 0, 1, 0, -1, 0, 0)) + data
    return f, facts


# ---- how often it ran ------------------------------------------------------------------------------------------------

# The instructions of hot by their offset in it: executions and cycles, in thousands. Its loop goes round ten times.
RAN = {
    0x00: (100, 50), 0x02: (100, 100),
    0x04: (85, 17), 0x07: (85, 34), 0x0c: (85, 0),
    0x11: (850, 170), 0x13: (850, 85), 0x16: (850, 85), 0x18: (850, 510),
    0x1a: (100, 20), 0x1c: (100, 150),
    0x1d: (15, 3), 0x22: (15, 30),
}


def add_cycles(f, event, start):
    for into, (_, cycles) in RAN.items():
        for _ in range(cycles):
            f.sample(event, start + into, b"")


def make_ops(start, begin, config):
    """One operation in 1,000, or with @config 0 one cycle in 1,000, and cycles beside."""
    f = File("AuthenticAMD,25,1,1", "x86_64")
    op = f.event("ibs_op/cnt_ctl=1/" if config else "ibs_op//", IBS_OP, RAW, config)
    cycles = f.event("cycles", 0, 0)
    begin(f)
    for into, (ran, _) in RAN.items():
        body = raw(struct.pack("<I7Q", 0x1bf, 3 << 17, BASE + start + into, 20 << 16 | 5, 0, 0, 0, 0))
        for _ in range(ran):
            f.sample(op, start + into, body)
    add_cycles(f, cycles, start)
    return f


def make_trace(start, begin, config3=0):
    """One operation in 1,000, and of the loop's branch 500 that did not retire. @config3: a filter of Linux 6.3."""
    f = File("0x00000000410fd0c0", "aarch64")
    f.more = struct.pack("<Q", config3)
    f.event("arm_spe_0//", SPE, 0)
    cycles = f.event("cycles", 0, 0)
    f.add(70, 0, struct.pack("<IIQQ", 4, 0, SPE, 0))
    f.add(79, 0, struct.pack("<QQQQQBB6x", 0, 1, 0, 0, 2 ** 64 - 1, 1, 0))
    begin(f)
    data = b""
    for into, events in [(i, 2) for i, (ran, _) in RAN.items() for _ in range(ran)] + 500 * [(0x18, 0)]:
        f.time += 1000
        one = b"\xb0" + struct.pack("<Q", BASE + start + into) + b"\x65" + struct.pack("<I", PID)
        one += b"\x48\x00\x52" + struct.pack("<H", events) + b"\x71" + struct.pack("<Q", f.time)
        data += one + bytes(-len(one) % 64)
    f.records += record(71, 0, struct.pack("<QQQIiiI", len(data), 0, 1, 0, -1, 0, 0)) + data
    add_cycles(f, cycles, start)
    return f


def make_measured(folder, start, begin):
    make_ops(start, begin, 1 << 19).write(f"{folder}/ops.data")
    make_ops(start, begin, 0).write(f"{folder}/cycles.data")
    make_trace(start, begin).write(f"{folder}/trace.data")
    make_trace(start, begin, 2).write(f"{folder}/filtered.data")
    with open(f"{folder}/ran.json", "w", encoding="utf-8") as out:
        json.dump({i: (1000 * ran, cycles / ran) for i, (ran, cycles) in RAN.items()}, out)


# ---- where -----------------------------------------------------------------------------------------------------------

def elf_offsets(path, names):
    """Offsets in the file of all bytes of these procedures, and its build-id."""
    data = open(path, "rb").read()
    shoff, shnum = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<H", data, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, shoff + 64 * i) for i in range(shnum)]
    offsets, build_id = {}, b""
    for kind, _, _, _, off, size, link, *_ in (s[1:2] + s[1:] for s in sections):
        if kind == 7 and data[off + 12:off + 16] == b"GNU\0":
            build_id = data[off + 16:off + size]
        if kind != 2:
            continue
        for at in range(off, off + size, 24):
            name, _, _, section, value, length = struct.unpack_from("<IBBHQQ", data, at)
            strings = sections[link][4]
            word = data[strings + name:data.index(b"\0", strings + name)].decode()
            if word in names:
                s = sections[section]
                offsets[word] = [value - s[3] + s[4] + i for i in range(length)]
    return offsets, build_id


def main():
    folder, path = sys.argv[1:3]
    random.seed(5)
    places, build_id = elf_offsets(path, ("hot", "warm"))
    begin = lambda f: f.begin("/opt/app/app", 0x10000, build_id)
    if sys.argv[3:] == ["measured"]:
        make_measured(folder, places["hot"][0], begin)
        return
    offsets = [places["hot"][i] for i in (0, 5, 12)] + [places["warm"][i] for i in (0, 8)]
    for name, make in (("ibs", make_ibs), ("pebs", make_pebs), ("spe", make_spe)):
        f, facts = make(offsets, begin)
        f.write(f"{folder}/{name}.data")
        facts.write(f"{folder}/{name}.json")


main()
