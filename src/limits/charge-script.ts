/**
 * Charges requests of several accounts, and only while a token is what the caller expects, in one step and one round trip. Of
 * each account as many as all its quotas have room for, or none.
 *
 * rate-limiter-flexible changes one counter a command: requests that arrive together would see one another's charges
 * before they are given back, and be refused by a quota that nobody has used up. Hence a script.
 *
 * KEYS: the token; then for each account a counter for each quota. ARGV: the token that is expected, or nothing; how many
 * quotas an account has; then for each account how many requests it makes, and for each of its quotas the limit and the
 * window in milliseconds. Answers nothing where the token is another one. Otherwise for each account how many requests were
 * charged, and for each of its quotas the count before that and the milliseconds left.
 */
export const CHARGE = `
if ARGV[1] ~= '' and redis.call('get', KEYS[1]) ~= ARGV[1] then return false end
local quotas = tonumber(ARGV[2])
local answer = {}
local key, arg = 1, 3
while key < #KEYS do
  local room = tonumber(ARGV[arg])
  local counts, left = {}, {}
  for i = 1, quotas do
    local limit, window = tonumber(ARGV[arg + 2 * i - 1]), tonumber(ARGV[arg + 2 * i])
    left[i] = redis.call('pttl', KEYS[key + i])
    -- A clock that was set back must not make a minute last for hours.
    if left[i] > window then
      left[i] = window
      redis.call('pexpire', KEYS[key + i], window)
    end
    -- Below 0 there is no counter, or one that would never end.
    counts[i] = left[i] > 0 and tonumber(redis.call('get', KEYS[key + i])) or 0
    room = math.max(0, math.min(room, limit - counts[i]))
  end
  answer[#answer + 1] = room
  for i = 1, quotas do
    if room > 0 and left[i] > 0 then
      redis.call('incrby', KEYS[key + i], room)
    elseif room > 0 then
      left[i] = tonumber(ARGV[arg + 2 * i])
      redis.call('set', KEYS[key + i], room, 'px', left[i])
    end
    answer[#answer + 1] = counts[i]
    answer[#answer + 1] = left[i]
  end
  key = key + quotas
  arg = arg + 1 + 2 * quotas
end
return answer
`;
