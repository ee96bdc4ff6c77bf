import { Ajv } from 'ajv';
import { hashToken } from '../../../accounts/tokens.js';
import { readContent, rejectBody } from '../../../http/request/content.js';
import { findKeyPrefix } from '../../../keys/api-key.js';
import { isPlainText } from '../../../platform/text/plain-text.js';
import type { PageContext } from '../context.js';
import { PageError } from '../frame/error-page.js';

/** The most content that a request may have, in bytes: a form of a few fields. */
const MAX_CONTENT = 16 * 1024;

/**
 * Reads the form of a POST request before the bound on pages counts the request, since a client may send slowly. Other
 * requests need no content. The connection closes after an error.
 *
 * @throws PageError 403 for a form that another site has made a browser send, 415 for other content
 * @throws Problem as {@link readContent} and {@link rejectBody} do
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
  const url = ctx.state.site.publicUrl();
  // "none": opened by the person, from the address bar or a bookmark.
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
  /** For a person whose value does not fit. Without one, no browser sends such a value, and the form is refused. */
  readonly message?: string | ((value: string) => string);
}

/** A form as it was sent. */
export interface Submission<Name extends string> {
  readonly values: Readonly<Record<Name, string>>;
  /** What is wrong with a value, in a sentence. */
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
 * @returns a function that reads the form of a request and throws PageError 400 for one that no browser sends
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

/** The field that tells a form that is sent once from all others. */
export const ONCE_FIELD = { form: { schema: {} } } as const;

/** @returns what is stored of the value of {@link ONCE_FIELD} @throws PageError 400 for a value that no page has */
export function hashOfForm(token: string): Buffer {
  return hashToken(token) ?? incompleteForm();
}
