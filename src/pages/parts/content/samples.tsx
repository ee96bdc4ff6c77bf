import { setImmediate } from 'node:timers/promises';
import type { VNode } from 'preact';
import { cached } from '../web/cached.js';
import { highlight } from './highlight.js';
import { programsOf } from './programs.js';
import { CodeBlock } from './components.js';

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
 * A call of the API in each language, of which radio buttons show one at a time without a script. The script shows the
 * language that was chosen last.
 *
 * @example <SampleTabs name="first-call" baseUrl={site.publicUrl()} target="/api/v1/stats" />
 */
export function SampleTabs({ name, baseUrl, target, keyPrefix }: SampleTabsProps): VNode {
  return (
    <>
      <fieldset class="tabs" data-remember="language">
        <legend class="visually-hidden">Language</legend>
        {programsOf(baseUrl + target).map(({ label, language, caption, code }, index) => (
          <>
            <input
              class="visually-hidden"
              type="radio"
              name={name}
              value={label}
              id={`${name}-${index}`}
              checked={index === 0}
              autocomplete="off"
            />
            <label for={`${name}-${index}`}>{label}</label>
            <div class="tab-panel">
              <CodeBlock label={caption} code={code} language={language} />
            </div>
          </>
        ))}
      </fieldset>
      {keyPrefix !== undefined && (
        <p>
          <code>KEY</code> holds your key <code>{keyPrefix}_…</code>
        </p>
      )}
    </>
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
