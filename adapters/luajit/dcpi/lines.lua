-- SPDX-License-Identifier: BSD-2-Clause
--
-- Which Lua lines a trace's machine code is of, as far as LuaJIT tells.
--
-- It keeps no table of lines. What it does tell: how long the trace's IR was when it began to record each
-- bytecode, so each IR instruction's line is known; which IR instructions each snapshot covers; and to which
-- snapshot's exit each guard in the machine code jumps. Machine code stands in the order of the IR, so what
-- stands between two guards is of the IR instructions between them. Where those are of one line, that is the
-- line; where they are of several, the entry names all of them ("prog.lua lines 4-6"), and no one of them alone.
local util = require("jit.util")
local names = require("dcpi.names")
local band, rshift = bit.band, bit.rshift
jit.off(true, true)

local M = {}

local ops = {} -- numbers of IR operations, by name
do
	local all = require("jit.vmdef").irnames
	for i = 0, #all / 6 - 1 do
		ops[all:sub(i * 6 + 1, i * 6 + 6):match("%S*")] = i
	end
end

-- What may have the collector look after itself, by a guard of no IR instruction's.
local allocates = {}
for _, name in ipairs { "SNEW", "XSNEW", "TNEW", "TDUP", "CNEW", "CNEWI", "BUFSTR", "TOSTR", "CALLN",
	"CALLA", "CALLL", "CALLS", "CALLXS" } do
	if ops[name] then
		allocates[ops[name]] = true
	end
end

-- Read the IR of trace @tr: { op, type and constant operand, guard } by reference, and where LOOP stands.
local function read_ir(tr, last)
	local ir, loop, gc = {}, nil, false
	for ref = 1, last do
		local _, ot, _, op2 = util.traceir(tr, ref)
		if not ot then
			break
		end
		local op = rshift(ot, 8)
		if op == ops.LOOP then
			loop = ref
		elseif op == ops.PHI then
			break
		elseif op ~= ops.NOP then
			-- Whether it is a PHI's operand, or marked, is not what it is.
			local key = op * 32 + band(ot, 31) .. (op2 < 0 and "," .. op2 or "")
			ir[ref] = { key = key, guard = band(ot, 128) ~= 0 }
			gc = gc or allocates[op]
		end
		ir.last = ref
	end
	return ir, loop, gc
end

-- Give each IR instruction of what was recorded its line: @steps has for each bytecode how long the IR was
-- before it, its function and its pc. What came before the first is of the bytecode that the trace begins at.
local function lines_of_recorded(ir, last, steps)
	local at, step, line = 1, 0, steps.first
	for ref = 1, last do
		while steps[at] and ref > steps[at].nins do
			step, at = steps[at], at + 1
			line = M.line_of(step.func, step.pc) or line -- of a C function: of who calls it
		end
		if ir[ref] then
			ir[ref].lines = { line }
		end
	end
end

-- What stands after LOOP was made of what stands before it, in its order, less what does not change. So each
-- is of the line that all ways to find it there agree on, or of those that they give.
local function lines_of_loop(ir, loop)
	local left, right = {}, {}
	local from = 1
	for ref = loop + 1, ir.last do
		if ir[ref] then
			while from < loop and not (ir[from] and ir[from].key == ir[ref].key) do
				from = from + 1
			end
			left[ref], from = from, from + 1
		end
	end
	from = loop - 1
	for ref = ir.last, loop + 1, -1 do
		if ir[ref] then
			while from > 0 and not (ir[from] and ir[from].key == ir[ref].key) do
				from = from - 1
			end
			right[ref], from = from, from - 1
		end
	end
	for ref = loop + 1, ir.last do
		if ir[ref] then
			local first, last, key = left[ref], right[ref], ir[ref].key
			if first >= loop or last < 1 then
				first, last, key = 1, loop - 1, nil -- made anew: of any of them
			end
			ir[ref].lines = {}
			for i = first, last do
				if ir[i] and (not key or ir[i].key == key) then
					table.insert(ir[ref].lines, ir[i].lines[1])
				end
			end
		end
	end
end

