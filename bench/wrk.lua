-- wrk -s wrk.lua URL -- CONTENT_TYPE FILE
-- Posts the bodies of FILE in turn; a blank line ends a body. Prints one line of JSON at the end.

local threads, requests = {}, {}
sent, answers = 0, {} -- global, because done() reads them from each thread

function setup(thread)
  threads[#threads + 1] = thread
end

function init(args)
  wrk.method = "POST"
  wrk.headers["Content-Type"] = args[1]
  local file = assert(io.open(args[2], "rb"))
  for body in file:read("*a"):gmatch("(.-)\n\n") do
    requests[#requests + 1] = wrk.format(nil, nil, nil, body)
  end
  file:close()
end

function request()
  sent = sent + 1
  return requests[sent % #requests + 1]
end

function response(status)
  answers[status] = (answers[status] or 0) + 1
end

function done(summary, latency)
  local statuses, unanswered = {}, 0
  for _, thread in ipairs(threads) do
    unanswered = unanswered + thread:get("sent")
    for status, count in pairs(thread:get("answers")) do
      statuses[status] = (statuses[status] or 0) + count
      unanswered = unanswered - count
    end
  end
  local counted = {}
  for status, count in pairs(statuses) do
    counted[#counted + 1] = string.format('"%d": %d', status, count)
  end
  local errors = summary.errors
  print(string.format(
    '{"requests_per_s": %.1f, "p50_ms": %.3f, "p99_ms": %.3f, "errors": %d, "unanswered": %d, "statuses": {%s}}',
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.timeout, unanswered, table.concat(counted, ", ")))
end
