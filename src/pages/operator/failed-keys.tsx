import { formatCount } from '../../platform/text/count.js';
import { Time } from '../parts/content/components.js';
import { numeric, Table } from '../parts/content/table.js';
import type { PageRouter } from '../parts/context.js';
import type { OperatorParts } from './context.js';
import { operatorPage } from './layout.js';

/** Addresses that are listed. */
const SHOWN = 50;

/** Adds the list of addresses whose keys failed. */
export function addFailedKeys(router: PageRouter, { failedAddresses }: OperatorParts): void {
  router.get('/failed-keys', (ctx) => {
    const addresses = failedAddresses.list(SHOWN);
    operatorPage(
      ctx,
      { title: 'Failed keys', tab: 'failed-keys' },
      <>
        <p>
          Addresses that sent unknown, revoked or expired keys, or keys of suspended developers, to this server alone,
          since <Time at={new Date(failedAddresses.since).toISOString()} />. Every other server has a list of its own;{' '}
          <code>catalog_failed_keys_total</code> counts on all of them. After 30 in a minute, an address gets 429 for
          the rest of the minute; these requests are not counted here.
        </p>
        {addresses.length === 0 ? (
          <p class="empty">No failed keys</p>
        ) : (
          <Table
            caption="Addresses by failed keys"
            columns={['Address', ...numeric('Failed keys')]}
            rows={addresses.map(({ address, failures }) => [<code>{address}</code>, formatCount(failures)])}
          />
        )}
      </>,
    );
  });
}
