# Functions that start programs and wait for them. The scripts of this folder source it.

# FOLDER PROGRAM [ARGUMENT…]: runs a program in the background and restarts it when it ends, as systemd would. FOLDER gets
# PROGRAM.log and running/PROGRAM.pid. The program stays down while running/PROGRAM.stop exists.
keep_running() {
  restart_always "$@" &
}

restart_always() {
  local folder=$1 program=$2
  shift 2
  while :; do
    "$program" "$@" </dev/null >>"$folder/$program.log" 2>&1 &
    echo "$!" >"$folder/running/$program.pid"
    # Bash reports processes that are killed.
    wait "$!" 2>/dev/null || true
    while [ -e "$folder/running/$program.stop" ]; do
      sleep 0.1
    done
    sleep 0.1
  done
}

# SECONDS DESCRIPTION COMMAND…: repeats a command until it succeeds. `logs` names the logs to show otherwise.
until_done() {
  local deadline=$((SECONDS + $1)) description=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ "$SECONDS" -ge "$deadline" ]; then
      echo "$description did not become ready; the ends of the logs in $logs:" >&2
      find "$logs" -name '*.log' -exec tail -n 5 {} + >&2
      exit 1
    fi
    sleep 0.1
  done
}

# HOST: an address as the host of a URL.
url_host() {
  case $1 in
  *:*) echo "[$1]" ;;
  *) echo "$1" ;;
  esac
}

# VERSION: reports whether the cluster's version of Kubernetes is VERSION or newer.
is_kubernetes_since() {
  [ "${E2E_KUBERNETES#1.}" -ge "${1#1.}" ]
}
