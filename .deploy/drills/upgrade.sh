#!/usr/bin/env bash
# Rehearses an upgrade and the way back, under load behind the balancer: migrates while the old servers serve, replaces
# them one by one, and then goes back to the old version on the new schema.
#
# Usage: upgrade.sh OLD_HOME   (CATALOG_HOME or the installation of this file is the new version; OLD_HOME the old one)
OLD_HOME=$(cd "${1:?the folder of the old version}" && pwd) || exit
. "$(dirname "$0")/lib/lib.sh"

version_of() { node "$1/.build/cli.js" --version; }
echo "== Upgrade from $(version_of "$OLD_HOME") to $(version_of "$CATALOG_HOME"), and back"
IN_USE=$OLD_HOME
start_deployment
start_mirror
start_writer
start_watch
sleep 2
say "two servers of the old version, 20 clients, a writer and a mirror are at work"

# replace_servers: replaces the servers one by one by the version in use, as the guide has it.
replace_servers() {
  local name pid port
  for name in one two; do
    if [ "$name" = one ]; then pid=$SERVER_ONE_PID port=$SERVER_ONE; else pid=$SERVER_TWO_PID port=$SERVER_TWO; fi
    kill -TERM "$pid"
    wait "$pid" || fail "the server did not end in order"
    start_server "$name" "$port"
    if [ "$name" = one ]; then SERVER_ONE_PID=$PID; else SERVER_TWO_PID=$PID; fi
    # The balancer first sees that the old server is gone.
    await "the server answers" curl -sf "http://127.0.0.1:$port/readyz"
    sleep 1
    await "the balancer uses it" is_up "$name"
    say "server $name is replaced"
  done
}

IN_USE=$CATALOG_HOME
DATABASE_URL=$(database_url "$POSTGRES_ONE") catalog migrate | sed 's/^/          /'
say "the schema is migrated"
replace_servers
KEY=$(new_key)
[ "$(status_of "$KEY")" = 200 ] || fail "a new key is refused"
say "the upgrade is complete; now the way back"
IN_USE=$OLD_HOME
replace_servers
[ "$(status_of "$KEY")" = 200 ] || fail "the old version refuses a key of the new one"
catalog keys revoke "${KEY:0:12}" >/dev/null
[ "$(status_of "$KEY")" = 401 ] || fail "a revoked key is accepted"
say "the old version accepts a key that the new one has made, and has revoked it"
stop_writer
stop_watch
! grep -Eq 'failed [1-9]' "$WORK/watch.log" || fail "requests failed"
[ "$(lost_titles "$POSTGRES_ONE")" -eq 0 ] || fail "confirmed titles are lost"
await "the mirror is equal" is_mirrored "$POSTGRES_ONE"
say "none of $(wc -l <"$WORK/confirmed") confirmed titles is lost, and the mirror is equal to the catalogue"
