-- SPDX-License-Identifier: BSD-2-Clause
--
-- Tells the DCPI daemon of LuaJIT's traces, by libdbgdyn: "luajit -jdcpi PROGRAM", or
-- LUA_INIT='require("dcpi").start()' in the environment, or that call in the program.
--
-- Each trace is a routine, named by where it begins, with its machine code and Lua lines. A flush of all
-- traces ends them all. Where there is no libdbgdyn, or no JIT, one line on standard error says so, and the
-- program runs as without.
local M = {}

local function say(text)
	io.stderr:write("dcpi: ", text, "\n")
end

if not jit then -- LUA_INIT is for every Lua
	function M.start()
		say("not started: this is not LuaJIT")
		return false, "this is not LuaJIT"
	end
	return M
end
jit.off(true, true)

local TYPES = [[
struct dcpi_string { const char *text; size_t len; };
struct dcpi_line { uint32_t code_off, line, file; uint16_t column, discriminator; };
struct dcpi_frame { uint32_t code_off, flags; int32_t cfa_off, fp_off, link_off; uint32_t reserved; };
struct dcpi_routine {
	size_t size;
	struct dcpi_string name;
	const void *code;
	size_t code_len;
	const struct dcpi_line *lines;
	size_t nr_lines;
	const struct dcpi_string *files;
	size_t nr_files;
	const void *inlines;
	size_t nr_inlines;
	const void *bytes;
	uint32_t line_stride, file_stride, inline_stride, frame_stride;
	const struct dcpi_frame *frames;
	size_t nr_frames;
};
int dbgdyn_begin(const char *facility, size_t facility_len, const void *opts, uint64_t *context);
int dbgdyn_register(uint64_t context, const struct dcpi_routine *routine, uint64_t *handle);
int dbgdyn_retire(uint64_t context, uint64_t handle);
int dbgdyn_retire_code(uint64_t context, const void *code, size_t len);
const char *dbgdyn_strerror(int result);
]]
local EINVAL, EREFUSED = -1, -6

local ffi, util, names, lines, frames -- once started
local lib, context, facility
local others = {} -- by event: whose handler this module calls after its own
local recording -- of the trace that is being recorded: how it is named, and its steps
local routines = {} -- by number of the trace: its handle, and where its root trace begins
local nr_stubs = 0 -- exits whose stubs were registered
local lowest, highest -- addresses that were registered
local attach, sentinel -- jit.attach as LuaJIT has it; what is collected when the state is closed
local on = false

