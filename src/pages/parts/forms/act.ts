import type { PageContext } from '../context.js';
import { redirectAndConfirm, type Confirmation } from '../frame/notices.js';
import { seeOther } from '../web/addresses.js';
import type { Submission } from './form.js';

/** A form as it was sent, with the fault of each wrong value. */
type SentForm = Pick<Submission<string>, 'errors'>;

/** Where a form leads once it was processed. */
export interface Done {
  /** An address of ours. */
  readonly to: string;
  /** The confirmation that the page there shows, once. */
  readonly confirmation?: Confirmation;
}

/**
 * Makes the handler of a form with fields. The page server has checked the origin of the form, and the guard before the
 * handler has checked the session.
 *
 * @param parse - reads the form; see `formParser`
 * @param perform - does what the form asks for; it returns where the form leads, or undefined if it has answered with a
 *   page
 * @param draw - answers with the page of the form and its faults, with status 422; omit it where the parser has no
 *   messages
 * @example
 *   router.post('/settings/sessions/end', requireSession, act(parseEnd, async ({ state }, { values }) => {
 *     await endSessionOf(db, state.session.developerId, Number(values.session));
 *     return { to: '/settings/sessions', confirmation: 'session_ended' };
 *   }));
 */
export function act<Ctx extends PageContext, Form extends SentForm>(
  parse: (ctx: Ctx) => Form,
  perform: (ctx: Ctx, form: Form) => Promise<Done | undefined>,
  draw?: (ctx: Ctx, form: Form) => Promise<void> | void,
): (ctx: Ctx) => Promise<void> {
  return async (ctx) => {
    const form = parse(ctx);
    if (draw !== undefined && Object.keys(form.errors).length > 0) {
      await draw(ctx, form);
      return;
    }
    const done = await perform(ctx, form);
    if (done?.confirmation !== undefined) redirectAndConfirm(ctx, done.to, done.confirmation);
    else if (done !== undefined) seeOther(ctx, done.to);
  };
}
