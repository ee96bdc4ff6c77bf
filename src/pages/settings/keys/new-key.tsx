import type { VNode } from 'preact';
import { nobody } from '../../../admission/change-callers.js';
import { MAX_ACTIVE_KEYS } from '../../../keys/key-change.js';
import type { KeyRecord } from '../../../keys/key-record.js';
import { readKeySummary } from '../../../keys/key-summary.js';
import { createKey, type CreatedKey } from '../../../keys/keys.js';
import { requireRollable, rollKey } from '../../../keys/roll-key.js';
import { formatTime, Time, isolated, Button, Notice } from '../../parts/content/components.js';
import { PlanName } from '../../parts/content/plan-name.js';
import type { SiteParts } from '../../parts/context.js';
import {
  formParser,
  hashOfForm,
  ONCE_FIELD,
  incompleteForm,
  ErrorSummary,
  Form,
  type Submission,
} from '../../parts/forms/form.js';
import { keyPath, KeyReference, LastUse } from '../../parts/keys.js';
import { queryOf } from '../../parts/web/addresses.js';
import { FirstCall } from '../first-call.js';
import { settingsPage, type Guards, type SettingsRouter } from '../settings-page.js';
import {
  EXPIRY_FIELDS,
  ExpiryFields,
  expiryValues,
  expiryOf,
  LABEL_FIELDS,
  LabelField,
  newLabelOf,
} from './change-key.js';
import { KEYS_PATH, formPage, KEY_PATH, prefixOf, recordOf, BackToKeys, NoRoom } from './one-key.js';

const PATH = `${KEYS_PATH}/new`;

const PAGE = { title: 'Create a key', tab: 'keys' } as const;

const parseNewKey = formParser({ ...ONCE_FIELD, ...LABEL_FIELDS, ...EXPIRY_FIELDS });

/** Adds the form that creates a key. Its answer shows the key. */
export function addCreateKey(router: SettingsRouter, { db, changeCallers }: SiteParts, guards: Guards): void {
  router.get(PATH, guards.requireRecentSignIn, async (ctx) => {
    const { active } = await readKeySummary(db, ctx.state.session.developerId);
    const query = queryOf(ctx);
    const values = { label: newLabelOf(query) ?? '', ...expiryValues(query) };
    const body =
      active < MAX_ACTIVE_KEYS ? (
        <NewKeyForm submission={{ values, errors: {} }} />
      ) : (
        <>
          <NoRoom />
          <BackToKeys />
        </>
      );
    settingsPage(ctx, PAGE, body);
  });

  router.post(PATH, guards.requireRecentSignIn, async (ctx) => {
    const { developerId } = ctx.state.session;
    const { values, errors: wrong } = parseNewKey(ctx);
    const formHash = hashOfForm(values.form);
    const expiry = expiryOf(values);
    const errors = 'error' in expiry ? { ...wrong, date: expiry.error } : wrong;
    if ('error' in expiry || Object.keys(errors).length > 0) {
      settingsPage(ctx, { ...PAGE, status: 422 }, <NewKeyForm submission={{ values, errors }} />);
      return;
    }
    const { label } = values;
    const details = { label: label === '' ? null : label, expires: expiry.expires ?? undefined, developerId };
    const by = { kind: 'developer', developerId, formHash } as const;
    const created = await changeCallers(() => createKey(db, details, by), nobody);
    const body = <ShownKey created={created} />;
    settingsPage(ctx, { title: 'Key created', tab: 'keys', address: keyPath(created.prefix) }, body);
  });
}

function NewKeyForm({ submission }: { readonly submission: Submission<'label' | 'lifetime' | 'date'> }): VNode {
  return (
    <>
      <ErrorSummary errors={submission.errors} />
      <Form action={PATH} label="Create key" cancel={KEYS_PATH} isOnce>
        <LabelField submission={submission} />
        <ExpiryFields submission={submission} />
      </Form>
    </>
  );
}

/** How long a rolled key stays active, by the value of its option. */
const OVERLAPS = [
  { value: 'now', label: 'End it now', seconds: 0 },
  { value: '1h', label: '1 hour', seconds: 3_600 },
  { value: '24h', label: '24 hours', seconds: 86_400 },
  { value: '7d', label: '7 days', seconds: 604_800 },
] as const;

const PROPOSED_OVERLAP = '24h';

const parseRoll = formParser({ ...ONCE_FIELD, overlap: { schema: { enum: OVERLAPS.map(({ value }) => value) } } });

