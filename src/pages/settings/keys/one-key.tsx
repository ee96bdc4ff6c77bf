import type { VNode } from 'preact';
import { listEvents } from '../../../events/events.js';
import { isKeyPrefix } from '../../../keys/api-key.js';
import { requireAccepted, setKeyExpiry, setKeyLabel } from '../../../keys/edit-key.js';
import type { Expiry } from '../../../keys/expiry.js';
import { stateOf, type KeyRecord } from '../../../keys/key-record.js';
import { findKeyOf, findPredecessor, MAX_LABEL } from '../../../keys/keys.js';
import { revokeKey } from '../../../keys/revoke.js';
import { requireRollable, rollKey } from '../../../keys/roll-key.js';
import { readUsageByKey } from '../../../usage/read-usage.js';
import type { SiteParts } from '../../parts/context.js';
import { pageAddress, queryOf } from '../../parts/web/page-address.js';
import { isolated } from '../../parts/content/values.js';
import type { Guards, SettingsContext, SettingsRouter } from '../guards.js';
import { keyPath } from '../../parts/keys/key-name.js';
import { readListPage } from '../../parts/forms/list-page.js';
import { redirectAndConfirm } from '../notices.js';
import { settingsPage } from '../settings-page.js';
import { RevokeForm } from '../../parts/keys/revoke-form.js';
import { ExpiryForm, LabelForm, readLabel, readNewExpiry, readRoll, RollForm } from './key-forms.js';
import { expiryValues, KEEP } from './expiry-fields.js';
import { KeyPage } from './key-page.js';
import { KEYS_PATH } from './key-list.js';
import { findDuplicate } from './label-field.js';
import { answerRefusal, explainRefusals, noSuchKey } from './refusals.js';
import { ShownKey } from './shown-key.js';

/** Leads from the page of a key back to the list, as it was filtered on the page before. */
function trailToList(ctx: SettingsContext): { path: string; label: string } {
  const referer = ctx.get('Referer');
  const from = URL.canParse(referer) ? new URL(referer) : undefined;
  if (from?.origin !== ctx.state.site.publicUrl() || from.pathname !== KEYS_PATH) {
    return { path: KEYS_PATH, label: 'All keys' };
  }
  const { searchParams } = from;
  return { path: pageAddress(KEYS_PATH, searchParams), label: searchParams.get('q') ? 'Filtered keys' : 'All keys' };
}

/** Answers with a form about a key, below the page of the key. */
function formPage(ctx: SettingsContext, { prefix }: KeyRecord, title: string, form: VNode, status?: number): void {
  settingsPage(ctx, { title, tab: 'keys', status, trail: { path: keyPath(prefix), label: prefix } }, form);
}

