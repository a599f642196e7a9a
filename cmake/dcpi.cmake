# SPDX-License-Identifier: BSD-2-Clause
# The few functions with which every folder describes itself. What a target does not link, it
# cannot include: a library's folder is its only public include path.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
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

# dcpi_unit_test(NAME SOURCES … LINK …): a cmocka program, registered with ctest as unit/NAME.
# Internal headers of a folder are reached by INCLUDE.
function(dcpi_unit_test name)
	cmake_parse_arguments(A "" "" "SOURCES;LINK;INCLUDE" ${ARGN})
	string(REPLACE "/" "_" target "unit_${name}")
	add_executable(${target} ${A_SOURCES})
	set_target_properties(${target} PROPERTIES
		RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
	target_include_directories(${target} PRIVATE ${A_INCLUDE})
	target_link_libraries(${target} PRIVATE dcpi_flags cmocka ${A_LINK})
	add_test(NAME unit/${name} COMMAND ${target})
	set_tests_properties(unit/${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS unit TIMEOUT 60
		ENVIRONMENT "DCPI_BIN=${CMAKE_BINARY_DIR}/bin;DCPI_SRC=${CMAKE_SOURCE_DIR}")
endfunction()

# dcpi_script_test(KIND NAME SCRIPT): a shell script as ctest KIND/NAME. KIND is golden
# (no root, no kernel) or system (real daemon, real samples, one at a time).
function(dcpi_script_test kind name script)
	set(emulate)
	if(CMAKE_CROSSCOMPILING)
		set(emulate ${CMAKE_SOURCE_DIR}/tests/support/emulate)
	endif()
	add_test(NAME ${kind}/${name} COMMAND bash ${emulate} ${script})
	set_tests_properties(${kind}/${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS ${kind}
		TIMEOUT 300
		ENVIRONMENT "DCPI_BIN=${CMAKE_BINARY_DIR}/bin;DCPI_LIB=${CMAKE_BINARY_DIR}/lib;DCPI_BUILD=${CMAKE_BINARY_DIR};DCPI_SRC=${CMAKE_SOURCE_DIR};DCPI_EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}")
	if(kind STREQUAL system)
		set_tests_properties(${kind}/${name} PROPERTIES RUN_SERIAL ON)
	endif()
endfunction()