local function begin()
	local result = lib.begin(facility, #facility, nil, context)
	if result < 0 then
		error("dbgdyn_begin: " .. ffi.string(lib.strerror(result)), 0)
	end
end

-- Make what libdbgdyn wants of a routine; "held" keeps from the collector what it points to.
local function make(name, addr, len, entries, frame)
	local r = { held = { name } }
	local paths, nr, nr_files = {}, #entries, 0
	local list = ffi.new("struct dcpi_line[?]", nr)
	local files = ffi.new("struct dcpi_string[?]", nr)
	for i, e in ipairs(entries) do
		local of = e.of
		if of and not paths[of.path] then
			paths[of.path] = nr_files
			files[nr_files].text, files[nr_files].len = of.path, #of.path
			nr_files = nr_files + 1
			table.insert(r.held, of.path)
		end
		list[i - 1].code_off = e.code_off
		list[i - 1].line = of and of.line or 0
		list[i - 1].file = of and paths[of.path] or 0
	end
	table.insert(r.held, list)
	table.insert(r.held, files)
	frame = frame and ffi.new("struct dcpi_frame[1]", { frame })
	table.insert(r.held, frame)
	r.c = ffi.new("struct dcpi_routine", {
		size = ffi.sizeof("struct dcpi_routine"),
		name = { name, #name },
		code = ffi.cast("const void *", addr),
		code_len = len,
		lines = list,
		nr_lines = nr,
		files = files,
		nr_files = nr_files,
		frames = frame,
		nr_frames = frame and 1 or 0,
	})
	lowest = math.min(lowest or addr, addr)
	highest = math.max(highest or 0, addr + len)
	return r
end

-- A trace's exit that is linked to a side trace later is patched, and not told again: what is kept is what
-- the compiler made.
local function register(r)
	local handle = ffi.new("uint64_t[1]")
	local result = lib.register(context[0], r.c, handle)
	if result == EREFUSED then -- a child of fork
		begin()
		result = lib.register(context[0], r.c, handle)
	end
	assert(result ~= EINVAL, "a trace that libdbgdyn refuses")
	return handle
end

-- All of them, and the stubs.
local function retire_all()
	if lowest then
		lib.retire_code(context[0], ffi.cast("const void *", lowest), highest - lowest)
	end
	frames.forget()
	routines, nr_stubs, lowest, highest = {}, 0, nil, nil
end

-- x86 and x64 have the stubs of exits in groups, a "push" of four bytes each but the last, which all traces
-- share; a jump to the interpreter ends a group.
local GROUP = 32
local function register_stubs(nr_exits)
	while nr_stubs < nr_exits and (jit.arch == "x64" or jit.arch == "x86") do
		local addr = util.traceexitstub(nr_stubs)
		local last = addr and util.traceexitstub(nr_stubs + GROUP - 1)
		if last ~= addr + 4 * (GROUP - 1) then
			return
		end
		local tail = ffi.string(ffi.cast("const char *", last), 24)
		local jump = tail:find("\233", 3, true)
		if jump then
			local to = ffi.cast("const int32_t *", last + jump)[0]
			frames.find(last + jump + 4 + to)
		end
		register(make("exit stubs", addr, last - addr + (jump and jump + 4 or 2), {}))
		nr_stubs = nr_stubs + GROUP
	end
end

local function start(tr, func, pc, parent, exit)
	names.trim()
	local name, at = names.place(func, pc)
	if parent then
		local of = routines[parent]
		at = of and of.root or "?"
		name = ("%s (%s of %s)"):format(name, exit == -1 and "continuation" or "side", at)
	end
	if lines then
		lines.trim()
	end
	frames.forget(tr)
	recording = { tr = tr, name = name, root = at, first = lines and lines.line_of(func, pc) }
	recording.parent = exit ~= -1 and parent or nil
end

local function record(tr, func, pc)
	local r = recording
	local info = r and r.tr == tr and util.traceinfo(tr)
	if info then
		r[#r + 1] = { nins = info.nins, func = func, pc = pc }
	end
end

local function stop(tr)
	local rec, info = recording, util.traceinfo(tr)
	local mc, addr, loop_off = util.tracemc(tr)
	recording = nil
	if not (rec and rec.tr == tr and mc and #mc > 0) then
		return
	end
	-- Nothing runs in a trace whose number is given to another.
	if routines[tr] then
		lib.retire(context[0], routines[tr].handle[0])
	end
	register_stubs(info.nexit)
	local entries = lines and lines.of_trace(tr, info, rec, mc, addr, loop_off) or {}
	local frame = frames.of_trace(tr, mc, rec.parent)
	routines[tr] = { handle = register(make(rec.name, addr, #mc, entries, frame)), root = rec.root }
end

local function trace(what, tr, func, pc, parent, exit)
	if what == "start" then
		start(tr, func, pc, parent, exit)
	elseif what == "stop" then
		stop(tr)
	elseif what == "abort" then
		recording = nil
	elseif what == "flush" then
		retire_all()
	end
end

-- A failure must not reach the program: this module switches itself off, and says so.
local function fail(message)
	on = false
	pcall(retire_all)
	say("switched off: " .. tostring(message))
end

-- LuaJIT knows one handler for each event. So whoever else sets one (-jv, -jdump) is called after ours.
local function share(event, handler)
	return function(...)
		if on then
			local good, message = pcall(handler, ...)
			if not good then
				fail(message)
			end
		end
		if others[event] then
			others[event](...)
		end
	end
end

local function listen(event, handler)
	local registry = debug and debug.getregistry() or {}
	local before, shared = {}, share(event, handler)
	for k, f in pairs(registry._VMEVENTS or {}) do
		before[k] = f
	end
	attach(shared, event)
	for k, f in pairs(registry._VMEVENTS or {}) do
		if f == shared then
			others[event] = before[k]
		end
	end
end

local function listen_to_all()
	attach = jit.attach
	listen("trace", trace)
	listen("record", record)
	jit.attach = function(func, event)
		if event == "trace" or event == "record" then
			others[event] = func
		elseif event then
			attach(func, event)
		else
			attach(func)
			for e, f in pairs(others) do
				others[e] = f ~= func and f or nil
			end
		end
	end
end

-- Another state's code, or anything, may stand there when this one is closed.
local function retire_at_close()
	sentinel = newproxy(true)
	getmetatable(sentinel).__gc = function()
		if on then
			pcall(retire_all)
		end
	end
end

local function open(library)
	ffi, util = require("ffi"), require("jit.util")
	pcall(ffi.cdef, TYPES) -- a second copy of this module finds them there
	local c = ffi.load(library)
	lib = {}
	for _, name in ipairs { "begin", "register", "retire", "retire_code", "strerror" } do
		lib[name] = c["dbgdyn_" .. name]
	end
	names, frames = require("dcpi.names"), require("dcpi.frames")
	-- Without the tables of LuaJIT's own modules: names alone.
	local good, module = pcall(require, "dcpi.lines")
	lines = good and module or nil
	context = ffi.new("uint64_t[1]")
	begin()
end

-- Begin. @options: { facility = NAME ("luajit"), library = NAME OR PATH of libdbgdyn }, or the facility's name.
-- Returns true; false and a message where it cannot be. What was compiled earlier is compiled again.
function M.start(options)
	if type(options) ~= "table" then
		options = { facility = options }
	end
	local registry = debug and debug.getregistry() or M
	if registry.dcpi then
		return true
	end
	facility = options.facility or "luajit"
	local good, message = pcall(open, options.library or "libdbgdyn.so.0")
	if not good then
		message = tostring(message):gsub("^[^:]*:%d+: ", "")
		say("not started: " .. message)
		return false, message
	end
	registry.dcpi, on = M, true
	retire_at_close()
	listen_to_all()
	jit.flush()
	return true
end

return M
