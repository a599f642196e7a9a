# SPDX-License-Identifier: BSD-2-Clause
"""Small programs for bench/fdo, others than accuracy_work.py: generators, sets, big numbers, text, exceptions."""
import collections
import sys


def primes(n):
    sieve = bytearray([1]) * n
    for i in range(2, int(n**0.5) + 1):
        if sieve[i]:
            sieve[i * i :: i] = bytes(len(range(i * i, n, i)))
    return sum(sieve[2:])


def queens(n, row=0, columns=0, up=0, down=0):
    if row == n:
        return 1
    found, free = 0, ~(columns | up | down) & ((1 << n) - 1)
    while free:
        bit = free & -free
        free ^= bit
        found += queens(n, row + 1, columns | bit, (up | bit) << 1, (down | bit) >> 1)
    return found


def collatz(n):
    while n != 1:
        yield n
        n = n // 2 if n % 2 == 0 else 3 * n + 1


def life(cells, rounds):
    for _ in range(rounds):
        near = collections.Counter((x + i, y + k) for x, y in cells for i in (-1, 0, 1) for k in (-1, 0, 1) if i or k)
        cells = {c for c, n in near.items() if n == 3 or (n == 2 and c in cells)}
    return len(cells)


def numbers(words):
    good = 0
    for word in words:
        try:
            good += int(word)
        except ValueError:
            good -= 1
    return good


def main(rounds):
    total = 0
    for i in range(rounds):
        total += primes(8000 + i) + queens(6) + sum(len(list(collatz(n))) for n in range(1, 200))
        total += life({(0, 1), (1, 2), (2, 0), (2, 1), (2, 2), (9, 9), (9, 10), (9, 11)}, 12)
        total += numbers(("12 x %d 7y 44 " % i * 60).split()) + len(str(3 ** (1500 + i)))
        total += len("".join(sorted("%05d" % (k * 7919 % 10007) for k in range(800))))
    print(total)


main(int(sys.argv[1]))
