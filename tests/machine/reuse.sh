# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64
# shows: x86-64 2
# programs: reuse_jit dyn_truth
# Routines at one address in turn have each its share, of samples and of time; none goes to a wrong one.
# busybox has no nice, and nothing else runs in the machine.
nice()
{
	shift 2
	"$@"
}
export -f nice
exec bash /src/tests/system/reuse.sh
