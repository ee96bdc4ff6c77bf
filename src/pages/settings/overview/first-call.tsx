import type { VNode } from 'preact';
import type { KeySummary } from '../../../keys/key-summary.js';
import { SampleTabs } from '../../parts/content/samples.js';
import { Button } from '../../parts/content/components.js';

interface FirstCallProps {
  /** The prefix of the key to use; undefined for any. */
  readonly keyPrefix?: string | undefined;
  /** The public URL of the service, an origin. */
  readonly baseUrl: string;
}

/** How to use a key for the first time. No sample contains the key itself, which stays out of histories and files. */
export function FirstCall({ keyPrefix, baseUrl }: FirstCallProps): VNode {
  return (
    <section>
      <h2 id="first-call">Make your first call</h2>
      <p>
        Put your key in an environment variable: in a shell, run <code>read -rs KEY && export KEY</code>, then paste the
        key and press Enter. This keeps it out of your shell history.
      </p>
      <SampleTabs name="first-call" baseUrl={baseUrl} target="/api/v1/stats" keyPrefix={keyPrefix} />
      <p>
        The settings show the request about ten seconds later. <a href="/docs/guides/calling-the-api">Read the guide</a>{' '}
        for errors, limits and caching.
      </p>
    </section>
  );
}

interface FirstStepsProps extends Pick<FirstCallProps, 'baseUrl'> {
  readonly keys: KeySummary;
}

/** What a developer does before the first request: create a key, then use it. Nothing once a key was used. */
export function FirstSteps({ keys, baseUrl }: FirstStepsProps): VNode | null {
  if (keys.isUsed || (keys.active === 0 && keys.total > 0)) return null;
  const call = <FirstCall keyPrefix={keys.newest ?? undefined} baseUrl={baseUrl} />;
  if (keys.total > 0) return call;
  return (
    <>
      <section class="card first-key">
        <h2 id="first-key">Create your first key</h2>
        <p>
          Every call needs an API key. It is shown once, so have your secret store ready. Use keys in back ends only,
          one for each environment.
        </p>
        <p>
          <Button href="/settings/keys/new" tone="primary" label="Create your first key" />
        </p>
      </section>
      {call}
    </>
  );
}
