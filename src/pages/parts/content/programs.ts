import type { Language } from './highlight.js';

/** Stands in a target for a moment an hour ago, in seconds. Each language writes it in its own way. */
export const AN_HOUR_AGO = '{an-hour-ago}';

/** A call of the API as a whole program, to copy and run. `KEY` in the environment holds the key. */
export interface Program {
  readonly label: string;
  readonly language: Language;
  /** How to run it: the command, with the name of its file. */
  readonly caption: string;
  readonly code: string;
}

/** The URL of a call, around the moment that the program inserts if it has one. */
interface Url {
  readonly start: string;
  readonly isTimed: boolean;
}

interface Sample extends Omit<Program, 'code'> {
  /** Begins a comment. */
  readonly comment: string;
  readonly write: (url: Url, note: string) => string;
}

/** Each prints the response. An error goes to standard error, with a failing exit code. They need no package. */
const SAMPLES: readonly Sample[] = [
  {
    label: 'curl',
    language: 'sh',
    caption: 'Run in a shell',
    comment: '#',
    write: ({ start, isTimed }, note) => `${note}${
      isTimed ? 'since=$(($(date +%s) - 3600))\n' : ''
    }curl --fail-with-body \\
  -H "Authorization: Bearer $KEY" \\
  ${isTimed ? `"${start}$since"` : start}`,
  },
  {
    label: 'JavaScript',
    language: 'js',
    caption: 'Run with node call.mjs',
    comment: '//',
    write: ({ start, isTimed }, note) => `${note}${
      isTimed ? 'const since = Math.floor(Date.now() / 1000) - 3600;\n' : ''
    }const response = await fetch(${isTimed ? `\`${start}\${since}\`` : `'${start}'`}, {
  headers: { Authorization: \`Bearer \${process.env.KEY ?? ''}\` },
});
const body = await response.json();
if (!response.ok) {
  console.error(response.status, body.detail);
  process.exit(1);
}
console.log(body);`,
  },
  {
    label: 'Python',
    language: 'python',
    caption: 'Run with python3 call.py',
    comment: '#',
    write: ({ start, isTimed }, note) => `${note}import json
import os
import sys
${isTimed ? 'import time\n' : ''}from urllib.error import HTTPError
from urllib.request import Request, urlopen

${isTimed ? 'since = int(time.time()) - 3600\n' : ''}request = Request(
    ${isTimed ? `f"${start}{since}"` : `"${start}"`},
    headers={"Authorization": f"Bearer {os.environ.get('KEY', '')}"},
)
try:
    with urlopen(request) as response:
        print(json.load(response))
except HTTPError as error:
    sys.exit(f"{error.code} {json.load(error)['detail']}")`,
  },
  {
    label: 'Go',
    language: 'go',
    caption: 'Run with go run call.go',
    comment: '//',
    write: ({ start, isTimed }, note) => `${note}package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"${isTimed ? '\n\t"time"' : ''}
)

func main() {
	${isTimed ? `url := fmt.Sprint("${start}", time.Now().Add(-time.Hour).Unix())` : `url := "${start}"`}
	request, err := http.NewRequest("GET", url, nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		var problem struct{ Detail string }
		json.Unmarshal(body, &problem)
		log.Fatal(response.StatusCode, " ", problem.Detail)
	}
	fmt.Println(string(body))
}`,
  },
  {
    label: 'PHP',
    language: 'php',
    caption: 'Run with php call.php',
    comment: '//',
    write: ({ start, isTimed }, note) => `<?php
${note}$context = stream_context_create(['http' => [
    'header' => 'Authorization: Bearer ' . getenv('KEY'),
    'ignore_errors' => true,
]]);
$url = '${start}'${isTimed ? ' . (time() - 3600)' : ''};
$response = fopen($url, 'r', false, $context);
if ($response === false) {
    exit(1);
}
$body = json_decode(stream_get_contents($response), true);
$statusLine = stream_get_meta_data($response)['wrapper_data'][0];
if (!str_contains($statusLine, ' 200 ')) {
    fwrite(STDERR, "$body[status] $body[detail]\\n");
    exit(1);
}
print_r($body);`,
  },
  {
    label: 'Java',
    language: 'java',
    caption: 'Run with java Call.java',
    comment: '//',
    write: ({ start, isTimed }, note) => `${note}import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
${isTimed ? 'import java.time.Instant;\n' : ''}
public class Call {
    public static void main(String[] args) throws Exception {
        ${isTimed ? 'var since = Instant.now().minusSeconds(3600).getEpochSecond();\n        ' : ''}var url = "${start}"${isTimed ? ' + since' : ''};
        var request = HttpRequest.newBuilder(URI.create(url))
            .header("Authorization", "Bearer " + System.getenv().getOrDefault("KEY", ""))
            .build();
        var client = HttpClient.newHttpClient();
        var response = client.send(request, BodyHandlers.ofString());
        if (response.statusCode() != 200) {
            System.err.println(response.statusCode() + " " + response.body());
            System.exit(1);
        }
        System.out.println(response.body());
    }
}`,
  },
];

/**
 * Writes a call in each language.
 *
 * @param baseUrl - the public URL of the service, an origin
 * @param target - path and query; may end in {@link AN_HOUR_AGO}
 * @param keyPrefix - names the key that `KEY` should hold
 */
export function programsOf(baseUrl: string, target: string, keyPrefix?: string): readonly Program[] {
  const isTimed = target.endsWith(AN_HOUR_AGO);
  const url = { start: baseUrl + target.replace(AN_HOUR_AGO, ''), isTimed };
  return SAMPLES.map(({ comment, write, ...sample }) => {
    const note = keyPrefix === undefined ? '' : `${comment} KEY holds your key ${keyPrefix}_…\n`;
    return { ...sample, code: write(url, note) };
  });
}
