import type { VNode } from 'preact';
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
    <form class="try" data-try={path} hidden autocomplete="off" aria-label={`Try ${operationId}`}>
      <p class="try-title">Try it</p>
      <div class="field">
        <label for={id('key')}>API key</label>
        <input
          class="input secret-input"
          id={id('key')}
          data-key
          type="text"
          required
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          aria-describedby={id('key-hint')}
        />
        <p class="hint" id={id('key-hint')}>
          Kept in the memory of this page only.
        </p>
      </div>
      {parameters.map(({ name, in: place, required = false, example }) => (
        <div class="field" key={name}>
          <label for={id(name)}>
            {name} {!required && <span class="optional">optional</span>}
          </label>
          <input
            class="input"
            id={id(name)}
            data-parameter={name}
            data-in={place}
            type="text"
            required={required}
            autocomplete="off"
            spellcheck={false}
            value={required && name !== 'since' ? String(example) : undefined}
          />
        </div>
      ))}
      <button class="button button-primary" type="submit">
        Send
      </button>
      <div class="try-answer" data-answer aria-live="polite" />
    </form>
  );
}
