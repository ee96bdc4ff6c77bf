# What leads to the servers and to PostgreSQL: HAProxy, and PgBouncer.

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

# lead_to_standby [keep]: points the address of the database at the second server. Closes the connections to the first
# one, unless told to keep them.
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

# start_balancer: HAProxy with the configuration of the guides, before two servers and before two PostgreSQL servers.
# With POOLER=pgbouncer, PgBouncer is before PostgreSQL instead.
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
