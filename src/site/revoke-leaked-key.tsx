import type { VNode } from 'preact';
import type { Propagation } from '../admission/invalidate-callers.js';
import { LEAKED_KEY_PATH } from '../http/leaked-keys/leaked-keys.js';
import { reportFoundKeys } from '../http/leaked-keys/report.js';
import { clientAddress } from '../http/request/client-address.js';
import { hashApiKey } from '../keys/api-key.js';
import type { PageRouter, SiteParts } from './context.js';
import { formParser } from './delivery/form.js';
import { CodeBlock, Notice } from './layout/components.js';
import { PageError } from './layout/error-page.js';
import { described, Field } from './layout/form-field.js';
import { page } from './layout/page.js';

/** What became of the text that was sent as a key. */
type Outcome =
  /** The key is one of ours. */
  | { readonly kind: 'revoked'; readonly propagation: Propagation | 'none' }
  /** It has the form of a key of this service, but is not one. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'not_a_key' };

const parseReport = formParser({ key: { schema: {} } });

/**
 * Adds the page on which anybody can revoke a key they found, with the whole key and without signing in. Programs send JSON
 * instead, which `revokeLeakedKeys` answers. The page discloses nothing: a call with the key shows just as well whether it
 * exists.
 */
export function addRevokeLeakedKey(router: PageRouter, parts: SiteParts): void {
  const baseUrl = parts.site.publicUrl;
  router.get(LEAKED_KEY_PATH, (ctx) => {
    page(ctx, { title: 'Revoke a leaked key' }, <LeakedKeyForm baseUrl={baseUrl()} />);
  });

  router.post(LEAKED_KEY_PATH, async (ctx) => {
    const outcome = await report(parts, parseReport(ctx).values.key, clientAddress(ctx.req, parts.trustedProxies));
    page(
      ctx,
      { title: 'Revoke a leaked key', status: outcome.kind === 'not_a_key' ? 422 : 200 },
      <LeakedKeyForm baseUrl={baseUrl()} outcome={outcome} />,
    );
  });
}

/** @throws PageError 429 for an address that sends too many unknown keys */
async function report(parts: SiteParts, text: string, address: string): Promise<Outcome> {
  const hash = hashApiKey(text);
  if (hash === undefined) return { kind: 'not_a_key' };
  const result = await reportFoundKeys(parts, [hash], address);
  if (result.kind === 'done') {
    return result.known.has(hash) ? { kind: 'revoked', propagation: result.propagation } : { kind: 'unknown' };
  }
  const { resetSeconds } = result.state;
  throw new PageError(
    429,
    'Too many unknown keys',
    `You submitted too many unknown keys. Wait ${resetSeconds} s and try again.`,
    { 'Retry-After': String(resetSeconds) },
  );
}

const REVOKED = {
  none: 'This key was already revoked.',
  immediate: 'The key has been revoked, and its owner can see that it was found.',
  eventual: 'The key has been revoked and fails within moments. Its owner can see that it was found.',
} as const;

interface LeakedKeyFormProps {
  readonly baseUrl: string;
  /** What became of the key that was sent, which the page does not repeat. */
  readonly outcome?: Outcome;
}

function LeakedKeyForm({ baseUrl, outcome }: LeakedKeyFormProps): VNode {
  const error =
    outcome?.kind === 'not_a_key' ? 'This is not a complete key. Check that you copied all of it.' : undefined;
  return (
    <div class="container">
      <h1>Revoke a leaked key</h1>
      {outcome?.kind === 'revoked' && (
        <Notice tone="ok">
          <p>{REVOKED[outcome.propagation]}</p>
        </Notice>
      )}
      {outcome?.kind === 'unknown' && (
        <Notice tone="info">
          <p>This is not a key of this service, so there is nothing to revoke.</p>
        </Notice>
      )}
      <p class="lead">
        Found an API key of this service in a repository or a log? Paste it here to revoke it at once and for good. You
        do not need an account.
      </p>
      <form class="form" method="post">
        <Field id="key" label="API key" hint="It starts with svc_ and has 51 characters." error={error}>
          <input
            class="input"
            id="key"
            name="key"
            required
            maxLength={200}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            {...described('key', { hint: true, error })}
          />
        </Field>
        <div class="form-actions">
          <button class="button button-danger" type="submit">
            Revoke key
          </button>
        </div>
      </form>
      <h2>For programs</h2>
      <p>
        Secret scanners send the key as JSON. The response is 200 with <code>{'{"revoked":true}'}</code>, or{' '}
        <code>false</code> for anything that is not a key of this service. See the{' '}
        <a href="/docs/guides/leaked-keys">guide</a> for the pattern of keys, and{' '}
        <a href="/openapi-leaked-keys.json">the OpenAPI document</a> for this call.
      </p>
      <CodeBlock
        label="curl"
        code={`printf '{"key":"%s"}' "$KEY" |
  curl -H 'Content-Type: application/json' --data-binary @- \\
    ${baseUrl}${LEAKED_KEY_PATH}`}
      />
    </div>
  );
}
