/**
 * Charges requests to several accounts, in one step and one round trip with the look at a token, which the charge may depend
 * on. To each account as many as all its counters have room for, or none.
 *
 * rate-limiter-flexible changes one counter a command: requests that arrive together would see one another's charges
 * before they are given back, and be refused by a quota that nobody has used up. Hence a script.
 *
 * KEYS: the token; then the counters of each account. ARGV: the token that is expected, or nothing; 1 where nothing is to be
 * charged with another one, else 0; then for each account how many requests it makes and how many counters it has, and for
 * each of those the limit and the window in milliseconds. Answers nothing where it must not charge. Otherwise 1 where the token
 * is the expected one, else 0; then for each account how many requests were charged, and for each of its counters the count
 * before that and the milliseconds left.
 */
export const CHARGE = `
local holds = ARGV[1] == '' or redis.call('get', KEYS[1]) == ARGV[1]
if not holds and ARGV[2] == '1' then return false end
local answer = { holds and 1 or 0 }
local key, arg = 1, 3
while key < #KEYS do
  local room, counters = tonumber(ARGV[arg]), tonumber(ARGV[arg + 1])
  local counts, left = {}, {}
  for i = 1, counters do
    local limit, window = tonumber(ARGV[arg + 2 * i]), tonumber(ARGV[arg + 2 * i + 1])
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
  for i = 1, counters do
    if room > 0 and left[i] > 0 then
      redis.call('incrby', KEYS[key + i], room)
    elseif room > 0 then
      left[i] = tonumber(ARGV[arg + 2 * i + 1])
      redis.call('set', KEYS[key + i], room, 'px', left[i])
    end
    answer[#answer + 1] = counts[i]
    answer[#answer + 1] = left[i]
  end
  key = key + counters
  arg = arg + 2 + 2 * counters
end
return answer
`;
