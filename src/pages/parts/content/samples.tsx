import { setImmediate } from 'node:timers/promises';
import type { VNode } from 'preact';
import { cached } from '../../../platform/async/cached.js';
import { CodeBlock } from './components.js';
import { highlight, type Language } from './highlight.js';
import { Tabs } from './tabs.js';

/** A call of the API as a whole program, to copy and run. `KEY` in the environment holds the key. */
interface Program {
  readonly label: string;
  readonly language: Language;
  /** How to run it: the command, with the name of its file. */
  readonly caption: string;
  readonly code: string;
}

/**
 * Writes a call in each language. Each program prints the response. An error goes to standard error, with a failing
 * exit code. They need no package.
 */
export const programsOf = (url: string): readonly Program[] => [
  {
    label: 'curl',
    language: 'sh',
    caption: 'Run in a shell',
    code: `curl --fail-with-body \\
  -H "Authorization: Bearer $KEY" \\
  "${url}"`,
  },
  {
    label: 'JavaScript',
    language: 'js',
    caption: 'Run with node call.mjs',
    code: `const response = await fetch('${url}', {
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
    code: `import json
import os
import sys
from urllib.error import HTTPError
from urllib.request import Request, urlopen

request = Request(
    "${url}",
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
    code: `package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
)

func main() {
	request, err := http.NewRequest("GET", "${url}", nil)
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
    code: `<?php
$context = stream_context_create(['http' => [
    'header' => 'Authorization: Bearer ' . getenv('KEY'),
    'ignore_errors' => true,
]]);
$response = fopen('${url}', 'r', false, $context);
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
    code: `import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

public class Call {
    public static void main(String[] args) throws Exception {
        var request = HttpRequest.newBuilder(URI.create("${url}"))
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

interface SampleTabsProps {
  /** Unique in the page. */
  readonly name: string;
  /** The public URL of the service, an origin. */
  readonly baseUrl: string;
  /** Path and query. */
  readonly target: string;
  /** The prefix of the key to use. */
  readonly keyPrefix?: string | undefined;
}

/**
 * A call of the API in each language. The script selects the language that was chosen last, and fills in the values of
 * the form next to it.
 *
 * @example <SampleTabs name="first-call" baseUrl={site.publicUrl()} target="/api/v1/stats" />
 */
export function SampleTabs({ name, baseUrl, target, keyPrefix }: SampleTabsProps): VNode {
  return (
    <>
      <Tabs
        name={name}
        legend="Language"
        remember="language"
        tabs={programsOf(baseUrl + target).map(({ label, language, caption, code }) => ({
          label,
          content: <CodeBlock label={caption} code={code} language={language} />,
        }))}
      />
      {keyPrefix !== undefined && (
        <p>
          <code>KEY</code> holds your key <code>{keyPrefix}_…</code>
        </p>
      )}
    </>
  );
}

/** How to put a key into the environment of a shell, or into a file, without its histories. */
const KEY_STORES = [
  { label: 'bash, zsh', caption: 'Store the key in this shell', code: 'read -rs KEY && export KEY' },
  { label: 'fish', caption: 'Store the key in this shell', code: 'read -sgx KEY' },
  {
    label: 'PowerShell',
    caption: 'Store the key in this shell, PowerShell 7.1 or later',
    code: '$env:KEY = Read-Host -MaskInput',
  },
  { label: '.env', caption: 'A file that your version control ignores', code: 'KEY=' },
] as const;

/** The command that stores a key, for each shell. Paste the key after it; it stays out of the shell's history. */
export function StoreKey({ name }: { readonly name: string }): VNode {
  return (
    <Tabs
      name={name}
      legend="Shell"
      remember="shell"
      tabs={KEY_STORES.map(({ label, caption, code }) => ({
        label,
        content: <CodeBlock label={caption} code={code} />,
      }))}
    />
  );
}

/**
 * Highlights a program in each language once. The first time compiles the grammar of its language, so the first page
 * with samples would block the process. Between languages, other requests get their turn.
 */
export const prepareSamples = cached(async () => {
  for (const { code, language } of programsOf('https://catalog.example.com/api/v1/stats')) {
    await setImmediate();
    highlight(code, language);
  }
}, Infinity);
