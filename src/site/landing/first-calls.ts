/** A first call of the API in a language, to copy and run. `KEY` in the environment holds the key. */
export interface FirstCall {
  readonly language: string;
  readonly code: string;
}

/** @param baseUrl - the public URL of the service, an origin */
export function firstCalls(baseUrl: string): readonly FirstCall[] {
  return [
    {
      language: 'curl',
      code: `curl -H "Authorization: Bearer $KEY" ${baseUrl}/api/v1/stats`,
    },
    {
      language: 'JavaScript',
      code: `const response = await fetch('${baseUrl}/api/v1/stats', {
  headers: { Authorization: \`Bearer \${process.env.KEY}\` },
});
if (!response.ok) throw new Error((await response.json()).detail);
const { data } = await response.json();
console.log(\`\${data.titles} titles\`);`,
    },
    {
      language: 'Python',
      code: `import json, os, urllib.request

request = urllib.request.Request(
    "${baseUrl}/api/v1/stats",
    headers={"Authorization": f"Bearer {os.environ['KEY']}"},
)
with urllib.request.urlopen(request) as response:
    data = json.load(response)["data"]
print(data["titles"], "titles")`,
    },
  ];
}
