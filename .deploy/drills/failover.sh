#!/usr/bin/env bash
# Rehearses failovers of PostgreSQL. The link to the standby hangs for the last second before the primary fails, so that
# asynchronous replication loses commits.
#
# Usage: failover.sh [synchronous|asynchronous|alive]   (default: all, one after the other)
#        POOLER=pgbouncer failover.sh …                 (PgBouncer in place of HAProxy before PostgreSQL)
#
# synchronous   the primary is killed; commits wait for the standby
# asynchronous  the primary is killed; commits do not wait
# alive         the standby is promoted while the primary and its connections are alive
#
# Each ends with the old primary returning as a standby, by pg_rewind.
if [ $# -eq 0 ]; then
  for mode in synchronous asynchronous alive; do "$0" "$mode" || exit; done
  exit
fi
MODE=$1
. "$(dirname "$0")/lib/lib.sh"

echo "== Failover of PostgreSQL: $MODE${POOLER:+, behind PgBouncer}"
start_deployment
sql "$POSTGRES_ONE" "select pg_create_physical_replication_slot('two')" >/dev/null
copy_to_standby two "$POSTGRES_ONE"
start_postgres two "$POSTGRES_TWO"
is_streaming() { [ "$(sql "$POSTGRES_ONE" "select count(*) from pg_stat_replication where state = 'streaming'")" = 1 ]; }
await "the standby follows" is_streaming
if [ "$MODE" != asynchronous ]; then
  sql "$POSTGRES_ONE" "alter system set synchronous_standby_names = '*'"
  sql "$POSTGRES_ONE" "select pg_reload_conf()" >/dev/null
  is_synchronous() { [ "$(sql "$POSTGRES_ONE" "select sync_state from pg_stat_replication")" = sync ]; }
  await "replication is synchronous" is_synchronous
fi
start_mirror
start_writer
start_watch
DOOMED=$(new_key)
SECOND=$(new_key)
for key in "$DOOMED" "$SECOND"; do
  for port in "$SERVER_ONE" "$SERVER_TWO"; do
    [ "$(status_of "$key" "http://127.0.0.1:$port")" = 200 ] || fail "a new key is refused"
  done
done
sleep 3
say "two servers, 20 clients, a writer and a mirror are at work"

promote() {
  as_postgres pg_ctl -D "$WORK/postgres/two" -w promote >/dev/null
  say "the standby is promoted"
}

if [ "$MODE" = alive ]; then
  promote
  # New connections lead to the new primary. Those to the old one stay open.
  lead_to_standby keep
  say "the address leads to it; connections to the old primary are still open"
  catalog keys revoke "${DOOMED:0:12}" >/dev/null
  for port in "$SERVER_ONE" "$SERVER_TWO"; do
    status=$(status_of "$DOOMED" "http://127.0.0.1:$port")
    [ "$status" != 200 ] || fail "a server accepts a revoked key"
    say "the server at port $port answers $status for the key that was revoked on the new primary"
  done
else
  SENDER=$(sql "$POSTGRES_ONE" "select pid from pg_stat_replication")
  kill -STOP "$SENDER"
  say "the link to the standby hangs"
  background revoke catalog keys revoke "${DOOMED:0:12}"
  REVOKE_PID=$PID
  # Without a standby that confirms, the command waits.
  sleep 1.5
  [ "$MODE" = synchronous ] || await "the revocation is done" bash -c "! kill -0 $REVOKE_PID"
  kill_postgres one
  say "the primary is killed"
  REVOKED=failed
  ! wait "$REVOKE_PID" || REVOKED=done
  say "a revocation in that time was reported as $REVOKED"
  # What a watchdog does that asks twice.
  until ! pg_isready -q -p "$POSTGRES_ONE" && sleep 0.5 && ! pg_isready -q -p "$POSTGRES_ONE"; do sleep 0.5; done
  say "the primary is found dead"
  promote
  lead_to_standby
  say "the address leads to it"
fi

is_served() { [ "$(status_of "$CATALOG_API_KEY")" = 200 ]; }
await "clients are served" is_served
say "a client is served"
await "server one is up" is_up one
await "server two is up" is_up two
say "both servers are up in the balancer"
sleep 2
stop_writer
stop_watch

LOST=$(lost_titles "$POSTGRES_TWO")
say "titles lost of $(wc -l <"$WORK/confirmed") that were confirmed: $LOST"
if [ "$MODE" != alive ]; then
  say "the key whose revocation was reported as $REVOKED gets $(status_of "$DOOMED")"
fi
if [ "$MODE" = asynchronous ]; then
  [ "$LOST" -gt 0 ] && [ "$REVOKED" = done ] || fail "the link did not hang"
  catalog feed restart --yes >/dev/null
  catalog keys revoke "${DOOMED:0:12}" >/dev/null
  [ "$(status_of "$DOOMED")" = 401 ] || fail "the key is still accepted"
  await "the mirror is refused" grep -q 'no longer accepts' "$WORK/mirror.log"
  say "after 'feed restart' and a second revocation the key is refused, and the mirror waits for a copy"
else
  [ "$LOST" -eq 0 ] || fail "confirmed titles are lost"
  await "the mirror is equal" is_mirrored "$POSTGRES_TWO"
  say "the mirror is equal to the catalogue"
fi

say "the old primary returns as a standby"
if [ "$MODE" = alive ]; then as_postgres pg_ctl -D "$WORK/postgres/one" -w stop -m fast >/dev/null; fi
# Until its first checkpoint, a promoted server names its old timeline in the file that pg_rewind compares.
sql "$POSTGRES_TWO" checkpoint
as_postgres pg_rewind -D "$WORK/postgres/one" -R \
  --source-server="host=127.0.0.1 port=$POSTGRES_TWO user=catalog dbname=postgres" >"$WORK/rewind.log" 2>&1 ||
  fail "pg_rewind: $(tail -n 2 "$WORK/rewind.log")"
start_postgres one "$POSTGRES_ONE"
is_back() { [ "$(sql "$POSTGRES_TWO" "select count(*) from pg_stat_replication where state = 'streaming'")" = 1 ]; }
await "it follows the new primary" is_back
[ "$(sql "$POSTGRES_ONE" 'select pg_is_in_recovery()')" = t ] || fail "it is no standby"
say "it follows the new primary"
