import { Ajv } from 'ajv';
import type { ComponentChildren, VNode } from 'preact';
import { hashToken, generateToken } from '../../../accounts/tokens.js';
import { readContent, rejectBody } from '../../../http/request/content.js';
import { findKeyPrefix } from '../../../keys/api-key.js';
import { isPlainText } from '../../../platform/text/plain-text.js';
import { Button } from '../content/components.js';
import type { PageContext } from '../context.js';
import { PageError } from '../frame/error-page.js';

/** Maximum size of a request body, in bytes: forms are small. */
const MAX_CONTENT = 16 * 1024;

/**
 * Reads the form of a POST request before the bound on pages counts the request, since a client may send slowly. Other
 * requests need no content. The connection closes after an error.
 *
 * @throws PageError 403 for a form that another site has made a browser send, 415 for other content
 * @throws Problem like {@link readContent} and {@link rejectBody}
 */
export async function receiveForm(ctx: PageContext, next: () => Promise<void>): Promise<void> {
  if (ctx.method !== 'POST') return rejectBody(ctx, next);
  if (ctx.is('urlencoded') !== 'urlencoded') {
    throw new PageError(
      415,
      'Unsupported content type',
      'This page accepts only form data (application/x-www-form-urlencoded).',
    );
  }
  requireSameOrigin(ctx);
  ctx.state.form = new URLSearchParams(await readContent(ctx, MAX_CONTENT));
  return next();
}

/**
 * Refuses a request that another site has made a browser send (cross-site request forgery). Browsers name the origin of
 * a request in `Sec-Fetch-Site`; those before 2023, and all on plain http, only in `Origin`. This is the rule of
 * `net/http.CrossOriginProtection` in Go 1.25, except that a form with neither field is refused.
 *
 * @throws PageError 403
 */
function requireSameOrigin(ctx: PageContext): void {
  const site = ctx.get('Sec-Fetch-Site');
  const { publicUrl, formOrigin = publicUrl } = ctx.state.site;
  const url = formOrigin(ctx);
  // "none": the user has opened it from the address bar or a bookmark.
  if (site === '' ? ctx.get('Origin') === url : ['same-origin', 'none'].includes(site)) return;
  throw new PageError(
    403,
    'Request refused',
    `This request was not sent from a page of this service. Open ${url} and try again there.`,
  );
}

/** A field of a form. */
interface FormField {
  /** A JSON Schema of the value, which is a string without spaces around it; empty where the field was not sent. */
  readonly schema: object;
  /** Shown if the value does not fit. Omit it where no browser would send such a value: the form is then refused. */
  readonly message?: string | ((value: string) => string);
}

/** A form as it was sent. */
export interface Submission<Name extends string> {
  readonly values: Readonly<Record<Name, string>>;
  /** The fault of each wrong value, in a sentence. */
  readonly errors: Readonly<Partial<Record<Name, string>>>;
}

const ajv = new Ajv({
  allErrors: true,
  formats: { 'plain-text': isPlainText, 'not-a-key': (text) => findKeyPrefix(text) === undefined },
});

/**
 * Makes the parser of one form.
 *
 * @example
 *   const parseName = formParser({ name: { schema: { minLength: 1 }, message: 'Enter a name.' } });
 *   const { values, errors } = parseName(ctx);
 * @returns a function that reads the form of a request and throws PageError 400 for a body that no browser would send
 */
export function formParser<Name extends string>(
  fields: Readonly<Record<Name, FormField>>,
): (ctx: PageContext) => Submission<Name> {
  const entries = Object.entries<FormField>(fields);
  const validate = ajv.compile({
    type: 'object',
    properties: Object.fromEntries(entries.map(([name, { schema }]) => [name, { type: 'string', ...schema }])),
  });
  return ({ state: { form } }) => {
    const values = Object.fromEntries(entries.map(([name]) => [name, form?.get(name)?.trim() ?? '']));
    validate(values);
    const wrong = (validate.errors ?? []).map(({ instancePath }) => instancePath.slice(1) as Name);
    const errors = Object.fromEntries(
      wrong.map((name) => {
        const { message = incompleteForm() } = fields[name];
        return [name, typeof message === 'string' ? message : message(values[name] ?? '')];
      }),
    );
    return { values, errors } as Submission<Name>;
  };
}

/** @throws PageError 400 */
export function incompleteForm(): never {
  throw new PageError(
    400,
    'Invalid form',
    'Some form fields are missing or invalid. Go back, reload the page and submit the form again.',
  );
}

