curl --fail-with-body \
  -H "Authorization: Bearer $KEY" \
  "{{url}}"
