# Those who use the deployment: callers, a writer and a mirror.

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

# start_mirror: a mirror in a PostgreSQL of its own, as a client would run it.
start_mirror() {
  MIRROR_PORT=$(free_port)
  prepare_postgres mirror
  start_postgres mirror "$MIRROR_PORT"
  psql -p "$MIRROR_PORT" -d postgres -qc 'create database catalog'
  background mirror node "$CATALOG_HOME/.build/cli.js" mirror --from "$BASE_URL" \
    --into "postgres://catalog@127.0.0.1:$MIRROR_PORT/catalog" --interval 1
}

# mirror_differs PORT: how many titles of the mirror and of a database are not the same.
mirror_differs() {
  sql "$1" "select svc_id || ' ' || title from titles" | sort >"$WORK/catalogue"
  sql "$MIRROR_PORT" "select svc_id || ' ' || title from catalog_mirror.titles" | sort >"$WORK/mirrored"
  comm -3 "$WORK/catalogue" "$WORK/mirrored" | wc -l
}

is_mirrored() { [ "$(mirror_differs "$1")" -eq 0 ]; }
