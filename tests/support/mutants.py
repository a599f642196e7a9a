#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Changes single lines of product code, one at a time, and says which changes no test notices.

usage: mutants.py TREE COUNT [PATH...]

TREE is a copy of the source tree: its files are changed and built in TREE/build-dev and TREE/build-asan. The changes of
tests/data/mutants come first; then COUNT lines are drawn at random (DCPI_SEED repeats a run), from the
files or folders PATH, or from all that the dev build compiles.

A change is noticed when a unit or golden test fails, twice in a row, or exceeds its time. The unit tests of
the file run first, then those of its folder, all other unit tests that the change reaches (they were linked anew, or
name a program that was), and the golden tests; each time, what these need is linked. What they do not notice is tried
by the folder's unit tests under sanitizers, which see a loop that reads one too many; and by 5 system tests at most of
the tool or of a program that was linked anew, if these do not fail on unchanged code as well. A change that does not
compile, or that leaves every object file as it was, is no mutant, and is not counted.

Not drawn: messages, asserts, declarations, growth of buffers, bounds of options that have none, tests for a valid descriptor, what only releases memory or
descriptors (the leak would be seen in the asan build alone), and signals to processes (a changed one could reach any process).

A 0 that a function returns, or that the result r begins with, becomes -1: it means success, as any number above it does.
"""
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import time

KNOWN = 'tests/data/mutants'
REACH = 85
BUILD_SECONDS, UNIT_SECONDS, ALL_SECONDS = 900, 300, 900
SYSTEM_MAX = 5
SKIP = re.compile(r'''^\s*(\#|/\*|\*|//|$|static\ const\b|const\ char\b|case\b|default:|goto\b|enum\b|extern\b)
    |assert|base_grow|\bfd\ <\ 0|base_log|base_fail|printf|perror|\bkill\(|pidfd_send_signal|__attribute__|_Static_assert''', re.X)
RELEASE = re.compile(r'^\s*(\w*(free|close|release|unref|munmap|put|cleanup|destroy)\w*)\(')
CALL = re.compile(r'^\t+(?!return\b|if\b|while\b|for\b|switch\b|sizeof\b)\w+\(.*\);$')
SWAPS = {'<=': '<', '>=': '>', '==': '!=', '!=': '==', '&&': '||', '||': '&&', '<': '<=', '>': '>=',
         '+': '-', '-': '+', '+=': '-=', '-=': '+=', '++': '--', '--': '++', '|=': '&=', '<<': '>>',
         '>>': '<<'}
OPERATOR = re.compile(r' (<=|>=|==|!=|&&|\|\||<<|>>|[-+|]=|[<>+-]) |(?<=[\w\]])(\+\+|--)')
SUCCESS = re.compile(r'(?:\breturn|\br =) $')
GROWTH = re.compile(r'\* 2 : \d+')
ARRAY = re.compile(r'^\t+(?:\w+ )+\**\w+\[[^=()]*\][^=()]*;$')
NOT_POSITIVE = re.compile(r'\br < 0 \? r : 0;')  # the same with <= 0, and < 1
NO_BOUNDS = re.compile(r', 0, 0 \},?$')
NUMBER = re.compile(r'(?<![\w.])(0x[0-9a-fA-F]+|\d+)(?=[uUlL]*\b)(?!\.)')
CONDITION = re.compile(r'^(\s*(?:\} else )?(?:if|while) \()(.*)(\)(?: \{)?)$')


def blanked(text):
    """The text with comments, strings and characters replaced by blanks of the same length."""
    token = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return token.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), text)


def mutations(line, blank):
    """The changed forms of a line; blank is the same line without comments and strings."""
    if any(r.search(blank) for r in (SKIP, ARRAY, GROWTH, NO_BOUNDS, NOT_POSITIVE)) or not blank.startswith('\t'):
        return []
    out = []
    for m in OPERATOR.finditer(blank):
        g = 1 if m.group(1) else 2
        out.append(line[:m.start(g)] + SWAPS[m.group(g)] + line[m.end(g):])
    for m in NUMBER.finditer(blank):
        n = int(m.group(1), 0) if not re.match(r'0\d', m.group(1)) else int(m.group(1), 8)
        success = n == 0 and SUCCESS.search(blank[:m.start(1)]) and re.match(r'[;,]', blank[m.end(1):])
        out.append(line[:m.start(1)] + str(-1 if success else n - 1 if n > 1 and n % 2 else n + 1) + line[m.end(1):])
    m = CONDITION.match(blank)
    if m and m.group(2).count('(') == m.group(2).count(')'):
        out.append(line[:m.end(1)] + '!(' + line[m.start(2):m.end(2)] + ')' + line[m.start(3):])
    if CALL.match(blank) and not RELEASE.match(blank):
        out.append(re.match(r'\t+', line).group() + ';')
    return out


class Tree:
    def __init__(self, path, preset):
        self.path, self.name = path, 'build-' + preset
        self.build = os.path.join(path, self.name)
        self.objects = self.find_objects()
        # These compile examples, for minutes, or read sources and pages, and look at nothing that was built.
        self.left_out = {'golden/' + n for n in ('dist', 'fleet', 'jit-guide', 'judges', 'lint', 'portability', 'recipes')}
        self.targets = self.find_targets()

    def run(self, command, seconds):
        """(status, output); a time-out is status 124. A changed loop may take all: files are limited, and what takes
        memory ends before other programs. (Tests set the limits anew; the registry of a JIT is smaller below 64 GiB, and
        sanitizers map more than that.)"""
        script = 'ulimit -S -f 8388608%s; ulimit -c 0; echo 1000 2>/dev/null >/proc/self/oom_score_adj; ' \
            'exec timeout -k 10 %d "$@"' % (' -d 67108864' if self.name == 'build-dev' else '', seconds)
        p = subprocess.run(['bash', '-c', script, 'bash'] + command, cwd=self.path, stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return p.returncode, p.stdout.decode(errors='replace')

    def find_objects(self):
        """Product sources of the build, with the objects that are made of each."""
        _, text = self.run(['ninja', '-C', self.name, '-t', 'targets', 'all'], 60)
        found = {}
        for m in re.finditer(r'^(\S*?)CMakeFiles/[^/\s]+\.dir/(\S+\.c)\.o: C_COMPILER', text, re.M):
            source = m.group(1) + m.group(2)
            # Not what the build itself writes (the page's style).
            if not re.match(r'(tests|bench|examples)/', source) and '__/' not in source and \
                    os.path.exists(os.path.join(self.path, source)):
                found.setdefault(source, []).append(m.group().split(':')[0])
        return found

    def find_targets(self):
        """What is linked: unit tests by name, and all other programs and libraries, but for fuzz targets."""
        _, text = self.run(['ninja', '-C', self.name, '-t', 'targets', 'all'], 60)
        linked = re.findall(r'^(\S+): C_(?:EXECUTABLE|SHARED_LIBRARY|SHARED_MODULE)_LINKER__', text, re.M)
        units = [t for t in linked if t.startswith('tests/unit_')]
        return {'unit': units, 'golden': [t for t in linked if not re.match('tests/(unit|fuzz)_', t)]}

    def list_tests(self, *which):
        """(name, last word of the command) of tests."""
        _, text = self.run(['ctest', '--test-dir', self.name, '--show-only=json-v1', *which], 60)
        return [(t['name'], t['command'][-1]) for t in json.loads(text[text.index('{'):])['tests']]

    def find_units(self):
        """(name, executable) of the unit tests."""
        return [t for t in self.list_tests('-L', 'unit') if 'unit_' in t[1]]

    def linked(self, since):
        """The names of programs and libraries that were linked since then."""
        return [os.path.basename(t).encode() for t in self.targets['golden']
                if os.path.getmtime(os.path.join(self.build, t)) >= since]

    def find_system(self, source, since):
        """SYSTEM_MAX system tests at most: those that name the source's tool, or a program that was linked since then;
        where these are many, as of all that begin the daemon, those that have the words of the file's name and folder
        most often, the shorter ones first. (All tools are one program, dcpi.)"""
        words = set(self.linked(since)) - {b'dcpi'} | {os.path.basename(source)[:-2].encode()}
        begins = words & {b'dcpid'} or any(w.startswith(b'dcpid-') for w in words)
        idea = [w.encode() for w in re.split(r'[/_-]', source[:-2])[1:] if w not in ('helpers', 'linux', 'core')]
        found = []
        for name, script in self.list_tests('-L', 'system', '-LE', 'long|alone'):
            with open(script, 'rb') as f:
                text = f.read()
            if any(re.search(rb'\b%s\b' % re.escape(w), text) for w in words) or begins and b'start_daemon' in text:
                found.append((-sum(text.count(w) for w in idea), len(text), name))
        return [name for _, _, name in sorted(found)[:SYSTEM_MAX]]

    def reached(self, since):
        """Arguments of ctest for the unit tests that what was linked since then may change."""
        words = self.linked(since)
        names = []
        for name, executable in self.find_units():
            with open(executable, 'rb') as f:
                text = f.read()
            if os.path.getmtime(executable) >= since or any(w in text for w in words):
                names.append(re.escape(name))
        return ['-R', '^(%s)$' % '|'.join(names)]

    def digest(self, source):
        h = hashlib.sha256()
        for o in self.objects[source]:
            with open(os.path.join(self.build, o), 'rb') as f:
                h.update(f.read())
        return h.digest()

    def make(self, targets=()):
        return self.run(['ninja', '-C', self.name, *targets], BUILD_SECONDS)

    def excluded(self):
        return '^(%s)$' % '|'.join(sorted(self.left_out))

    def tests(self, args, seconds):
        """The first test that fails twice in a row, "time" when they exceed it, or None."""
        args = args + ['-E', self.excluded()]
        status, out = self.run(['ctest', '--test-dir', self.name, '-j2', '--timeout', '120', '--stop-on-failure',
                                '--repeat', 'until-pass:2', *args], seconds)
        if status in (124, 137):
            return 'time'
        failed = re.findall(r'^\s*\d+ - (\S+) \((?!Skipped|Not Run)', out, re.M)
        return failed[0] if failed and status else None

    def check_unchanged(self, labels):
        """Tests that fail on unchanged code cannot judge: they are named, and left out."""
        status, out = self.make()
        if status:
            sys.exit('mutants: the unchanged tree does not build:\n' + out[-3000:])
        _, out = self.run(['ctest', '--test-dir', self.name, '-j2', '-L', labels, '--timeout', '120', '--repeat',
                           'until-pass:2', '-E', self.excluded()], 3 * ALL_SECONDS)
        failing = set(re.findall(r'^\s*\d+ - (\S+) \((?!Skipped)', out, re.M))
        self.left_out |= failing
        for name in sorted(failing):
            print('left out of %s, as it fails on unchanged code: %s' % (self.name, name))


def folder_of(source):
    parts = source.split('/')
    return parts[1] if parts[0] == 'lib' else 'daemon' if parts[0] == 'profilers' else parts[0]


def steps_of(tree, source, since):
    """(targets, arguments of ctest, seconds) of the tests that may notice, those of the file first."""
    folder, stem = folder_of(source), os.path.basename(source)[:-2].replace('-', '_')
    units = [t for t in tree.targets['unit'] if t.startswith('tests/unit_%s_' % folder)]
    own = [t for t in units if t.endswith('_' + stem)]
    all_units, golden = tree.targets['unit'], tree.targets['golden']
    return [(own, lambda: ['-R', '^unit/%s/(.*[/_])?%s$' % (re.escape(folder), re.escape(stem))], UNIT_SECONDS),
            (units, lambda: ['-R', '^unit/%s/' % re.escape(folder)], UNIT_SECONDS),
            (all_units + golden, lambda: tree.reached(since), ALL_SECONDS),
            (golden, lambda: ['-L', 'golden'], ALL_SECONDS)]


def judge(trees, source):
    """The test that notices the change that stands in source, None, or "" where there is no mutant."""
    dev, asan = trees
    before = dev.digest(source)
    yield
    if dev.make(dev.objects[source])[0] or dev.digest(source) == before:
        yield ''
    since = time.time()
    for tree, steps in (dev, steps_of(dev, source, since)), (asan, steps_of(asan, source, since)[:2]):
        for targets, which, seconds in steps:
            if not targets:
                continue
            if tree.make(targets)[0]:
                yield ''
            by = tree.tests(which(), seconds)
            if by:
                yield by if tree is dev else by + ', asan'
    for name in dev.find_system(source, since):
        by = dev.tests(['-R', '^%s$' % name], ALL_SECONDS)
        if by:
            yield name
    yield None


def attempt(trees, source, nr, line):
    """What judge says of line nr of source in the form line; the file is as it was afterwards."""
    path = os.path.join(trees[0].path, source)
    with open(path, encoding='utf-8') as f:
        text = f.read()
    lines = text.split('\n')
    was = lines[nr].strip()
    lines[nr] = line
    steps = judge(trees, source)
    next(steps)
    # What is killed leaves an object that looks newer than the source that the next run has: mutants.sh touches it.
    with open(os.path.join(trees[0].path, 'changed'), 'w', encoding='utf-8') as f:
        f.write(source)
    try:
        with open(path, 'w', encoding='utf-8') as f:
            f.write('\n'.join(lines))
        by = next(steps)
    finally:
        with open(path, 'w', encoding='utf-8') as f:
            f.write(text)
        for tree in trees:
            tree.make(tree.objects[source])
        os.unlink(os.path.join(trees[0].path, 'changed'))
    if by and by.startswith('system/'):
        trees[0].make()
        if trees[0].tests(['-R', '^%s$' % by], ALL_SECONDS):
            by = None
    if by != '':
        print('%s %s:%d: %s  ->  %s%s' % ('noticed ' if by else 'SURVIVED', source, nr + 1, was, line.strip(),
                                          ' (%s)' % by if by else ''), flush=True)
    return by


def known(trees):
    """(nr noticed, nr) of the changes in KNOWN: lines FILE NAME, text, text to be, with tabs between."""
    noticed, nr, tree = 0, 0, trees[0]
    with open(os.path.join(tree.path, KNOWN), encoding='utf-8') as f:
        entries = [l.rstrip('\n').split('\t') for l in f if l.strip() and not l.startswith('#')]
    for name, old, new in entries:
        nr += 1
        places = []
        for source in tree.objects:
            if os.path.basename(source) != name:
                continue
            with open(os.path.join(tree.path, source), encoding='utf-8') as f:
                places += [(source, i, l) for i, l in enumerate(f.read().split('\n')) if old in l]
        if len(places) != 1:
            print('stale: %s: "%s" stands in %d lines (%s)' % (name, old, len(places), KNOWN))
            continue
        source, i, line = places[0]
        noticed += bool(attempt(trees, source, i, line.replace(old, new, 1)))
    return noticed, nr


def candidates(tree, paths):
    out = []
    for source in sorted(tree.objects):
        if paths and not any(source == p or source.startswith(p.rstrip('/') + '/') for p in paths):
            continue
        with open(os.path.join(tree.path, source), encoding='utf-8') as f:
            text = f.read()
        blank = blanked(text).split('\n')
        for i, line in enumerate(text.split('\n')):
            forms = mutations(line, blank[i])
            if forms:
                out.append((source, i, forms))
    return out


def figure(name, value, unit, reach, good):
    print('figure: %s %s %s reach >= %s %s' % (name, value, unit, reach, 'ok' if good else 'short'))
    return good


def main():
    trees = [Tree(os.path.abspath(sys.argv[1]), preset) for preset in ('dev', 'asan')]
    count, paths = int(sys.argv[2]), sys.argv[3:]
    seed = int(os.environ.get('DCPI_SEED') or random.SystemRandom().randrange(1 << 30))
    lines = candidates(trees[0], paths)
    print('seed %d; %d lines of %d files can be changed' % (seed, len(lines), len({l[0] for l in lines})), flush=True)
    for tree, labels in zip(trees, ('unit|golden', 'unit')):
        tree.check_unchanged(labels)
    good, nr_known = known(trees) if not paths else (0, 0)
    random.seed(seed)
    random.shuffle(lines)
    noticed, survivors, nothing = 0, [], 0
    for source, i, forms in lines:
        if noticed + len(survivors) >= count:
            break
        form = random.choice(forms)
        by = attempt(trees, source, i, form)
        nothing += by == ''
        noticed += bool(by)
        if by is None:
            survivors.append((source, i + 1, form.strip()))
    nr = noticed + len(survivors)
    print('\n%d noticed, %d survived; %d more were no mutants (not compiled, or to the same code)'
          % (noticed, len(survivors), nothing))
    for s in sorted(survivors):
        print('survived: %s:%d: %s' % s)
    oks = [figure('mutants_noticed_pct', '%.1f' % (100 * noticed / nr), '%', REACH, 100 * noticed >= REACH * nr)] if nr else []
    if nr_known:
        oks.append(figure('mutants_known_noticed', good, 'mutants', nr_known, good == nr_known))
    print('figures: %d ok, %d short' % (sum(oks), len(oks) - sum(oks)))
    sys.exit(not oks or not all(oks))


if __name__ == '__main__':
    main()
