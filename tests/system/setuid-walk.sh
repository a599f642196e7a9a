#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# A client executes a set-user-ID program, which executes the client again, while the reader walks a range of its
# memory: what the privileged program read from a root-only file is in no answer, and its memory is not opened.
set -u
rounds=60
[ "$(id -u)" = 0 ] || {
	echo "skip: needs root to make a set-user-ID program"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
(umask 077 && head -c 16 /dev/urandom >"$work/secret")
mkdir "$work/suid"
unshare --mount sh -c 'mount -t tmpfs -o suid,mode=755 none "$0" && cp "$1" "$0/client" && cp "$1" "$0/victim" &&
	chmod 4755 "$0/victim" && exec "$1" "$2" "$0/client" "$0/victim" "$3" "$4"' \
	"$work/suid" "$DCPI_BUILD/tests/setuid_walk" "$DCPI_BIN" "$work/secret" "$rounds" >"$work/out" || exit 1
read -r _ secrets _ own _ alike _ privileged <"$work/out"
echo "$rounds rounds: the secret in $secrets answers; alike afterwards: $alike"
[ "$alike" -gt $((rounds / 2)) ] || { echo "FAILED: the client does not come back as it was"; exit 1; }
[ "$secrets" = 0 ] || { echo "FAILED: a root-only file's content was read"; exit 1; }
[ "$own" = 3 ] || { echo "FAILED: a client's memory was read in $own of 3 tries"; exit 1; }
[ "$privileged" = 0 ] || { echo "FAILED: a set-user-ID program's memory was read"; exit 1; }
