-- SPDX-License-Identifier: BSD-2-Clause
-- churn.lua SECONDS: four routines, each of which runs 80 ms of CPU time before all traces are flushed; of ten turns they
-- have one, two, three and four. Nothing waits for the daemon. Prints "ROUTINE SECONDS" by os.clock.
local seconds, turn_s, period_s = tonumber(arg[1]), 0.08, 0.001
local order = { 0, 1, 2, 3, 3, 2, 1, 3, 2, 3 }

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

-- A call of some 60 us counts for a sample's period at most, as in flush.lua.
local function run(routine)
	local t, begun = 0, os.clock()
	local last = begun
	repeat
		routine(20000)
		local now = os.clock()
		t, last = t + math.min(now - last, period_s), now
	until last - begun >= turn_s
	jit.flush()
	return t
end

local routines, time = {}, {}
for i = 0, 3 do
	routines[i], time[i] = make("c" .. i), 0
end
local turn, begun = 0, os.clock()
repeat
	local i = order[turn % #order + 1]
	turn = turn + 1
	time[i] = time[i] + run(routines[i])
until os.clock() - begun >= seconds
for i = 0, 3 do
	print("c" .. i, ("%.6f"):format(time[i]))
end
