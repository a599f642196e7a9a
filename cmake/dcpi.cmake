# SPDX-License-Identifier: BSD-2-Clause
# The few functions with which every folder describes itself. What a target does not link, it
# cannot include: a library's folder is its only public include path.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# No path of the build is in what is installed: run paths begin at the program, and debug information names sources by
# their place in the tree. With the tests both have the path, as tests copy programs, and tools and debuggers look there.
if(NOT DCPI_TESTS)
	set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
	set(maps -ffile-prefix-map=${CMAKE_BINARY_DIR}=build -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
	add_compile_options(${maps})
	add_link_options(${maps}) # what is optimized at link time is compiled there
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

add_library(dcpi_flags INTERFACE)
target_compile_definitions(dcpi_flags INTERFACE _GNU_SOURCE DCPI_VERSION="${PROJECT_VERSION}")
target_compile_options(dcpi_flags INTERFACE
	-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
	-Wwrite-strings -Wvla -Wformat=2 -fno-strict-aliasing -fno-common)
if(DCPI_WERROR)
	target_compile_options(dcpi_flags INTERFACE -Werror)
endif()
if(DCPI_SANITIZE)
	add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
		-fno-omit-frame-pointer)
	add_link_options(-fsanitize=address,undefined)
endif()

# The index of an archive is made once, by "ranlib".
set(CMAKE_C_ARCHIVE_CREATE "<CMAKE_AR> qcS <TARGET> <LINK_FLAGS> <OBJECTS>")

# dcpi_library(NAME SOURCES … LINK … [PRIVATE_LINK …]): a static library of the folder it is called in.
function(dcpi_library name)
	cmake_parse_arguments(A "" "" "SOURCES;LINK;PRIVATE_LINK" ${ARGN})
	add_library(${name} STATIC ${A_SOURCES})
	target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR})
	target_link_libraries(${name} PUBLIC ${A_LINK} PRIVATE dcpi_flags ${A_PRIVATE_LINK})
endfunction()

# dcpi_program(NAME SOURCES … LINK …): a program in build/bin.
function(dcpi_program name)
	cmake_parse_arguments(A "" "" "SOURCES;LINK" ${ARGN})
	add_executable(${name} ${A_SOURCES})
	target_link_libraries(${name} PRIVATE dcpi_flags ${A_LINK})
endfunction()

