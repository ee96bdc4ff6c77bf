import { fromRfc3339, type Micros } from '../../../../src/platform/time/micros.js';
import { Mirror, toMicros } from '../../../feed-model/model/mirror.js';
import type { MirrorStep, Title } from '../history.js';
import type { Check } from './check.js';

/** Every mirror has the whole catalogue in the end, and got each entry once, except after a kill. */
export const mirrorsCheck: Check = {
  promise:
    'A mirror misses no entry and gets none twice, except after a crash, and no commit that was reported is lost.',
  judge(history) {
    const mirrors = new Map<string, Mirror>();
    const committed = new Map<string, Micros>();
    let commits = 0;
    let catalogue: readonly Title[] | undefined;
    for (const event of history) {
      if (event.kind === 'mirror') apply(mirrors, event);
      if (event.kind === 'catalogue') catalogue = event.titles;
      if (event.kind === 'commit') {
        commits += 1;
        for (const [id, stamp] of event.titles) committed.set(id, later(committed.get(id), fromRfc3339(stamp)));
      }
    }
    const violations: string[] = [];
    const stamps = new Map(catalogue?.map((title) => [title.svc_id, fromRfc3339(title.updated_at)]));
    for (const [id, stamp] of committed) {
      if ((stamps.get(id) ?? 0n) < stamp) violations.push(`The catalogue has lost a committed version of ${id}.`);
    }
    for (const mirror of mirrors.values()) {
      mirror.compareWith(catalogue ?? []);
      violations.push(...mirror.violations.map(({ what, where }) => `${SENTENCES[what]}: ${where}.`));
    }
    const received = [...mirrors.values()].map(({ name, entries }) => `${name} received ${entries} entries`);
    return { judged: [`${commits} commits`, ...received].join('; '), violations };
  },
};

const SENTENCES: Readonly<Record<Mirror['violations'][number]['what'], string>> = {
  lost: 'A mirror lacks the newest version of an entry',
  foreign: 'A mirror has an entry that the catalogue lacks',
  tie: 'An entry came twice, or two have one stamp',
  backwards: 'An entry came after a later one',
  page: 'A page is malformed',
  position: 'A position is wrong',
  failed: 'A follower failed',
  counts: 'The counts are wrong',
};

function apply(mirrors: Map<string, Mirror>, { mirror: name, step }: MirrorStep): void {
  if (step.did === 'begin') mirrors.set(name, new Mirror(name, toMicros(step.since)));
  const mirror = mirrors.get(name);
  if (step.did === 'resume') mirror?.resume(toMicros(step.since));
  if (step.did === 'receive') for (const entry of step.entries) mirror?.entry(entry);
  if (step.did === 'fail') mirror?.report('failed', step.why);
}

function later(one: Micros | undefined, other: Micros): Micros {
  return one !== undefined && one > other ? one : other;
}