/** Adds the form that rolls a key. Its answer shows the new key. */
export function addRollKey(router: SettingsRouter, { db, changeCallers }: SiteParts, guards: Guards): void {
  const { requireRecentSignIn } = guards;

  router.get(`${KEY_PATH}/roll`, requireRecentSignIn, async (ctx) => {
    const record = await recordOf(ctx, db);
    requireRollable(record);
    const form = <RollForm record={record} overlap={queryOf(ctx).get('overlap')} />;
    formPage(ctx, record, `Roll ${record.prefix}`, form);
  });

  router.post(`${KEY_PATH}/roll`, requireRecentSignIn, async (ctx) => {
    const { developerId } = ctx.state.session;
    const { form, overlap } = parseRoll(ctx).values;
    const { seconds } = OVERLAPS.find(({ value }) => value === overlap) ?? incompleteForm();
    const by = { kind: 'developer', developerId, formHash: hashOfForm(form) } as const;
    const { successor, predecessor } = await changeCallers(
      () => rollKey(db, prefixOf(ctx), seconds, by),
      () => [developerId],
    );
    const body = <ShownKey created={successor} replaced={predecessor} />;
    settingsPage(ctx, { title: 'Key rolled', tab: 'keys', address: keyPath(successor.prefix) }, body);
  });
}

interface RollFormProps {
  readonly record: KeyRecord;
  /** The option that is chosen, if there is such an option. */
  readonly overlap: string | null;
}

/** The form names when the new key expires, and the overlaps that the old key does not live to see. */
function RollForm({ record, overlap }: RollFormProps): VNode {
  const { prefix, createdAt, expiresAt } = record;
  const newEnd =
    expiresAt === null ? undefined : new Date(Date.now() + Date.parse(expiresAt) - Date.parse(createdAt)).toISOString();
  const chosen = OVERLAPS.some(({ value }) => value === overlap) ? overlap : PROPOSED_OVERLAP;
  return (
    <>
      <p>
        Rolling replaces <KeyReference {...record} /> with a new key that has the same label and plan.{' '}
        {newEnd === undefined
          ? 'Like the old key, the new key does not expire.'
          : ['The new key gets the full lifetime of the old one: it expires on ', <Time at={newEnd} />, '.']}{' '}
        <LastUse of="The old key" record={record} />
      </p>
      <Form action={`${keyPath(prefix)}/roll`} label="Roll key" cancel={keyPath(prefix)} isOnce>
        <fieldset class="field">
          <legend>Keep the old key for</legend>
          <div>
            {OVERLAPS.map(({ value, label, seconds }) => (
              <label key={value} class="checkbox">
                <input type="radio" name="overlap" value={value} checked={value === chosen} /> {label}
                {expiresAt !== null &&
                  Date.parse(expiresAt) < Date.now() + seconds * 1_000 &&
                  ` (the key expires sooner, on ${formatTime(expiresAt)})`}
              </label>
            ))}
          </div>
        </fieldset>
      </Form>
    </>
  );
}

interface ShownKeyProps {
  readonly created: CreatedKey;
  /** The key that this one replaces. */
  readonly replaced?: KeyRecord;
}

/** A new key, shown here once and never again. */
function ShownKey({ created, replaced }: ShownKeyProps): VNode {
  const { key, prefix, label, planId, expiresAt } = created;
  return (
    <>
      <Notice tone="warning" role="status">
        <strong>Copy this key now.</strong> You will not be able to see it again, because only its hash is stored. Keep
        it out of client-side code and repositories.
      </Notice>
      <div data-secret>
        <figure class="new-key secret">
          <figcaption>{label === null ? 'Your key' : `Your key (${isolated(label)})`}</figcaption>
          <code>{key}</code>
          <div class="cluster">
            <button type="button" class="button button-primary scripted" data-copy autofocus>
              Copy key
            </button>
            <Button href={keyPath(prefix)} label="I have saved it" />
          </div>
        </figure>
      </div>
      <p>
        The key is on the <PlanName id={planId} /> plan{' '}
        {expiresAt === null ? 'and does not expire.' : ['and expires on ', <Time at={expiresAt} />, '.']}{' '}
        {replaced !== undefined && <Replaced record={replaced} />}
      </p>
      <FirstCall keyPrefix={prefix} />
    </>
  );
}

function Replaced({ record }: { readonly record: KeyRecord }): VNode {
  const { expiresAt, isExpired } = record;
  return (
    <>
      It replaces <KeyReference {...record} />, which{' '}
      {!isExpired && expiresAt !== null ? ['stays active until ', <Time at={expiresAt} />, '.'] : 'no longer works.'}
    </>
  );
}
