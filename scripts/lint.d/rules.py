# SPDX-License-Identifier: BSD-2-Clause
"""The rule of the modules: what a file includes, calls, names and fills belongs to its own module, or to one that stands
in its module's row of the table. Each check adds to findings; edges gets (user, used) -> files."""
import collections
import os
import re

from tree import FREE, WORD

findings = []


def find(path, line, rule, text):
	findings.append(f'{path}:{line}: {rule}: {text}')


def check_table(sources, table):
	modules = {s.module for s in sources.values() if s.ruled}
	for module in sorted(modules ^ set(table.uses)):
		find('scripts/lint.d/modules', 1, 'table', f'"{module}": ' + ('no row' if module in modules else 'no such folder'))


def resolve(include, source, sources, by_name, table):
	"""The header of the project that an #include means, or None. Of headers with one name it is the one of the own
	folder, else one that the table allows."""
	own = os.path.normpath(os.path.join(source.module, include))
	if own in sources:
		return own
	found = [h for h in by_name[os.path.basename(include)] if ('/' + h).endswith('/' + include)]
	found.sort(key=lambda h: not table.allows(source.module, os.path.dirname(h)))
	return found[0] if found else None


def check_includes(sources, table, edges):
	by_name = collections.defaultdict(list)
	for path in sources:
		if path.endswith('.h') and path.split('/')[0] not in FREE:
			by_name[os.path.basename(path)].append(path)
	for source in sources.values():
		for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', source.text, re.M):
			if not source.ruled or match[1] == '<' and os.path.exists('/usr/include/' + match[2]):
				continue
			header = resolve(match[2], source, sources, by_name, table)
			if header is None or os.path.dirname(header) == source.module:
				continue
			module, line = os.path.dirname(header), source.line(match.start(1))
			edges[source.module, module].add(source.path)
			if not table.allows(source.module, module):
				find(source.path, line, 'include', f'"{match[2]}": {source.module} may not use {module}')
			elif not table.public(header):
				find(source.path, line, 'include', f'"{match[2]}" is internal to {module}')


def check_calls(sources, table, edges, symbols):
	for symbol, users in symbols.needs.items():
		defined = symbols.definers.get(symbol, set())
		for user in users:
			modules = {sources[d].module for d in defined if sources[d].ruled}
			module, source = sources[user].module, sources[user]
			if not source.ruled or not modules or module in modules:
				continue
			allowed = {m for m in modules if table.allows(module, m)}
			for used in allowed or modules:
				edges[module, used].add(user)
			if not allowed:
				used = sorted(modules)[0]
				find(user, source.line_of(symbol), 'call', f'"{symbol}": {module} may not use {used}')


TAG = re.compile(rf'\b(struct|union|enum)\s+({WORD})(\s*\{{)?')


def homes_of_tags(sources):
	"""The modules that define a struct, a union or an enum, of those that a header defines."""
	homes, shown = collections.defaultdict(set), set()
	for source in sources.values():
		for match in TAG.finditer(source.code) if source.ruled else ():
			if match[3]:
				homes[match[2]].add(source.module)
				shown.update([match[2]] * source.path.endswith('.h'))
	return {tag: modules for tag, modules in homes.items() if tag in shown}


def check_names(sources, table, homes):
	"""A struct, a union or an enum of a module that the file may not use, also if it is only declared."""
	for source in sources.values():
		seen = set()
		# include/ declares types that the module behind it defines.
		for match in TAG.finditer(source.code) if source.ruled and not source.module.startswith('include') else ():
			modules = homes.get(match[2], ())
			if modules and match[2] not in seen and (source.module, match[2]) not in table.slots and \
					not any(table.allows(source.module, m) for m in modules):
				find(source.path, source.line(match.start()), 'name',
					f'"{match[1]} {match[2]}": {source.module} may not use {sorted(modules)[0]}')
			seen.add(match[2])


def check_prefetches(sources):
	"""Compilers drop calls of a function that only prefetches; base_prefetch has an effect for them."""
	for source in sources.values():
		if source.path != 'lib/base/base.h':
			for match in re.finditer(r'\b__builtin_prefetch\b', source.code if source.ruled else ''):
				find(source.path, source.line(match.start()), 'prefetch', '"__builtin_prefetch": base_prefetch is kept by compilers')


def callbacks(sources):
	"""Of each struct in a header that has members which are functions: (module, tag) -> members. And of each variable in
	a header that points to a function: (module, name) -> nothing."""
	types, found = set(), {}
	headers = [s for s in sources.values() if s.path.endswith('.h') and s.ruled]
	pointer = re.compile(rf'\(\s*\*\s*(?:const\s+)?({WORD})\s*(?:\[\w*\])?\)\s*\(')
	for source in headers:
		types.update(re.findall(rf'\btypedef\b[^;{{}}]*?\(\s*\*?\s*({WORD})\s*\)\s*\(', source.code))
		types.update(re.findall(rf'\btypedef\b[^;{{}}()]*?({WORD})\s*\(\s*[^*\s][^;{{}}]*\)\s*;', source.code))
	typed = re.compile(rf'\b(?:{"|".join(sorted(types)) or "(?!)"})\s*\*?\s*(?:const\s+)?({WORD})\s*[;\[]')
	for source in headers:
		for match in re.finditer(rf'\bstruct\s+({WORD})\s*\{{([^}}]*(?:\{{[^}}]*\}}[^}}]*)*)\}}', source.code):
			members = set()
			for member in match[2].split(';'):
				members.update(pointer.findall(member)[:1] + typed.findall(member + ';'))
			if members:
				found[source.module, match[1]] = members
		for match in re.finditer(rf'^extern\s[^;{{}}]*?\(\s*\*\s*({WORD})\s*\)\s*\(', source.code, re.M):
			found[source.module, match[1]] = set()
	return found


def check_callbacks(sources, table, homes):
	used = set()
	for (module, name), members in callbacks(sources).items():
		filled = rf'\bstruct\s+{name}\s+\w+(?:\[\w*\])?\s*=\s*\{{|\(\s*(?:const\s+)?struct\s+{name}\s*\)\s*\{{'
		if members:
			filled += rf'|(?:\.|->)\s*(?:{"|".join(sorted(members))})\s*=[^=]'
		else:
			filled = rf'(?<![\w.>]){name}\s*=[^=]'
		for source in sources.values():
			if not source.ruled or name not in source.words or source.module in homes.get(name, set()) | {module}:
				continue
			match = re.search(filled, source.code)
			if match and (module, name) in table.callbacks:
				used.add((module, name))
			elif match:
				find(source.path, source.line(match.start()), 'callbacks',
					f'fills "{name}", through which {module} calls {source.module}: not in the table')
	for module, name in sorted(table.callbacks - used):
		find('scripts/lint.d/modules', 1, 'callbacks', f'"{module}: {name}" is filled by no other module')
