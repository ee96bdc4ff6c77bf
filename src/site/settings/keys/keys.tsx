import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { isKeyPrefix } from '../../../keys/api-key.js';
import { stateOf, type KeyRecord } from '../../../keys/key-record.js';
import { createKey, findKeyOf, findPredecessor, listKeysOf } from '../../../keys/keys.js';
import { revokeKey } from '../../../keys/revoke.js';
import { requireRollable, rollKey } from '../../../keys/roll-key.js';
import { toMilliseconds } from '../../../platform/time/micros.js';
import type { Propagation } from '../../../admission/forget-callers.js';
import type { PageRouter, SiteParts } from '../../context.js';
import { formOf } from '../../delivery/form.js';
import { Notice } from '../../layout/components.js';
import { seeOther } from '../../sign-in/return-to.js';
import type { SettingsContext } from '../context.js';
import type { Guard, Guards } from '../guards.js';
import { readListPage } from '../list-page.js';
import { settingsPage } from '../settings-page.js';
import { newKeyFieldsOf, readFormHash, readNewKey, readOverlap } from './form-fields.js';
import { NewKeyForm, RevokeForm, RollForm } from './key-forms.js';
import { KeyList } from './key-list.js';
import { answerRefusal, noSuchKey } from './refusals.js';
import { ShownKey } from './shown-key.js';

const PATH = '/settings/keys';

/** Adds the keys of a developer: their list, and what creates, rolls and revokes them. */
export function addKeys(router: PageRouter, { db, site, now, beginChange }: SiteParts, guards: Guards): void {
  const { requireSession, notSuspended, requireRecentSignIn } = guards;

  /** Runs a change, and answers with why where it is refused. */
  function change(
    guard: Guard,
    act: (ctx: SettingsContext, form: URLSearchParams) => Promise<void>,
  ): ReturnType<Guard> {
    return guard((ctx) => act(ctx, formOf(ctx)).catch((error: unknown) => answerRefusal(ctx, error)));
  }

  /** A page about one of the developer's keys. */
  function about(
    guard: Guard,
    show: (ctx: SettingsContext, record: KeyRecord) => void | Promise<void>,
  ): ReturnType<Guard> {
    return guard(async (ctx) => {
      const record = await findKeyOf(db, ctx.state.session.developerId, prefixOf(ctx));
      if (record === undefined) throw noSuchKey();
      await show(ctx, record);
    });
  }

  router.get(
    PATH,
    requireSession(async (ctx) => {
      const { developerId, suspendedAt, isRecent } = ctx.state.session;
      const keys = await readListPage(ctx, (slice) => listKeysOf(db, developerId, slice));
      settingsPage(
        ctx,
        { title: 'Keys', tab: 'keys' },
        <>
          {await revokedNotice(ctx, db)}
          <KeyList keys={keys} now={toMilliseconds(now())} isReadOnly={suspendedAt !== null} isRecent={isRecent} />
        </>,
      );
    }),
  );

  router.get(
    `${PATH}/new`,
    requireRecentSignIn((ctx) => {
      settingsPage(ctx, { title: 'Create a key', tab: 'keys' }, <NewKeyForm />);
    }),
  );

  router.post(
    `${PATH}/new`,
    change(requireRecentSignIn, async (ctx, form) => {
      const fields = newKeyFieldsOf(form);
      const request = readNewKey(fields);
      if (request.kind === 'invalid') {
        const again = <NewKeyForm fields={fields} errors={request.errors} />;
        settingsPage(ctx, { title: 'Create a key', tab: 'keys', status: 422 }, again);
        return;
      }
      const { developerId } = ctx.state.session;
      const by = { kind: 'developer', developerId, formHash: readFormHash(form) } as const;
      const endChange = beginChange();
      const created = await createKey(db, { ...request, developerId }, by);
      await endChange(false);
      const body = <ShownKey created={created} baseUrl={site.publicUrl()} />;
      settingsPage(ctx, { title: 'Key created', tab: 'keys' }, body);
    }),
  );

  router.get(
    `${PATH}/:prefix/roll`,
    about(requireRecentSignIn, (ctx, record) => {
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
    change(requireRecentSignIn, async (ctx, form) => {
      const { developerId } = ctx.state.session;
      const by = { kind: 'developer', developerId, formHash: readFormHash(form) } as const;
      const endChange = beginChange();
      const { successor, predecessor } = await rollKey(db, prefixOf(ctx), readOverlap(form), by);
      const since = await endChange(true);
      const body = <ShownKey created={successor} replaced={{ ...predecessor, since }} baseUrl={site.publicUrl()} />;
      settingsPage(ctx, { title: 'Key rolled', tab: 'keys' }, body);
    }),
  );

  router.get(
    `${PATH}/:prefix/revoke`,
    about(notSuspended, async (ctx, record) => {
      const { prefix } = record;
      if (record.revokedAt !== null) {
        seeOther(ctx, revokedPath(prefix, 'before'));
        return;
      }
      const predecessor = await findPredecessor(db, prefix);
      const replaced = predecessor && stateOf(predecessor).kind === 'rolled' ? predecessor : undefined;
      settingsPage(ctx, { title: `Revoke ${prefix}`, tab: 'keys' }, <RevokeForm record={record} replaced={replaced} />);
    }),
  );

  router.post(
    `${PATH}/:prefix/revoke`,
    change(notSuspended, async (ctx) => {
      const prefix = prefixOf(ctx);
      const endChange = beginChange();
      const { developerId } = ctx.state.session;
      const { wasRevoked } = await revokeKey(db, prefix, { kind: 'developer', developerId });
      const since = await endChange(!wasRevoked);
      seeOther(ctx, revokedPath(prefix, wasRevoked ? 'before' : since));
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
function revokedPath(prefix: string, since: Propagation | 'before'): string {
  return `${PATH}?revoked=${encodeURIComponent(prefix)}&since=${since}`;
}

/** What the address says of a revocation. Without a known value the key was revoked before. */
const REVOKED: ReadonlyMap<unknown, string> = new Map<Propagation, string>([
  ['now', 'is revoked. Every server refuses it from the next request on.'],
  ['moments', 'is revoked. Every server refuses it within moments.'],
]);

/** What was done, after a key was revoked. The address can be changed, so it shows only what is so. */
async function revokedNotice({ query, state }: SettingsContext, db: Knex): Promise<VNode | undefined> {
  const { revoked: prefix, since } = query;
  if (typeof prefix !== 'string' || !isKeyPrefix(prefix)) return undefined;
  const record = await findKeyOf(db, state.session.developerId, prefix);
  if (typeof record?.revokedAt !== 'string') return undefined;
  return (
    <Notice tone="ok">
      <p>
        Key <code>{prefix}</code> {REVOKED.get(since) ?? 'was revoked before.'}
      </p>
    </Notice>
  );
}
