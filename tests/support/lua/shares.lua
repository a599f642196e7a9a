-- SPDX-License-Identifier: BSD-2-Clause
-- Three routines that do some 60, 30 and 10 % of the work, each in a trace of its own; prints what share of the
-- CPU time each had by os.clock. For tests/system/luajit.sh, which knows the numbers of these lines.
local function sixty(n)
	local s = 0.5
	for i = 1, n do
		s = s * 1.25 + i
		if s > 1e300 then s = 1 end
	end
	return s
end

local function thirty(n)
	local s = 0.5
	for i = 1, n do
		s = (s + i) * 0.75
		if s > 1e300 then s = 2 end
	end
	return s
end

local Account = {}
Account.__index = Account

function Account:ten(n)
	for i = 1, n do
		self.sum = self.sum + i * 0.5
	end
	return self.sum
end

local account = setmetatable({ sum = 0 }, Account)
local time = { sixty = 0, thirty = 0, ten = 0 }
-- A call takes a fraction of a millisecond. While a host runs something else on a virtual machine's CPU, its time
-- goes on, and one sample comes of it.
local most_s = 0.005
local function measure(name, routine, ...)
	local before = os.clock()
	routine(...)
	time[name] = time[name] + math.min(os.clock() - before, most_s)
end

-- Of random length, or they would be in step with the sampler.
local function some(n)
	return n * (0.5 + math.random())
end

local seconds = tonumber(arg[1])
while time.sixty + time.thirty + time.ten < seconds do
	measure("sixty", sixty, some(60000))
	measure("thirty", thirty, some(30000))
	measure("ten", account.ten, account, some(10000))
end
local all = time.sixty + time.thirty + time.ten
for name, t in pairs(time) do
	print(name, ("%.2f"):format(100 * t / all))
end
