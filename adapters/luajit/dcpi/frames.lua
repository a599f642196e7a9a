-- SPDX-License-Identifier: BSD-2-Clause
--
-- Where a trace's caller is. A trace has no frame of its own: the interpreter jumps into it, on the frame that it
-- made when C called it, with two more words for registers that traces alone use; the trace may take some more at
-- its head, and its side traces have that already when they begin. All these sizes are read from LuaJIT's own code,
-- and from the trace's: where that is not as it is known here, nothing is said. x64 with 64-bit references (GC64).
local ffi = require("ffi")
jit.off(true, true)

local M = {}

-- Bytes before the interpreter's exit handler that are its code too: it has some 15 KiB there.
local INTERPRETER = 12288
-- push rbp, rbx, r15, r14; sub rsp, N: where C calls in.
local CALLED = "\85\83\65\87\65\86\72\131\236(.)"
-- sub rsp, N; mov [rsp+…], r12; mov [rsp+…], r13; jmp reg: into a trace.
local ENTERS = "\72\131\236(.)\76\137\100%$.\76\137\108%$.\255[\224-\231]"
-- The return address, and four registers.
local PUSHED = 40
local FP_OFF, LINK_OFF = -16, -24 -- from the CFA: rbp and rbx

local from_cfa -- at the entry of a root trace; false: not to be found
local store -- "mov dword [r14+…]", into the VM's state
local spare = {} -- by number of the trace: the bytes that it has taken of the stack

-- The one N of all matches, or nil.
local function only(code, pattern)
	local found
	for n in code:gmatch(pattern) do
		if found and n ~= found then
			return nil
		end
		found = n
	end
	return found and found:byte()
end

-- Is all of that memory there to be read?
local function is_mapped(from, to)
	for line in io.lines("/proc/self/maps") do
		local first, behind = line:match("^(%x+)%-(%x+) r")
		if first and tonumber(first, 16) <= from and to <= tonumber(behind, 16) then
			return true
		end
	end
	return false
end

-- @handler: address of the interpreter's handler of exits.
function M.find(handler)
	if from_cfa ~= nil then
		return
	end
	from_cfa = false
	if jit.arch ~= "x64" or jit.os ~= "Linux" or not ffi.abi("gc64") then
		return
	end
	local good, mapped = pcall(is_mapped, handler - INTERPRETER, handler)
	if not (good and mapped) then
		return
	end
	local code = ffi.string(ffi.cast("const char *", handler - INTERPRETER), INTERPRETER)
	local called, enters = only(code, CALLED), only(code, ENTERS)
	if called and enters and (called + enters) % 8 == 0 then
		from_cfa = PUSHED + called + enters
	end
end

-- The number that is in @len bytes of @code, from @at on.
local function number(code, at, len)
	local n, size = 0, 1
	for i = at, at + len - 1 do
		n, size = n + code:byte(i) * size, size * 256
	end
	return n < size / 2 and n or n - size
end

local function bytes(n)
	return string.char(n % 256, math.floor(n / 256) % 256, math.floor(n / 65536) % 256, 0)
end

-- "add rsp, -N" right before @at: its N, and where it begins. LuaJIT takes multiples of 16.
local function taken_before(code, at)
	local n, from = 0, at
	if at > 7 and code:find("^\72\129\196", at - 7) then
		n, from = number(code, at - 4, 4), at - 7
	elseif at > 4 and code:find("^\72\131\196", at - 4) then
		n, from = number(code, at - 1, 1), at - 4
	end
	if n <= 0 and n % 16 == 0 then
		return -n, from
	end
end

-- What the head of a trace takes of the stack: it puts the trace's number into the VM's state, and takes what it
-- wants right before that. A root trace begins with these; in a side trace registers come first.
local function taken(tr, code, is_side)
	local at
	if is_side then
		at = store and code:find(store .. bytes(tr), 1, true)
		return at and (taken_before(code, at))
	end
	for _, head in ipairs { 1, 5, 8 } do
		local known = code:match("^\65\199\70.", head) or code:match("^\65\199\134....", head)
		if known and code:find(bytes(tr), head + #known, true) == head + #known then
			local n, from = taken_before(code, head)
			store = from == 1 and known or store
			return from == 1 and n or nil
		end
	end
end

-- The frame at the first instruction of trace @tr with machine code @code, for libdbgdyn; nil: not known. @parent:
-- the trace whose exit leads to it, or nil.
function M.of_trace(tr, code, parent)
	local had = not parent and 0 or spare[parent]
	local more = from_cfa and had and taken(tr, code, parent)
	spare[tr] = more and had + more
	return more and { cfa_off = from_cfa + had, fp_off = FP_OFF, link_off = LINK_OFF } or nil
end

-- Trace @tr, or all of them (nil), is another now.
function M.forget(tr)
	if tr then
		spare[tr] = nil
	else
		spare = {}
	end
end

return M
