-- SPDX-License-Identifier: BSD-2-Clause
-- A fixed amount of work for LuaJIT: 150 functions made at run time, each with a loop of its own, and two
-- that are hot all the time.
local functions = {}
for i = 1, 150 do
	functions[i] = assert(loadstring(([[
		return function(n)
			local x, s = %d, 0
			for k = 1, n do
				x = (x * 48271 + k) %% 2147483647
				if x %% %d == 0 then s = s + 1 end
			end
			return s
		end]]):format(i, i % 7 + 2), "=made_" .. i))()
end
local function words(n)
	local m, count = {}, 0
	for i = 1, n do
		local k = i * 31 % 997
		if not m[k] then m[k] = 0; count = count + 1 end
		m[k] = m[k] + 1
	end
	return count
end
local sink = 0
for _ = 1, 20 do
	for i = 1, #functions do sink = sink + functions[i](60000) end
	for _ = 1, 20 do sink = sink + words(40000) end
end
if sink == 0.5 then print("never") end
