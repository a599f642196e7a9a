# SPDX-License-Identifier: BSD-2-Clause
# What dcpirun loads into programs. Compiled apart, machinery included: it goes into programs that
# were built without sanitizers too.
add_library(dcpirun_agent SHARED
	agent.c
	agent_map.c
	agent_ring.c
	agent_signal.c
	${ticks})
set_target_properties(dcpirun_agent PROPERTIES OUTPUT_NAME dcpirun C_VISIBILITY_PRESET hidden)
target_include_directories(dcpirun_agent PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/lib/base
	${CMAKE_CURRENT_SOURCE_DIR}/..)
target_compile_options(dcpirun_agent PRIVATE -fno-sanitize=all)
target_link_options(dcpirun_agent PRIVATE -fno-sanitize=all -Wl,-z,defs)
target_link_libraries(dcpirun_agent PRIVATE dcpi_flags ${CMAKE_DL_LIBS})
install(TARGETS dcpirun_agent LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/dcpi)
