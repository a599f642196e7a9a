# SPDX-License-Identifier: BSD-2-Clause
# Sourced by tests that take programs from npm: each package is of one version, known by its hash, and is kept in the
# build folder.

# npm_fetch FOLDER NAME VERSION SHA512: the package, unpacked in FOLDER/package; skips the test where it cannot be had.
npm_fetch()
{
	local file
	[ ! -f "$1/good" ] || return 0
	rm -rf "$1" && mkdir -p "$1"
	file=$(cd "$1" && npm pack --silent "$2@$3") || { echo "skip: npm has no $2"; exit 77; }
	[ "$(openssl dgst -sha512 -binary "$1/$file" | base64 -w0)" = "$4" ] || { echo "$2 has another hash"; exit 1; }
	tar -xzf "$1/$file" -C "$1"
	rm "$1/$file"
	touch "$1/good"
}
