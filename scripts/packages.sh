# SPDX-License-Identifier: BSD-2-Clause
# Sourced by the scripts: which Debian packages they need, and how the missing ones are installed; of one
# that a test builds, the source.

DCPI_BUILD_PACKAGES="cmake ninja-build pkg-config gcc libc6-dev libelf-dev libdw-dev liblzma-dev libffi-dev
	libjson-c-dev libcapstone-dev libzydis-dev libarchive-dev libbpf-dev libzstd-dev zlib1g-dev libncurses-dev
	libcurl4-openssl-dev clang bpftool"
DCPI_TEST_PACKAGES="libcmocka-dev g++ musl-tools elfutils binutils gdb graphviz mandoc procps util-linux linux-perf
	nodejs llvm luajit openjdk-17-jdk-headless valgrind systemd libunicorn-dev patch rpm
	nix-bin python3 tmux"
DCPI_BROWSER_PACKAGES="chromium firefox-esr"
DCPI_FLEET_PACKAGES="clickhouse-server clickhouse-client zookeeper curl python3"
DCPI_JUDGE_PACKAGES="golang-go python3-jsonschema python3-protobuf openssl" # and npm
DCPI_PACKAGING_PACKAGES="debhelper dpkg-dev lintian openjdk-17-jdk-headless"
DCPI_LINT_PACKAGES="clang-format clang-tidy shellcheck python3"
DCPI_ARM64_PACKAGES="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user libelf-dev:arm64 libdw-dev:arm64
	liblzma-dev:arm64 libffi-dev:arm64 libjson-c-dev:arm64 libcapstone-dev:arm64 libzydis-dev:arm64
	libarchive-dev:arm64 libbpf-dev:arm64 libzstd-dev:arm64 zlib1g-dev:arm64 libncurses-dev:arm64 libcurl4-openssl-dev:arm64
	libcmocka-dev:arm64"
# For emulated machines; their kernels, busybox-static and bash-static are unpacked, not installed.
DCPI_MACHINE_PACKAGES="qemu-system-arm qemu-system-x86 cpio binutils"

# Debian keeps s390x at other versions than the architectures of its long support, so nothing of it can be installed
# beside these: all is unpacked. Zydis is built from its source, which Debian leaves out on big-endian machines.
DCPI_S390X_PACKAGES="gcc-s390x-linux-gnu qemu-user"
DCPI_S390X_UNPACKED="libc6-dev libc-bin libelf-dev libdw-dev liblzma-dev libjson-c-dev libcapstone-dev libarchive-dev
	libzstd-dev zlib1g-dev libncurses-dev libcmocka-dev"

# missing_packages NAME…: those of them that are not installed.
missing_packages()
{
	local p
	for p in "$@"; do
		dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || echo "$p"
	done
}

# need_packages NAME…: install what is missing; without root only say it and fail.
need_packages()
{
	local missing
	command -v dpkg-query >/dev/null || return 0 # another distribution: CMake names what it misses
	missing=$(missing_packages "$@" | tr '\n' ' ')
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" != 0 ]; then
		echo "$0: missing packages: $missing" >&2
		echo "hint: as root: apt-get install $missing" >&2
		return 1
	fi
	echo "installing: $missing" >&2
	case "$missing" in
	*:arm64*) dpkg --add-architecture arm64 ;;
	esac
	apt-get update -qq >/dev/null &&
		DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing >/dev/null
}

