#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# dcpitar: a database packed, and read elsewhere as at home, its image and debug paths gone; what is no
# archive of ours, or damaged, is refused and changes nothing.
set -eu
. "$DCPI_SRC/tests/support/app-db.sh"

# An older epoch of another platform beside; costs of an image that was sampled, and of another.
"$mkdb" db <<-END
	platform two
	epoch 1690000000
	profile file /opt/app/app $app/app
	event cpu-clock 1000000
	at warm 3
	finish
END
mkdir db/costs
echo of-app >db/costs/0123456789abcdef0123456789abcdef01234567.imiss
echo of-none >db/costs/00000000000000000000000000000000000000aa.imiss
chmod 640 db/dyn/hi.box.1.dyn
umask 022

# ask DATABASE [OPTION…]: what the tools print of it.
ask()
{
	local report db=$1
	shift
	for report in dcpiprof "dcpiprof -i" "dcpilist -both hot -image /opt/app/app" "dcpilist triple"; do
		# shellcheck disable=SC2086
		"$DCPI_BIN"/$report -db "$db" "$@" 2>&1 | sed "s|^database .*|database|"
	done
}
{
	run dcpitar -images new.tar.zst
	run dcpitar -t new.tar.zst
	run dcpitar -json -epoch all all.tar.gz
	run dcpitar -epoch all -platform two old.tar
	run dcpitar -t old.tar
	run dcpitar -x new.tar.zst there
	ask db >home
	(unset DCPI_DEBUG_PATH && ask there) >away
	[ "$(grep -c triple home)" -gt 2 ] && diff home away && echo same
	stat -c '%a %n' there/dyn/* there/images/.build-id/*/*
	run dcpitar -x new.tar.zst there
	run dcpitar -json -x old.tar there
	ask db -epoch all >home
	(unset DCPI_DEBUG_PATH && ask there -epoch all) >away
	diff home away && echo same
	# Any tar reads it, and what it makes is a database.
	mkdir plain && tar -xf all.tar.gz -C plain
	ask plain -epoch all >away
	diff home away && echo same

	# Values are packed on request, and stay their owner's.
	secret=app.file.0123456789abcdef0123456789abcdef01234567.values.values
	for dir in db/*/two; do
		install -m 640 "$DCPI_SRC/tests/fuzz/corpus/value_file/small" "$dir/$secret"
	done
	run dcpitar -epoch all -platform two without.tar
	run dcpitar -epoch all -platform two -values with.tar
	run dcpitar -t with.tar
	stat -c %a with.tar
	run dcpitar -x with.tar secrets
	stat -c %a secrets/*/two/*.values
	rm db/*/two/*.values

	# Call paths come along, and what only callers are in: here it is missing. So do workloads.
	for dir in db/*/two; do
		cp "$DCPI_SRC/tests/fuzz/corpus/callpaths/small" "$dir/callpaths"
		cp "$DCPI_SRC/tests/fuzz/corpus/workloads/small" "$dir/workloads"
	done
	run dcpitar -epoch all -platform two paths.tar
	run dcpitar -t paths.tar
	run dcpitar -json -x paths.tar paths
	cmp paths/*/two/callpaths db/*/two/callpaths
	cmp paths/*/two/workloads db/*/two/workloads
	for file in callpaths workloads; do
		printf X | dd of="$dir/$file" bs=1 seek=100 conv=notrunc 2>/dev/null
	done
	run dcpitar -epoch all -platform two damaged.tar
	rm db/*/two/{callpaths,workloads}

	echo '--- refused'
	tar -cf foreign.tar there
	cp old.tar changed.tar
	printf X | dd of=changed.tar bs=1 seek=1100 conv=notrunc 2>/dev/null
	head -c 3000 old.tar >cut.tar
	for bad in foreign.tar changed.tar cut.tar home nothing.tar; do
		run dcpitar -x "$bad" fresh
		run dcpitar -t "$bad"
	done
	find fresh -type f | sort
	# What the archive's list tells of a profile is not what it has.
	cp old.tar changed.tar
	printf X | dd of=changed.tar bs=1 seek=1600 conv=notrunc 2>/dev/null
	run dcpitar -x changed.tar fresh
	find fresh -type f | sort
	run dcpitar new.zip
	run dcpitar -x -t new.tar.zst
	run dcpitar -x -images new.tar.zst there
	run dcpitar new.tar.zst there
	run dcpitar -t -db db new.tar.zst
	run dcpitar -x -db db new.tar.zst there
	run dcpitar -epoch 209901010000 new.tar
	run dcpitar -platform nobody new.tar
	run dcpitar no/such/folder/new.tar
	echo '--- lacking'
	rm db/dyn/hi.box.1.dyn
	echo damage >db/202311142213/box/idle.named.p4fb62348858c2f6f
	run dcpitar less.tar
	run dcpitar -t less.tar
} >out
compare dcpitar
