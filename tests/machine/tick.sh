# SPDX-License-Identifier: BSD-2-Clause
# machine: aarch64 x86-64 back
# shows: x86-64 5
# The main job by the scheduler's tick alone, which costs no interrupt more.
event=tick
. /test/main-job.sh
