import type { ComponentChildren, VNode } from 'preact';
import { generateToken } from '../../../accounts/tokens.js';
import { Button } from '../content/components.js';

interface FieldProps {
  /** Of the input; an input without a name is not sent. */
  readonly name?: string;
  /** Its name by default. */
  readonly id?: string;
  readonly label: ComponentChildren;
  readonly hint?: string;
  /** What is wrong with the value that was sent. */
  readonly error?: string | undefined;
  /** The choices, for a select in place of an input. */
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
  /** What is wrong, by the name of the field that needs a correction. */
  readonly errors: Readonly<Partial<Record<string, string>>>;
}

/**
 * What must be corrected before a form is sent again. It has the focus, so that screen readers read it first. Use it at
 * the top of a page with `hasErrors`.
 */
export function ErrorSummary({ errors }: ErrorSummaryProps): VNode | null {
  const wrong = Object.entries(errors).filter(([, message]) => message !== undefined);
  if (wrong.length === 0) return null;
  return (
    <div class="notice error-summary tone-danger" role="alert" tabIndex={-1} autofocus>
      <p>
        <strong>Nothing was changed. Correct {wrong.length === 1 ? 'this' : 'these'} and submit the form again:</strong>
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
  /** What the button does. */
  readonly label: string;
  readonly tone?: 'primary' | 'danger';
  /** Where a link leads that leaves the form; without one there is no link. */
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
  /** Whether it creates one thing, however often it is sent: a browser sends it again when its answer is reloaded. */
  readonly isOnce?: boolean;
  /** Whether the browser leaves the check of its values to the server. */
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
