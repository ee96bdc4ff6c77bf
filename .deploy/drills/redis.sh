#!/usr/bin/env bash
# Rehearses a failover of Redis: the master of a pair that a Sentinel watches is killed, and comes back as a replica.
#
# Usage: redis.sh
. "$(dirname "$0")/lib/lib.sh"

echo "== Failover of Redis by Sentinel"
MASTER=$(free_port) REPLICA=$(free_port) SENTINEL=$(free_port)
redis_of() { background "redis-$1" redis-server --port "$1" --bind 127.0.0.1 --save '' --dir "$WORK" "${@:2}"; }
redis_of "$MASTER"
MASTER_PID=$PID
redis_of "$REPLICA" --replicaof "127.0.0.1 $MASTER"
cat >"$WORK/sentinel.conf" <<CONF
bind 127.0.0.1
port $SENTINEL
dir "$WORK"
sentinel monitor mymaster 127.0.0.1 $MASTER 1
sentinel down-after-milliseconds mymaster 3000
sentinel failover-timeout mymaster 10000
CONF
background sentinel redis-server "$WORK/sentinel.conf" --sentinel
knows_replica() { redis-cli -p "$SENTINEL" sentinel replicas mymaster | grep -q -A 1 '^master-link-status$'; }
await "the Sentinel finds the replica" knows_replica
export REDIS_URL=redis://mymaster REDIS_SENTINELS=127.0.0.1:$SENTINEL
start_deployment
start_watch
BEFORE=$(new_key) DURING=$(new_key) AFTER=$(new_key)
for key in "$BEFORE" "$DURING" "$AFTER"; do
  for port in "$SERVER_ONE" "$SERVER_TWO"; do status_of "$key" "http://127.0.0.1:$port" >/dev/null; done
done

# revoke KEY: revokes it, and checks that each server refuses it at once.
revoke() {
  catalog keys revoke "${1:0:12}" >/dev/null 2>&1
  for port in "$SERVER_ONE" "$SERVER_TWO"; do
    [ "$(status_of "$1" "http://127.0.0.1:$port")" = 401 ] || fail "a server accepts a revoked key"
  done
}
revoke "$BEFORE"
sleep 2
say "two servers and 20 clients are at work, and a key has been revoked"

{ kill -KILL "$MASTER_PID"; wait "$MASTER_PID"; } 2>/dev/null || true
say "the master is killed"
is_lost() { curl -s "http://127.0.0.1:$SERVER_ONE/readyz" | grep -q redis_lost; }
await "the loss is reported" is_lost
say "/readyz reports redis_lost"
revoke "$DURING"
say "a key is revoked meanwhile, and refused at once"
is_found() { ! curl -s "http://127.0.0.1:$1/readyz" | grep -q redis_lost; }
for port in "$SERVER_ONE" "$SERVER_TWO"; do await "Redis is found" is_found "$port"; done
[ "$(redis-cli -p "$REPLICA" role | head -1)" = master ] || fail "the replica is not the master"
say "the replica is the master, and both servers use it"
revoke "$AFTER"
for key in "$BEFORE" "$DURING"; do [ "$(status_of "$key")" = 401 ] || fail "a revoked key is accepted"; done
say "all three revoked keys are refused"
redis_of "$MASTER"
is_replica() { [ "$(redis-cli -p "$MASTER" role | head -1)" = slave ]; }
await "the old master returns" is_replica
say "the old master is back, as a replica"
sleep 2
stop_watch
