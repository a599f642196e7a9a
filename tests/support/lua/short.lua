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

-- 0.08 s of work, without start-up; a call of a fraction of a millisecond counts for one at most, as CPU time goes
-- on while a virtual machine's host runs something else.
local ran, last = 0, os.clock()
while ran < 0.08 do
	work(50000)
	local now = os.clock()
	ran, last = ran + math.min(now - last, 0.001), now
end
