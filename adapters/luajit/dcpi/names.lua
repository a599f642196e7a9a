-- SPDX-License-Identifier: BSD-2-Clause
-- What a Lua user calls the place where a trace begins. Nothing that differs from run to run is in it.
local util = require("jit.util")
jit.off(true, true)

local M = {}

local files = {} -- by a chunk's source: { name for users, path for tools }; of no file: both the same
local functions = {} -- by a chunk's source: the names of its functions, by the lines they begin in
local nr_sources, SOURCES = 0, 1000

-- The folders of package.path and of the program: a file is named without them, as a module is.
local function folders()
	local list = {}
	for template in (package.path or ""):gmatch("[^;]+") do
		list[#list + 1] = template:match("^(.*/)[^?]*%?")
	end
	if type(arg) == "table" and type(arg[0]) == "string" then
		list[#list + 1] = arg[0]:match("^(.*/)")
	end
	return list
end

local function without_folder(path)
	local longest = ""
	for _, folder in ipairs(folders()) do
		if #folder > #longest and path:sub(1, #folder) == folder then
			longest = folder
		end
	end
	return path:sub(#longest + 1)
end

-- The file of a function's code: how users name it, and its path.
function M.file(info)
	local source = info.source or "=?"
	local f = files[source]
	if not f then
		if source:sub(1, 1) == "@" then
			local path = source:sub(2)
			f = { without_folder(path), path }
		else
			-- A chunk from a string: what an error message would call it.
			local name = (info.loc or "?"):gsub(":%d+$", "")
			f = { name, name }
		end
		files[source] = f
		nr_sources = nr_sources + 1
	end
	return f[1], f[2]
end

-- The lines of a chunk: of its file, or of the string that it was loaded from.
local function text_lines(source)
	if source:sub(1, 1) ~= "@" then
		return source:gmatch("([^\n]*)\n?")
	end
	local good, lines = pcall(io.lines, source:sub(2))
	return good and lines or function() end
end

-- The name in a line that defines one function; what it is called by may be another at each call.
local function defined(line)
	local _, nr = line:gsub("%f[%w_]function%f[^%w_]", "")
	if nr == 1 then
		return line:match("%f[%w_]function%s+([%a_][%w_.:]*)%s*%(") or
			line:match("([%a_][%w_.]*)%s*=%s*function%f[^%w_]")
	end
end

local function function_name(info)
	if info.linedefined == 0 then
		return "main chunk"
	end
	local by_line = functions[info.source]
	if not by_line then
		local nr = 0
		by_line = {}
		for line in text_lines(info.source) do
			nr = nr + 1
			by_line[nr] = defined(line)
		end
		functions[info.source] = by_line
	end
	return by_line[info.linedefined]
end

-- Programs that make chunks all the time are not to be remembered for ever.
function M.trim()
	if nr_sources > SOURCES then
		files, functions, nr_sources = {}, {}, 0
	end
end

-- "FILE:LINE FUNCTION" of the bytecode @pc of @func, and "FILE:LINE" alone.
function M.place(func, pc)
	local info = util.funcinfo(func, pc)
	local at = ("%s:%d"):format((M.file(info)), info.currentline)
	local name = function_name(info)
	return name and at .. " " .. name or at, at
end

return M
