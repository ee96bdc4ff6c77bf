import type { ComponentChildren, VNode } from 'preact';
import { generateToken, hashToken } from '../../../accounts/tokens.js';
import { incompleteForm } from './form.js';

/** The field that tells a form from all others, for its parser. */
export const ONCE_FIELD = { form: { schema: {} } } as const;

interface FormOnceProps {
  readonly action: string;
  readonly children: ComponentChildren;
}

/** A form that creates one thing, however often it is sent: a browser sends it again when its answer is reloaded. */
export function FormOnce({ action, children }: FormOnceProps): VNode {
  return (
    <form class="form" method="post" action={action} data-once noValidate>
      <input type="hidden" name="form" value={generateToken().token} autocomplete="off" />
      {children}
    </form>
  );
}

/** @returns what is stored of the token of a form @throws PageError 400 for what is no token */
export function hashOfForm(token: string): Buffer {
  return hashToken(token) ?? incompleteForm();
}
