# SPDX-License-Identifier: BSD-2-Clause
"""python of bench/accuracy: words counted, classes, JSON there and back, a heap, a memoized recursion."""
import heapq
import json
import re
import sys


class Word:
    def __init__(self, text):
        self.text = text
        self.count = 0
        self.lines = []

    def met(self, line):
        self.count += 1
        if len(self.lines) < 5:
            self.lines.append(line)

    def __lt__(self, other):
        return (self.count, self.text) < (other.count, other.text)


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def main(path):
    words = {}
    pattern = re.compile(r"[A-Za-z_]{3,}")
    with open(path, encoding="utf-8", errors="replace") as text:
        for number, line in enumerate(text):
            for match in pattern.findall(line):
                word = words.get(match)
                if word is None:
                    word = words[match] = Word(match)
                word.met(number)
    top = heapq.nlargest(400, words.values())
    encoded = json.dumps([{"text": w.text, "count": w.count, "lines": w.lines} for w in top], indent=1)
    again = sorted(json.loads(encoded), key=lambda w: (len(w["text"]), w["text"]))
    near = sum(distance(a["text"], b["text"]) for a, b in zip(again, again[1:]))
    print(len(words), len(encoded), near)


main(sys.argv[1])
