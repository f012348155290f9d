-- The environment of scripts. Runs once in each state with the functions of C and Rust; returns a function that creates the environment of
-- a call, and one that calls a function and returns its first two values, because an answer has at most two.
local native = ...
local pcall, select, setmetatable, tonumber, type, unpack =
    native.pcall, native.select, native.setmetatable, native.tonumber, native.type, native.unpack
-- `raise` adds the position of the call in the script.
local raise = native.raise
local caught, floor, format = native.caught, native.math.floor, native.format
local number_text, tostring = native.number_text, native.tostring

local function bad_argument(index, name, problem)
  raise(format("bad argument #%d to '%s' (%s)", index, name, problem))
end

-- The maximum number of values that `pcall` of C may return: its stack has no room for more.
local most_values = 16

local function packed(...)
  local count = select("#", ...)
  if count <= most_values then
    return nil, ...
  end
  return { count = count, ... }
end

local function called(run, ...)
  return packed(run(...))
end

-- `caught` raises a limit error again, so that scripts cannot catch it, and converts other errors to what scripts may see.
local function ended(succeeds, many, ...)
  if not succeeds then
    return false, caught(many)
  elseif many then
    return true, unpack(many, 1, many.count)
  end
  return true, ...
end

local function protected(run, ...)
  if type(run) ~= "function" then
    return false, "attempt to call a " .. type(run) .. " value"
  end
  return ended(pcall(called, run, ...))
end

-- The handler runs after the error has been caught: while an error of a hook is handled, hooks are disabled, and the handler could not be
-- interrupted.
local function handled(handler, succeeds, ...)
  if succeeds then
    return true, ...
  end
  local _, result = protected(handler, (...))
  return false, result
end

local base = {
  _VERSION = "Lua 5.1",
  pcall = protected,
  xpcall = function(run, handler)
    return handled(handler, protected(run))
  end,
  print = function() end,
}
for _, name in native.ipairs(native.shared) do
  base[name] = native[name]
end

-- From this value on, C does not print all digits of a number, but Karmada's Lua does.
local digits = 1e14

function base.tostring(...)
  local value = ...
  if value == nil and select("#", ...) == 0 then
    bad_argument(1, "tostring", "value expected")
  elseif type(value) ~= "number" or floor(value) == value and -digits < value and value < digits and value ~= 0 then
    return tostring(...)
  end
  return number_text(value)
end

-- C parses `inf`, `nan` and numbers out of range, which JSON cannot represent.
function base.tonumber(...)
  if select("#", ...) == 0 then
    bad_argument(1, "tonumber", "value expected")
  end
  local number = tonumber(...)
  if number and number - number ~= 0 and type((...)) == "string" then
    return nil
  end
  return number
end

-- `table` in Lua: the functions of C cannot be interrupted with huge indexes or inconsistent orders.
local table = { concat = native.concat, getn = native.table.getn, maxn = native.table.maxn }

function table.insert(list, ...)
  if type(list) ~= "table" then
    bad_argument(1, "insert", "table expected, got " .. type(list))
  end
  local count, length = select("#", ...), #list
  if count == 1 then
    list[length + 1] = (...)
    return
  elseif count ~= 2 then
    raise("wrong number of arguments to 'insert'")
  end
  local position, value = ...
  position = tonumber(position) and floor(position) or bad_argument(2, "insert", "number expected, got " .. type(position))
  if position ~= position then
    bad_argument(2, "insert", "not a number")
  end
  for index = length + 1, position + 1, -1 do
    list[index] = list[index - 1]
  end
  list[position] = value
end

function table.remove(list, position)
  if type(list) ~= "table" then
    bad_argument(1, "remove", "table expected, got " .. type(list))
  end
  local length = #list
  if position == nil then
    position = length
  end
  position = tonumber(position) and floor(position) or bad_argument(2, "remove", "number expected, got " .. type(position))
  if not (1 <= position and position <= length) then
    return
  end
  local removed = list[position]
  for index = position, length - 1 do
    list[index] = list[index + 1]
  end
  list[length] = nil
  return removed
