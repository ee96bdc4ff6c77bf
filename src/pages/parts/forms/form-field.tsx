import type { ComponentChildren, VNode } from 'preact';

interface FieldProps {
  /** Of the input. */
  readonly id: string;
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
export function Field({ id, label, hint, error, options, value, ...attributes }: FieldProps): VNode {
  const describedBy = [error === undefined ? [] : `${id}-error`, hint === undefined ? [] : `${id}-hint`]
    .flat()
    .join(' ');
  const shared = {
    class: 'input',
    id,
    autocomplete: 'off',
    'aria-invalid': error === undefined ? undefined : true,
    'aria-describedby': describedBy === '' ? undefined : describedBy,
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
  /** What is wrong, with the id of the input that needs a correction. */
  readonly errors: readonly { readonly id: string; readonly message: string | undefined }[];
}

/**
 * What must be corrected before a form is sent again. It has the focus, so that screen readers read it first. Use it at the
 * top of a page with `hasErrors`.
 */
export function ErrorSummary({ errors }: ErrorSummaryProps): VNode | null {
  const wrong = errors.filter(({ message }) => message !== undefined);
  if (wrong.length === 0) return null;
  return (
    <div class="notice error-summary tone-danger" role="alert" tabIndex={-1} autofocus>
      <p>
        <strong>Nothing was changed. Correct {wrong.length === 1 ? 'this' : 'these'} and submit the form again:</strong>
      </p>
      <ul>
        {wrong.map(({ id, message }) => (
          <li key={id}>
            <a href={`#${id}`}>{message}</a>
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
      <button class={`button button-${tone}`} type="submit">
        {label}
      </button>
      {cancel !== undefined && (
        <a class="button" href={cancel}>
          Cancel
        </a>
      )}
    </div>
  );
}