# need_source PACKAGE FOLDER: its source as Debian has it, without Debian's changes, of the release that packages are
# installed from; it stays in FOLDER for the next time.
need_source()
{
	local apt package=$1 folder=$2
	[ ! -d "$folder" ] || return 0
	apt=$(mktemp -d)
	mkdir -p "$apt/lists/partial" "${folder%/*}"
	cat /etc/apt/sources.list 2>/dev/null | sed -n 's/^deb /deb-src /p' >"$apt/a.list"
	cat /etc/apt/sources.list.d/debian.sources 2>/dev/null | sed 's/^Types:.*/Types: deb-src/' >"$apt/a.sources"
	(
		cd "$apt" && set -- -qq -o APT::Sandbox::User=root -o Dir::Etc::sourcelist=/dev/null \
			-o Dir::Etc::sourceparts="$apt" -o Dir::State::lists="$apt/lists" &&
			apt-get update "$@" && apt-get source --tar-only "$@" "$package" &&
			mkdir unpacked && tar -xf ./*.orig.tar.* --strip-components=1 -C unpacked && mv unpacked "$folder"
	) >"$apt/log" 2>&1 || cat "$apt/log" >&2
	rm -rf "$apt"
	[ -d "$folder" ]
}

# need_unpacked FOLDER PACKAGE…: their files in FOLDER, of the release that packages are installed from; they stay there for
# the next time. Names may have an architecture (NAME:arm64).
need_unpacked()
{
	local folder=$1 deb to
	shift
	[ ! -d "$folder" ] || return 0
	to=$(mktemp -d)
	mkdir -p "${folder%/*}" "$to/files"
	(
		cd "$to" && { apt-get download -qq "$@" || { apt-get update -qq && apt-get download -qq "$@"; }; } &&
			for deb in ./*.deb; do dpkg-deb -x "$deb" files || exit; done && mv files "$folder"
	) >"$to/log" 2>&1 || cat "$to/log" >&2
	rm -rf "$to"
	[ -d "$folder" ]
}

# need_sysroot FOLDER ARCH PACKAGE…: likewise of another architecture, with all that these depend on. This machine's
# package system learns nothing of that architecture. Links to absolute paths become relative.
need_sysroot()
{
	local folder=$1 arch=$2 apt deb link
	shift 2
	[ ! -d "$folder" ] || return 0
	apt=$(mktemp -d)
	mkdir -p "$apt"/{lists/partial,cache/archives/partial,debs,files} "${folder%/*}"
	touch "$apt/status"
	local options=(-qq -o APT::Sandbox::User=root -o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
		-o "Dir::State::status=$apt/status" -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache")
	(
		cd "$apt/debs" && apt-get update "${options[@]}" &&
			apt-get download "${options[@]}" $(apt-cache depends "${options[@]}" --recurse --no-recommends \
				--no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances "$@" | grep '^[a-z]' | sort -u) &&
			cd "$apt/files" && for deb in "$apt"/debs/*.deb; do dpkg-deb -x "$deb" . || exit; done &&
			find . -type l -lname '/*' | while read -r link; do
				ln -sfr ".$(readlink "$link")" "$link" || exit
			done && mv "$apt/files" "$folder"
	) >"$apt/log" 2>&1 || cat "$apt/log" >&2
	rm -rf "$apt"
	[ -d "$folder" ]
}

# need_kernel FOLDER ARCH SUITE: likewise the kernel that SUITE has for virtual machines now, whatever release this machine's
# packages are of. Newer ones have the kernel itself in a package of its own.
need_kernel()
{
	local folder=$1 arch=$2 suite=$3 apt image
	[ ! -d "$folder" ] || return 0
	apt=$(mktemp -d)
	mkdir -p "$apt"/{lists/partial,cache/archives/partial,debs,files,parts} "${folder%/*}"
	touch "$apt/status"
	awk -v RS= -v suite="$suite" '!/security/ { sub(/Suites:[^\n]*/, "Suites: " suite); print; exit }' \
		/etc/apt/sources.list.d/debian.sources >"$apt/parts/debian.sources"
	(
		cd "$apt/debs" && set -- -qq -o APT::Sandbox::User=root -o "APT::Architecture=$arch" \
			-o "APT::Architectures=$arch" -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$apt/parts" \
			-o "Dir::State::status=$apt/status" -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" &&
			apt-get update "$@" &&
			image=$(apt-cache depends "$@" "linux-image-cloud-$arch" | sed -n 's/^ *Depends: \(linux-image-\)/\1/p') &&
			apt-get download "$@" "$image" \
				$(apt-cache depends "$@" "$image" | sed -n 's/^ *Depends: \(linux-binary-\)/\1/p') &&
			for image in ./*.deb; do dpkg-deb -x "$image" ../files || exit; done && mv ../files "$folder"
	) >"$apt/log" 2>&1 || cat "$apt/log" >&2
	rm -rf "$apt"
	[ -d "$folder" ]
}
