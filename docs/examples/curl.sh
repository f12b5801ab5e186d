#!/usr/bin/env bash
# Runs one Task and prints the conversation, with curl and sed.
#
#   OMNID_URL=http://127.0.0.1:8420 OMNID_TOKEN=… bash curl.sh "/run date"
set -euo pipefail

api="${OMNID_URL:-http://127.0.0.1:8420}/api"
call=(curl --silent --show-error --fail-with-body)
if [ -n "${OMNID_TOKEN:-}" ]; then call+=(--header "authorization: Bearer $OMNID_TOKEN"); fi
json=(--header 'content-type: application/json')
input=$(printf '%s' "${1:-/run date}" | sed 's/[\\"]/\\&/g')

session=$("${call[@]}" --request POST "$api/sessions" | sed 's/.*"sessionId":"\([^"]*\)".*/\1/')
key="$(date +%s)-$$"
last_id=""
over=""

# One call starts the Task and shows it. With the same key a second one starts nothing: it goes on where the first broke.
stream() {
  "${call[@]}" --no-buffer "${json[@]}" --header 'accept: text/event-stream' \
    --header "idempotency-key: $key" --header "last-event-id: $last_id" --speed-limit 1 --speed-time 60 \
    "$api/sessions/$session/tasks" --data "{\"input\":\"$input\"}"
}

# ask <data of an approval_request>
ask() {
  local what call_id asks answer decision=deny
  what=$(sed 's/.*"name":"\([^"]*\)","arguments":"\(.*\)","tool_call_id".*/\1 \2/; s/\\"/"/g' <<<"$1")
  call_id=$(sed 's/.*"tool_call_id":"\([^"]*\)".*/\1/' <<<"$1")
  asks=$(sed 's/.*"type":"approval_request","sessionId":"\([^"]*\)".*/\1/' <<<"$1")
  printf '\nAllow %s? [y/N] ' "$what" >&2
  read -r answer <&3 || answer=n
  case $answer in [yY]*) decision=allow ;; esac
  # Refused where somebody else was faster: the stream says what came of it.
  "${call[@]}" "${json[@]}" "$api/sessions/$asks/approvals/$call_id" --data "{\"decision\":\"$decision\"}" >&2 || true
}

# take <name> <data>
take() {
  case $1:$2 in
    server_event:*'"type":"approval_request"'*) ask "$2" ;;
    server_event:*'"ended":{'*) over=yes ;;
    # Text as it is written, but for a child's, which ends with its origin. A line feed stands as \n in it.
    :*'"type":"partial_text"'*'"event_type":"delta"'*'"}}')
      printf '%b' "$(sed 's/.*"text":"\(.*\)"}}$/\1/; s/\\"/"/g' <<<"$2")" >&2
      ;;
  esac
}

until [ -n "$over" ]; do
  id="" event="" data=""
  while IFS= read -r line; do
    case $line in
      'id: '*) id=${line#id: } ;;
      'event: '*) event=${line#event: } ;;
      'data: '*) data=${line#data: } ;;
      '') # Only now the event is whole: one that was cut comes again.
        last_id=${id:-$last_id}
        take "$event" "$data"
        id="" event="" data=""
        ;;
    esac
  done < <(stream)
  # 22: the server refused it, and would again. Everything else is the network.
  wait "$!" || [ "$?" != 22 ] || exit 22
  [ -n "$over" ] || sleep 1
done 3<&0

# Everything that was said, one record a line.
"${call[@]}" "$api/sessions/$session/trace"
