#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The checks of scripts/lint that look at one file each: clang-tidy, gcc -fanalyzer, POSIX and shellcheck, as many at
once as there are CPUs.

usage: check.py BUILD FILE...

BUILD is a build of the current folder with a compile_commands.json. A C file is also checked when one of the given
headers is among those that it includes. What a check said is kept in BUILD/cache by the hash of the tool, its
configuration and command, and of the contents of all files that it read; so each is done once.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys

# gcc -fanalyzer runs where it finds nothing but truth. Elsewhere it takes the steps of a parser of outside bytes, or a
# table that owns what was stored in it, for errors; and it is slow (a minute for a file of lib/analysis).
ANALYZED = ('lib/base', 'lib/wire', 'lib/kernel', 'lib/tarball', 'lib/foreign', 'lib/profdb', 'dbgdyn')
ANALYZER = ['-fanalyzer', '-Werror', '-o', '/dev/null',
	# It takes objects that memcpy filled for uninitialised, each time.
	'-Wno-analyzer-use-of-uninitialized-value',
	# It loses sight of what a table owns; the address sanitizer of the tests finds leaks.
	'-Wno-analyzer-malloc-leak',
	# It does not see that two tests of one condition agree.
	'-Wno-analyzer-null-argument']

# What runs on other systems too uses POSIX alone: it is compiled once more with nothing else in sight (posix).
PORTABLE = re.compile(r'(lib|dbgdyn|pseudoimg|tools|driver/(event|replay|inprocess))/[^.]*(?<!_linux)\.c$')
PROGRAM = 'driver/inprocess/program/'  # beside the program that samples itself, by its system's calls
POSIX = ['-std=c17', '-U_GNU_SOURCE', '-D_XOPEN_SOURCE=700', '-fsyntax-only', '-Werror=implicit-function-declaration', '-include']
BEYOND_POSIX = {
	'driver/replay/input.c': 'fopencookie, which the BSDs have as funopen',
	'lib/base/file.c': 'syncfs; fsync of each file would do',
	'lib/export/gzip.c': 'fopencookie',
	'lib/image/source.c': 'GLOB_ONLYDIR, a hint that saves time',
	'lib/image/unwind_rows.c': 'memfd_create',
	'lib/store/fetch_db.c': 'memfd_create',
	'lib/store/fetch_paths.c': 'memfd_create',
	'lib/vtrace/trace_parse.c': 'uint and ulong, which the interface of value profilers has from the original',
	'tools/control.c': 'SO_PEERCRED, which tells who answers',
}

hashes = {}


def hash_of(path):
	if path not in hashes:
		with open(path, 'rb') as file:
			hashes[path] = hashlib.sha256(file.read()).hexdigest()
	return hashes[path]


def version(tool):
	return subprocess.run([tool, '--version'], capture_output=True, text=True, check=True).stdout


class Job:
	"""One command, and everything that its answer depends on."""

	def __init__(self, command, inputs, tool, folder='.', config=()):
		self.command, self.folder = command, folder
		key = [' '.join(command), tool] + [f'{i} {hash_of(i)}' for i in (*config, *sorted(inputs))]
		self.key = hashlib.sha256('\n'.join(key).encode()).hexdigest()

	def run(self, cache):
		kept = os.path.join(cache, self.key)
		if not os.path.exists(kept):
			done = subprocess.run(self.command, cwd=self.folder, capture_output=True, text=True)
			said = done.stdout + (done.stderr if done.returncode else '')
			with open(f'{kept}.new', 'w') as file:
				file.write(said if done.returncode else '')
			os.rename(f'{kept}.new', kept)
		with open(kept) as file:
			return file.read()


def dependencies(build):
	"""object -> the files that it was compiled from, as Ninja has noted them; system headers count by version."""
	found, files = {}, None
	rows = subprocess.run(['ninja', '-C', build, '-t', 'deps'], capture_output=True, text=True, check=True).stdout
	for row in rows.splitlines():
		if row and not row.startswith(' '):
			files = found.setdefault(row.split(':')[0], set())
		elif row and not row.startswith('    /usr/'):
			files.add(os.path.normpath(os.path.join(build, row.strip())))
	return found


def jobs_of_c(build, wanted):
	deps, seen = dependencies(build), set()
	clang, gcc = version('clang-tidy'), version('gcc')
	for entry in json.load(open(os.path.join(build, 'compile_commands.json'))):
		path, words = os.path.relpath(entry['file']), entry['command'].split()
		inputs = deps.get(words[words.index('-o') + 1], set())
		read = {os.path.relpath(i) for i in inputs} | {path}
		if path in seen or not path.endswith('.c') or not read & wanted:
			continue
		seen.add(path)
		# The build's -Werror is for gcc's warnings; of clang's, .clang-tidy says which count.
		yield Job(['clang-tidy', '-p', build, '--quiet', '--warnings-as-errors=*', '--extra-arg=-Wno-error', path], read, clang,
			config=['.clang-tidy'])
		if PORTABLE.match(path) and not path.startswith(PROGRAM) and path not in BEYOND_POSIX:
			command = [w for w in entry['command'].replace('\\"', '"').split() if not w.startswith(('-W', '-std=', '-D_GNU_SOURCE'))]
			command = command[:command.index('-o')] + POSIX + [os.path.abspath('scripts/lint.d/posix'), entry['file']]
			yield Job(command, read, gcc, entry['directory'], config=['scripts/lint.d/posix'])
		if os.path.dirname(path) in ANALYZED:
			command = entry['command'].replace('\\"', '"').split()
			command = command[:command.index('-o')] + ANALYZER + ['-c', entry['file']]
			yield Job(command, read, gcc, entry['directory'])


def jobs_of_scripts(wanted):
	"""A script is checked with all that scripts may source."""
	tool = version('shellcheck')
	for path in sorted(wanted):
		with open(path, errors='replace') as file:
			text = file.read() if path.endswith('.sh') or os.access(path, os.X_OK) else ''
		if path.endswith('.sh') or re.match(r'#!.*\b(bash|sh)\n', text):
			sourced = {s for s in re.findall(r'[\w/.-]+\.sh\b', text) for s in (s.lstrip('/'),) if os.path.exists(s)}
			yield Job(['shellcheck', '-x', '-f', 'gcc', path], sourced | {path}, tool, config=['.shellcheckrc'])


def main():
	build, wanted = sys.argv[1], set(sys.argv[2:])
	cache = os.path.join(build, 'cache')
	os.makedirs(cache, exist_ok=True)
	jobs = [*jobs_of_c(build, wanted), *jobs_of_scripts(wanted)]
	with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
		said = [s for s in pool.map(lambda job: job.run(cache), jobs) if s]
	print(''.join(dict.fromkeys(said)), end='')
	sys.exit(bool(said))


main()
