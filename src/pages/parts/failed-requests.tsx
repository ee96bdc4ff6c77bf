import type { VNode } from 'preact';
import { useContext } from 'preact/hooks';
import { KEPT_FAILURE_DAYS, KEPT_FAILURES, KEPT_OF_KIND, type FailedRequest } from '../../usage/failed-requests.js';
import { KEPT_OF_HOUR } from '../../usage/failure-log.js';
import { Deployment, RelativeTime } from './content/components.js';
import { numeric, Table } from './content/table.js';
import { KeyName } from './keys.js';

/** Which failed requests are kept, in a sentence. */
export const KEPT =
  `Kept for ${KEPT_FAILURE_DAYS} days. Of each key, error and operation, each server keeps the first ${KEPT_OF_HOUR} ` +
  `requests of an hour and then one a second; we keep the latest ${KEPT_OF_KIND}, and ${KEPT_FAILURES} in all.`;

/** The longest id that a request can have. */
export const MAX_REQUEST_ID = 128;

interface FailureTableProps {
  readonly failures: readonly FailedRequest[];
  /** @returns the address of the failed requests of a key */
  readonly addressOf?: (prefix: string) => string;
}

/** The status and the code of an error, as a link to its entry in the reference. */
function ErrorName({ status, code }: FailedRequest): VNode {
  const docs = useContext(Deployment).docs();
  const name = `${status} ${code}`;
  return docs === undefined ? <>{name}</> : <a href={`${docs}#error-${code}`}>{name}</a>;
}

/** Failed requests in the order given. */
export function FailureTable({ failures, addressOf }: FailureTableProps): VNode {
  if (failures.length === 0) return <p class="empty">No failed requests</p>;
  return (
    <Table
      caption="Failed requests"
      hasCards
      columns={['Request', 'Error', 'Key', 'Request ID', ...numeric('Duration'), 'Time']}
      rows={failures.map((each) => [
        <code>
          {each.method} {each.path}
        </code>,
        <div>
          <ErrorName {...each} /> <span class="muted small">{each.detail}</span>
        </div>,
        <KeyName
          prefix={each.keyPrefix}
          label={each.keyLabel}
          {...(addressOf && { address: addressOf(each.keyPrefix) })}
        />,
        <code>{each.requestId}</code>,
        `${each.durationMs.toFixed(1)} ms`,
        <RelativeTime at={each.at} />,
      ])}
    />
  );
}
