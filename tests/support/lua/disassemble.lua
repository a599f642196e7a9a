-- SPDX-License-Identifier: BSD-2-Clause
-- disassemble.lua ADDRESS <HEX: machine code as LuaJIT's own -jdump writes it, without the labels.
local code = io.read("*a"):gsub("%s", ""):gsub("..", function(x) return string.char(tonumber(x, 16)) end)
local ctx = require("jit.dis_" .. jit.arch).create(code, tonumber(arg[1]), function(text) io.write(text) end)
ctx.hexdump = 0
ctx:disass()