/** The field that identifies a form which may take effect only once. */
export const ONCE_FIELD = { form: { schema: {} } } as const;

/** @returns the hash of the value of {@link ONCE_FIELD}, to store @throws PageError 400 for a value that no page has */
export function hashOfForm(token: string): Buffer {
  return hashToken(token) ?? incompleteForm();
}

interface FieldProps {
  /** Of the input; an input without a name is not sent. */
  readonly name?: string;
  /** Its name by default. */
  readonly id?: string;
  readonly label: ComponentChildren;
  readonly hint?: string;
  /** The fault of the submitted value. */
  readonly error?: string | undefined;
  /** The choices, for a select instead of an input. */
  readonly options?: readonly { readonly value: string; readonly label: string }[];
  readonly value?: string | undefined;
  /** Any other attribute of the input. */
  readonly [attribute: string]: unknown;
}

/** An input with its label, hint and error, which screen readers read with it. */
export function Field({ name, id = name, label, hint, error, options, value, ...attributes }: FieldProps): VNode {
  const describedBy = [error !== undefined && `${id}-error`, hint !== undefined && `${id}-hint`].filter(Boolean);
  const shared = {
    class: 'input',
    id,
    name,
    autocomplete: 'off',
    'aria-invalid': error === undefined ? undefined : true,
    'aria-describedby': describedBy.length === 0 ? undefined : describedBy.join(' '),
    ...attributes,
  } as const;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {options === undefined ? (
        <input {...shared} value={value} />
      ) : (
        <select {...shared}>
          {options.map((option) => (
            <option key={option.value} value={option.value} selected={option.value === value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
      {error !== undefined && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

interface ErrorSummaryProps {
  /** The faults, by the names of the fields that need a correction. */
  readonly errors: Readonly<Partial<Record<string, string>>>;
}

/**
 * The faults to correct before the form is sent again. It has the focus, so that screen readers read it first. Use it
 * at the top of a page with `hasErrors`.
 */
export function ErrorSummary({ errors }: ErrorSummaryProps): VNode | null {
  const wrong = Object.entries(errors).filter(([, message]) => message !== undefined);
  if (wrong.length === 0) return null;
  return (
    <div class="notice error-summary tone-danger" role="alert" tabIndex={-1} autofocus>
      <p>
        <strong>Nothing was saved. Fix {wrong.length === 1 ? 'this' : 'these'} and try again:</strong>
      </p>
      <ul>
        {wrong.map(([name, message]) => (
          <li key={name}>
            <a href={`#${name}`}>{message}</a>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface FormActionsProps {
  /** The action of the button. */
  readonly label: string;
  readonly tone?: 'primary' | 'danger';
  /** The target of a link that leaves the form, if there is one. */
  readonly cancel?: string;
}

/** The button that sends a form. */
export function FormActions({ label, tone = 'primary', cancel }: FormActionsProps): VNode {
  return (
    <div class="form-actions">
      <Button tone={tone} label={label} />
      {cancel !== undefined && <Button href={cancel} label="Cancel" />}
    </div>
  );
}

interface FormProps extends FormActionsProps {
  /** Where it is sent; the address of its page by default. */
  readonly action?: string;
  /** Whether it takes effect once, however often it is sent: reloading the answer makes a browser send it again. */
  readonly isOnce?: boolean;
  /** Whether only the server checks its values. */
  readonly noValidate?: boolean;
  readonly children?: ComponentChildren;
}

/** A form with its fields and its button. */
export function Form({ action, isOnce = false, noValidate = isOnce, children, ...actions }: FormProps): VNode {
  return (
    <form class="form" method="post" action={action} noValidate={noValidate} data-once={isOnce || undefined}>
      {isOnce && <input type="hidden" name="form" value={generateToken().token} autocomplete="off" />}
      {children}
      <FormActions {...actions} />
    </form>
  );
}

interface CheckboxProps {
  readonly name: string;
  readonly label: string;
  readonly isChecked?: boolean;
}

/** A box whose value is `on` or empty. */
export function Checkbox({ name, label, isChecked = false }: CheckboxProps): VNode {
  return (
    <label class="checkbox">
      <input type="checkbox" name={name} value="on" checked={isChecked} autocomplete="off" />
      <span>{label}</span>
    </label>
  );
}

/** The schema of the value of a {@link Checkbox}. */
export const CHECKBOX = { schema: { enum: ['', 'on'] } } as const;
