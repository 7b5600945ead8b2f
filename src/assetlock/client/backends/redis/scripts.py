"""What Redis does in one step each. A script is safe to send twice: it goes by the id of the acquisition.

Of a name with the key ``base`` there are: ``base:0``, ``base:1`` … the slots, each ``<id> <token> <max_locks>
<holder>`` with a TTL; ``base:token`` the last fencing token; ``base:limits`` the values of max_locks that were
used lately; ``base:gone:<id>`` an acquisition that was given up, so that a call of it that arrives late does
nothing. Freed slots are published on ``base``.

A token is one more than the last, and at least the time in microseconds: so tokens grow also where the last one was
lost, as after a fail-over.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

_COMMON = """
local function clock()
  local time = redis.call('TIME')
  return time[1] * 1000000 + time[2]
end

local function has(base, slot, id)
  local value = redis.call('GET', base .. ':' .. slot)
  return value and string.sub(value, 1, #id + 1) == id .. ' '
end

local function remember(base, declared, now, milliseconds)
  local key = base .. ':limits'
  redis.call('HSET', key, declared, string.format('%.0f', now + milliseconds * 1000))
  if redis.call('PTTL', key) < milliseconds then redis.call('PEXPIRE', key, milliseconds) end
end

local function most(base)
  local largest = 0
  for _, declared in ipairs(redis.call('HKEYS', base .. ':limits')) do
    largest = math.max(largest, tonumber(declared))
  end
  return largest
end
"""

_ACQUIRE = """
local id, ttl, holder, memory = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
if redis.call('EXISTS', KEYS[1] .. ':gone:' .. id) == 1 then return {'gone'} end
local now = clock()
local slots, limits, refused, soonest = {}, {}, {}, -1

local function declare(base, own)
  local key, limit, largest, known = base .. ':limits', own, own, 0
  local declared = redis.call('HGETALL', key)
  for i = 1, #declared, 2 do
    local value, expires = tonumber(declared[i]), tonumber(declared[i + 1])
    if value == own then known = expires end
    if expires < now then
      if value ~= own then redis.call('HDEL', key, declared[i]) end
    else
      limit = math.min(limit, value)
      largest = math.max(largest, value)
    end
  end
  if known < now + memory * 500 then remember(base, own, now, memory) end
  return limit, largest
end

for i, base in ipairs(KEYS) do
  local limit, largest = declare(base, tonumber(ARGV[4 + i]))
  local held, free, mine, others = 0, nil, nil, {}
  local slot = 0
  while slot < largest do
    local value = redis.call('GET', base .. ':' .. slot)
    if not value then
      free = free or slot
    elseif string.sub(value, 1, #id + 1) == id .. ' ' then
      mine = slot
    else
      held = held + 1
      local token, declared, who = string.match(value, '^%S+ (%d+) (%d+) (.*)$')
      if declared then
        limit = math.min(limit, tonumber(declared))
        largest = math.max(largest, tonumber(declared))
      end
      others[#others + 1] = who or '?'
      local left = redis.call('PTTL', base .. ':' .. slot)
      if left >= 0 and (soonest < 0 or left < soonest) then soonest = left end
    end
    slot = slot + 1
  end
  slots[i], limits[i] = mine or free, limit
  if not mine and (held >= limit or not free) then
    for _, who in ipairs(others) do refused[#refused + 1] = who end
    if #others == 0 then refused[1] = '?' end
  end
end
if #refused > 0 then return {'held', soonest, limits, refused} end

local tokens = {}
for i, base in ipairs(KEYS) do
  local key = base .. ':' .. slots[i]
  if has(base, slots[i], id) then
    tokens[i] = string.match(redis.call('GET', key), '^%S+ (%d+)')
    redis.call('PEXPIRE', key, ttl)
  else
    local last = tonumber(redis.call('GET', base .. ':token')) or 0
    tokens[i] = string.format('%.0f', math.max(last + 1, now))
    redis.call('SET', base .. ':token', tokens[i], 'PX', math.max(ttl, 2592000000))
    redis.call('SET', key, table.concat({id, tokens[i], ARGV[4 + i], holder}, ' '), 'PX', ttl)
  end
end
return {'granted', slots, limits, tokens}
"""

_RENEW = """
for i, base in ipairs(KEYS) do
  if not has(base, ARGV[2 + 2 * i], ARGV[1]) then return 0 end
end
if tonumber(ARGV[2]) > 0 then
  for i, base in ipairs(KEYS) do
    redis.call('PEXPIRE', base .. ':' .. ARGV[2 + 2 * i], ARGV[2])
    remember(base, ARGV[3 + 2 * i], clock(), tonumber(ARGV[3]))
  end
end
return 1
"""

_RELEASE = """
local held = 1
for i, base in ipairs(KEYS) do
  if has(base, ARGV[1 + i], ARGV[1]) then
    redis.call('DEL', base .. ':' .. ARGV[1 + i])
    redis.call('PUBLISH', base, '')
  else
    held = 0
  end
end
return held
"""

_ABANDON = """
redis.call('SET', KEYS[1] .. ':gone:' .. ARGV[1], '', 'PX', 600000)
for i, base in ipairs(KEYS) do
  for slot = 0, math.max(most(base), tonumber(ARGV[1 + i])) - 1 do
    if has(base, slot, ARGV[1]) then
      redis.call('DEL', base .. ':' .. slot)
      redis.call('PUBLISH', base, '')
    end
  end
end
return 1
"""

_HOLDERS = """
local found = {}
for slot = 0, math.max(most(KEYS[1]), 1) - 1 do
  local value = redis.call('GET', KEYS[1] .. ':' .. slot)
  if value then found[#found + 1] = string.match(value, '^%S+ %d+ %d+ (.*)$') or '?' end
end
return found
"""


@dataclass(frozen=True, slots=True)
class Script:
    """A script, and the name by which Redis knows it once it has seen it."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()
        object.__setattr__(self, "sha", digest)


ACQUIRE = Script(_COMMON + _ACQUIRE)
"""KEYS: names. ARGV: id, ttl, holder, milliseconds to remember max_locks, max_locks of each name."""

RENEW = Script(_COMMON + _RENEW)
"""KEYS: names. ARGV: id, ttl (0: only look), how long to remember max_locks, slot and max_locks of each.

Gives 1 if all are held."""

RELEASE = Script(_COMMON + _RELEASE)
"""KEYS: names. ARGV: id, slot of each. Gives 1 if all were held."""

ABANDON = Script(_COMMON + _ABANDON)
"""KEYS: names. ARGV: id, max_locks of each."""

HOLDERS = Script(_COMMON + _HOLDERS)
"""KEYS: a name."""