end

local function is_less(left, right)
  local of_left, of_right = type(left), type(right)
  if of_left == of_right and (of_left == "number" or of_left == "string") then
    return left < right
  elseif of_left == of_right then
    raise("attempt to compare two " .. of_left .. " values")
  end
  raise("attempt to compare " .. of_left .. " with " .. of_right)
end

-- Bottom-up merge sort: the number of steps is the same for any list and any order.
function table.sort(list, less)
  if type(list) ~= "table" then
    bad_argument(1, "sort", "table expected, got " .. type(list))
  elseif less == nil then
    less = is_less
  elseif type(less) ~= "function" then
    bad_argument(2, "sort", "function expected, got " .. type(less))
  end
  local count, from, to, width = #list, {}, {}, 1
  for index = 1, count do
    from[index] = list[index]
  end
  while width < count do
    for start = 1, count, 2 * width do
      local left, middle = start, start + width
      local right, stop = middle, middle + width
      if stop > count + 1 then
        stop = count + 1
      end
      if middle > stop then
        middle, right = stop, stop
      end
      for place = start, stop - 1 do
        if right >= stop or left < middle and not less(from[right], from[left]) then
          to[place], left = from[left], left + 1
        else
          to[place], right = from[right], right + 1
        end
      end
    end
    from, to, width = to, from, 2 * width
  end
  for index = 1, count do
    list[index] = from[index]
  end
end

-- `math.random` of C shares its state in the process. This one is reset for each call, so that the same question has the same answer.
local first_seed = 123456789
local math, seed = native.math, first_seed

function math.random(lowest, highest)
  seed = seed * 16807 % 2147483647
  local part = (seed - 1) / 2147483646
  if lowest == nil then
    return part
  elseif highest == nil then
    lowest, highest = 1, lowest
  end
  lowest, highest = tonumber(lowest), tonumber(highest)
  if not lowest or not highest then
    bad_argument(lowest and 2 or 1, "random", "number expected")
  end
  lowest, highest = floor(lowest), floor(highest)
  if not (lowest <= highest) then
    bad_argument(1, "random", "interval is empty")
  end
  return floor(part * (highest - lowest + 1)) + lowest
end

function math.randomseed(number)
  number = tonumber(number)
  if not number then
    bad_argument(1, "randomseed", "number expected")
  end
  seed = floor(number) % 2147483646 + 1
  if not (seed >= 1) then
    seed = first_seed
  end
end


local function missing(name)
  return function()
    raise(name .. " is not available")
  end
end
for _, name in native.ipairs(native.missing) do
  base[name] = missing(name)
end
for _, name in native.ipairs({ "dump", "gsub", "rep" }) do
  native.string[name] = missing("string." .. name)
end
native.getmetatable("").__index = native.string

-- Writing to a library only shadows its fields until the end of the call. Scripts cannot access the metatables.
local shadows = {
  base = { __index = base },
  math = { __index = math },
  os = { __index = native.os },
  string = { __index = native.string },
  table = { __index = table },
}

local kube
local kube_shadow = { __index = native.kube }
local is_library = { math = true, os = true, string = true, table = true }

function base.require(name)
  if is_library[name] then
    return setmetatable({}, shadows[name])
  elseif name ~= "kube" then
    raise(format("module %s not found", tostring(name)))
  end
  kube = kube or setmetatable({}, kube_shadow)
  return kube
end

local function environment()
  kube, seed = nil, first_seed
  local globals = setmetatable({}, shadows.base)
  globals._G = globals
  globals.math = setmetatable({}, shadows.math)
  globals.os = setmetatable({}, shadows.os)
  globals.string = setmetatable({}, shadows.string)
  globals.table = setmetatable({}, shadows.table)
  return globals
end

local function asked(run, ...)
  local one, other = run(...)
  return one, other
end

return environment, asked
