import type { VNode } from 'preact';
import { CodeBlock } from '../../parts/content/components.js';
import { Field } from '../../parts/forms/form-elements.js';
import { resolve, type Contract, type Parameter, type PlacedOperation, type Schema } from './contract.js';

interface TryItProps {
  readonly contract: Contract;
  readonly operation: PlacedOperation;
  readonly parameters: readonly Parameter[];
}

/**
 * A form that calls the operation from the page by the script. No field has a name, so sending the form without the script
 * sends nothing. The key stays in the fields of the page.
 */
export function TryIt({ contract, operation: { operationId, path }, parameters }: TryItProps): VNode {
  const id = (name: string): string => `try-${operationId}-${name}`;
  return (
    <details class="try scripted">
      <summary>Try it</summary>
      <form data-try={path} autocomplete="off" aria-label={`Try ${operationId}`}>
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
        {parameters.map(({ name, in: place, required = false, example, schema }) => (
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
            value={required && name !== 'since' ? String(example) : undefined}
            required={required}
            spellcheck={false}
            {...constraintsOf(resolve(contract, schema).part)}
          />
        ))}
        <div class="cluster">
          <button class="button button-primary" type="submit">
            Send
          </button>
          <button class="button button-quiet" type="button" data-try-copy>
            Copy as curl
          </button>
        </div>
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

/** @returns the bounds of a value, as attributes that browsers check */
function constraintsOf({ type, minimum, maximum, maxLength, pattern }: Schema): Readonly<Record<string, unknown>> {
  if (type === 'number' || type === 'integer') {
    return { type: 'number', step: type === 'number' ? 'any' : 1, min: minimum, max: maximum };
  }
  if (typeof pattern !== 'string') return { type: 'text', maxLength };
  return {
    type: 'text',
    maxLength,
    // Browsers match the whole value, and want a hyphen in brackets escaped.
    pattern: pattern.replace(/^\^|\$$/g, '').replaceAll('-]', '\\-]'),
    title: patternHint(pattern),
  };
}

/** Letters, digits, hyphens and underscores, and how many of them. */
const WORD = /^\^\[A-Za-z0-9_-\]\{(\d+),(\d+)\}\$$/;

/** @returns what a browser says about a value that does not match */
function patternHint(pattern: string): string {
  const [, least, most] = WORD.exec(pattern) ?? [];
  return least === undefined ? `Matches ${pattern}` : `${least} to ${most} letters, digits, hyphens and underscores.`;
}
