import { isKeyPrefix } from '../../../keys/api-key.js';
import { stateOf, type KeyRecord } from '../../../keys/key-record.js';
import { createKey, findKeyOf, findPredecessor, listKeysOf } from '../../../keys/keys.js';
import { revokeKey } from '../../../keys/revoke.js';
import { requireRollable, rollKey } from '../../../keys/roll-key.js';
import { toMilliseconds } from '../../../platform/time/micros.js';
import type { Propagation } from '../../../admission/invalidate-callers.js';
import type { PageRouter, SiteParts } from '../../context.js';
import { Notice } from '../../layout/components.js';
import type { Guard, Guards, SettingsContext } from '../guards.js';
import { readListPage } from '../list-page.js';
import { settingsPage } from '../settings-page.js';
import { NewKeyForm, readNewKey, readRoll, RevokeForm, RollForm } from './key-forms.js';
import { KeyList } from './key-list.js';
import { answerRefusal, BackToKeys, noSuchKey } from './refusals.js';
import { ShownKey } from './shown-key.js';

const PATH = '/settings/keys';

/** Adds the keys of a developer: their list, and the forms that create, roll and revoke them. */
export function addKeys(router: PageRouter, { db, site, now, beginChange }: SiteParts, guards: Guards): void {
  const { requireSession, notSuspended, requireRecentSignIn } = guards;

  /** Runs a change, and explains a refusal. */
  function change(guard: Guard, act: (ctx: SettingsContext) => Promise<void>): ReturnType<Guard> {
    return guard((ctx) => act(ctx).catch((error: unknown) => answerRefusal(ctx, error)));
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
      const list = (
        <KeyList keys={keys} now={toMilliseconds(now())} isReadOnly={suspendedAt !== null} isRecent={isRecent} />
      );
      settingsPage(ctx, { title: 'Keys', tab: 'keys' }, list);
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
    change(requireRecentSignIn, async (ctx) => {
      const { submission, details } = readNewKey(ctx);
      if (details === undefined) {
        settingsPage(ctx, { title: 'Create a key', tab: 'keys', status: 422 }, <NewKeyForm submission={submission} />);
        return;
      }
      const { formHash, ...fields } = details;
      const { developerId } = ctx.state.session;
      const endChange = beginChange();
      const created = await createKey(db, { ...fields, developerId }, { kind: 'developer', developerId, formHash });
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
        answerRefusal(ctx, error, 'You cannot roll this key');
        return;
      }
      settingsPage(ctx, { title: `Roll ${record.prefix}`, tab: 'keys' }, <RollForm record={record} />);
    }),
  );

  router.post(
    `${PATH}/:prefix/roll`,
    change(requireRecentSignIn, async (ctx) => {
      const { developerId } = ctx.state.session;
      const { overlapSeconds, formHash } = readRoll(ctx);
      const by = { kind: 'developer', developerId, formHash } as const;
      const endChange = beginChange();
      const { successor, predecessor } = await rollKey(db, prefixOf(ctx), overlapSeconds, by);
      const propagation = await endChange(true);
      const body = (
        <ShownKey created={successor} replaced={{ ...predecessor, propagation }} baseUrl={site.publicUrl()} />
      );
      settingsPage(ctx, { title: 'Key rolled', tab: 'keys' }, body);
    }),
  );

  router.get(
    `${PATH}/:prefix/revoke`,
    about(notSuspended, async (ctx, record) => {
      const { prefix } = record;
      if (record.revokedAt !== null) {
        showRevoked(ctx, prefix, 'none');
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
      const propagation = await endChange(!wasRevoked);
      showRevoked(ctx, prefix, wasRevoked ? 'none' : propagation);
    }),
  );
}

/** @throws PageError 404 for what cannot be a prefix */
function prefixOf(ctx: SettingsContext): string {
  const { prefix = '' } = ctx.params as { prefix?: string };
  if (!isKeyPrefix(prefix)) throw noSuchKey();
  return prefix;
}

const REVOKED = {
  none: 'was already revoked.',
  immediate: 'has been revoked. Requests that use it now fail.',
  eventual: 'has been revoked. Requests that use it will fail within moments.',
} as const;

function showRevoked(ctx: SettingsContext, prefix: string, propagation: Propagation | 'none'): void {
  settingsPage(
    ctx,
    { title: 'Key revoked', tab: 'keys' },
    <>
      <Notice tone="ok">
        Key <code>{prefix}</code> {REVOKED[propagation]}
      </Notice>
      <BackToKeys />
    </>,
  );
}
