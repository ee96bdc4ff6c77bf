import type { VNode } from 'preact';
import type { Propagation } from '../../admission/forget-callers.js';
import { LEAKED_KEY_PATH } from '../../http/leaked-keys/leaked-keys.js';
import { reportFoundKeys } from '../../http/leaked-keys/report.js';
import { clientAddress } from '../../http/request/client-address.js';
import { hashApiKey } from '../../keys/api-key.js';
import type { PageRouter, SiteParts } from '../context.js';
import { formOf } from '../delivery/form.js';
import { CodeBlock, Notice } from '../layout/components.js';
import { PageError } from '../layout/error-page.js';
import { described, Field } from '../layout/form-field.js';
import { page } from '../layout/page.js';

/** What became of a text that was sent as a key. */
type Outcome =
  /** The key is one of ours. */
  | { readonly kind: 'revoked'; readonly since: Propagation | 'before' }
  /** It has the form of a key, and is none of ours. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'not_a_key' };

/**
 * Adds the page on which anybody revokes a key that was found, with the whole key and without signing in. Programs send
 * JSON instead, which `revokeLeakedKeys` answers. To say whether a key is one of ours tells nothing that a call with it
 * would not.
 */
export function addRevokeLeakedKey(router: PageRouter, parts: SiteParts): void {
  const baseUrl = parts.site.publicUrl;
  router.get(LEAKED_KEY_PATH, (ctx) => {
    page(ctx, { title: 'Revoke a leaked key' }, <LeakedKeyForm baseUrl={baseUrl()} />);
  });

  router.post(LEAKED_KEY_PATH, async (ctx) => {
    const outcome = await report(parts, formOf(ctx).get('key') ?? '', clientAddress(ctx.req, parts.trustedProxies));
    page(
      ctx,
      { title: 'Revoke a leaked key', status: outcome.kind === 'not_a_key' ? 422 : 200 },
      <LeakedKeyForm baseUrl={baseUrl()} outcome={outcome} />,
    );
  });
}

/** @throws PageError 429 for an address that sends too many unknown keys */
async function report(parts: SiteParts, text: string, address: string): Promise<Outcome> {
  const hash = hashApiKey(text.trim());
  if (hash === undefined) return { kind: 'not_a_key' };
  const result = await reportFoundKeys(parts, [hash], address);
  if (result.kind === 'done') {
    return result.known.has(hash) ? { kind: 'revoked', since: result.since } : { kind: 'unknown' };
  }
  const { resetSeconds } = result.standing;
  throw new PageError(
    429,
    'Too many unknown keys',
    `Too many keys from your address are none of this service. Wait ${resetSeconds} s and try again.`,
    { 'Retry-After': String(resetSeconds) },
  );
}

const REVOKED = {
  before: 'This key was revoked before.',
  now: 'This key does not work any more. Its owner sees that somebody has found it.',
  moments: 'This key is revoked. Every server refuses it within moments. Its owner sees that somebody has found it.',
} as const;

interface LeakedKeyFormProps {
  readonly baseUrl: string;
  /** What became of the key that was sent. The page does not repeat it. */
  readonly outcome?: Outcome;
}

function LeakedKeyForm({ baseUrl, outcome }: LeakedKeyFormProps): VNode {
  const error = outcome?.kind === 'not_a_key' ? 'This is not a whole key: it is mistyped or cut off.' : undefined;
  return (
    <div class="container">
      <h1>Revoke a leaked key</h1>
      {outcome?.kind === 'revoked' && (
        <Notice tone="ok">
          <p>{REVOKED[outcome.since]}</p>
        </Notice>
      )}
      {outcome?.kind === 'unknown' && (
        <Notice tone="info">
          <p>This is no key of this service, so there is nothing to revoke.</p>
        </Notice>
      )}
      <p class="lead">
        Have you found an API key of this service, in a repository or a log? Paste it here. Every server refuses it from
        the next request on, permanently. You need no account.
      </p>
      <form class="form" method="post">
        <Field id="key" label="The whole key" hint="It begins with svc_ and has 51 characters." error={error}>
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
            Revoke this key
          </button>
        </div>
      </form>
      <h2>For programs</h2>
      <p>
        Scanners for secrets send the key as JSON. The answer is 200 with <code>{'{"revoked":true}'}</code>, or{' '}
        <code>false</code> for a text that is no key of this service. The <a href="/docs/guides/leaked-keys">guide</a>{' '}
        has the pattern of keys, and <a href="/openapi-leaked-keys.json">an OpenAPI document</a> describes this call.
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
