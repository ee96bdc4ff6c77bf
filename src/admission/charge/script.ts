/**
 * Charges requests, one after the other: each to all its counters, or to none when one has no room. Confirms the epoch
 * in the same step.
 *
 * rate-limiter-flexible changes one counter a command. Requests that arrive together would see one another's charges
 * before these are given back. A quota with room would then refuse them. Hence a script.
 *
 * KEYS: the epoch, then two counters for each request.
 *
 * ARGV: the windows of the two counters, in milliseconds. Then three values for each request: the epoch of its
 * precondition, or nothing, and the limits of its two counters.
 *
 * Answer: the epoch, or nothing, then a list for each request. A list of -1 alone says that the precondition failed.
 * Another list begins with 1 for a charged request and 0 for a refused one. The count and the milliseconds left of each
 * counter follow.
 */
export const CHARGE = `
local epoch = redis.call('get', KEYS[1]) or ''
local answers = { epoch }
for request = 1, (#KEYS - 1) / 2 do
  local key, arg = 2 * request - 1, 3 * request
  local counts, left, charge = {}, {}, 1
  if ARGV[arg] ~= '' and ARGV[arg] ~= epoch then charge = -1 end
  for i = 1, charge == 1 and 2 or 0 do
    local window = tonumber(ARGV[i])
    left[i] = redis.call('pttl', KEYS[key + i])
    -- A clock that was set back must not make a minute last for hours.
    if left[i] > window then
      left[i] = window
      redis.call('pexpire', KEYS[key + i], window)
    end
    -- Below 0 there is no counter, or one that would never end.
    counts[i] = left[i] > 0 and tonumber(redis.call('get', KEYS[key + i])) or 0
    if counts[i] >= tonumber(ARGV[arg + i]) then charge = 0 end
  end
  for i = 1, charge == 1 and 2 or 0 do
    counts[i] = counts[i] + 1
    if left[i] > 0 then
      redis.call('incr', KEYS[key + i])
    else
      left[i] = tonumber(ARGV[i])
      redis.call('set', KEYS[key + i], 1, 'px', left[i])
    end
  end
  answers[request + 1] = { charge, counts[1], left[1], counts[2], left[2] }
end
return answers
`;
