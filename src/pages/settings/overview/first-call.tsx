import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import type { KeySummary } from '../../../keys/key-summary.js';
import { SampleTabs } from '../../parts/content/samples.js';
import { Button } from '../../parts/content/components.js';
import { Deployment } from '../../parts/content/values.js';

/**
 * How to use a key for the first time. No sample contains the key itself, which stays out of histories and files.
 *
 * @param keyPrefix - of the key to use; undefined for any
 */
export function FirstCall({ keyPrefix }: { readonly keyPrefix: string | undefined }): VNode {
  const baseUrl = useContext(Deployment).publicUrl();
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

/** What a developer does before the first request: create a key, then use it. Nothing once a key was used. */
export function FirstSteps({ keys }: { readonly keys: KeySummary }): VNode | null {
  if (keys.isUsed || (keys.active === 0 && keys.total > 0)) return null;
  const call = <FirstCall keyPrefix={keys.newest ?? undefined} />;
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
