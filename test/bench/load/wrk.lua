-- Sends the requests of the file named by REQUESTS, each as it stands there, in turn, and prints what came
-- of it as JSON.

local requests, turn = {}, 0

function init()
  local file = assert(io.open(os.getenv("REQUESTS"), "rb"))
  for text in file:read("*a"):gmatch("([^%z]+)") do requests[#requests + 1] = text end
  file:close()
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary, latency)
  local errors = summary.errors
  print(string.format(
    'RESULT {"requests":%d,"seconds":%f,"refused":%d,"broken":%d}',
    summary.requests, summary.duration / 1e6, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
