# SPDX-License-Identifier: BSD-2-Clause
# The parts that need libc alone (libdbgdyn, lib/base, lib/wire, lib/profdb) are built with musl. The machine is the one
# that builds, so its programs run here and CMake calls this no cross build.
set(CMAKE_C_COMPILER musl-gcc)
