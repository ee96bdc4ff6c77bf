curl --fail-with-body \
  -H "Authorization: Bearer $CATALOG_API_KEY" \
  "{{url}}"
