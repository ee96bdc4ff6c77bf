import type { VNode } from 'preact';
import { Button, CodeBlock } from '../../parts/content/components.js';
import { Field } from '../../parts/forms/form.js';
import type { Parameter, PlacedOperation } from './contract.js';

interface TryItProps {
  readonly operation: PlacedOperation;
  readonly parameters: readonly Parameter[];
  /** The call of the samples beside it. */
  readonly url: string;
}

/**
 * A form that calls the operation from the page by the script. No field has a name, so sending the form without the
 * script sends nothing. The key stays in the fields of the page.
 */
export function TryIt({ operation: { operationId, path }, parameters, url }: TryItProps): VNode {
  const id = (name: string): string => `try-${operationId}-${name}`;
  return (
    <details class="try scripted">
      <summary>Try it</summary>
      <form data-try={path} data-url={url} autocomplete="off" aria-label={`Try ${operationId}`}>
        <Field
          id={id('key')}
          data-key
          type="text"
          label="API key"
          hint="Stays in this page, and is cleared when you leave it."
          class="input secret-input"
          required
          pattern="\s*[!-~]+\s*"
          title="A key is one word of letters, digits and underscores."
          autocapitalize="none"
          spellcheck={false}
        />
        {parameters.map(({ name, in: place, required = false, example }) => (
          <Field
            key={name}
            id={id(name)}
            data-parameter={name}
            data-in={place}
            label={
              <>
                {name} {!required && <span class="aside">optional</span>}
              </>
            }
            type="text"
            value={required ? String(example) : undefined}
            required={required}
            spellcheck={false}
          />
        ))}
        <Button tone="primary" label="Send" />
        <div role="status" class="try-status" data-try-status />
        <div data-try-answer hidden>
          <CodeBlock label="Response body" code="" />
          <details class="fold small">
            <summary data-try-count />
            <dl />
          </details>
        </div>
      </form>
    </details>
  );
}
