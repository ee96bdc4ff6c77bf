import type { Knex } from 'knex';
import type { Propagation } from '../../admission/invalidate-callers.js';
import { KeyRefused } from '../../keys/key-change.js';
import { formParser } from '../parts/forms/form.js';
import { Notice } from '../parts/content/components.js';
import { PageError } from '../parts/frame/error-page.js';
import { hashOfForm, ONCE_FIELD } from '../parts/forms/form-once.js';
import { seeOther } from '../parts/web/return-to.js';
import type { ComponentChildren } from 'preact';
import type { OperatorContext, OperatorParts } from './context.js';

/** What an operator does, for the log. */
interface Act {
  readonly act: string;
  readonly developer?: number;
  readonly key_prefix?: string;
}

/**
 * Makes a change for an operator: the events name the operator, servers drop their cached callers, and the log has a line.
 *
 * @param change - its work is committed when it resolves
 * @param isChanged - whether a server may have cached what was changed
 * @returns what the change returned, and when it applies
 */
export async function performAct<T>(
  ctx: OperatorContext,
  { db, log, beginChange }: OperatorParts,
  act: Act,
  change: (db: Knex) => Promise<T>,
  isChanged: (result: T) => boolean = () => true,
): Promise<{ readonly result: T; readonly propagation: Propagation }> {
  const endChange = beginChange();
  const result = await change(db).catch((error: unknown) => {
    if (error instanceof KeyRefused && error.reason !== 'unknown') {
      throw new PageError(409, 'That is not possible', error.message.replace(/ Create a new one: .*$/, ''));
    }
    throw error;
  });
  const affectsKeys = isChanged(result);
  // The change is committed, and is logged even if what follows fails.
  log.info({ request_id: ctx.state.requestId, ...act, affects_keys: affectsKeys }, 'operator act');
  return { result, propagation: await endChange(affectsKeys) };
}

/** Redirects to a page that confirms once what has been done. @param address - our own */
export function redirectAndConfirm(ctx: OperatorContext, address: string, confirmation: ComponentChildren): void {
  const notice = (
    <Notice tone="ok" role="status">
      {confirmation}
    </Notice>
  );
  ctx.state.session.confirmation = { address, notice };
  seeOther(ctx, address);
}

const parseOnce = formParser(ONCE_FIELD);

/**
 * Runs what a form does once, however often it is sent, and redirects to where it has led.
 *
 * @param act - returns that address
 */
export async function once(ctx: OperatorContext, act: () => Promise<string>): Promise<void> {
  const form = hashOfForm(parseOnce(ctx).values.form).toString('hex');
  const { forms } = ctx.state.session;
  let address = forms.get(form);
  if (address === undefined) {
    address = act();
    forms.set(form, address);
    // Somebody may try again what has failed.
    address.catch(() => forms.delete(form));
  }
  seeOther(ctx, await address);
}
