import type { VNode } from 'preact';
import { CodeBlock, Tabs } from './components.js';

/** A call of the API in a language, to copy and run. `KEY` in the environment holds the key. */
export interface Sample {
  readonly language: 'curl' | 'JavaScript' | 'Python';
  readonly code: string;
}

/** Stands in a target for a moment an hour ago, in seconds. Each language writes it in its own way. */
export const AN_HOUR_AGO = '{an-hour-ago}';

/**
 * Writes a call in each language.
 *
 * @param baseUrl - the public URL of the service, an origin
 * @param target - path and query; may hold {@link AN_HOUR_AGO}
 */
export function samplesOf(baseUrl: string, target: string): readonly Sample[] {
  const url = `${baseUrl}${target}`;
  const isTimed = target.includes(AN_HOUR_AGO);
  const curl = isTimed ? `"${url.replace(AN_HOUR_AGO, '$(($(date +%s) - 3600))')}"` : url;
  const js = isTimed ? `\`${url.replace(AN_HOUR_AGO, '${Math.floor(Date.now() / 1000) - 3600}')}\`` : `'${url}'`;
  const python = isTimed ? `f"${url.replace(AN_HOUR_AGO, '{int(time.time()) - 3600}')}"` : `"${url}"`;
  return [
    { language: 'curl', code: `curl -H "Authorization: Bearer $KEY" \\\n  ${curl}` },
    {
      language: 'JavaScript',
      code: `const response = await fetch(${js}, {
  headers: { Authorization: \`Bearer \${process.env.KEY}\` },
});
if (!response.ok) throw new Error((await response.json()).detail);
console.log(await response.json());`,
    },
    {
      language: 'Python',
      code: `import json, os, ${isTimed ? 'time, ' : ''}urllib.request

request = urllib.request.Request(
    ${python},
    headers={"Authorization": f"Bearer {os.environ['KEY']}"},
)
with urllib.request.urlopen(request) as response:
    print(json.load(response))`,
    },
  ];
}

interface SampleTabsProps {
  /** Unique in the page. */
  readonly name: string;
  readonly baseUrl: string;
  readonly target: string;
}

/** A call of the API in each language, of which one is shown. */
export function SampleTabs({ name, baseUrl, target }: SampleTabsProps): VNode {
  return (
    <Tabs
      name={name}
      legend="Language"
      tabs={samplesOf(baseUrl, target).map(({ language, code }) => ({
        label: language,
        content: <CodeBlock label={language} code={code} />,
      }))}
    />
  );
}
