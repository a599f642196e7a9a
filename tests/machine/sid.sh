# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64 of-sid
# The same as "newest", on the newest kernel that Debian has at all.
. /test/newest.sh
