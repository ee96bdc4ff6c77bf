# PostgreSQL, the servers, and all of it together.

# prepare_postgres NAME: makes an empty cluster in $WORK/postgres/NAME. Its settings are the defaults, but for what a
# standby needs.
prepare_postgres() {
  chmod 711 "$WORK"
  mkdir -p "$WORK/postgres" && chmod 700 "$WORK/postgres"
  if [ "$(id -u)" -eq 0 ]; then chown postgres "$WORK/postgres"; fi
  printf '%s' "$PGPASSWORD" >"$WORK/password" && chmod 644 "$WORK/password"
  as_postgres initdb -D "$WORK/postgres/$1" -U catalog -A scram-sha-256 --pwfile="$WORK/password" >/dev/null
  rm "$WORK/password"
  as_postgres tee -a "$WORK/postgres/$1/postgresql.conf" >/dev/null <<CONF
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

# start_deployment: PostgreSQL, Redis, two servers behind the balancer, an unlimited plan and a key for it in CATALOG_API_KEY.
start_deployment() {
  POSTGRES_ONE=$(free_port) POSTGRES_TWO=$(free_port) DATABASE_PORT=$(free_port) WEB_PORT=$(free_port)
  SERVER_ONE=$(free_port) SERVER_TWO=$(free_port) BALANCER_PORT=$(free_port)
  BASE_URL=http://127.0.0.1:$WEB_PORT
  export PUBLIC_URL=$BASE_URL
  prepare_postgres one
  start_postgres one "$POSTGRES_ONE"
  psql -p "$POSTGRES_ONE" -d postgres -qc 'create database catalog'
  local redis_port
  redis_port=$(free_port)
  background redis redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --dir "$WORK"
  export REDIS_URL=redis://127.0.0.1:$redis_port
  await "Redis answers" redis-cli -p "$redis_port" ping
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
  CATALOG_API_KEY=$(new_key)
  export CATALOG_API_KEY
  sql "$POSTGRES_ONE" "insert into titles (svc_id, media_type, title)
    select 'title-' || i, 'movie', 'Title ' || i from generate_series(1, 1000) i"
  await "server one is up" is_up one
  await "server two is up" is_up two
}
