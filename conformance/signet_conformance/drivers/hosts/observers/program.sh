#!/bin/sh
# Runs a program of a connector, and notes each run; the words in braces are filled in.
# A server's input is the program's own, so only a hook's is kept. A program may start a server without the variables
# of its user, Codex for one. This notes that, and then gives it the daemon's address: else its requests would go to
# the daemon's default port.
d=$(mktemp -d {folder}/run-XXXXXXXX) || exec {command} "$@"
date +%s.%N > "$d/begun"
pwd > "$d/cwd"
for word in "$@"; do printf '%s\n' "$word"; done > "$d/args"
env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p' > "$d/env"
case " $* " in
*" hook "*)
  cat > "$d/stdin"
  {command} "$@" < "$d/stdin"
  status=$?
  echo $status > "$d/status"
  date +%s.%N > "$d/ended"
  exit $status ;;
esac
SIGNET_DAEMON_URL="${SIGNET_DAEMON_URL:-{daemon}}" exec {command} "$@"
