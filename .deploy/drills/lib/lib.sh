# Shared by the drills and sourced by them: a whole deployment on this machine, on free ports of 127.0.0.1, in a folder
# that is removed at the end. This file has the programs and their processes; the others have the deployment, what leads
# to it, and its clients. The drills need bash, Node.js, PostgreSQL's programs, HAProxy, redis-server and redis-cli.
#
# CATALOG_HOME  the installation to rehearse with (default: the one that contains this file)
# PGBIN         the folder of PostgreSQL's programs (default: the newest in /usr/lib/postgresql, or that of pg_ctl)
set -euo pipefail

DRILLS=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CATALOG_HOME=${CATALOG_HOME:-$(cd "$DRILLS/../.." && pwd)}
PGBIN=${PGBIN:-$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)}
PGBIN=${PGBIN:-$(dirname "$(command -v pg_ctl || echo /none/pg_ctl)")}
PATH=$PGBIN:$PATH:/usr/sbin:/usr/local/sbin

for program in node initdb pg_basebackup pg_ctl psql haproxy redis-server redis-cli; do
  command -v "$program" >/dev/null || { echo "This drill needs $program." >&2; exit 1; }
done
test -e "$CATALOG_HOME/.build/cli.js" || { echo "$CATALOG_HOME is not built: run make build." >&2; exit 1; }

WORK=$(mktemp -d "${TMPDIR:-/tmp}/catalog-drill.XXXXXX")
STARTED=$(date +%s%N)
PROCESSES=()
CLUSTERS=()
export PGUSER=catalog PGDATABASE=catalog PGHOST=127.0.0.1 PGCONNECT_TIMEOUT=2
PGPASSWORD=$(node -p 'crypto.randomBytes(18).toString("hex")')
export PGPASSWORD

show_logs() {
  local log
  echo "The drill failed; the ends of its logs:"
  for log in "$WORK"/*.log "$WORK"/postgres/*.log; do
    [ ! -s "$log" ] || { echo "== $log"; grep -v '"msg":"request"' "$log" | tail -n 5 | cut -c -300; } || true
  done
}

clean_up() {
  local status=$? process cluster
  trap - EXIT INT TERM
  set +e
  if [ "$status" -ne 0 ]; then show_logs >&2; fi
  # The shell reports what it kills.
  exec 2>/dev/null
  for process in "${PROCESSES[@]}"; do kill -KILL "$process" 2>/dev/null || true; done
  # It runs as another user, whose process is not a child of this shell.
  if [ -e "$WORK/postgres/pgbouncer.pid" ]; then kill -KILL "$(cat "$WORK/postgres/pgbouncer.pid")"; fi
  for cluster in "${CLUSTERS[@]}"; do
    as_postgres pg_ctl -D "$cluster" stop -m immediate >/dev/null 2>&1 || true
  done
  rm -rf "$WORK"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# Prints a line with the seconds since the drill began.
say() {
  local ms=$((($(date +%s%N) - STARTED) / 1000000))
  printf '%4d.%d s  %s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$*"
}

fail() { echo "FAILED: $*" >&2; exit 1; }

# await WHAT COMMAND...: tries the command ten times a second, for a minute at most.
await() {
  local what=$1 tries=600
  shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries - 1))
    [ "$tries" -gt 0 ] || fail "$what: not within 60 s"
    sleep 0.1
  done
}

free_port() {
  node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => { console.log(s.address().port); s.close(); })'
}

# PostgreSQL refuses to run as root.
as_postgres() {
  if [ "$(id -u)" -eq 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

# background NAME COMMAND...: starts a program with its output in NAME.log, and sets PID.
background() {
  local name=$1
  shift
  "$@" >>"$WORK/$name.log" 2>&1 &
  PID=$!
  PROCESSES+=("$PID")
}

. "$DRILLS/lib/deployment.sh"
. "$DRILLS/lib/balancer.sh"
. "$DRILLS/lib/clients.sh"
