import type { VNode } from 'preact';
import { CodeBlock } from '../../parts/content/components.js';
import { Heading } from '../../parts/content/heading.js';
import { headerId, inWords, responseId } from './anchors.js';
import {
  headerNames,
  resolve,
  statusesOf,
  type Example,
  type Header,
  type MediaType,
  type Response,
} from './contract.js';
import { Fold } from './fold.js';
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
        <Examples key={mediaType} context={context} media={media} />
      ))}
    </>
  );
}

/** The header fields of a response, as links to their descriptions, folded: most responses have the same. */
export function HeaderList({ context, response: { headers = {} } }: ResponseProps): VNode {
  const fields = Object.entries(headers);
  return (
    <Fold summary={`Response headers (${fields.length})`}>
      <ul class="answers">
        {fields.map(([name, header]) => (
          <li key={name}>
            <a href={`#${headerId(resolve(context.contract, header).name ?? '')}`}>{name}</a>
          </li>
        ))}
      </ul>
    </Fold>
  );
}

interface ExamplesProps {
  readonly context: ReferenceContext;
  readonly media: MediaType;
}

/** The examples of a body, each with its summary. */
export function Examples({ context, media: { example, examples = {} } }: ExamplesProps): VNode {
  const all = example === undefined ? examples : { Response: { value: example } };
  return (
    <>
      {Object.entries(all).map(([name, each]) => {
        const { summary = name, value } = resolve<Example>(context.contract, each).part;
        return <CodeBlock key={name} label={summary} code={JSON.stringify(value, undefined, 2)} language="json" />;
      })}
    </>
  );
}

/** The responses that several operations share. */
export function SharedResponses({ context }: { readonly context: ReferenceContext }): VNode {
  const { contract } = context;
  return (
    <section aria-labelledby="responses">
      <Heading level={2} id="responses" text="Shared responses" />
      {Object.entries(contract.components.responses).map(([name, response]) => (
        <Fold
          key={name}
          id={responseId(name)}
          text={inWords(name)}
          summary={
            <h3>
              <span class="status">{statusesOf(contract, name).join(', ')}</span> {inWords(name)}
            </h3>
          }
        >
          <ResponseDetails context={context} response={response} />
        </Fold>
      ))}
    </section>
  );
}

/** The header fields that several responses share. */
export function Headers({ context }: { readonly context: ReferenceContext }): VNode {
  const names = headerNames(context.contract);
  return (
    <section aria-labelledby="headers">
      <Heading level={2} id="headers" text="Response headers" />
      {Object.entries(context.contract.components.headers).map(([shared, header]) => {
        const name = names.get(shared) ?? shared;
        return (
          <Fold key={shared} id={headerId(shared)} text={name} summary={<h3>{name}</h3>}>
            <ul class="fields">
              <li>
                <HeaderField context={context} name={name} header={header} />
              </li>
            </ul>
          </Fold>
        );
      })}
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
  return (
    <>
      <div class="field-head">
        <code>{name}</code>
        <span>
          <TypeName context={context} schema={header.schema} />
          {place !== undefined && ` in ${place}`}
        </span>
        {header.required !== true && <span class="aside">optional</span>}
        <Bounds schema={'$ref' in header.schema ? {} : part} example={header.example} />
      </div>
      <Text context={context} text={header.description} />
    </>
  );
}
