# SPDX-License-Identifier: BSD-2-Clause
# What needs libc alone (libdbgdyn, lib/base, lib/wire, lib/profdb), built with musl. The machine is the one that builds,
# so its programs run here and CMake calls this no cross build.
set(CMAKE_C_COMPILER musl-gcc)
