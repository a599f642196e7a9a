# SPDX-License-Identifier: BSD-2-Clause
# The decoder of Zydis from its source, where Debian has no package of it (s390x): of its headers, Zycore's do not know
# the machine, and take it for the big-endian one that they do know.
set(source ${CMAKE_SYSROOT}/zydis)
add_library(zydis_decoder STATIC ${source}/src/Decoder.c ${source}/src/DecoderData.c ${source}/src/MetaInfo.c
	${source}/src/Mnemonic.c ${source}/src/Register.c ${source}/src/SharedData.c)
target_include_directories(zydis_decoder SYSTEM PUBLIC ${source}/include ${CMAKE_SYSROOT}/zycore/usr/include
	PRIVATE ${source}/src)
target_compile_definitions(zydis_decoder PUBLIC __powerpc64__ ZYDIS_STATIC_BUILD ZYCORE_STATIC_BUILD
	ZYDIS_DISABLE_ENCODER ZYDIS_DISABLE_FORMATTER)
add_library(Zydis::Zydis ALIAS zydis_decoder)
