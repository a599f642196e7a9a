# SPDX-License-Identifier: BSD-2-Clause
"""Functions that take 60, 30 and 10 % of the time, called in every way that makes frames of another kind.

Prints "NAME SECONDS" for each caller of spin() and for hashing(), by the thread's own clock."""
import functools
import hashlib
import sys
import threading
import time

took = {}


def spin(seconds):
    begun = time.thread_time()
    x = 0
    while time.thread_time() < begun + seconds:
        for i in range(1000):
            x = (x * 31 + i) & 0xFFFF
    name = sys._getframe(1).f_code.co_qualname
    took[name] = took.get(name, 0) + time.thread_time() - begun


def sixty():
    spin(0.06)


def thirty():
    spin(0.03)


def ten():
    spin(0.01)


def generated():
    for _ in range(10):
        spin(0.04)
        yield


class Compared:
    def __lt__(self, other):
        spin(0.04)
        return id(self) < id(other)


def deep(left):
    if left:
        return deep(left - 1)
    spin(0.4)


class Made:
    def __init__(self):
        spin(0.002)


def made():
    for _ in range(200):
        Made()


def caught():
    try:
        raise ValueError
    except ValueError:
        spin(0.4)


def größe():
    spin(0.4)


def hashing():
    data, begun = bytes(1 << 20), time.thread_time()
    while time.thread_time() < begun + 0.4:
        hashlib.sha256(data).digest()
    took["hashing"] = time.thread_time() - begun


def shares():
    for _ in range(int(sys.argv[1])):
        sixty()
        thirty()
        ten()


def ways():
    for _ in generated():
        pass
    sorted(Compared() for _ in range(6))
    deep(300)
    made()
    caught()
    größe()
    functools.reduce(lambda a, b: spin(0.05), range(9))
    threads = [threading.Thread(target=f) for f in (hashing, größe)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()


shares()
ways()
for name, seconds in took.items():
    print(name, "%.6f" % seconds)
