import type { VNode } from 'preact';
import { render } from 'preact-render-to-string';
import { Heading } from '../../parts/content/heading.js';
import { renderParts } from '../../parts/frame/page.js';
import { SampleTabs } from '../../parts/content/samples.js';
import { Tabs } from '../../parts/content/tabs.js';
import { inWords, parameterId, responseId } from './anchors.js';
import { operationsOf, resolve, tagsOf, type Parameter, type PlacedOperation } from './contract.js';
import { Fold } from './fold.js';
import { Examples, HeaderField, HeaderList, ResponseDetails } from './responses.js';
import { Fields, TypeName } from './schemas.js';
import { Text, type ReferenceContext } from './text.js';
import { TryIt } from './try-it.js';

interface OperationProps {
  readonly context: ReferenceContext;
  readonly operation: PlacedOperation;
}

/** @returns the HTML of the operations, by tag */
export async function renderOperations(context: ReferenceContext): Promise<string> {
  const { contract } = context;
  let html = '';
  for (const { name, description } of tagsOf(contract).groups) {
    const operations = operationsOf(contract).filter(({ tags }) => tags.includes(name));
    const content = await renderParts([
      <>
        <Heading level={2} id={`tag-${name}`} text={name} />
        <Text context={context} text={description} />
      </>,
      ...operations.map((operation) => <Operation context={context} operation={operation} />),
    ]);
    html += render(<section aria-labelledby={`tag-${name}`} dangerouslySetInnerHTML={{ __html: content }} />);
  }
  return html;
}

function Operation({ context, operation }: OperationProps): VNode {
  const { operationId, summary, description, method, path, responses } = operation;
  const parameters = (operation.parameters ?? []).map((each) => resolve(context.contract, each).part);
  const success = responses['200'] && resolve(context.contract, responses['200']).part;
  const target = sampleTarget(operation, parameters);
  const headers = parameters.filter((part) => part.in === 'header');
  const [[mediaType, media] = []] = Object.entries(success?.content ?? {});
  return (
    <section class="operation" aria-labelledby={operationId}>
      <div class="operation-head">
        <Heading level={3} id={operationId} text={summary} />
        <p class="endpoint">
          <span class="method">{method}</span> <code>{path}</code>
        </p>
        <Text context={context} text={description} />
      </div>
      <div class="operation-code">
        <SampleTabs name={`sample-${operationId}`} baseUrl={context.baseUrl} target={target} />
        <TryIt operation={operation} parameters={parameters} url={context.baseUrl + target} />
        <Heading level={4} id={`${operationId}-examples`} text="Example responses" />
        <ExampleTabs context={context} operation={operation} />
      </div>
      <div class="operation-text">
        {parameters.length > 0 && <Heading level={4} id={`${operationId}-parameters`} text="Parameters" />}
        <Parameters {...{ context, operationId }} parameters={parameters.filter((part) => part.in !== 'header')} />
        <Fold summary={`Request headers, optional (${headers.length})`}>
          <Parameters {...{ context, operationId }} parameters={headers} />
        </Fold>
        {success && media && (
          <>
            <Heading level={4} id={`${operationId}-200`} text="200 Response">
              <span class="status">200</span> Response
            </Heading>
            <Text context={context} text={success.description} />
            <p>
              Body: <code>{mediaType}</code>, <TypeName context={context} schema={media.schema} />
            </p>
            <Fields context={context} schema={media.schema} expands />
            <HeaderList context={context} response={success} />
          </>
        )}
        <Heading level={4} id={`${operationId}-others`} text="Other responses" />
        <OtherResponses context={context} operation={operation} />
      </div>
    </section>
  );
}

interface ParametersProps {
  readonly context: ReferenceContext;
  readonly operationId: string;
  readonly parameters: readonly Parameter[];
}

function Parameters({ context, operationId, parameters }: ParametersProps): VNode | null {
  if (parameters.length === 0) return null;
  return (
    <ul class="fields">
      {parameters.map((part) => (
        <li key={part.name} id={parameterId(operationId, part.name)}>
          <HeaderField context={context} name={part.name} header={part} place={part.in} />
        </li>
      ))}
    </ul>
  );
}

/** The examples of the responses that a caller meets first, by status. The others are shown separately. */
function ExampleTabs({ context, operation: { operationId, responses } }: OperationProps): VNode {
  const tabs = Object.entries(responses).flatMap(([status, response]) => {
    const { part, name } = resolve(context.contract, response);
    const [media] = Object.values(part.content ?? {});
    const isShown = media !== undefined && (name === undefined || status === '200' || status === '429');
    return isShown ? [{ label: status, content: <Examples context={context} media={media} /> }] : [];
  });
  const shared = {
    label: 'Shared',
    content: (
      <p class="small">
        See the examples of the <a href="#responses">shared responses</a>.
      </p>
    ),
  };
  return <Tabs name={`examples-${operationId}`} legend="Status" tabs={[...tabs, shared]} />;
}

/** The operation's own responses, and links to the shared ones, folded. */
function OtherResponses({ context, operation: { operationId, responses, summary } }: OperationProps): VNode {
  const others = Object.entries(responses)
    .filter(([status]) => status !== '200')
    .map(([status, response]) => ({ status, ...resolve(context.contract, response) }));
  const own = others.filter(({ name }) => name === undefined);
  const shared = others.filter(({ name }) => name !== undefined);
  return (
    <>
      {own.map(({ status, part }) => (
        <Fold
          key={status}
          id={`${operationId}-${status}`}
          text={`${status} of ${summary}`}
          summary={
            <>
              <span class="status">{status}</span> specific to this operation
            </>
          }
        >
          <ResponseDetails context={context} response={part} />
        </Fold>
      ))}
      <Fold summary={`Shared with other operations (${shared.length})`}>
        <ul class="answers">
          {shared.map(({ status, name = '' }) => (
            <li key={status}>
              <a href={`#${responseId(name)}`}>
                <span class="status">{status}</span> {inWords(name)}
              </a>
            </li>
          ))}
        </ul>
      </Fold>
    </>
  );
}

/** @returns the path and query of a sample call, from the examples of the required parameters */
function sampleTarget({ path }: PlacedOperation, parameters: readonly Parameter[]): string {
  const required = parameters.filter((part) => part.required === true);
  const filled = required.reduce((text, { name, example }) => text.replace(`{${name}}`, String(example)), path);
  const query = required.filter((part) => part.in === 'query').map(({ name, example }) => `${name}=${example}`);
  return query.length === 0 ? filled : `${filled}?${query.join('&')}`;
}
