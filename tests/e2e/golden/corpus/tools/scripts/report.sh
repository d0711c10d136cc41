# shellcheck shell=bash
# Sourced by jobs that have to tell the monitor how they ended.

MONITOR_URL=${MONITOR_URL:-http://localhost:9091/jobs}

# report JOB STATE: never makes the job fail by itself.
report() {
  local job=$1 state=$2
  curl --silent --max-time 10 --retry 3 \
    --data-urlencode "job=$job" --data-urlencode "state=$state" \
    "$MONITOR_URL" >/dev/null || echo "monitor not reached for $job" >&2
}
