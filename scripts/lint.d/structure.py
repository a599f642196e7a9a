#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The rule of the modules and the figures of scripts/lint.

usage: structure.py [--lower] [--show FIGURE] [--object FILE=OBJECT]... SOURCE BUILD [FILE...]

A module is a folder with C files. The table "modules" beside this script says which modules each may use. BUILD is
a build of SOURCE with a compile_commands.json; the object files tell which function a file refers to, also by its
address. --object gives the object of a changed file. --lower records figures that became better in the file "state".
--show lists what is behind a figure. Of a figure that became worse, what is in FILE... is shown, else the first lines.
Every finding is a line "FILE:LINE: RULE: text"; the exit status is 1 if there is one.
"""
import argparse
import collections
import math
import os
import re
import sys

sys.dont_write_bytecode = True
from rules import check_callbacks, check_calls, check_includes, check_names, check_prefetches, check_table
from rules import find, findings, homes_of_tags
from tree import Symbols, Table, read_sources

# A comment must not open with one of these words: it has no subject then. The list only grows.
NO_SUBJECT = set('''What Who Whom Whose Of Those By Nobody Somebody Whoever Whatever Whichever Anybody Everybody
	Someone Anyone Everyone'''.split())

# The figures, with their bars. single_use_externals: of the external functions that are defined in the product, without
# main and without the interface in include/, the share to which exactly one other file of the product refers.
BARS = {'module_cycles': 0, 'largest_cycle': 3, 'single_use_externals': 40, 'files_without_purpose': 0,
	'comments_without_subject': 2}
SHOWN = 20
PERCENT = {'single_use_externals', 'comments_without_subject'}


def opening(comment):
	return re.sub(r'^[/*\s]+', '', comment.group())


def files_without_purpose(sources):
	"""Files whose first thing after the SPDX line is no comment, or one without a sentence."""
	first = re.compile(r'\s*(?:/\*|//) SPDX[^\n]*\s*(/\*.*?\*/|//[^\n]*)?', re.S)
	return [(p, 1, 'no comment says what the file is for') for p, s in sorted(sources.items())
		if s.product and p.endswith('.c') and len(re.findall(r'[A-Za-z]{2,}', (first.match(s.text) or [0, ''])[1] or '')) < 3]


def comments_without_subject(sources):
	"""(comments, those of them that open with a word of the list). A heading ("---- reading ----") is no sentence."""
	total, bad = 0, []
	for source in sources.values():
		for comment in source.comments if source.product else ():
			word = re.match(r'[A-Za-z]+', opening(comment))
			if word and word.group() != 'SPDX':
				total += 1
				if word.group().capitalize() in NO_SUBJECT:
					bad.append((source.path, source.line(comment.start()), f'opens with "{word.group()}"'))
	return total, bad


def components(graph):
	"""The strongly connected components of more than one node, the largest first (Tarjan's algorithm)."""
	number, low, stack, on, found = {}, {}, [], set(), []

	def visit(node):
		number[node] = low[node] = len(number)
		stack.append(node)
		on.add(node)
		for next_ in sorted(graph.get(node, ())):
			if next_ not in number:
				visit(next_)
			if next_ in on:
				low[node] = min(low[node], low[next_])
		if low[node] == number[node]:
			part = stack[stack.index(node):]
			del stack[-len(part):]
			on.difference_update(part)
			if len(part) > 1:
				found.append(sorted(part))

	sys.setrecursionlimit(10000)
	for node in sorted(graph):
		if node not in number:
			visit(node)
	return sorted(found, key=lambda part: (-len(part), part))


def measure(sources, edges, symbols):
	"""name -> (value, the findings behind it, each of (file, line, text))."""
	modules, calls, single, external = collections.defaultdict(set), collections.defaultdict(set), [], 0
	for user, used in edges:
		modules[user].add(used)
	public = set().union(*(s.words for p, s in sources.items() if p.startswith('include/')))
	for symbol, homes in symbols.functions.items():
		homes = {h for h in homes if sources[h].product}
		users = {u for u in symbols.needs.get(symbol, ()) if sources[u].product} - homes
		for user in users:
			calls[user].update(h for h in homes if sources[h].module == sources[user].module)
		if homes and symbol != 'main' and symbol not in public:
			external += 1
			for user in users if len(users) == 1 else ():
				single.append((sorted(homes)[0], 1, f'"{symbol}" is used by {user} alone'))
	cycles, rings = components(modules), components(calls)
	comments, bad = comments_without_subject(sources)
	nameless = files_without_purpose(sources)
	return {
		'module_cycles': (len(cycles), [(c[0], 1, ' '.join(c)) for c in cycles]),
		'largest_cycle': (len(rings[0]) if rings else 1, [(r[0], 1, ' '.join(r)) for r in rings]),
		'single_use_externals': (100 * len(single) / max(external, 1), single),
		'files_without_purpose': (len(nameless), nameless),
		'comments_without_subject': (100 * len(bad) / max(comments, 1), bad),
	}


def judge(name, value, items, state, files):
	"""Print a figure; whether it reached its bar. Worse than the state is a finding, shown with what is behind it: in the
	files that the user named, else the first."""
	shown = f'{value:.1f} %' if name in PERCENT else str(value)
	good = value <= BARS[name]
	print(f'figure: {name} {shown} reach <= {BARS[name]} {"ok" if good else "short"}')
	allowed = max(BARS[name], state.get(name, 0))
	if value > allowed:
		find('scripts/lint.d/state', 1, name, f'{shown}, and the state allows {allowed} ("--show {name}" lists them)')
		for item in [i for i in items if i[0] in files or not files][:SHOWN]:
			find(item[0], item[1], name, item[2])
	return good


def read_state(path):
	return {n: int(v) for n, v in (r.split() for r in open(path) if r[0] != '#')} if os.path.exists(path) else {}


def lower_state(path, state, figures):
	kept = {n: min(math.ceil(v), state.get(n, math.inf)) for n, (v, _) in figures.items() if v > BARS[n]}
	head = '# SPDX-License-Identifier: BSD-2-Clause\n' \
		'# Figures that are short, as they may be at most; "scripts/lint --fix" lowers them.\n'
	if kept:
		with open(path, 'w') as file:
			file.write(head + ''.join(f'{n} {v}\n' for n, v in kept.items()))
	elif os.path.exists(path):
		os.remove(path)
	return kept


def main():
	parser = argparse.ArgumentParser()
	parser.add_argument('--lower', action='store_true')
	parser.add_argument('--object', action='append', default=[])
	parser.add_argument('--show', choices=BARS)
	parser.add_argument('source')
	parser.add_argument('build')
	parser.add_argument('files', nargs='*')
	args = parser.parse_args()
	here = os.path.join(args.source, 'scripts/lint.d')
	sources, table = read_sources(args.source), Table(os.path.join(here, 'modules'))
	symbols = Symbols(args.build, dict(o.split('=') for o in args.object), sources)
	edges = collections.defaultdict(set)
	check_table(sources, table)
	check_includes(sources, table, edges)
	check_calls(sources, table, edges, symbols)
	homes = homes_of_tags(sources)
	check_names(sources, table, homes)
	check_callbacks(sources, table, homes)
	check_prefetches(sources)
	figures = measure(sources, edges, symbols)
	if args.show:
		print('\n'.join(f'{path}:{line}: {text}' for path, line, text in figures[args.show][1]))
		return
	state = read_state(os.path.join(here, 'state'))
	if args.lower:
		state = lower_state(os.path.join(here, 'state'), state, figures)
	short = sum(not judge(name, *figure, state, set(args.files)) for name, figure in figures.items())
	lines = sum(s.text.count('\n') for s in sources.values() if s.product)
	print(f'figure: product_lines {lines}')
	print(''.join(f'{f}\n' for f in sorted(findings)), end='')
	print(f'figures: {len(figures) - short} ok, {short} short')
	sys.exit(bool(findings))


main()
