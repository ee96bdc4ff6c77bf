import type { VNode } from 'preact';
import type { FeedEntry } from '../../../catalog/columns.js';
import { formatCount } from '../../../platform/text/count.js';
import type { Counts } from '../../../catalog/counts.js';
import type { Plan } from '../../../limits/plans.js';
import { limitOf, QUOTA_NAMES } from '../../../limits/quotas.js';
import { Badge, Notice, RelativeTime, Stats, UserText } from '../../parts/content/components.js';
import { numeric, Table } from '../../parts/content/table.js';

const COUNTS: readonly (readonly [keyof Counts, string])[] = [
  ['titles', 'Titles'],
  ['movies', 'Movies'],
  ['series', 'Series'],
  ['available_in_library', 'Available in the library'],
  ['people', 'People'],
  ['collections', 'Collections'],
];

/** The totals of the catalogue. */
export function Totals({ counts }: { readonly counts: Counts | undefined }): VNode {
  if (counts === undefined) return <Notice tone="warning">These numbers are unavailable right now.</Notice>;
  return <Stats stats={Object.fromEntries(COUNTS.map(([name, label]) => [label, formatCount(counts[name])]))} />;
}

/** The entries of the feed that changed last. */
export function Newest({ entries }: { readonly entries: readonly FeedEntry[] | undefined }): VNode {
  if (entries === undefined) return <Notice tone="warning">The latest changes are unavailable right now.</Notice>;
  if (entries.length === 0) return <p class="muted">The catalogue has no titles yet.</p>;
  return (
    <ol class="newest">
      {entries.map(({ svc_id: id, media_type: kind, title, updated_at: at }) => (
        <li key={id}>
          <a href={`/docs?title_id=${encodeURIComponent(id)}#getTitle`}>
            <UserText text={title} />
          </a>
          <Badge tone="info">{kind === 'movie' ? 'Movie' : 'Series'}</Badge>
          <span class="muted small">
            <RelativeTime at={at} />
          </span>
        </li>
      ))}
    </ol>
  );
}

/** The plans and their limits. */
export function Plans({ plans }: { readonly plans: readonly Plan[] | undefined }): VNode {
  if (plans === undefined) {
    return <Notice tone="warning">The plans cannot be shown right now. Their limits still apply.</Notice>;
  }
  return (
    <Table
      caption="Plans and their limits"
      hasCards
      columns={['Plan', ...numeric(...QUOTA_NAMES.map((name) => `Per ${name}`)), 'Commercial use']}
      rows={plans.map((plan) => [
        plan.name,
        ...QUOTA_NAMES.map((name) => formatCount(limitOf(plan, name))),
        plan.commercialUse ? 'Allowed' : 'Not allowed',
      ])}
    />
  );
}
