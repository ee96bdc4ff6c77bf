import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import type { VNode } from 'preact';
import { cached } from '../../../platform/async/cached.js';
import { PACKAGE_ROOT } from '../../../platform/process/package-root.js';
import { CodeBlock } from './components.js';
import { highlight, type Language } from './highlight.js';
import { Tabs } from './tabs.js';

/** A call of the API as a whole program, to copy and run. `CATALOG_API_KEY` in the environment holds the key. */
interface Program {
  readonly label: string;
  readonly language: Language;
  /** How to run it: the command, with the name of its file. */
  readonly caption: string;
  readonly code: string;
}

/**
 * A call in each language, with its file in `src/pages/static/samples`. Each program prints the response. An error goes
 * to standard error, with a failing exit code. They need no package.
 */
const PROGRAMS = (
  [
    { label: 'curl', language: 'sh', caption: 'Run in a shell', file: 'call.sh' },
    { label: 'JavaScript', language: 'js', caption: 'Run with node call.mjs', file: 'call.mjs' },
    { label: 'Python', language: 'python', caption: 'Run with python3 call.py', file: 'call.py' },
    { label: 'Go', language: 'go', caption: 'Run with go run call.go', file: 'call.go' },
    { label: 'PHP', language: 'php', caption: 'Run with php call.php', file: 'call.php' },
    { label: 'Java', language: 'java', caption: 'Run with java Call.java', file: 'Call.java' },
  ] as const
).map(({ file, ...program }) => ({
  ...program,
  text: readFileSync(join(PACKAGE_ROOT, 'src/pages/static/samples', file), 'utf8').trimEnd(),
}));

/** @returns the call of a URL in each language */
export function programsOf(url: string): readonly Program[] {
  return PROGRAMS.map(({ text, ...program }) => ({ ...program, code: text.replace('{{url}}', () => url) }));
}

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
          <code>CATALOG_API_KEY</code> holds your key <code>{keyPrefix}_…</code>
        </p>
      )}
    </>
  );
}

/** How to put a key into the environment of a shell, or into a file, without its histories. */
const KEY_STORES = [
  {
    label: 'bash, zsh',
    caption: 'Store the key in this shell',
    code: 'read -rs CATALOG_API_KEY && export CATALOG_API_KEY',
  },
  { label: 'fish', caption: 'Store the key in this shell', code: 'read -sgx CATALOG_API_KEY' },
  {
    label: 'PowerShell',
    caption: 'Store the key in this shell, PowerShell 7.1 or later',
    code: '$env:CATALOG_API_KEY = Read-Host -MaskInput',
  },
  { label: '.env', caption: 'A file that your version control ignores', code: 'CATALOG_API_KEY=' },
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
