import type { VNode } from 'preact';
import type { AttemptResult } from '../../admission/failed-attempts.js';
import { Problem } from '../../errors.js';
import { clientAddress } from '../../http/request/client-address.js';
import { tooManyFailures } from '../../http/response/rate-limit-fields.js';
import { hashApiKey } from '../../keys/api-key.js';
import { revokeFoundKey } from '../../keys/revoke.js';
import type { KnownSince } from '../../admission/forget-callers.js';
import type { PageContext, PageRouter, SiteParts } from '../context.js';
import { CodeBlock, Notice } from '../layout/components.js';
import { PageError } from '../layout/error-page.js';
import { described, Field } from '../layout/form-field.js';
import { page } from '../layout/page.js';

/** Where people and programs revoke a key that was found. */
export const LEAKED_KEY_PATH = '/revoke-leaked-key';

/** What became of a text that was sent as a key. */
type Outcome =
  /** The key is one of ours. */
  | { readonly kind: 'revoked'; readonly since: KnownSince | 'before' }
  /** It has the form of a key, and is none of ours. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'not_a_key' }
  | { readonly kind: 'over_limit'; readonly attempt: Extract<AttemptResult, { kind: 'over_limit' }> };

/**
 * Adds the page on which anybody revokes a key that was found, with the whole key and without signing in. Programs, such as
 * scanners for secrets, send it as JSON. To say whether a key is one of ours tells nothing that a call with it would not.
 */
export function addRevokeLeakedKey(router: PageRouter, parts: SiteParts): void {
  router.get(LEAKED_KEY_PATH, (ctx) => {
    page(ctx, { title: 'Revoke a leaked key' }, <LeakedKeyForm baseUrl={parts.site.publicUrl()} />);
  });

  router.post(LEAKED_KEY_PATH, async (ctx) => {
    if (ctx.state.content?.kind === 'json') await answerProgram(ctx, parts, ctx.state.content.text);
    else await answerPerson(ctx, parts, ctx.state.content?.fields.get('key') ?? '');
  });
}

/** Revokes a key. An address that sends too many unknown keys is limited. A key of ours is revoked also above the limit. */
async function revokeReported(
  ctx: PageContext,
  { db, site, trustedProxies }: SiteParts,
  text: string,
): Promise<Outcome> {
  const hash = hashApiKey(text.trim());
  if (hash === undefined) return { kind: 'not_a_key' };
  const found = await revokeFoundKey(db, hash);
  // Anybody may send a key again and again. That must not make servers forget all that they know of others.
  if (found?.wasRevoked) return { kind: 'revoked', since: 'before' };
  if (found !== undefined) return { kind: 'revoked', since: await site.forgetCallers() };
  const attempt = await site.failedReports.count(clientAddress(ctx.req, trustedProxies));
  return attempt.kind === 'over_limit' ? { kind: 'over_limit', attempt } : { kind: 'unknown' };
}

/** @throws Problem */
async function answerProgram(ctx: PageContext, parts: SiteParts, content: string): Promise<void> {
  const key = keyOf(content);
  if (key === undefined) {
    throw new Problem('invalid_parameter', 'Send one JSON object with the whole key: {"key": "svc_…"}.');
  }
  const result = await revokeReported(ctx, parts, key);
  if (result.kind === 'over_limit') throw tooManyFailures(result.attempt.standing, 'Wait');
  ctx.set({ 'Cache-Control': 'no-store', 'Content-Type': 'application/json' });
  ctx.status = 200;
  ctx.body = JSON.stringify({ revoked: result.kind === 'revoked' });
}

async function answerPerson(ctx: PageContext, parts: SiteParts, text: string): Promise<void> {
  const result = await revokeReported(ctx, parts, text);
  if (result.kind === 'over_limit') {
    const { resetSeconds } = result.attempt.standing;
    throw new PageError(
      429,
      'Too many unknown keys',
      `Too many keys from your address are none of this service. Wait ${resetSeconds} s and try again.`,
      { 'Retry-After': String(resetSeconds) },
    );
  }
  page(
    ctx,
    { title: 'Revoke a leaked key', status: result.kind === 'not_a_key' ? 422 : 200 },
    <LeakedKeyForm baseUrl={parts.site.publicUrl()} outcome={result} />,
  );
}

/** @returns the key of a JSON object `{"key": "…"}`; undefined for anything else */
function keyOf(content: string): string | undefined {
  try {
    const { key } = JSON.parse(content) as { key?: unknown };
    return typeof key === 'string' ? key : undefined;
  } catch {
    return undefined;
  }
}

const REVOKED = {
  before: 'This key was revoked before.',
  now: 'This key does not work any more. Its owner sees that somebody has found it.',
  moments: 'This key is revoked. Every server refuses it within moments. Its owner sees that somebody has found it.',
} as const;

interface LeakedKeyFormProps {
  readonly baseUrl: string;
  /** What became of the key that was sent. The page does not repeat it. */
  readonly outcome?: Exclude<Outcome, { kind: 'over_limit' }>;
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
        <code>false</code> for a text that is no key of this service.
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
