-- SPDX-License-Identifier: BSD-2-Clause
-- What interpreters do: calls, tables, strings, methods, sorting, arithmetic.
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local function sieve(n)
	local p, c = {}, 0
	for i = 2, n do p[i] = true end
	for i = 2, n do
		if p[i] then
			c = c + 1
			for k = i * i, n, i do p[k] = false end
		end
	end
	return c
end
local function words(n)
	local t, keys = {}, {}
	for w in ("the quick brown fox jumps over the lazy dog "):rep(n):gmatch("%a+") do t[w] = (t[w] or 0) + #w end
	for k in pairs(t) do keys[#keys + 1] = k end
	table.sort(keys)
	return table.concat(keys, ",")
end
local Point = {}
Point.__index = Point
function Point.new(x, y) return setmetatable({ x = x, y = y }, Point) end
function Point:add(o) return Point.new(self.x + o.x, self.y + o.y) end
local function points(n)
	local p = Point.new(0, 0)
	for i = 1, n do p = p:add(Point.new(i, -i)) end
	return p.x
end
local function sorting(n)
	local t, x = {}, 42
	for i = 1, n do
		x = (x * 1103515245 + 12345) % 2147483648
		t[i] = x
	end
	table.sort(t, function(a, b) return a < b end)
	return t[1]
end
local sum = 0
for _ = 1, tonumber(arg[1]) do
	sum = sum + fib(20) + sieve(8000) + #words(300) + points(10000) + sorting(4000)
	for i = 1, 3000 do sum = sum + #string.format("%d:%s", i, tostring(i * 1.5)) end
end
print(sum)
