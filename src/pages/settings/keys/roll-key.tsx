import type { VNode } from 'preact';
import type { KeyRecord } from '../../../keys/key-record.js';
import { requireRollable, rollKey } from '../../../keys/roll-key.js';
import { formatTime, Time } from '../../parts/content/components.js';
import type { SiteParts } from '../../parts/context.js';
import { act } from '../../parts/forms/act.js';
import { formParser, hashOfForm, ONCE_FIELD, incompleteForm, Form, type Submission } from '../../parts/forms/form.js';
import { keyPath, KeyReference, LastUse } from '../../parts/keys.js';
import { queryOf } from '../../parts/web/addresses.js';
import type { Guards, SettingsContext, SettingsRouter } from '../settings-page.js';
import { showNewKey } from './create-key.js';
import { formPage, KEY_PATH, loadKey, prefixOf } from './one-key.js';

/** How long a rolled key stays active, by the value of its option. */
const OVERLAPS = [
  { value: 'now', label: 'No overlap', seconds: 0 },
  { value: '1h', label: '1 hour', seconds: 3_600 },
  { value: '24h', label: '24 hours', seconds: 86_400 },
  { value: '7d', label: '7 days', seconds: 604_800 },
] as const;

const PROPOSED_OVERLAP = '24h';

const parseRoll = formParser({ ...ONCE_FIELD, overlap: { schema: { enum: OVERLAPS.map(({ value }) => value) } } });

/** Adds the form that rolls a key. Its answer shows the new key. */
export function addRollKey(router: SettingsRouter, { db, changeCallers }: SiteParts, guards: Guards): void {
  const path = `${KEY_PATH}/roll`;

  router.get(path, guards.requireRecentSignIn, async (ctx) => {
    const record = await loadKey(db, ctx);
    requireRollable(record);
    const form = <RollForm record={record} overlap={queryOf(ctx).get('overlap')} />;
    formPage(ctx, record, `Roll ${record.prefix}`, form);
  });

  const roll = async (ctx: SettingsContext, { values }: Submission<'form' | 'overlap'>): Promise<undefined> => {
    const { developerId } = ctx.state.session;
    const { seconds } = OVERLAPS.find(({ value }) => value === values.overlap) ?? incompleteForm();
    const by = { kind: 'developer', developerId, formHash: hashOfForm(values.form) } as const;
    const { successor, predecessor } = await changeCallers(
      () => rollKey(db, prefixOf(ctx), seconds, by),
      () => [developerId],
    );
    showNewKey(ctx, 'Key rolled', { created: successor, replaced: predecessor });
  };

  router.post(path, guards.requireRecentSignIn, act(parseRoll, roll));
}

interface RollFormProps {
  readonly record: KeyRecord;
  /** The option that is chosen, if there is such an option. */
  readonly overlap: string | null;
}

/** The form names when the new key expires, and the overlaps longer than the old key's remaining life. */
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
          : ['The new key expires on ', <Time at={newEnd} />, ' (same lifetime).']}{' '}
        <LastUse of="The old key" record={record} />
      </p>
      <Form action={`${keyPath(prefix)}/roll`} label="Roll key" cancel={keyPath(prefix)} isOnce>
        <fieldset class="field">
          <legend>Old key stays valid for</legend>
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
