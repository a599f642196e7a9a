# SPDX-License-Identifier: BSD-2-Clause
# cmocka for a C library that Debian has no package of it for: its one file, of the source of Debian's package, which is
# fetched once.
set(source ${CMAKE_BINARY_DIR}/cmocka)
if(NOT EXISTS ${source}/src/cmocka.c)
	execute_process(COMMAND bash -c ". scripts/packages.sh && need_source cmocka \"$0\"" ${source}
		WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} RESULT_VARIABLE status)
	if(status)
		message(FATAL_ERROR "the source of cmocka cannot be had from Debian's archive; to build without the tests: "
			"-DDCPI_TESTS=OFF")
	endif()
endif()
add_library(cmocka STATIC ${source}/src/cmocka.c)
target_include_directories(cmocka SYSTEM PUBLIC ${source}/include)
target_compile_definitions(cmocka PRIVATE _GNU_SOURCE HAVE_MALLOC_H HAVE_INTTYPES_H HAVE_SIGNAL_H HAVE_STRINGS_H
	HAVE_GCC_THREAD_LOCAL_STORAGE HAVE_CLOCK_REALTIME HAVE_SIGLONGJMP HAVE_STRSIGNAL HAVE_STRUCT_TIMESPEC)