/** Adds the page of a key, and the forms that roll, revoke and edit it. */
export function addOneKey(router: SettingsRouter, { db, site, beginChange }: SiteParts, guards: Guards): void {
  const { requireSession, notSuspended, requireRecentSignIn } = guards;
  const path = `${KEYS_PATH}/:prefix`;

  /** Finds the key of the developer that the path names. @throws PageError 404 */
  async function recordOf(ctx: SettingsContext): Promise<KeyRecord> {
    const record = await findKeyOf(db, ctx.state.session.developerId, prefixOf(ctx));
    if (record === undefined) throw noSuchKey();
    return record;
  }

  router.get(path, requireSession, explainRefusals, async (ctx) => {
    const record = await recordOf(ctx);
    const { developerId, suspendedAt } = ctx.state.session;
    const { prefix, label } = record;
    const [usage] = await readUsageByKey(db, { developerId, keyPrefix: prefix }, '30d', { limit: 1, offset: 0 });
    const page = (
      <KeyPage
        record={record}
        replaced={await findPredecessor(db, prefix)}
        usage={usage}
        events={await readListPage(ctx, (slice) => listEvents(db, { developerId, keyPrefix: prefix, ...slice }))}
        isSuspended={suspendedAt !== null}
        baseUrl={site.publicUrl()}
      />
    );
    settingsPage(ctx, { title: label === null ? prefix : isolated(label), tab: 'keys', trail: trailToList(ctx) }, page);
  });

  router.get(`${path}/roll`, requireRecentSignIn, explainRefusals, async (ctx) => {
    const record = await recordOf(ctx);
    try {
      requireRollable(record);
    } catch (error) {
      answerRefusal(ctx, error, 'You cannot roll this key');
      return;
    }
    const form = <RollForm record={record} overlap={queryOf(ctx).get('overlap')} />;
    formPage(ctx, record, `Roll ${record.prefix}`, form);
  });

  router.post(`${path}/roll`, requireRecentSignIn, explainRefusals, async (ctx) => {
    const { developerId } = ctx.state.session;
    const { overlapSeconds, formHash } = readRoll(ctx);
    const by = { kind: 'developer', developerId, formHash } as const;
    const endChange = beginChange();
    const { successor, predecessor } = await rollKey(db, prefixOf(ctx), overlapSeconds, by);
    const propagation = await endChange(true);
    const body = <ShownKey created={successor} replaced={{ ...predecessor, propagation }} baseUrl={site.publicUrl()} />;
    settingsPage(ctx, { title: 'Key rolled', tab: 'keys', address: keyPath(successor.prefix) }, body);
  });

  router.get(`${path}/revoke`, notSuspended, explainRefusals, async (ctx) => {
    const record = await recordOf(ctx);
    const { prefix } = record;
    const { kind } = stateOf(record);
    if (kind === 'revoked' || kind === 'expired') {
      redirectAndConfirm(ctx, keyPath(prefix), kind === 'revoked' ? 'already_revoked' : 'already_ended');
      return;
    }
    const predecessor = await findPredecessor(db, prefix);
    const replaced = predecessor && stateOf(predecessor).kind === 'rolled' ? predecessor : undefined;
    formPage(ctx, record, `Revoke ${prefix}`, <RevokeForm record={record} replaced={replaced} />);
  });

  router.post(`${path}/revoke`, notSuspended, explainRefusals, async (ctx) => {
    const prefix = prefixOf(ctx);
    const endChange = beginChange();
    const { developerId } = ctx.state.session;
    const { wasRevoked } = await revokeKey(db, prefix, { kind: 'developer', developerId });
    const propagation = await endChange(!wasRevoked);
    const confirmation = propagation === 'immediate' ? 'revoked' : 'revoked_eventually';
    redirectAndConfirm(ctx, keyPath(prefix), wasRevoked ? 'already_revoked' : confirmation);
  });

  const changeLabel = 'Change the label';

  router.get(`${path}/label`, notSuspended, explainRefusals, async (ctx) => {
    const record = await recordOf(ctx);
    requireAccepted(record);
    const label = queryOf(ctx).get('label')?.slice(0, MAX_LABEL) ?? record.label ?? '';
    const submission = { values: { label, confirmed: '' }, errors: {} };
    formPage(ctx, record, changeLabel, <LabelForm record={record} submission={submission} />);
  });

  router.post(`${path}/label`, notSuspended, explainRefusals, async (ctx) => {
    const record = await recordOf(ctx);
    requireAccepted(record);
    const { developerId, prefix } = record;
    const submission = readLabel(ctx);
    const form = { record, submission };
    if (submission.errors.label !== undefined) {
      formPage(ctx, record, changeLabel, <LabelForm {...form} />, 422);
      return;
    }
    const duplicate = await findDuplicate(db, developerId, submission.values, record);
    if (duplicate !== undefined) {
      formPage(ctx, record, changeLabel, <LabelForm {...form} duplicate={duplicate} />, 409);
      return;
    }
    const { label } = submission.values;
    const endChange = beginChange();
    const by = { kind: 'developer', developerId } as const;
    const { before, after } = await setKeyLabel(db, prefix, label === '' ? null : label, by);
    await endChange(false);
    redirectAndConfirm(ctx, keyPath(prefix), before.label === after.label ? 'unchanged' : 'label_changed');
  });

  const changeExpiry = 'Change the expiry';

  router.get(`${path}/expiry`, requireRecentSignIn, explainRefusals, async (ctx) => {
    const record = await recordOf(ctx);
    requireAccepted(record);
    const values = expiryValues(queryOf(ctx), record.expiresAt === null ? 'none' : KEEP);
    formPage(ctx, record, changeExpiry, <ExpiryForm record={record} submission={{ values, errors: {} }} />);
  });

  router.post(`${path}/expiry`, requireRecentSignIn, explainRefusals, async (ctx) => {
    const record = await recordOf(ctx);
    requireAccepted(record);
    const { developerId, prefix } = record;
    const change = readNewExpiry(ctx);
    if (change.kind === 'wrong') {
      formPage(ctx, record, changeExpiry, <ExpiryForm record={record} submission={change.submission} />, 422);
      return;
    }
    if (change.kind === 'keep' || isChosenAgain(record, change.expires)) {
      redirectAndConfirm(ctx, keyPath(prefix), 'unchanged');
      return;
    }
    const endChange = beginChange();
    const { before, after } = await setKeyExpiry(db, prefix, change.expires, { kind: 'developer', developerId });
    const isChanged = before.expiresAt !== after.expiresAt;
    const propagation = await endChange(isChanged);
    const confirmation = propagation === 'immediate' ? 'expiry_changed' : 'expiry_changed_eventually';
    redirectAndConfirm(ctx, keyPath(prefix), isChanged ? confirmation : 'unchanged');
  });
}

/** How far apart two expiries are that count as the same, in milliseconds: a person sends a form twice in that time. */
const SAME_EXPIRY_MS = 60_000;

/** Whether a lifetime from now on ends about when the key already does. */
function isChosenAgain({ expiresAt }: KeyRecord, expires: Expiry | null): boolean {
  if (expires?.kind !== 'after' || expiresAt === null) return false;
  return Math.abs(Date.now() + expires.seconds * 1_000 - Date.parse(expiresAt)) < SAME_EXPIRY_MS;
}

/** @throws PageError 404 for what cannot be a prefix */
function prefixOf(ctx: SettingsContext): string {
  const { prefix = '' } = ctx.params as { prefix?: string };
  if (!isKeyPrefix(prefix)) throw noSuchKey();
  return prefix;
}
