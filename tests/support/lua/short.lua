-- SPDX-License-Identifier: BSD-2-Clause
-- A program that ends soon.
local function work(n)
	local s = 0.5
	for i = 1, n do
		s = s * 1.25 + i
		if s > 1e300 then s = 1 end
	end
	return s
end

while os.clock() < 0.08 do
	work(50000)
end
