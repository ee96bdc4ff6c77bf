#!/usr/bin/env bash
# Rehearses power failures of the machine of a mirror, and of one that exports. Their files lie on an ext4 file system on a
# loop device. Its content is copied at arbitrary moments, which leaves out all that the kernel has only in memory; the copy
# is mounted as after a power failure. Each check is then made to fail once, by a program that does not flush.
#
# Usage: power-loss.sh   (as root on Linux, with mkfs.ext4)
[ "$(id -u)" -eq 0 ] || { echo "Run this drill as root: it mounts file systems." >&2; exit 1; }
. "$(dirname "$0")/lib/lib.sh"

FAILURES=12
DISK=$WORK/disk
AFTER=$WORK/after
unmount_all() {
  local status=$?
  set +e
  kill -KILL "${FOLLOWER_PID:-}" 2>/dev/null
  umount -l "$AFTER" "$DISK" 2>/dev/null
  (exit "$status")
  clean_up
}
trap unmount_all EXIT

echo "== Power failures of a mirror and of an export"
start_deployment
mkdir "$DISK" "$AFTER"
truncate -s 64M "$WORK/disk.img"
mkfs.ext4 -q -E lazy_itable_init=0 "$WORK/disk.img"
# Nothing but a flush writes the journal within five minutes.
mount -o loop,commit=300 "$WORK/disk.img" "$DISK"
start_writer

# follow: the follower writes to the file system, with the settings of its environment.
follow() {
  rm -rf "$DISK"/mirror.* && sync -f "$DISK"
  (exec node "$CATALOG_HOME/.build/cli.js" follow --base-url "$BASE_URL" --state "$DISK/mirror.json" \
    --since "$(($(date +%s) - 3600))" --interval 1 >>"$DISK/mirror.ndjson" 2>>"$WORK/mirror.log") &
  FOLLOWER_PID=$!
  await "the follower has saved a position" test -s "$DISK/mirror.json"
}

# lose_power: mounts what a power failure would leave.
lose_power() {
  cp "$WORK/disk.img" "$WORK/after.img"
  mount -o loop "$WORK/after.img" "$AFTER"
}

# is_complete: whether every title up to the saved position is among the lines.
is_complete() {
  local since
  since=$(node -p 'JSON.parse(fs.readFileSync(process.argv[1])).since.toFixed(6)' "$AFTER/mirror.json") || return
  sql "$POSTGRES_ONE" "select svc_id from titles where updated_at <= to_timestamp(0) + $since * interval '1 s'" |
    sort >"$WORK/expected"
  [ -s "$WORK/expected" ] || return
  grep -o '"svc_id":"[^"]*"' "$AFTER/mirror.ndjson" | cut -d '"' -f 4 | sort -u >"$WORK/found"
  [ -z "$(comm -23 "$WORK/expected" "$WORK/found")" ]
}

# survivals: how many of several power failures leave a complete mirror.
survivals() {
  local i complete=0
  for ((i = 0; i < FAILURES; i += 1)); do
    sleep "0.$((RANDOM % 900 + 100))"
    kill -STOP "$FOLLOWER_PID"
    lose_power
    kill -CONT "$FOLLOWER_PID"
    if is_complete; then complete=$((complete + 1)); fi
    umount "$AFTER"
  done
  kill -KILL "$FOLLOWER_PID"
  wait "$FOLLOWER_PID" 2>/dev/null || true
  echo "$complete"
}

follow
survivals >"$WORK/survivals"
read -r COMPLETE <"$WORK/survivals"
say "after $COMPLETE of $FAILURES power failures, the mirror has every title up to its saved position"
[ "$COMPLETE" -eq "$FAILURES" ] || fail "titles are lost"

# A follower that saves its position without flushing its output.
echo "require('fs').fsync = (fd, done) => done(null); require('module').syncBuiltinESMExports();" >"$WORK/no-flush.cjs"
NODE_OPTIONS="--require $WORK/no-flush.cjs" follow
survivals >"$WORK/survivals"
read -r COMPLETE <"$WORK/survivals"
say "for comparison, without flushing the output: after $COMPLETE of $FAILURES"
[ "$COMPLETE" -lt "$FAILURES" ] || fail "this drill finds no loss"

# survives NAME: whether a file is there after a power failure, with the content that it has now.
survives() { cmp -s "$DISK/$1" "$AFTER/$1"; }

catalog export "$DISK/titles.csv.gz" --kind titles --state "$DISK/titles.json" --base-url "$BASE_URL" >/dev/null
lose_power
survives titles.csv.gz && survives titles.json || fail "an export is lost"
umount "$AFTER"
cp "$DISK/titles.csv.gz" "$DISK/copied.csv.gz"
lose_power
! survives copied.csv.gz || fail "this drill finds no loss"
umount "$AFTER"
say "a complete export and its state file survive; a copy by cp, which does not flush, is lost"
