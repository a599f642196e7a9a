# SPDX-License-Identifier: BSD-2-Clause
# cmake -DFROM=FILE -DTO=FILE.c -P embed.cmake: the bytes of a file as an array, named after it: page_js, page_js_len.
get_filename_component(name ${FROM} NAME)
string(MAKE_C_IDENTIFIER ${name} name)
file(READ ${FROM} bytes HEX)
string(LENGTH "${bytes}" len)
math(EXPR len "${len} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${TO} "#include <stddef.h>\nextern const unsigned char ${name}[];\nextern const size_t ${name}_len;\n\
const unsigned char ${name}[] = {\n${bytes}\n};\nconst size_t ${name}_len = ${len};\n")
