-- SPDX-License-Identifier: BSD-2-Clause
-- Routines in turn, 0.3 s each (a call of some 60 us counts for a sample's period at most: CPU time goes on while
-- a virtual machine's host runs something else, and one sample comes of it), all traces flushed after each turn. Two stages with four routines each, and as
-- many turns as its argument says; prints "ROUTINE SECONDS" by os.clock and "done" after each, and waits for a
-- line of input. LuaJIT takes a region at random for its code after each flush: a moment for the daemon to
-- learn of it, as samples that come earlier are unsure when another flush follows.
local ffi = require("ffi")
ffi.cdef("int usleep(unsigned int us);")
local turn_s, period_s, turns, nr_routines, moment_us = 0.3, 0.001, tonumber(arg[1]), 4, 300000

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
	local t, last = 0, os.clock()
	repeat
		routine(20000)
		local now = os.clock()
		t, last = t + math.min(now - last, period_s), now
	until t >= turn_s
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
