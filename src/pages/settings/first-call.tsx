import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { Deployment } from '../parts/content/components.js';
import { SampleTabs } from '../parts/content/samples.js';

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
