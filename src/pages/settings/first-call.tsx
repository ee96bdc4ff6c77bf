import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { Deployment } from '../parts/content/components.js';
import { SampleTabs, StoreKey } from '../parts/content/samples.js';
import { keyPath } from '../parts/keys.js';

/**
 * How to use a key for the first time, and whether that has been done. No sample contains the key itself, which stays
 * out of histories and files.
 *
 * @param keyPrefix - of the key to use; undefined before there is one
 */
export function FirstCall({ keyPrefix }: { readonly keyPrefix: string | undefined }): VNode {
  const baseUrl = useContext(Deployment).publicUrl();
  return (
    <section>
      <h2 id="first-call">Make your first call</h2>
      <p>Run this in a shell, paste the key and press Enter. It stays out of your shell history.</p>
      <StoreKey name="store-key" />
      <SampleTabs name="first-call" baseUrl={baseUrl} target="/api/v1/stats" keyPrefix={keyPrefix} />
      {keyPrefix !== undefined && (
        <p class="notice tone-info" role="status" data-wait={`${keyPath(keyPrefix)}/first-request.txt`}>
          Waiting for your first request… (takes up to 10 s to appear) <a href={keyPath(keyPrefix)}>Check now</a>
        </p>
      )}
      <p>
        <a href="/docs/guides/calling-the-api">Read the guide</a> for errors, limits and caching.
      </p>
    </section>
  );
}
