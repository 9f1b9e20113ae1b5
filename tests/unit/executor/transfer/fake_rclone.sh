#!/bin/sh
# Does what rclone does for addresses of folders, with faults. These files next to it change what it does:
#
#   key           AWS_ACCESS_KEY_ID must have this value
#   fail-COMMAND  the error of this command
#   hold-COMMAND  a named pipe: the command waits for a line
#
# It logs its calls, its nice value, its limit of bandwidth and the files that it copies.
here=${0%/*}
command=$1
fail() {
  echo "$1" >&2
  exit "$2"
}

if [ "$command" = version ]; then
  echo "rclone v1.75.0"
  exit 0
fi
for argument; do
  case $argument in
    --files-from-raw=*) list=${argument#*=} ;;
    --offset=*) offset=${argument#*=} ;;
    --bwlimit=*) echo "$argument" >> "$here/limits" ;;
    store:*) place=${argument#store:} ;;
    -*) ;;
    *) folder=$argument ;;
  esac
done
echo "$command $place" >> "$here/calls"
cut -d ' ' -f 19 "/proc/$$/stat" >> "$here/priorities"
if [ -p "$here/hold-$command" ]; then read -r _ < "$here/hold-$command"; fi
if [ -e "$here/key" ] && [ "$AWS_ACCESS_KEY_ID" != "$(cat "$here/key")" ]; then fail AccessDenied 1; fi
error=$(cat "$here/fail-$command" 2> /dev/null)
if [ -n "$error" ]; then fail "$error" 1; fi

case $command in
  lsjson)
    cd "$place" 2> /dev/null || fail "directory not found" 3
    echo "[$(find . -type f -printf '{"Path":"%P","Size":%s}\n' | paste -s -d ,)]"
    ;;
  copy)
    while read -r name; do
      mkdir -p "$(dirname "$place/$name")"
      cp "$folder/$name" "$place/$name" || exit 1
      echo "$name" >> "$here/copied"
    done < "$list"
    ;;
  cat)
    [ -f "$place" ] || fail "object not found" 4
    tail -c "+$((offset + 1))" "$place"
    ;;
esac
