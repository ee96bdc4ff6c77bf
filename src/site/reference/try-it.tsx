import type { VNode } from 'preact';
import { Field } from '../layout/form-field.js';
import type { Parameter, PlacedOperation } from './contract.js';

interface TryItProps {
  readonly operation: PlacedOperation;
  readonly parameters: readonly Parameter[];
}

/**
 * A form that calls the operation from the page, shown by the script. No field has a name, so sending the form without the
 * script sends nothing. The key stays in the memory of the page.
 */
export function TryIt({ operation: { operationId, path }, parameters }: TryItProps): VNode {
  const id = (name: string): string => `try-${operationId}-${name}`;
  return (
    <form class="try scripted" data-try={path} autocomplete="off" aria-label={`Try ${operationId}`}>
      <p class="try-title">Try it</p>
      <Field
        id={id('key')}
        data-key
        type="text"
        label="API key"
        hint="Kept in memory only, and cleared when you leave this page."
        class="input secret-input"
        required
        autocapitalize="none"
        spellcheck={false}
      />
      {parameters.map(({ name, in: place, required = false, example }) => (
        <Field
          key={name}
          id={id(name)}
          data-parameter={name}
          data-in={place}
          type="text"
          label={
            <>
              {name} {!required && <span class="optional">optional</span>}
            </>
          }
          value={required && name !== 'since' ? String(example) : undefined}
          required={required}
          spellcheck={false}
        />
      ))}
      <button class="button button-primary" type="submit">
        Send
      </button>
      <div class="try-answer" data-answer aria-live="polite" />
    </form>
  );
}
