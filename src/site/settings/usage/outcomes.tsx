import type { VNode } from 'preact';
import { formatCount } from '../../../platform/text/count.js';
import type { UsageCounts } from '../../../usage/write-usage.js';
import { Stat } from '../../layout/components.js';
import { total } from './counts.js';

/** The number of requests, and what became of them. */
export function Outcomes({ counts }: { readonly counts: UsageCounts }): VNode {
  return (
    <dl class="stats">
      <Stat name="Requests">{formatCount(total(counts))}</Stat>
      <Stat name="Served">{formatCount(counts.served)}</Stat>
      <Stat name="Refused">{formatCount(counts.refused)}</Stat>
      <Stat name="Failed">{formatCount(counts.failed)}</Stat>
    </dl>
  );
}
