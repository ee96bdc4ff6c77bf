import type { VNode } from 'preact';
import type { UsageCounts } from '../../../usage/write-usage.js';
import { Stat } from '../../layout/components.js';
import { formatNumber } from '../../layout/values.js';
import { total } from './counts.js';

/** The number of requests, and what became of them. */
export function Outcomes({ counts }: { readonly counts: UsageCounts }): VNode {
  return (
    <dl class="stats">
      <Stat name="Requests">{formatNumber(total(counts))}</Stat>
      <Stat name="Served">{formatNumber(counts.served)}</Stat>
      <Stat name="Refused">{formatNumber(counts.refused)}</Stat>
      <Stat name="Failed">{formatNumber(counts.failed)}</Stat>
    </dl>
  );
}
