#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The check of scripts/lint that reads documents and manual pages: links and paths of sources lead to files, prose
ends at column 120, and words that the project replaced by standard terms do not come back. In the life of a sample,
each function of a table stands in the file that the table names, and the numbers of functions and returns are right.

usage: pages.py

Tables, examples and the output of programs may be wider; their words are not checked in manual pages.
"""
import os
import re
import subprocess
import sys

PAGES = ('docs', 'man', 'README.md', 'CONTRIBUTING.md', 'SECURITY.md')
WIDTH = 120
LINK = re.compile(r'\]\(([^)#\s]+)(?:#[^)]*)?\)')
SOURCE = re.compile(r'`((?:lib|daemon|driver|dbgdyn|pseudoimg|tools|tests|bench|scripts)/[\w./-]+\.(?:c|h|sh|py))`')
WORDS = re.compile(r'\b(tenants?|heirs?|hollow|hand(?:s|ed|ing)?[ -]overs?|keeps? house|'
	r'(?:go|goes|going|gone|went) on)\b')

LIFE = 'docs/LIFE-OF-A-SAMPLE.md'
STEP = re.compile(r'\| (\d+) \| (\w+) \| ([\w./-]+): `(\w+)` \|')
WAY = re.compile(r'\| (\d)\. [^|]*\| (\d+) \| (\d+) \|')


def prose(path, lines):
	"""The numbered lines of @path that are neither a table nor an example."""
	example, man = False, path.startswith('man/')
	for number, line in enumerate(lines, 1):
		if man:
			if re.match(r'\.(nf|EX|TS)\b', line):
				example = True
			elif re.match(r'\.(fi|EE|TE)\b', line):
				example = False
		elif line.lstrip().startswith('```'):
			example = not example
		elif line.lstrip().startswith('|') or re.match(r'    [^ ]', line) and number > 1 and not lines[number - 2]:
			continue
		if not example:
			yield number, line


def findings(path):
	with open(path, encoding='utf-8') as file:
		text = file.read()
	if path.startswith('man/') and '\n.TS' in text and not text.startswith("'\\\" t"):
		yield f"{path}:1: a page with tables begins with '\\\" t, so that man runs tbl"
	for number, line in prose(path, text.split('\n')):
		if len(line) > WIDTH:
			yield f'{path}:{number}: {len(line)} columns'
		for word in WORDS.findall(line):
			yield f"{path}:{number}: '{word}' has a standard term"
	if path.endswith('.md'):
		text = re.sub(r'```.*?```', '', text, flags=re.S)
		for target in LINK.findall(text):
			if ':' not in target and not os.path.exists(os.path.join(os.path.dirname(path), target)):
				yield f"{path}: link to '{target}', which is not there"
		for target in SOURCE.findall(text):
			if not os.path.exists(target):
				yield f"{path}: names '{target}', which is not there"


def returns(modules):
	"""How often a module other than the one before comes again."""
	return sum(m != before and m in modules[:i + 1] for i, (before, m) in enumerate(zip(modules, modules[1:])))


def life_findings(lines):
	"""The tables of functions: way 2 begins with rows of way 1."""
	rows, said = {way: [] for way in range(1, 5)}, {}
	table = 0
	for number, line in enumerate(lines, 1):
		table = int(line[len('### Table ')]) if line.startswith('### Table ') else table
		way, step = WAY.match(line), STEP.match(line)
		if way:
			said[int(way[1])] = number, (int(way[2]), int(way[3]))
		if not step:
			continue
		if table == 2 and not rows[2]:
			rows[2] = rows[1][:int(step[1]) - 1]
		rows[table].append(step[2])
		if int(step[1]) != len(rows[table]):
			yield f'{LIFE}:{number}: row {step[1]} is row {len(rows[table])}'
		path = step[3] if os.path.exists(step[3]) else os.path.join('daemon', step[3])
		text = open(path, encoding='utf-8').read() if os.path.exists(path) else ''
		if not re.search(rf'^[a-z][^;{{}}=]*\b{step[4]}\([^;{{}}]*\)\n{{', text, re.M):
			yield f"{LIFE}:{number}: no function '{step[4]}' in '{path}'"
	for way, modules in rows.items():
		number, claim = said.get(way, (1, None))
		true = len(modules), returns(modules)
		if claim != true:
			yield f'{LIFE}:{number}: way {way} has {true[0]} functions and {true[1]} returns'


def main():
	files = subprocess.run(['git', 'ls-files', *PAGES], capture_output=True, text=True, check=True).stdout.split()
	found = [finding for path in files if path.endswith(('.md', '.in')) for finding in findings(path)]
	with open(LIFE, encoding='utf-8') as file:
		found += life_findings(file.read().split('\n'))
	print('\n'.join(found) if found else f'{len(files)} pages checked')
	return 1 if found else 0


if __name__ == '__main__':
	sys.exit(main())
