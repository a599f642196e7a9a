#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpiuninstall: of an installed copy nothing remains; what others put there, and what was changed, stays.
set -eu -o pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
work=$(cd "$work" && pwd -P)
fail()
{
	echo "FAILED: $*" >&2
	exit 1
}

# An emulated program is told what itself is by the emulator: elsewhere than here only the list is tried.
native=1
[ -z "${DCPI_EMULATOR:-}" ] || native=
install_to() { cmake --install "$DCPI_BUILD" --prefix "$1" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }; }
names() { (cd "$1" && find . | sort); }

# Into folders that are there partly, with files of others.
mkdir -p "$work/there/bin" "$work/there/share/man/man1" "$work/there/lib/dcpi"
echo other >"$work/there/bin/other"
names "$work/there" >"$work/before"
install_to "$work/there"
list=$(find "$work/there" -name install-manifest)
[ "$(head -n 1 "$list")" = "dcpi-install 1" ] || fail "no list"
# The list has all that is there, and nothing else.
{
	cat "$work/before"
	sed -nE 's/^(dir|(link|file) [^ ]+) /.\//p' "$list"
	echo "./${list#"$work/there/"}"
} | sort -u >"$work/listed"
names "$work/there" | diff - "$work/listed" || fail "the list is another"
[ "$native" ] || exit 0

# Moved: it is found, and finds its files, all the same.
mv "$work/there" "$work/moved"
bin=$work/moved/bin/dcpiuninstall
"$bin" -n >"$work/dry"
grep -q 'bin/dcpi: would be removed$' "$work/dry" || fail "-n does not say what"
names "$work/moved" | diff - "$work/listed" || fail "-n removed something"
"$bin" -n -json >"$work/dry"
grep -q '"path":".*/bin/dcpiprof"' "$work/dry" || fail "-json"

# Changed since; another thing in the place of ours; a file in a folder of ours.
echo changed >>"$work/moved/etc/dcpi/dcpid.json"
rm "$work/moved/bin/dcpicat" && echo mine >"$work/moved/bin/dcpicat"
echo note >"$work/moved/libexec/dcpi/note"
"$bin" | tee "$work/out"
grep -q 'etc/dcpi/dcpid.json: kept: changed' "$work/out" || fail "a changed file"
grep -q 'bin/dcpicat: kept: something else' "$work/out" || fail "another file"
grep -q 'libexec/dcpi: kept: other files' "$work/out" || fail "a folder in use"
{
	cat "$work/before"
	printf './%s\n' etc etc/dcpi etc/dcpi/dcpid.json bin/dcpicat libexec libexec/dcpi libexec/dcpi/note \
		"${list#"$work/there/"}"
} | sort -u >"$work/left"
names "$work/moved" | diff - "$work/left" || fail "other things are left"
[ "$(cat "$work/moved/bin/other")" = other ] || fail "another's file is gone"

# Installed twice, a folder that was not there: the configuration stays as it was edited between, which is known.
# All of it goes, and the folder too.
install_to "$work/new"
echo changed >>"$work/new/etc/dcpi/dcpid.json"
install_to "$work/new"
[ "$(tail -n 1 "$work/new/etc/dcpi/dcpid.json")" = changed ] || fail "a configuration was overwritten"
"$work/new/bin/dcpiuninstall" -n >"$work/dry"
grep -q 'etc/dcpi/dcpid.json: kept: changed' "$work/dry" || fail "an edited configuration"
"$work/new/bin/dcpi" uninstall -all >"$work/out"
[ ! -e "$work/new" ] || fail "left: $(find "$work/new")"

# Moved, with a folder that was made for it: that goes, and the one that somebody made in its old place stays.
install_to "$work/made/here"
mv "$work/made/here" "$work/elsewhere"
mkdir "$work/made/here"
"$work/elsewhere/bin/dcpiuninstall"
[ ! -e "$work/elsewhere" ] || fail "left: $(find "$work/elsewhere")"
[ -d "$work/made/here" ] || fail "another's folder is gone"

# Somebody uses it.
install_to "$work/new"
mkfifo "$work/stream"
"$work/new/sbin/dcpid" -quiet -replay - -platform test "$work/db" <"$work/stream" 2>/dev/null &
daemon=$!
exec 3>"$work/stream"
for _ in $(seq 600); do
	[ "$(readlink "/proc/$daemon/exe")" != "$work/new/sbin/dcpid" ] || break
	sleep 0.05
done
if "$work/new/bin/dcpiuninstall" 2>"$work/err"; then fail "removed while it runs"; fi
grep "is running (process $daemon)" "$work/err" || fail "does not say who runs: $(cat "$work/err")"
# Also where another installation took its file's place.
cp "$work/new/sbin/dcpid" "$work/new/sbin/another"
mv "$work/new/sbin/another" "$work/new/sbin/dcpid"
if "$work/new/bin/dcpiuninstall" 2>"$work/err"; then fail "removed while the one before runs"; fi
grep "is running (process $daemon)" "$work/err" || fail "does not see the one before: $(cat "$work/err")"
exec 3>&-
wait "$daemon" || :
rm -rf "$work/db"

# Not installed at all.
if "$DCPI_BIN/dcpiuninstall" 2>"$work/err"; then fail "a build was uninstalled"; fi
grep -q '^hint: ' "$work/err" || fail "no hint"
