import type { VNode } from 'preact';
import { CodeBlock } from '../layout/components.js';
import { headerId, inWords, responseId } from './anchors.js';
import { operationsOf, resolve, type Header, type MediaType, type Response } from './contract.js';
import { Bounds, TypeName } from './schemas.js';
import { Text, type ReferenceContext } from './text.js';

interface ResponseProps {
  readonly context: ReferenceContext;
  readonly response: Response;
}

/** A response: its description, header fields, body and examples. */
export function ResponseDetails({ context, response }: ResponseProps): VNode {
  const content = Object.entries(response.content ?? {});
  return (
    <>
      <Text context={context} text={response.description} />
      <HeaderList context={context} response={response} />
      {content.map(([mediaType, { schema }]) => (
        <p key={mediaType}>
          Body: <code>{mediaType}</code>, <TypeName context={context} schema={schema} />
        </p>
      ))}
      {content.map(([mediaType, media]) => (
        <Examples key={mediaType} media={media} />
      ))}
    </>
  );
}

/** The header fields of a response, as links to their descriptions. */
export function HeaderList({ context, response: { headers = {} } }: ResponseProps): VNode {
  return (
    <p class="header-list">
      Headers:{' '}
      {Object.entries(headers).map(([name, header], index) => {
        const { name: shared = '' } = resolve(context.contract, header);
        return (
          <>
            {index > 0 && ', '}
            <a href={`#${headerId(shared)}`}>{name}</a>
          </>
        );
      })}
    </p>
  );
}

/** The examples of a body, each with its summary. */
export function Examples({ media: { examples = {} } }: { readonly media: MediaType }): VNode {
  return (
    <>
      {Object.entries(examples).map(([name, { summary = name, value }]) => (
        <CodeBlock key={name} label={summary} code={JSON.stringify(value, undefined, 2)} language="json" />
      ))}
    </>
  );
}

/** The responses that several operations share. */
export function SharedResponses({ context }: { readonly context: ReferenceContext }): VNode {
  const { contract } = context;
  return (
    <section aria-labelledby="responses">
      <h2 id="responses">Shared responses</h2>
      {Object.entries(contract.components.responses).map(([name, response]) => (
        <details key={name} id={responseId(name)} class="fold">
          <summary>
            <h3>
              <span class="status">{statusesOf(context, name).join(', ')}</span> {inWords(name)}
            </h3>
          </summary>
          <ResponseDetails context={context} response={response} />
        </details>
      ))}
    </section>
  );
}

/** @returns the statuses of a shared response */
function statusesOf({ contract }: ReferenceContext, name: string): readonly string[] {
  const statuses = operationsOf(contract).flatMap(({ responses }) =>
    Object.entries(responses)
      .filter(([, response]) => resolve(contract, response).name === name)
      .map(([status]) => status),
  );
  return [...new Set(statuses)];
}

/** The header fields that several responses share. */
export function Headers({ context }: { readonly context: ReferenceContext }): VNode {
  const names = headerNames(context);
  return (
    <section aria-labelledby="headers">
      <h2 id="headers">Response headers</h2>
      <ul class="fields">
        {Object.entries(context.contract.components.headers).map(([shared, header]) => (
          <li key={shared} id={headerId(shared)} data-find={names.get(shared)}>
            <HeaderField context={context} name={names.get(shared) ?? shared} header={header} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface HeaderFieldProps {
  readonly context: ReferenceContext;
  readonly name: string;
  readonly header: Header;
  /** Where a parameter is sent. */
  readonly place?: string;
}

/** A header field or a parameter: its type, its description and its bounds. */
export function HeaderField({ context, name, header, place }: HeaderFieldProps): VNode {
  const { part } = resolve(context.contract, header.schema);
  const absentWith = header['x-absent-with'] ?? [];
  return (
    <>
      <p>
        <code>{name}</code>
        <span>
          <TypeName context={context} schema={header.schema} />
          {place !== undefined && ` in ${place}`}
        </span>
        {header.required !== true && <span class="optional">optional</span>}
      </p>
      <Text context={context} text={header.description} />
      <Bounds schema={'$ref' in header.schema ? {} : part} example={header.example} />
      {absentWith.length > 0 && (
        <Text context={context} text={`Not sent with ${absentWith.map((code) => `\`${code}\``).join(', ')}.`} />
      )}
    </>
  );
}

/** @returns the names of the shared header fields, as a response has them */
function headerNames({ contract }: ReferenceContext): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const inline = operationsOf(contract).flatMap(({ responses }) => Object.values(responses));
  for (const response of [...inline, ...Object.values(contract.components.responses)]) {
    const { part } = resolve(contract, response);
    for (const [name, header] of Object.entries(part.headers ?? {})) {
      const { name: shared } = resolve(contract, header);
      if (shared !== undefined) names.set(shared, name);
    }
  }
  return names;
}
