-- SPDX-License-Identifier: BSD-2-Clause
-- Routines in turn, 0.3 s each, all traces flushed after each turn. Two stages with four routines each, and as
-- many turns as its argument says; prints "ROUTINE SECONDS" by os.clock and "done" after each, and waits for a
-- line of input. LuaJIT takes a region at random for its code after each flush: a moment for the daemon to
-- learn of it, as samples that come earlier are unsure when another flush follows.
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int us);")
local turn_s, turns, nr_routines, moment_us = 0.3, tonumber(arg[1]), 4, 300000

local function make(name)
	return assert(loadstring(([[
		return function(n)
			local s = 0.5
			for i = 1, n do
				s = s * 1.25 + i
				if s > 1e300 then s = 1 end
			end
			return s
		end]]):gsub("[^\n]+", "%0 "), "@" .. name .. ".lua"))()
end

local function run(routine)
	routine(1000)
	ffi.C.usleep(moment_us)
	local before = os.clock()
	repeat
		routine(20000)
	until os.clock() - before >= turn_s
	local t = os.clock() - before
	jit.flush()
	return t
end

for _, stage in ipairs { "a", "b" } do
	local routines, time = {}, {}
	for i = 0, nr_routines - 1 do
		routines[i], time[i] = make(stage .. i), 0
	end
	for turn = 1, turns do
		local i = turn % nr_routines
		time[i] = time[i] + run(routines[i])
	end
	for i = 0, nr_routines - 1 do
		print(stage .. i, ("%.6f"):format(time[i]))
	end
	print("done")
	io.stdout:flush()
	io.read()
end
