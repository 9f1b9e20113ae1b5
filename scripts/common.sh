# Shared functions of setup and build. A script must set `script` to its name before it sources this file.

say() { printf "$script: %s\n" "$*"; }

die() {
  printf "$script: %s\n" "$@" >&2
  exit 1
}

# Bash runs a trap after the foreground command has ended, so no command continues after the prompt returns.
interrupted() {
  trap '' INT TERM HUP
  say "interrupted; run the same command again to continue where it stopped" >&2
  exit 130
}
trap interrupted INT TERM HUP

# lock FOLDER: creates the folder if needed, and waits until no other run of this script uses it.
lock() {
  local file=$1/$script.lock problem
  problem=$({ mkdir -p "$1" && touch "$file"; } 2>&1) ||
    die "cannot write to $PWD/$1 (${problem##*: }): make it writable, or free disk space; then run this again"
  exec 9>"$file"
  flock --nonblock 9 && return
  say "another $script is running in $PWD/$1; waiting for it"
  until flock --timeout 10 9; do
    say "  waiting for the other $script"
  done
}

# Prints the first folder whose disk is full; fails if no disk is full.
full_folder() {  # full_folder FOLDER...
  local folder megabytes
  for folder in "$@"; do
    megabytes=$(df --output=avail --block-size=1M "$folder" 2>/dev/null | tail -n 1) || continue
    if ((megabytes < 20)); then
      realpath "$folder"
      return
    fi
  done
  return 1
}
