import { isKeyPrefix } from '../../../keys/api-key.js';
import { stateOf, type KeyRecord } from '../../../keys/key-record.js';
import { listKeys } from '../../../keys/keys.js';
import { requireRollable } from '../../../keys/roll-key.js';
import { createOwnKey, revokeOwnKey, rollOwnKey } from '../../../keys/own-keys.js';
import { toMilliseconds } from '../../../platform/postgres/timestamps.js';
import type { KnownSince } from '../../../admission/forget-callers.js';
import type { PageRouter, SiteParts } from '../../context.js';
import { formOf } from '../../delivery/form.js';
import { Notice } from '../../layout/components.js';
import { seeOther } from '../../sign-in/come-back.js';
import type { PageHandler, SettingsContext, SettingsHandler } from '../context.js';
import type { Guards } from '../guards.js';
import { settingsPage } from '../settings-page.js';
import { newKeyFieldsOf, readFormHash, readNewKey, readOverlap } from './form-fields.js';
import { NewKeyForm, RevokeForm, RollForm } from './key-forms.js';
import { KeyList } from './key-list.js';
import { answerRefusal, noSuchKey } from './refusals.js';
import { ShownKey } from './shown-key.js';

const PATH = '/settings/keys';

/** Adds the keys of a developer: their list, and what creates, rolls and revokes them. */
export function addKeys(router: PageRouter, { db, site, now }: SiteParts, guards: Guards): void {
  /** Lets only a recent sign-in pass, and comes back to the same address: a change and its form share one. */
  function recently(handler: SettingsHandler): PageHandler {
    return (ctx) => guards.recentlySignedIn(ctx.path, handler)(ctx);
  }

  /** Runs a change, and answers with why where it is refused. */
  function change(act: (ctx: SettingsContext, form: URLSearchParams) => Promise<void>): PageHandler {
    return recently((ctx) => act(ctx, formOf(ctx)).catch((error: unknown) => answerRefusal(ctx, error)));
  }

  /** A page about one of the developer's keys. */
  function about(show: (ctx: SettingsContext, record: KeyRecord, keys: readonly KeyRecord[]) => void): PageHandler {
    return recently(async (ctx) => {
      const keys = await listKeys(db, ctx.state.session.developerId);
      const record = keys.find(({ prefix }) => prefix === prefixOf(ctx));
      if (record === undefined) throw noSuchKey();
      show(ctx, record, keys);
    });
  }

  router.get(
    PATH,
    guards.signedIn(async (ctx) => {
      const { developerId, suspendedAt } = ctx.state.session;
      const keys = await listKeys(db, developerId);
      const body = <KeyList keys={keys} now={toMilliseconds(now())} isReadOnly={suspendedAt !== null} />;
      settingsPage(ctx, { title: 'Keys', tab: 'keys' }, [revokedNotice(ctx, keys), body]);
    }),
  );

  router.get(
    `${PATH}/new`,
    recently((ctx) => {
      settingsPage(ctx, { title: 'Create a key', tab: 'keys' }, <NewKeyForm />);
    }),
  );

  router.post(
    `${PATH}/new`,
    change(async (ctx, form) => {
      const fields = newKeyFieldsOf(form);
      const request = readNewKey(fields);
      if (request.kind === 'invalid') {
        const again = <NewKeyForm fields={fields} errors={request.errors} />;
        settingsPage(ctx, { title: 'Create a key', tab: 'keys', status: 422 }, again);
        return;
      }
      const details = { ...request, formHash: readFormHash(form) };
      const created = await createOwnKey(db, ctx.state.session.developerId, details);
      const body = <ShownKey created={created} baseUrl={site.publicUrl()} />;
      settingsPage(ctx, { title: 'Key created', tab: 'keys' }, body);
    }),
  );

  router.get(
    `${PATH}/:prefix/roll`,
    about((ctx, record) => {
      try {
        requireRollable(record);
      } catch (error) {
        answerRefusal(ctx, error, 'This key cannot be rolled');
        return;
      }
      settingsPage(ctx, { title: `Roll ${record.prefix}`, tab: 'keys' }, <RollForm record={record} />);
    }),
  );

  router.post(
    `${PATH}/:prefix/roll`,
    change(async (ctx, form) => {
      const rolling = { prefix: prefixOf(ctx), overlapSeconds: readOverlap(form), formHash: readFormHash(form) };
      const forgetCallers = site.beginChange();
      const { successor, predecessor } = await rollOwnKey(db, ctx.state.session.developerId, rolling);
      const since = await forgetCallers();
      const body = <ShownKey created={successor} replaced={{ ...predecessor, since }} baseUrl={site.publicUrl()} />;
      settingsPage(ctx, { title: 'Key rolled', tab: 'keys' }, body);
    }),
  );

  router.get(
    `${PATH}/:prefix/revoke`,
    about((ctx, record, keys) => {
      const { prefix } = record;
      if (record.revokedAt !== null) {
        seeOther(ctx, revokedPath(prefix, 'before'));
        return;
      }
      const rolled = keys.filter((key) => stateOf(key).kind === 'rolled' && key.replacement === prefix);
      settingsPage(ctx, { title: `Revoke ${prefix}`, tab: 'keys' }, <RevokeForm record={record} rolled={rolled} />);
    }),
  );

  router.post(
    `${PATH}/:prefix/revoke`,
    change(async (ctx) => {
      const prefix = prefixOf(ctx);
      const forgetCallers = site.beginChange();
      const isRevoked = await revokeOwnKey(db, ctx.state.session.developerId, prefix);
      // A key that was revoked before must not make servers forget all that they know of others.
      const since = isRevoked ? await forgetCallers() : 'before';
      seeOther(ctx, revokedPath(prefix, since));
    }),
  );
}

/** @throws PageError 404 for what cannot be a prefix */
function prefixOf(ctx: SettingsContext): string {
  const { prefix = '' } = ctx.params as { prefix?: string };
  if (!isKeyPrefix(prefix)) throw noSuchKey();
  return prefix;
}

/** @returns the address of the list with a notice of a revoked key */
function revokedPath(prefix: string, since: KnownSince | 'before'): string {
  return `${PATH}?revoked=${encodeURIComponent(prefix)}&since=${since}`;
}

/** What the address says of a revocation. Without a known value the key was revoked before. */
const REVOKED: ReadonlyMap<unknown, string> = new Map<KnownSince, string>([
  ['now', 'is revoked. Every server refuses it from the next request on.'],
  ['moments', 'is revoked. Every server refuses it within moments.'],
]);

/** What was done, after a key was revoked. The address can be changed, so it shows only what is so. */
function revokedNotice(ctx: SettingsContext, keys: readonly KeyRecord[]) {
  const revoked = keys.find(({ prefix, revokedAt }) => prefix === ctx.query.revoked && revokedAt !== null);
  if (revoked === undefined) return undefined;
  return (
    <Notice key="revoked" tone="ok">
      <p>
        Key <code>{revoked.prefix}</code> {REVOKED.get(ctx.query.since) ?? 'was revoked before.'}
      </p>
    </Notice>
  );
}
