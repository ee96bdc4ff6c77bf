import type { ComponentChildren, VNode } from 'preact';

interface FieldProps {
  /** Of the input. */
  readonly id: string;
  readonly label: string;
  readonly hint?: string;
  /** What is wrong with what was sent. */
  readonly error?: string | undefined;
  readonly children: ComponentChildren;
}

/** An input with its label, hint and error. The input takes the attributes of {@link described}. */
export function Field({ id, label, hint, error, children }: FieldProps): VNode {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {children}
      {error !== undefined && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  );
}

/** Ties an input to its hint and its error, for screen readers. */
export function described(id: string, { hint, error }: { readonly hint: boolean; readonly error: string | undefined }) {
  const parts = [...(error === undefined ? [] : [`${id}-error`]), ...(hint ? [`${id}-hint`] : [])];
  return {
    ...(error !== undefined && { 'aria-invalid': true }),
    ...(parts.length > 0 && { 'aria-describedby': parts.join(' ') }),
  };
}
