import json
import os
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

request = Request(
    "{{url}}",
    headers={"Authorization": f"Bearer {os.environ.get('CATALOG_API_KEY', '')}"},
)
try:
    with urlopen(request) as response:
        print(json.load(response))
except HTTPError as error:
    sys.exit(f"{error.code} {json.load(error)['detail']}")
