-- SPDX-License-Identifier: BSD-2-Clause
-- lua of bench/accuracy: words of a text in tables, sorting with a comparison of its own, strings put
-- together, queens on a board, a small matrix.
local file = assert(io.open(arg[1], "rb"))
local text = file:read("a")
file:close()

local count, words = {}, {}
for word in text:gmatch("[%a_]+") do
	local n = count[word]
	if not n then
		words[#words + 1] = word
		n = 0
	end
	count[word] = n + 1
end
table.sort(words, function(a, b)
	if count[a] ~= count[b] then return count[a] > count[b] end
	return a < b
end)

local parts = {}
for i = 1, math.min(#words, 3000) do
	parts[#parts + 1] = words[i]:upper():sub(1, 5) .. ":" .. count[words[i]]
end
local joined = table.concat(parts, ",")

local function queens(n, row, columns, up, down)
	if row > n then return 1 end
	local found = 0
	for c = 1, n do
		if not columns[c] and not up[row + c] and not down[row - c] then
			columns[c], up[row + c], down[row - c] = true, true, true
			found = found + queens(n, row + 1, columns, up, down)
			columns[c], up[row + c], down[row - c] = nil, nil, nil
		end
	end
	return found
end

local function matrix(n)
	local m, sum = {}, 0.0
	for i = 1, n do
		m[i] = {}
		for j = 1, n do m[i][j] = (i * j) % 7 + 0.5 end
	end
	for i = 1, n do
		for j = 1, n do
			local s = 0.0
			for k = 1, n do s = s + m[i][k] * m[k][j] end
			sum = sum + s
		end
	end
	return sum
end

print(#words, #joined, joined:sub(1, 40), queens(7, 1, {}, {}, {}), matrix(60 + #words % 10))
