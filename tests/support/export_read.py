#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""export_read.py FORMAT FILE [FORMAT FILE]…: what files of dcpiexport have, as their formats' own rules say.

Writes into FILE.read "EVENT SAMPLES STACK" for each stack, the outermost function first, sorted, and before them of
pprof's file "tags: " and those of its samples; into FILE.tags "EVENT SAMPLES KEY VALUE" for each tag, into FILE.stacks
"EVENT SAMPLES KEY VALUE STACK" for each tag of each stack. callgrind's file has no stacks: "EVENT SAMPLES ADDRESS LINE FUNCTION"
for each instruction. Structure that a reader could stumble over, and text that is not inert, is an error.
"""
import collections
import gzip
import json
import re
import sys
import unicodedata

rows = collections.Counter()
tags = set()
tagged, stacks = collections.Counter(), collections.Counter()


def check(name):
    """A name that turns no text around and moves no cursor."""
    for c in name:
        assert unicodedata.category(c) != "Cc", f"control character in {name!r}"
        assert unicodedata.bidirectional(c) not in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"), f"mark in {name!r}"
        assert c not in "\u200e\u200f\u061c\u2028\u2029", f"mark in {name!r}"
    return name


def add(event, count, stack):
    assert count >= 0
    rows[event, ";".join(check(name) for name in stack)] += count


def tag(event, count, pairs, stack):
    for key, value in pairs:
        tagged[event, f"{key} {check(value)}"] += count
        stacks[event, f"{key} {value} {';'.join(stack)}"] += count


# ---- pprof: the wire format, and messages as {field: [value]} ------------------------------------------------------


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            assert value < 1 << 64
            return value, at


def message(data):
    fields, at = collections.defaultdict(list), 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            assert at + value <= len(data)
            value, at = data[at:at + value], at + value
        else:
            assert key & 7 == 0
        fields[key >> 3].append(value)
    return fields


def packed(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def number(fields, field):
    assert len(fields[field]) <= 1
    return fields[field][0] if fields[field] else 0


def pprof(path):
    with open(path, "rb") as f:
        data = f.read()
    assert data[4:8] == bytes(4), "the time is in the file"
    top = message(gzip.decompress(data))
    texts = [check(text.decode("utf-8")) for text in top[6]]
    assert texts[0] == ""
    types = [[texts[number(message(t), i)] for i in (1, 2)] for t in top[1]]
    functions = {number(f, 1): texts[number(f, 2)] for f in map(message, top[5])}
    mappings = {number(m, 1): (number(m, 2), number(m, 3)) for m in map(message, top[3])}
    assert len(functions) == len(top[5]) and len(mappings) == len(top[3]) and 0 not in functions
    locations = {}
    for location in map(message, top[4]):
        if number(location, 2):
            begin, end = mappings[number(location, 2)]
            assert begin <= number(location, 3) < end
        locations[number(location, 1)] = [functions[number(message(line), 1)] for line in location[4]]
    assert len(locations) == len(top[4]) and 0 not in locations
    for sample in map(message, top[2]):
        stack = [name for i in packed(sample[1][0]) for name in locations[i]]
        values = list(packed(sample[2][0]))
        assert len(values) == len(types) and all(v < 1 << 63 for v in values)
        pairs = [[texts[number(message(x), i)] for i in (1, 2)] for x in sample[3]]
        assert len({key for key, _ in pairs}) == len(pairs)
        tags.add(" ".join(word for pair in pairs for word in pair))
        for (name, unit), value in zip(types, values):
            if unit == "count":
                add(name, value, reversed(stack))
                tag(name, value, pairs, stack[::-1])
            else:
                assert value == values[0] * number(top, 12), "nanoseconds are not samples times the period"


# ---- text ----------------------------------------------------------------------------------------------------------


def lines(path):
    with open(path, encoding="utf-8", newline="\n") as f:
        return f.read().split("\n")[:-1]


def folded(path):
    for line in lines(path):
        stack, count = line.rsplit(" ", 1)
        add("samples", int(count), stack.split(";"))


def number_known(text):
    """Made numbers begin where those of Linux end."""
    return "made" if int(text) >= 1 << 22 else text


def perf(path):
    stack = None
    for line in lines(path):
        if not line:
            add(event, 1, reversed(stack))
            tag(event, 1, [("thread", f"{comm} {number_known(pid)}/{number_known(tid)}")], stack[::-1])
            stack = None
        elif stack is None:
            comm, pid, tid, event = re.fullmatch(r"(\S{2,}|\S ) (\d+)/(\d+) \[000\] \d+\.\d{6}: \d+ (\S+):", line).groups()
            assert comm[0] != "#"
            stack = []
        else:
            name, image = re.fullmatch(r"\t *[0-9a-f]+ (.+) \((\S+)\)", line).groups()
            assert not name.startswith("(") and image
            stack.append(re.sub(r"\+0x[0-9a-f]+$", "", name))
    assert stack is None


def callgrind(path):
    names, events, summary, called = {}, None, None, False
    sums = None
    for line in lines(path):
        key, _, value = line.partition("=")
        if line.startswith("events: "):
            events = line.split()[1:]
            sums = [0] * len(events)
        elif line.startswith("summary: "):
            summary = [int(n) for n in line.split()[1:]]
        elif key in ("ob", "fl", "fi", "fe", "fn", "cob", "cfi", "cfn"):
            kind = key[-2:].replace("fi", "fl").replace("fe", "fl")
            n, name = re.fullmatch(r"\((\d+)\)(?: (.+))?", value).groups()
            assert (name is None) == ((kind, n) in names)
            name = names.setdefault((kind, n), name)
            function = check(name) if key == "fn" else function
        elif key == "calls":
            called = True
        elif line.startswith("0x") and called:
            called = False
        elif line.startswith("0x"):
            vaddr, at, *counts = line.split()
            assert len(counts) == len(events)
            for i, (event, count) in enumerate(zip(events, counts)):
                sums[i] += int(count)
                rows[event, f"{vaddr} {at} {function}"] += int(count)
        else:
            assert not line or line[0] == "#" or line.split(":")[0] in ("version", "creator", "desc", "positions")
            function = None
    assert summary == sums


# ---- JSON ----------------------------------------------------------------------------------------------------------


def load(path):
    data = open(path, "rb").read()
    return json.loads((gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8"))


def speedscope(path):
    top = load(path)
    assert top["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [frame["name"] for frame in top["shared"]["frames"]]
    for profile in top["profiles"]:
        assert profile["type"] == "sampled" and profile["startValue"] == 0
        assert len(profile["samples"]) == len(profile["weights"])
        assert profile["endValue"] == sum(profile["weights"])
        for stack, weight in zip(profile["samples"], profile["weights"]):
            add(profile["name"], weight, [frames[i] for i in stack])


def firefox(path):
    top = load(path)
    assert top["meta"]["preprocessedProfileVersion"] == 60
    shared = top["shared"]
    for table in (t for part in (shared, *top["threads"]) for t in part.values() if isinstance(t, dict)):
        for column in (c for c in table.values() if isinstance(c, list)):
            assert len(column) == table["length"]
    texts, functions, frames, stacks, resources, sources = (shared[name] for name in (
        "stringArray", "funcTable", "frameTable", "stackTable", "resourceTable", "sources"))
    assert all(lib < len(top["libs"]) for lib in resources["lib"])
    assert all(r < resources["length"] for r in functions["resource"])
    assert all(s is None or texts[sources["filename"][s]] for s in functions["source"])
    assert all(c < len(top["meta"]["categories"]) for c in frames["category"])
    assert all(prefix is None or prefix < i for i, prefix in enumerate(stacks["prefix"]))
    assert len({(t["tid"], t["name"]) for t in top["threads"]}) == len(top["threads"])
    for pid in {t["pid"] for t in top["threads"]}:
        assert sum(t["isMainThread"] for t in top["threads"] if t["pid"] == pid) <= 1
    for thread in top["threads"]:
        samples, (name, _, event) = thread["samples"], thread["name"].rpartition(", ")
        event, name = (event, name) if name else ("samples", event)
        for at, weight in zip(samples["stack"], samples["weight"]):
            stack = []
            while at is not None:
                stack.append(texts[functions["name"][frames["func"][stacks["frame"][at]]]])
                at = stacks["prefix"][at]
            add(event, weight, reversed(stack))
            tag(event, weight, [("thread", f"{check(thread['processName'])}: {name} {number_known(thread['pid'])}/"
                                           f"{number_known(thread['tid'])}")], stack[::-1])


def otlp(path):
    """The rules of OpenTelemetry's profiles: each table begins with its empty element, each number is in its table."""
    top = load(path)
    tables = top["dictionary"]
    texts, locations, functions = tables["stringTable"], tables["locationTable"], tables["functionTable"]
    attributes = []
    for attribute in tables["attributeTable"]:
        (value,) = attribute["value"].values() if attribute else ("",)
        attributes.append((texts[attribute["keyStrindex"]], value) if attribute else None)
    assert len(set(attributes)) == len(attributes)
    assert texts[0] == "" and all(tables[t][0] == {} for t in tables if t != "stringTable")
    for mapping in tables["mappingTable"][1:]:
        assert int(mapping["memoryStart"]) <= int(mapping["memoryLimit"]) and texts[mapping["filenameStrindex"]]
        for a in mapping.get("attributeIndices", []):
            attribute = tables["attributeTable"][a]
            assert a and texts[attribute["keyStrindex"]] == "process.executable.build_id.gnu"
            assert re.fullmatch("[0-9a-f]+", attribute["value"]["stringValue"])
    for function in functions[1:]:
        assert all(texts[function[k]] is not None for k in ("nameStrindex", "systemNameStrindex", "filenameStrindex"))
    used = set()
    (resource,), ((scope,),) = top["resourceProfiles"], [r["scopeProfiles"] for r in top["resourceProfiles"]]
    for attribute in resource["resource"]["attributes"]:
        tags.add(f"{attribute['key']} {check(attribute['value']['stringValue'])}")
    for profile in scope["profiles"]:
        kind = profile["sampleType"]
        assert texts[kind["unitStrindex"]] == "count"
        for sample in profile["samples"]:
            stack, (count,) = [], sample["values"]
            used.add(sample["stackIndex"])
            for i in tables["stackTable"][sample["stackIndex"]]["locationIndices"]:
                assert i and 0 <= locations[i]["mappingIndex"] < len(tables["mappingTable"])
                assert locations[i]["lines"] and all(line["functionIndex"] for line in locations[i]["lines"])
                stack += [texts[functions[line["functionIndex"]]["nameStrindex"]] for line in locations[i]["lines"]]
            add(texts[kind["typeStrindex"]], int(count), reversed(stack))
            assert all(sample.get("attributeIndices", []))
            tag(texts[kind["typeStrindex"]], int(count), [attributes[i] for i in sample.get("attributeIndices", [])],
                stack[::-1])
    assert used == set(range(1, len(tables["stackTable"]))), "a stack without samples, or samples of none"


def read(form, path):
    for table in rows, tags, tagged, stacks:
        table.clear()
    globals()[form](path)
    with open(path + ".read", "w", encoding="utf-8") as out:
        if tags:
            print("tags:", ", ".join(sorted(tags)), file=out)
        for (event, stack), count in sorted(rows.items()):
            if count:
                print(event, count, stack, file=out)
    for name, table in (".tags", tagged), (".stacks", stacks):
        with open(path + name, "w", encoding="utf-8") as out:
            for (event, text), count in sorted(table.items()):
                if count:
                    print(event, count, text, file=out)


for form, path in zip(sys.argv[1::2], sys.argv[2::2]):
    read(form, path)
