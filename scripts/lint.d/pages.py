#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The check of scripts/lint that reads documents and manual pages: links and paths of sources lead to files, prose
ends at column 120, and words that the project replaced by standard terms do not come back.

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


def main():
	files = subprocess.run(['git', 'ls-files', *PAGES], capture_output=True, text=True, check=True).stdout.split()
	found = [finding for path in files if path.endswith(('.md', '.in')) for finding in findings(path)]
	print('\n'.join(found) if found else f'{len(files)} pages checked')
	return 1 if found else 0


if __name__ == '__main__':
	sys.exit(main())
