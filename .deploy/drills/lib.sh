# Shared by the drills: a whole deployment on this machine, on free ports of 127.0.0.1, in a folder that is removed at the
# end. Sourced, never run. The drills need bash, Node.js, PostgreSQL's programs, HAProxy, redis-server and redis-cli.
#
# CATALOG_HOME  the installation to rehearse with (default: the one that contains this file)
# PGBIN         the folder of PostgreSQL's programs (default: the newest in /usr/lib/postgresql, or that of pg_ctl)
set -euo pipefail

DRILLS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
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

# prepare_postgres: makes an empty cluster in $WORK/one. Its settings are the defaults, but for what a standby needs.
prepare_postgres() {
  chmod 711 "$WORK"
  mkdir -p "$WORK/postgres" && chmod 700 "$WORK/postgres"
  if [ "$(id -u)" -eq 0 ]; then chown postgres "$WORK/postgres"; fi
  printf '%s' "$PGPASSWORD" >"$WORK/password" && chmod 644 "$WORK/password"
  as_postgres initdb -D "$WORK/postgres/one" -U catalog -A scram-sha-256 --pwfile="$WORK/password" >/dev/null
  rm "$WORK/password"
  as_postgres tee -a "$WORK/postgres/one/postgresql.conf" >/dev/null <<CONF
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
wal_log_hints = on
wal_keep_size = '1GB'
CONF
}

# start_postgres NAME PORT: starts the cluster $WORK/postgres/NAME and waits until it answers.
start_postgres() {
  CLUSTERS+=("$WORK/postgres/$1")
  as_postgres pg_ctl -D "$WORK/postgres/$1" -o "-p $2" -l "$WORK/postgres/$1.log" -t 60 -w start >/dev/null
}

# kill_postgres NAME: kills the postmaster and its children at once, as a power failure would.
kill_postgres() {
  local postmaster children
  postmaster=$(head -1 "$WORK/postgres/$1/postmaster.pid")
  children=$(pgrep -P "$postmaster" | tr '\n' ' ')
  # shellcheck disable=SC2086 # The list of processes is to be split.
  kill -KILL "$postmaster" $children
}

# copy_to_standby NAME FROM_PORT: makes a standby of the server at a port.
copy_to_standby() {
  as_postgres pg_basebackup -D "$WORK/postgres/$1" -R -c fast -X stream \
    -d "host=127.0.0.1 port=$2 user=catalog application_name=$1"
}

sql() { psql -p "$1" -XAtqc "$2"; }

database_url() { echo "postgres://catalog:$PGPASSWORD@127.0.0.1:$1/catalog"; }

# The installation that commands and new servers use.
IN_USE=$CATALOG_HOME

# catalog COMMAND...: runs a command of the service with the servers' settings.
catalog() { node "$IN_USE/.build/cli.js" "$@"; }

# start_server NAME PORT: starts a server, and sets PID. It is awaited by the balancer's health check.
start_server() {
  background "$1" env HOST=127.0.0.1 PORT="$2" METRICS_ADDRESS=off TRUST_PROXY=1 \
    node "$IN_USE/.build/cli.js" serve
}

# configure_pooler PORT: lets PgBouncer lead to a PostgreSQL server.
configure_pooler() {
  local secret="user=catalog password=$PGPASSWORD"
  as_postgres sh -c 'umask 077; cat >"$1"' sh "$WORK/postgres/pgbouncer.ini" <<CONF
[databases]
* = host=127.0.0.1 port=$1 $secret

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $DATABASE_PORT
unix_socket_dir =
pidfile = $WORK/postgres/pgbouncer.pid
auth_type = any
pool_mode = session
default_pool_size = 50
server_login_retry = 1
CONF
}

# lead_to_standby [keep]: points the address of the database at the second server. Closes the connections to the first one,
# unless told to keep them.
lead_to_standby() {
  if [ -n "${POOLER:-}" ]; then
    configure_pooler "$POSTGRES_TWO"
    kill -HUP "$(cat "$WORK/postgres/pgbouncer.pid")"
  else
    balancer "set server postgres/two state ready" >/dev/null
    balancer "set server postgres/one state maint" >/dev/null
    [ "${1:-}" = keep ] || balancer "shutdown sessions server postgres/one" >/dev/null
  fi
}

# start_balancer: HAProxy with the configuration of the guides, before two servers and before two PostgreSQL servers. With
# POOLER=pgbouncer, PgBouncer is before PostgreSQL instead.
start_balancer() {
  cat >"$WORK/haproxy.cfg" <<CONF
global
    stats socket ipv4@127.0.0.1:$BALANCER_PORT level admin

defaults
    mode http
    timeout connect 2s
    timeout client 60s
    timeout server 10s
    timeout http-request 10s

listen catalog
    bind 127.0.0.1:$WEB_PORT
    option forwardfor
    option httpchk GET /readyz
    default-server check inter 1s fall 2 rise 2
    server one 127.0.0.1:$SERVER_ONE
    server two 127.0.0.1:$SERVER_TWO
CONF
  if [ -z "${POOLER:-}" ]; then
    cat >>"$WORK/haproxy.cfg" <<CONF

listen postgres
    mode tcp
    timeout client 1h
    timeout server 1h
    bind 127.0.0.1:$DATABASE_PORT
    server one 127.0.0.1:$POSTGRES_ONE
    server two 127.0.0.1:$POSTGRES_TWO disabled
CONF
  else
    configure_pooler "$POSTGRES_ONE"
    background pgbouncer as_postgres pgbouncer "$WORK/postgres/pgbouncer.ini"
  fi
  background haproxy haproxy -db -f "$WORK/haproxy.cfg"
  await "the balancer answers" pg_isready -p "$DATABASE_PORT"
}

