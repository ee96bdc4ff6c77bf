import { LEAKED_KEY_PATH } from '../../http/leaked-keys/leaked-keys.js';
import { acceptReport } from '../../http/leaked-keys/report.js';
import { clientAddress } from '../../http/request/client-address.js';
import { KEY_LENGTH, KEY_START, parseKey } from '../../keys/api-key.js';
import type { PageContext, PageRouter } from '../parts/context.js';
import type { PublicParts } from './context.js';
import { formParser, ErrorSummary, Field, Form } from '../parts/forms/form.js';
import { Notice } from '../parts/content/components.js';
import { PageError } from '../parts/frame/error-page.js';
import { page } from '../parts/frame/page.js';

const parseReport = formParser({ key: { schema: {} } });

/**
 * Adds the page on which anybody can revoke a key they found, with the whole key and without signing in. Programs send
 * JSON instead, which `revokeLeakedKeys` answers. The page discloses nothing that a call with the key would not.
 */
export function addRevokeLeakedKey(router: PageRouter, parts: PublicParts): void {
  router.get(LEAKED_KEY_PATH, (ctx) => {
    show(ctx, {});
  });

  router.post(LEAKED_KEY_PATH, async (ctx) => {
    show(ctx, await revokeReported(parts, parseReport(ctx).values.key, clientAddress(ctx.req, parts.trustedProxies)));
  });
}

/** @throws PageError 429 for an address that sends too many unknown keys */
async function revokeReported(parts: PublicParts, text: string, address: string): Promise<Reported> {
  const parsed = parseKey(text);
  if (parsed.form !== 'key') return { error: 'This is not a key. Paste all of the key, and nothing else.' };
  const result = await acceptReport(parts, [parsed.hash], address);
  if (result.kind === 'done') {
    const key = result.found.get(parsed.hash);
    return { outcome: key === undefined ? 'unknown' : key.wasRevoked ? 'already_revoked' : 'revoked' };
  }
  const { resetSeconds } = result.state;
  throw new PageError(
    429,
    'Too many unknown keys',
    `You submitted too many unknown keys. Wait ${resetSeconds} s and try again.`,
    { 'Retry-After': String(resetSeconds) },
  );
}

/** The outcome of a report. The page does not repeat the key. */
const OUTCOMES = {
  already_revoked: 'This key was already revoked.',
  revoked: 'The key has been revoked, and its owner can see that it was found.',
  unknown: 'This is not a key of this service, so there is nothing to revoke.',
} as const;

interface Reported {
  readonly outcome?: keyof typeof OUTCOMES;
  /** For a text that is no key. */
  readonly error?: string;
}

function show(ctx: PageContext, { outcome, error }: Reported): void {
  page(
    ctx,
    {
      title: 'Revoke a leaked key',
      description: 'Revoke an API key that you found in public.',
      status: error === undefined ? 200 : 422,
    },
    <>
      <ErrorSummary errors={{ key: error }} />
      {outcome !== undefined && (
        <Notice tone={outcome === 'unknown' ? 'info' : 'ok'} role="status">
          {OUTCOMES[outcome]}
        </Notice>
      )}
      <p class="lead">
        Found one of our API keys in a repository or log? Paste it here to revoke it immediately and permanently. You do
        not need an account.
      </p>
      <Form label="Revoke key" tone="danger">
        <Field
          name="key"
          label="API key"
          hint={`It starts with ${KEY_START} and has ${KEY_LENGTH} characters.`}
          error={error}
          required
          maxLength={200}
          autocapitalize="off"
          spellcheck={false}
        />
      </Form>
      <h2>Automated reports</h2>
      <p>
        Secret scanners can send the key as JSON. The response is 200 with <code>{'{"revoked":true}'}</code>, or{' '}
        <code>false</code> for anything that is not a key of this service. See the{' '}
        <a href="/docs/guides/leaked-keys">guide</a> for the key format and a sample, and{' '}
        <a href="/openapi-leaked-keys.json">the OpenAPI document</a> for the request and its responses.
      </p>
    </>,
  );
}
