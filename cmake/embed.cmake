# SPDX-License-Identifier: BSD-2-Clause
# cmake -DNAME=NAME -DFROM=FILE,FILE… -P embed.cmake: NAME.c with the bytes of the files, one behind the other, as the
# arrays NAME and NAME_len.
string(REPLACE "," ";" FROM "${FROM}")
set(bytes)
foreach(file ${FROM})
	file(READ ${file} more HEX)
	string(APPEND bytes ${more})
endforeach()
string(LENGTH "${bytes}" len)
math(EXPR len "${len} / 2")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REPEAT "." 80 line)
string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
file(WRITE ${NAME}.c "#include <stddef.h>\nextern const unsigned char ${NAME}[];\nextern const size_t ${NAME}_len;\n\
const unsigned char ${NAME}[] = {\n${bytes}\n};\nconst size_t ${NAME}_len = ${len};\n")