-- The jumps in machine code @mc that go to an exit's stub: { offset behind it, exit }, in order.
local function find_jumps(mc, addr, nr_exits)
	local exits, jumps, at = {}, {}, 1
	for exit = 0, nr_exits - 1 do
		exits[util.traceexitstub(exit) or false] = exit
	end
	while true do
		at = mc:find("[\15\233]", at) -- 0f 8x: jcc; e9: jmp
		if not at then
			return jumps
		end
		local second = mc:byte(at + 1) or 0
		local rel = at + (mc:byte(at) == 233 and 1 or 2)
		local b1, b2, b3, b4 = mc:byte(rel, rel + 3)
		local exit
		if b4 and (rel == at + 1 or band(second, 0xf0) == 0x80) then
			exit = exits[addr + rel + 3 + bit.tobit(b1 + b2 * 256 + b3 * 65536 + b4 * 16777216)]
		end
		if exit then
			jumps[#jumps + 1] = { off = rel + 3, exit = exit }
			at = rel + 4
		else
			at = at + 1
		end
	end
end

-- The IR instructions that exit @exit covers, and its guards among them.
local function covered(tr, ir, exit, nr_exits, loop)
	local function start(i)
		return i == 0 and 1 or i < nr_exits and util.tracesnap(tr, i)[0] or ir.last + 1
	end
	local first, last, guards = start(exit), start(exit + 1) - 1, {}
	if loop and first < loop and last > loop then
		last = loop
	end
	for ref = first, last do
		if ir[ref] and ir[ref].guard then
			guards[#guards + 1] = ref
		end
	end
	return { first = first, last = last, guards = guards, nr_jumps = 0, seen = 0 }
end

-- For each jump the first and last IR instruction that it may be of.
local function bound_jumps(tr, ir, jumps, nr_exits, loop, gc)
	local exits = {}
	for _, j in ipairs(jumps) do
		local e = exits[j.exit] or covered(tr, ir, j.exit, nr_exits, loop)
		exits[j.exit], e.nr_jumps = e, e.nr_jumps + 1
	end
	for _, j in ipairs(jumps) do
		local e = exits[j.exit]
		local nr, g = #e.guards, e.guards
		e.seen = e.seen + 1
		-- Each guard has a jump at least, in their order.
		if nr > 0 and (nr == e.nr_jumps or (nr < e.nr_jumps and not gc)) then
			j.first = g[math.max(1, nr - (e.nr_jumps - e.seen))]
			j.last = g[math.min(e.seen, nr)]
		else
			j.first, j.last = e.first, e.last
		end
	end
end

-- A line of a file is one table, so that equal lines are equal while a trace is looked at.
local known, nr_known, KNOWN = {}, 0, 10000
local function line_table(path, line)
	local id = path .. ":" .. line
	if not known[id] then
		known[id] = { path = path, line = line }
		nr_known = nr_known + 1
	end
	return known[id]
end

-- Before a trace begins: do not remember for ever.
function M.trim()
	if nr_known > KNOWN then
		known, nr_known = {}, 0
	end
end

-- The line of a bytecode; nil in a function of C.
function M.line_of(func, pc)
	local info = util.funcinfo(func, pc)
	if info.currentline then
		local _, path = names.file(info)
		return line_table(path, info.currentline)
	end
end

-- "4-6,9" of lines that ascend.
local function ranges(list)
	local text, i = {}, 1
	while i <= #list do
		local j = i
		while j < #list and list[j + 1].line == list[j].line + 1 do
			j = j + 1
		end
		text[#text + 1] = list[i].line .. (j > i and "-" .. list[j].line or "")
		i = j + 1
	end
	return table.concat(text, ",")
end

-- Several lines of one file are an entry of their own, "FILE lines 4-6,9"; of several files, none.
local function merge(list)
	if #list < 2 then
		return list[1]
	end
	for _, line in ipairs(list) do
		if line.path ~= list[1].path then
			return nil
		end
	end
	table.sort(list, function(a, b) return a.line < b.line end)
	return line_table(list[1].path .. " lines " .. ranges(list), list[1].line)
end

-- The lines of the IR instructions from @first to @last, as one entry; nil where there are none.
local function entry_of(ir, first, last)
	local seen, list = {}, {}
	for ref = first, last do
		for _, line in ipairs(ir[ref] and ir[ref].lines or {}) do
			if not seen[line] then
				seen[line] = true
				list[#list + 1] = line
			end
		end
	end
	return merge(list)
end

-- Entries as they come: @add(upto, line) says of what line the code is from where the last one ended.
local function collector()
	local entries, off = {}, 0
	return entries, function(upto, line)
		local last = entries[#entries]
		if upto > off and not (last and last.of == line) then
			entries[#entries + 1] = { code_off = off, of = line }
		end
		off = math.max(off, upto)
	end
end

-- The entries of trace @tr, whose recording @steps tells: { code_off, of = { path, line } } in order; "of" is
-- nil where no line is known.
function M.of_trace(tr, info, steps, mc, addr, loop_off)
	local ir, loop, gc = read_ir(tr, info.nins)
	local entries, add = collector()
	local from = 1
	local function close(upto, first, last)
		if loop and first < loop and upto > loop_off then
			add(loop_off, entry_of(ir, first, loop))
			first = loop + 1
		end
		add(upto, entry_of(ir, first, last))
	end
	if not ir.last then
		return entries
	end
	lines_of_recorded(ir, loop and loop - 1 or ir.last, steps)
	if loop then
		lines_of_loop(ir, loop)
	end
	local jumps = find_jumps(mc, addr, info.nexit)
	bound_jumps(tr, ir, jumps, info.nexit, loop, gc)
	for _, j in ipairs(jumps) do
		-- Two jumps may be of one guard.
		close(j.off, math.min(from, j.first), j.last)
		from = math.max(from, j.first == j.last and j.first + 1 or j.first)
	end
	close(#mc, from, ir.last)
	return entries
end

return M
