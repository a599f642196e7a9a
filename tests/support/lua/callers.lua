-- SPDX-License-Identifier: BSD-2-Clause
-- Two routines that call one of libc's, memfrob, from traces: the one three times as much as the other. Prints what
-- share of the bytes that it works on came from each. For tests/system/jit-paths.sh.
local ffi = require("ffi")
ffi.cdef "void *memfrob(void *s, size_t n);"
local buffer = ffi.new("char[?]", 65536)

local function often(n, len)
	for _ = 1, n do
		ffi.C.memfrob(buffer, len)
	end
	return n * len
end

local function seldom(n, len)
	for _ = 1, n do
		ffi.C.memfrob(buffer, len)
	end
	return n * len
end

-- Of random length, or they would be in step with the sampler.
local function some(n)
	return math.floor(n * (0.5 + math.random()))
end

local bytes, began = { often = 0, seldom = 0 }, os.clock()
while os.clock() - began < tonumber(arg[1]) do
	bytes.often = bytes.often + often(300, some(1000))
	bytes.seldom = bytes.seldom + seldom(100, some(1000))
end
for name, n in pairs(bytes) do
	print(name, ("%.2f"):format(100 * n / (bytes.often + bytes.seldom)))
end
