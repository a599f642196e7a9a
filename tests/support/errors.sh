# SPDX-License-Identifier: BSD-2-Clause
# Read by the bash of every script test before the script ($BASH_ENV), and by no other that it starts:
# a test that "set -e" ends says by which command.
unset BASH_ENV
set -E
trap 'case $- in *e*) echo "FAILED: line $LINENO: $BASH_COMMAND" >&2 ;; esac' ERR
