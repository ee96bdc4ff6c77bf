import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { KEPT_FAILURE_DAYS, KEPT_FAILURES, KEPT_OF_KIND, type FailedRequest } from '../../usage/failed-requests.js';
import { KEPT_OF_HOUR } from '../../usage/failure-log.js';
import { Badge, CodeBlock, Deployment, Facts, UserText } from './content/components.js';
import { KeyReference } from './keys.js';

/** Which requests are kept, in a sentence. */
export const KEPT =
  `Kept for ${KEPT_FAILURE_DAYS} days. Of each key, error and operation, each server keeps the first ${KEPT_OF_HOUR} ` +
  `requests of an hour and then one a second; we keep the latest ${KEPT_OF_KIND}, and ${KEPT_FAILURES} in all.`;

/** The longest id that a request can have. */
export const MAX_REQUEST_ID = 128;

/** The text of an empty list that was limited to some requests. */
const NOT_KEPT =
  `Not kept. After the first ${KEPT_OF_HOUR} of a kind in an hour we keep one a second; the counts are in Usage. A ` +
  'request shows about ten seconds after its answer.';

interface FailureListProps {
  readonly failures: readonly FailedRequest[];
  /** Whether the list is filtered. */
  readonly isFiltered?: boolean;
}

/** Request errors in the order given: a line each, which opens. */
export function FailureList({ failures, isFiltered = false }: FailureListProps): VNode {
  if (failures.length === 0) return <p class="empty">{isFiltered ? NOT_KEPT : 'No request errors'}</p>;
  return (
    <ul class="failures">
      {failures.map((failure) => (
        <li key={failure.id}>
          <Failure {...failure} />
        </li>
      ))}
    </ul>
  );
}

function Failure({ at, method, path, status, code, detail, keyPrefix, keyLabel, ...more }: FailedRequest): VNode {
  const docs = useContext(Deployment).docs();
  return (
    <details>
      <summary>
        <time dateTime={at}>
          {at.slice(0, 10)} {at.slice(11, 19)} <span class="visually-hidden">UTC</span>
        </time>
        <Badge tone={status === 429 ? 'warning' : 'danger'}>{status}</Badge>
        <code>
          {method} {path}
        </code>
        <span class="failure-key">{keyLabel === null ? keyPrefix : <UserText text={keyLabel} />}</span>
      </summary>
      <Facts
        facts={{
          Error: docs === undefined ? code : <a href={`${docs}#error-${code}`}>{code}</a>,
          Detail: detail,
          Operation: more.operation === '' ? 'None' : <code>{more.operation}</code>,
          Key: <KeyReference prefix={keyPrefix} label={keyLabel} />,
          Duration: `${more.durationMs.toFixed(1)} ms`,
        }}
      />
      <CodeBlock label="Request ID" code={more.requestId} />
    </details>
  );
}