# balancer COMMAND...: sends HAProxy a command.
balancer() {
  exec 9<>"/dev/tcp/127.0.0.1/$BALANCER_PORT"
  printf '%s\n' "$*" >&9
  cat <&9
  exec 9>&-
}

is_up() { balancer "show servers state catalog" | awk -v name="$1" '$4 == name && $6 == 2 { up = 1 } END { exit !up }'; }

# start_deployment: PostgreSQL, Redis, two servers behind the balancer, a plan without limits and a key for it in API_KEY.
start_deployment() {
  POSTGRES_ONE=$(free_port) POSTGRES_TWO=$(free_port) DATABASE_PORT=$(free_port) WEB_PORT=$(free_port)
  SERVER_ONE=$(free_port) SERVER_TWO=$(free_port) BALANCER_PORT=$(free_port)
  BASE_URL=http://127.0.0.1:$WEB_PORT
  export PUBLIC_URL=$BASE_URL
  prepare_postgres
  start_postgres one "$POSTGRES_ONE"
  psql -p "$POSTGRES_ONE" -d postgres -qc 'create database catalog'
  if [ -z "${REDIS_URL:-}" ]; then
    local redis_port
    redis_port=$(free_port)
    background redis redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --dir "$WORK"
    export REDIS_URL=redis://127.0.0.1:$redis_port
    await "Redis answers" redis-cli -p "$redis_port" ping
  fi
  DATABASE_URL=$(database_url "$POSTGRES_ONE") catalog migrate >/dev/null
  DATABASE_URL=$(database_url "$DATABASE_PORT")
  export DATABASE_URL
  start_balancer
  start_server one "$SERVER_ONE"
  SERVER_ONE_PID=$PID
  start_server two "$SERVER_TWO"
  SERVER_TWO_PID=$PID
  catalog plans set drill --name Drill --per-minute 100000000 --per-day 1000000000 --no-commercial-use >/dev/null
  catalog developers create --project-name Drill >/dev/null
  API_KEY=$(new_key)
  export API_KEY CATALOG_API_KEY=$API_KEY
  sql "$POSTGRES_ONE" "insert into titles (svc_id, media_type, title)
    select 'title-' || i, 'movie', 'Title ' || i from generate_series(1, 1000) i"
  await "server one is up" is_up one
  await "server two is up" is_up two
}

new_key() { catalog keys create --developer 1 --plan drill --json | node -p 'JSON.parse(fs.readFileSync(0)).key'; }

# status_of KEY [URL]: the status of a request with a key.
status_of() { curl -s -o /dev/null -w '%{http_code}' -H "X-API-Key: $1" "${2:-$BASE_URL}/api/v1/me" || true; }

start_watch() {
  background watch node "$DRILLS/watch.mjs" "$BASE_URL"
  WATCH_PID=$PID
}

# stop_watch: ends the clients and prints what they saw.
stop_watch() {
  kill -TERM "$WATCH_PID"
  wait "$WATCH_PID" || fail "the clients ended with an error: $(cat "$WORK/watch.log")"
  sed 's/^/          clients: /' "$WORK/watch.log"
}

# start_writer: adds titles one by one through the database's address, and notes each that PostgreSQL has confirmed.
start_writer() {
  writer() {
    local i=0
    while :; do
      i=$((i + 1))
      if sql "$DATABASE_PORT" "insert into titles (svc_id, media_type, title) values ('written-$i', 'movie', 'T')"; then
        echo "written-$i" >>"$WORK/confirmed"
      else
        sleep 0.1
      fi
    done
  }
  : >"$WORK/confirmed"
  background writer writer
  WRITER_PID=$PID
}

stop_writer() { kill "$WRITER_PID" && wait "$WRITER_PID" 2>/dev/null || true; }

# lost_titles PORT: how many confirmed titles a database lacks.
lost_titles() {
  sql "$1" "select svc_id from titles where svc_id like 'written-%'" | sort >"$WORK/present"
  sort "$WORK/confirmed" | comm -23 - "$WORK/present" | wc -l
}

# start_mirror: a follower that keeps up, as a client would run it.
start_mirror() {
  MIRROR_SINCE=${1:-$(($(date +%s) - 3600))}
  (exec node "$CATALOG_HOME/.build/cli.js" follow --base-url "$BASE_URL" --state "$WORK/mirror.json" \
    --since "$MIRROR_SINCE" --interval 1 >>"$WORK/mirror.ndjson" 2>>"$WORK/mirror.log") &
  MIRROR_PID=$!
  PROCESSES+=("$MIRROR_PID")
}

# mirror_differs PORT: how many titles of the mirror and of a database are not the same.
mirror_differs() {
  sql "$1" "select svc_id || ' ' || title from titles" | sort >"$WORK/catalogue"
  node -e '
    const titles = new Map();
    for (const line of fs.readFileSync(process.argv[1], "utf8").split("\n").filter(Boolean)) {
      const { svc_id, title } = JSON.parse(line);
      titles.set(svc_id, title);
    }
    for (const [id, title] of titles) console.log(`${id} ${title}`);' "$WORK/mirror.ndjson" | sort >"$WORK/mirrored"
  comm -3 "$WORK/catalogue" "$WORK/mirrored" | wc -l
}

is_mirrored() { [ "$(mirror_differs "$1")" -eq 0 ]; }