# dcpi_pkgconfig(NAME): install NAME.pc from NAME.pc.in, as a part of component NAME. The prefix is found
# from the file's own place, so that a moved copy works.
function(dcpi_pkgconfig name)
	if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
		set(pc_prefix ${CMAKE_INSTALL_PREFIX})
		set(pc_libdir ${CMAKE_INSTALL_LIBDIR})
	else()
		file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
		set(pc_prefix \${pcfiledir}/${up})
		set(pc_libdir \${prefix}/${CMAKE_INSTALL_LIBDIR})
	endif()
	set(pc_includedir \${prefix}/${CMAKE_INSTALL_INCLUDEDIR})
	if(IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
		set(pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
	endif()
	configure_file(${name}.pc.in ${name}.pc @ONLY)
	install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc
		DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${name})
endfunction()

# dcpi_install_link(FOLDER NAME TARGET): install the symbolic link NAME to TARGET, which lies beside it. FOLDER may be
# absolute, as all CMAKE_INSTALL_*DIR.
function(dcpi_install_link folder name target)
	set(path "\${CMAKE_INSTALL_PREFIX}/${folder}/${name}")
	if(IS_ABSOLUTE ${folder})
		set(path ${folder}/${name})
	endif()
	install(CODE "file(CREATE_LINK ${target} \"\$ENV{DESTDIR}${path}\" SYMBOLIC)
		list(APPEND CMAKE_INSTALL_MANIFEST_FILES \"${path}\")")
endfunction()

# dcpi_unit_test(NAME SOURCES … LINK …): a cmocka program, registered with ctest as unit/NAME.
# Internal headers of a folder are reached by INCLUDE. LIVE: it compares samples or ticks with time, so
# that it has no result while the machine stands still (tests/support/stood_still.c), as system tests; its label is
# "live". NATIVE: it
# cannot run under user-mode emulation, which has no perf events, no BPF and no ptrace, and in which a program cannot
# start another one of its kind (a helper); a cross build does without it. There are hundreds, so they are linked by the
# linker that takes half the time, where it is. Names that DCPI_UNIT_LEFT_OUT matches are no tests here.
include(CheckLinkerFlag)
check_linker_flag(C -fuse-ld=gold DCPI_HAS_GOLD)
function(dcpi_unit_test name)
	cmake_parse_arguments(A "LIVE;NATIVE" "" "SOURCES;LINK;INCLUDE" ${ARGN})
	string(REPLACE "/" "_" target "unit_${name}")
	add_executable(${target} ${A_SOURCES})
	set_target_properties(${target} PROPERTIES
		RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
	target_include_directories(${target} PRIVATE ${A_INCLUDE})
	target_link_libraries(${target} PRIVATE dcpi_flags cmocka ${A_LINK})
	if(DCPI_HAS_GOLD)
		target_link_options(${target} PRIVATE -fuse-ld=gold)
	endif()
	if((A_NATIVE AND CMAKE_CROSSCOMPILING) OR (DCPI_UNIT_LEFT_OUT AND name MATCHES "${DCPI_UNIT_LEFT_OUT}"))
		set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
		return()
	endif()
	if(A_LIVE AND NOT CMAKE_CROSSCOMPILING)
		add_test(NAME unit/${name} COMMAND stood_still $<TARGET_FILE:${target}>)
	else()
		add_test(NAME unit/${name} COMMAND ${target})
	endif()
	set(labels unit)
	if(A_LIVE)
		list(APPEND labels live)
	endif()
	# Under sanitizers it runs at the lowest priority, beside all system tests (scripts/test).
	set(limit 180)
	if(DCPI_SANITIZE)
		set(limit 1800)
	endif()
	set_tests_properties(unit/${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS "${labels}" TIMEOUT ${limit}
		ENVIRONMENT "DCPI_BIN=${CMAKE_BINARY_DIR}/bin;DCPI_SRC=${CMAKE_SOURCE_DIR}")
endfunction()

# dcpi_script_test(KIND NAME SCRIPT [LONG | ALONE]): a shell script as ctest KIND/NAME. KIND is golden
# (no root, no kernel) or system (real daemon, real samples, one at a time). LONG: only "scripts/test --all" has time
# for it. ALONE: likewise, nothing else runs meanwhile, and it is run again when it fails beside other load.
function(dcpi_script_test kind name script)
	cmake_parse_arguments(A "LONG;ALONE" "" "" ${ARGN})
	set(emulate)
	if(CMAKE_CROSSCOMPILING)
		set(emulate ${CMAKE_SOURCE_DIR}/tests/support/emulate)
	endif()
	set(writers)
	if(DCPI_ANALYSIS_ONLY)
		set(writers "DCPI_WRITERS=${CMAKE_SOURCE_DIR}/build-dev/tests;")
	endif()
	set(live)
	if(kind STREQUAL system)
		set(live stood_still)
	endif()
	set(labels ${kind})
	if(A_LONG)
		list(APPEND labels long)
	elseif(A_ALONE)
		list(APPEND labels alone)
		list(APPEND live -load)
	endif()
	add_test(NAME ${kind}/${name} COMMAND ${live} bash ${emulate} ${script})
	# scripts/test runs golden tests at the lowest priority: beside other programs until the system tests are over.
	set(limit 600)
	if(A_LONG OR A_ALONE OR kind STREQUAL golden)
		set(limit 1800)
	endif()
	set_tests_properties(${kind}/${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS "${labels}" TIMEOUT ${limit}
		ENVIRONMENT "DCPI_BIN=${CMAKE_BINARY_DIR}/bin;DCPI_LIB=${CMAKE_BINARY_DIR}/lib;DCPI_BUILD=${CMAKE_BINARY_DIR};DCPI_SRC=${CMAKE_SOURCE_DIR};DCPI_EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR};${writers}BASH_ENV=${CMAKE_SOURCE_DIR}/tests/support/errors.sh")
	if(kind STREQUAL system)
		set_tests_properties(${kind}/${name} PROPERTIES RUN_SERIAL ON)
	endif()
endfunction()

# BPF programs need clang and bpftool at build time, on the machine that builds.
find_program(DCPI_CLANG NAMES clang clang-19 clang-16 clang-15 clang-14)
find_program(DCPI_BPFTOOL NAMES bpftool PATHS /usr/sbin /sbin)
option(DCPI_BPF_PROGRAMS "Build the BPF programs (the source 'bpf')" ON)
set(DCPI_HAVE_BPF OFF)
if(DCPI_BPF_PROGRAMS AND DCPI_CLANG AND DCPI_BPFTOOL AND
	CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
	execute_process(COMMAND ${DCPI_CLANG} -print-targets
		OUTPUT_VARIABLE targets ERROR_QUIET)
	if(targets MATCHES "bpf")
		set(DCPI_HAVE_BPF ON)
	endif()
endif()
if(DCPI_BPF_PROGRAMS AND NOT DCPI_HAVE_BPF AND NOT DCPI_LIBC_ONLY)
	if(CMAKE_SYSTEM_NAME STREQUAL "Linux" AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
		message(FATAL_ERROR "there is no clang that compiles for BPF, or no bpftool: install both, "
			"or give -DDCPI_BPF_PROGRAMS=OFF for a daemon that samples by perf events, at "
			"a higher cost")
	endif()
	message(STATUS "no BPF programs for ${CMAKE_SYSTEM_PROCESSOR}: dcpid samples by perf events")
endif()

# dcpi_bpf(TARGET NAME SOURCE [DEFINE …] [INCLUDE …] [DEPENDS …]): compile SOURCE for BPF; TARGET can include
# NAME.skel.h then and has DCPI_HAVE_BPF defined. Does nothing where BPF programs cannot be built.
function(dcpi_bpf target name source)
	cmake_parse_arguments(A "" "" "DEFINE;INCLUDE;DEPENDS" ${ARGN})
	if(NOT DCPI_HAVE_BPF)
		return()
	endif()
	set(dir ${CMAKE_CURRENT_BINARY_DIR}/skel)
	file(MAKE_DIRECTORY ${dir})
	set(include)
	foreach(path ${BPF_INCLUDE_DIRS})
		list(APPEND include -idirafter ${path})
	endforeach()
	foreach(path ${A_INCLUDE})
		list(PREPEND include -I${path})
	endforeach()
	list(TRANSFORM A_DEFINE PREPEND -D)
	# Host headers of that folder alone: they hold nothing of an architecture. Linked by bpftool, an object is half as
	# large: it has no DWARF any more.
	add_custom_command(OUTPUT ${dir}/${name}.bpf.o
		COMMAND ${DCPI_CLANG} -target bpf -mcpu=v3 -ffreestanding -O2 -g -Wall -Werror
			-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=build
			-DDCPI_BPF_${CMAKE_SYSTEM_PROCESSOR} ${A_DEFINE} -I${CMAKE_CURRENT_SOURCE_DIR} ${include}
			-c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${dir}/${name}.o
		COMMAND ${DCPI_BPFTOOL} gen object ${dir}/${name}.bpf.o ${dir}/${name}.o
		DEPENDS ${source} ${A_DEPENDS} VERBATIM)
	add_custom_command(OUTPUT ${dir}/${name}.skel.h
		COMMAND sh -c "\"$0\" gen skeleton \"$1\" name \"$2\" >\"$3\""
			${DCPI_BPFTOOL} ${dir}/${name}.bpf.o ${name} ${dir}/${name}.skel.h
		DEPENDS ${dir}/${name}.bpf.o VERBATIM)
	target_sources(${target} PRIVATE ${dir}/${name}.skel.h)
	target_include_directories(${target} SYSTEM PRIVATE ${dir})
	target_compile_definitions(${target} PRIVATE DCPI_HAVE_BPF)
endfunction()
