#!/usr/bin/env bash
# Rehearses a backup with pg_basebackup and a WAL archive, an accident, and recovery to the moment before it, with a restart
# of the feed and a fresh copy for a mirror.
#
# Usage: recovery.sh
. "$(dirname "$0")/lib/lib.sh"

echo "== Backup and point-in-time recovery"
start_deployment
as_postgres mkdir "$WORK/postgres/archive"
sql "$POSTGRES_ONE" "alter system set archive_mode = on"
sql "$POSTGRES_ONE" "alter system set archive_command = 'test ! -f $WORK/postgres/archive/%f && cp %p $WORK/postgres/archive/%f'"
as_postgres pg_ctl -D "$WORK/postgres/one" -o "-p $POSTGRES_ONE" -l "$WORK/postgres/one.log" -m fast -w restart >/dev/null
await "the servers are back" is_up one
say "the archive begins"

as_postgres pg_basebackup -D "$WORK/postgres/backup" -c fast -X none -d "host=127.0.0.1 port=$POSTGRES_ONE user=catalog" \
  2>"$WORK/backup.log"
as_postgres pg_verifybackup -n "$WORK/postgres/backup" >/dev/null
say "the base backup is complete and verified: $(du -sm "$WORK/postgres/backup" | cut -f 1) MB"

start_mirror
start_writer
start_watch
EARLIER=$(new_key) LATER=$(new_key)
sleep 3
catalog keys revoke "${EARLIER:0:12}" >/dev/null
sleep 1
stop_writer
MOMENT=$(sql "$POSTGRES_ONE" 'select clock_timestamp()')
say "the moment to recover to is $MOMENT"
sleep 1
catalog keys revoke "${LATER:0:12}" >/dev/null
AFTER=$(new_key)
sql "$POSTGRES_ONE" "update titles set title = 'Oops'"
say "an accident: every title is called Oops"
is_spoiled() { [ "$(grep -c Oops "$WORK/mirror.ndjson")" -gt 1000 ]; }
await "the mirror has it" is_spoiled
say "the mirror has it too"

kill -TERM "$SERVER_ONE_PID" "$SERVER_TWO_PID"
wait "$SERVER_ONE_PID" && wait "$SERVER_TWO_PID"
say "1. the servers are stopped"
RECOVERY_BEGAN=$(date +%s%N)
# A shutdown in order archives the last segment. After a crash, what is in pg_wal is copied by hand.
as_postgres pg_ctl -D "$WORK/postgres/one" -m fast -w stop >/dev/null
as_postgres cp -R "$WORK/postgres/backup" "$WORK/postgres/two"
as_postgres tee -a "$WORK/postgres/two/postgresql.auto.conf" >/dev/null <<CONF
restore_command = 'cp $WORK/postgres/archive/%f %p'
recovery_target_time = '$MOMENT'
recovery_target_action = 'promote'
archive_command = 'test ! -f $WORK/postgres/archive/%f && cp %p $WORK/postgres/archive/%f'
CONF
as_postgres touch "$WORK/postgres/two/recovery.signal"
start_postgres two "$POSTGRES_TWO"
is_primary() { [ "$(sql "$POSTGRES_TWO" 'select pg_is_in_recovery()')" = f ]; }
await "the database is recovered" is_primary
say "2. the backup is restored and recovered in $((($(date +%s%N) - RECOVERY_BEGAN) / 1000000)) ms"
lead_to_standby
[ "$(sql "$POSTGRES_TWO" "select count(*) from titles where title = 'Oops'")" -eq 0 ] || fail "the accident is recovered too"
[ "$(lost_titles "$POSTGRES_TWO")" -eq 0 ] || fail "titles from before the moment are lost"
say "   all $(wc -l <"$WORK/confirmed") titles from before the moment are there, and no title is called Oops"

catalog feed restart --yes | fold -s -w 100 | sed 's/^/          /'
say "3. the feed is restarted"
catalog keys revoke "${LATER:0:12}" >/dev/null
say "4. the revocation after the moment is repeated"
start_server one "$SERVER_ONE"
start_server two "$SERVER_TWO"
is_served() { [ "$(status_of "$API_KEY")" = 200 ]; }
await "clients are served" is_served
say "5. clients are served"
for key in "$EARLIER" "$LATER" "$AFTER"; do
  [ "$(status_of "$key")" = 401 ] || fail "a key is accepted that was revoked, or created after the moment"
done
say "   keys that were revoked, and keys that were created after the moment, get 401"
stop_watch

status=0
wait "$MIRROR_PID" || status=$?
[ "$status" -eq 1 ] || fail "the mirror was not refused"
say "the mirror is refused and ends with exit code 1"
rm "$WORK/mirror.json"
catalog export "$WORK/mirror.ndjson" --kind titles --state "$WORK/mirror.json" --base-url "$BASE_URL" >/dev/null
start_mirror
sql "$POSTGRES_TWO" "update titles set title = 'After' where svc_id = 'title-7'"
await "the mirror is equal" is_mirrored "$POSTGRES_TWO"
say "with a fresh copy it is equal to the catalogue again"
