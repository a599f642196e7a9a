# What needs libc alone (libdbgdyn, lib/base, lib/wire, lib/profdb), built with musl.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER musl-gcc)
