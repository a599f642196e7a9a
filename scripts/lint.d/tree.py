# SPDX-License-Identifier: BSD-2-Clause
"""What the checks of structure.py look at: the files, the table of the modules, and the symbols of a build."""
import collections
import json
import os
import re
import subprocess
import sys

# Tests and benches may use every module, and are not of the product; examples have rows, and are not of the product.
FREE = ('tests', 'bench')
LEXEME = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
WORD = r'[A-Za-z_]\w*'


class Source:
	"""One C file: its text, and its code, which is the text with blanks for comments and strings."""

	def __init__(self, root, path):
		self.path, self.module = path, os.path.dirname(path)
		with open(os.path.join(root, path), errors='replace') as file:
			self.text = file.read()
		self.comments = [m for m in LEXEME.finditer(self.text) if m.group()[0] == '/']
		self.code = LEXEME.sub(lambda m: re.sub(r'[^\n]', ' ', m.group()), self.text)
		self.words = set(re.findall(WORD, self.code))
		self.product = path.split('/')[0] not in FREE + ('examples',)
		self.ruled = path.split('/')[0] not in FREE

	def line(self, offset):
		return self.text.count('\n', 0, offset) + 1

	def line_of(self, word):
		match = re.search(rf'\b{re.escape(word)}\b', self.code)
		return self.line(match.start()) if match else 1


def read_sources(root):
	sources = {}
	for folder, folders, names in os.walk(root):
		folders[:] = [f for f in folders if not re.match(r'\.|build', f)]
		for name in names:
			if name.endswith(('.c', '.h')):
				path = os.path.relpath(os.path.join(folder, name), root)
				sources[path] = Source(root, path)
	return sources


class Table:
	"""The file "modules": rows "MODULE: MODULE...", "headers MODULE: NAME...", "callbacks MODULE: NAME", "slots MODULE: NAME"."""

	def __init__(self, path):
		self.uses, self.headers, self.callbacks, self.slots = {}, collections.defaultdict(set), set(), set()
		for row in open(path):
			row = row.split('#')[0].split()
			if not row:
				continue
			if row[0] in ('callbacks', 'slots'):
				getattr(self, row[0]).add((row[1].rstrip(':'), row[2]))
			elif row[0] == 'headers':
				self.headers[row[1].rstrip(':')].update(row[2:])
			else:
				self.uses.setdefault(row[0].rstrip(':'), set()).update(row[1:])

	def allows(self, user, used):
		return user == used or used in self.uses.get(user, ())

	def public(self, header):
		module, name = os.path.split(header)
		return module.startswith('include') or name == os.path.basename(module) + '.h' or name in self.headers[module]


class Symbols:
	"""The symbols that the objects of a build define and need, by source file. A reference has no line of its own: it is
	shown with the first line of the source that names the symbol."""

	def __init__(self, build, replaced, sources):
		objects = {}
		with open(os.path.join(build, 'CMakeCache.txt')) as cache:
			root = re.search('^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$', cache.read(), re.M)[1]
		for entry in json.load(open(os.path.join(build, 'compile_commands.json'))):
			output = re.search(r' -o (\S+)', entry['command'])
			path = os.path.relpath(entry['file'], root)
			if output and path in sources and sources[path].ruled and path not in replaced:
				objects[os.path.join(entry['directory'], output[1])] = path
		objects.update((made, path) for path, made in replaced.items())
		missing = [o for o in objects if not os.path.exists(o)]
		if missing:
			sys.exit(f'structure.py: not built: {missing[0]} and {len(missing) - 1} more')
		# The agents in a program define functions of libc too: a reference to one of those is to libc.
		libc = subprocess.check_output(['gcc', '-print-file-name=libc.so.6'], text=True).strip()
		listed = subprocess.run(['nm', '-D', '-P', libc], capture_output=True, text=True, check=True).stdout
		libc = {row.split()[0].split('@')[0] for row in listed.splitlines() if row.split()[1] != 'U'}
		self.functions, self.needs = collections.defaultdict(set), collections.defaultdict(set)
		self.definers = collections.defaultdict(set)
		command = ['nm', '-A', '-P', *objects]
		for row in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
			made, symbol, kind = row.split()[:3]
			path = objects[made.rstrip(':')]
			if symbol in libc:
				continue
			if kind in 'UwBDRTVWC':
				(self.needs[symbol] if kind in 'Uw' else self.definers[symbol]).add(path)
			if kind in 'TW':
				self.functions[symbol].add(path)
